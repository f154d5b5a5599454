"""Finding and loading the libraries: what is used, and what is said when there is none that works."""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
from pathlib import Path

import pytest

from tests_support import Program

SOURCES = str(Path(__file__).parents[3] / "src")

LOAD = """
    from cpulens.errors import BackendUnavailable
    from cpulens.native import find, mkl, onednn
    try:
        print("loaded", onednn.library().path)
    except BackendUnavailable as error:
        print(error)
"""


def installed(name: str, distribution: str) -> Path:
    (file,) = [file for file in importlib.metadata.files(distribution) or [] if file.name == name]
    return Path(str(file.locate())).resolve()


@pytest.fixture
def libdnnl() -> Path:
    return installed("libdnnl.so.3", "onednn-cpu-gomp")


def said(program: Program, code: str = LOAD, **environ: str) -> str:
    done = program(code, **environ)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().strip()


def test_the_installed_distribution_is_found(program: Program, libdnnl: Path) -> None:
    assert said(program) == f"loaded {libdnnl}"


def test_the_variable_wins(program: Program, libdnnl: Path, tmp_path: Path) -> None:
    copy = tmp_path / "oneDNN of mine.so"
    copy.symlink_to(libdnnl)
    assert said(program, CPULENS_LIBDNNL=str(copy)) == f"loaded {copy}"


def test_a_loaded_copy_is_used_again(program: Program, libdnnl: Path, tmp_path: Path) -> None:
    copy = tmp_path / "libdnnl.so.3.2"
    shutil.copyfile(libdnnl, copy)
    code = f"""
    import ctypes
    ctypes.CDLL({str(copy)!r})
    {LOAD}
    from cpulens.native import loaded
    print(sum("libdnnl" in one.name for one in loaded.objects()))
    """
    assert said(program, code).split("\n") == [f"loaded {copy}", "1"]


def test_a_wrong_path_is_said_in_the_linkers_words(program: Program) -> None:
    words = said(program, CPULENS_LIBDNNL="/nowhere/libdnnl.so.3")
    assert words == (
        "oneDNN is here but does not load: /nowhere/libdnnl.so.3: cannot open shared object file: "
        "No such file or directory"
    )


def test_another_library_is_not_taken_for_it(program: Program) -> None:
    words = said(program, CPULENS_LIBDNNL="libm.so.6")
    assert words == "libm.so.6 is not oneDNN: it exports no dnnl_version"
    code = LOAD.replace("onednn.library()", "mkl.library()")
    assert said(program, code, CPULENS_LIBMKL="libm.so.6").startswith("libm.so.6 is not oneMKL's libmkl_rt")


def test_a_library_of_another_processor(program: Program, libdnnl: Path, tmp_path: Path) -> None:
    foreign = bytearray(libdnnl.read_bytes()[:4096])
    foreign[18:20] = (183 if sys.byteorder == "little" else 62).to_bytes(2, sys.byteorder)  # e_machine: AArch64
    path = tmp_path / "libdnnl.so.3"
    path.write_bytes(foreign)
    words = said(program, CPULENS_LIBDNNL=str(path))
    assert words.startswith(f"oneDNN is here but does not load: {path}: ")


def test_a_missing_openmp_runtime_names_its_package(program: Program, libdnnl: Path, tmp_path: Path) -> None:
    path = tmp_path / "libdnnl.so.3"
    path.write_bytes(libdnnl.read_bytes().replace(b"\0libgomp.so.1\0", b"\0libgomp.so.9\0"))
    words = said(program, CPULENS_LIBDNNL=str(path))
    assert "libgomp.so.9: cannot open shared object file" in words
    assert words.endswith("install GNU's OpenMP runtime (Debian and Ubuntu: apt install libgomp1)")


def test_what_lies_beside_a_library_is_found_for_it(program: Program, tmp_path: Path) -> None:
    # Wheels put a library and what it needs into one folder, where the linker does not look.
    tcm = installed("libtcm.so.1", "tcmlib")
    renamed = tmp_path / "libtcm.so.1"
    renamed.write_bytes(tcm.read_bytes().replace(b"\0libhwloc.so.15\0", b"\0libhwlok.so.15\0"))
    code = """
    from cpulens.errors import BackendUnavailable
    from cpulens.native import find
    library = find.NativeLibrary("TCM", ("libtcm.so.1",), (), "TCM_HERE", (), "tcmlib", "")
    try:
        print("loaded", find.load(library)._name)
    except BackendUnavailable as error:
        print(error)
    """
    assert said(program, code, TCM_HERE=str(tcm)) == f"loaded {tcm}"
    assert "libhwlok.so.15: cannot open shared object file" in said(program, code, TCM_HERE=str(renamed))
    # A file that carries the name but does not help ends the search instead of repeating it.
    shutil.copyfile(tcm.parent / "libhwloc.so.15", tmp_path / "libhwlok.so.15")
    assert "libhwlok.so.15: cannot open shared object file" in said(program, code, TCM_HERE=str(renamed))


@pytest.mark.parametrize(
    ("machine", "library", "words"),
    [
        ("x86_64", "onednn", "install it with: pip install onednn-cpu-gomp"),
        ("x86_64", "mkl", "install it with: pip install mkl"),
        ("aarch64", "onednn", "PyPI has no oneDNN wheel for aarch64: install oneDNN 3.x from conda-forge"),
        ("aarch64", "mkl", "oneMKL exists for x86-64 only: on aarch64 there is none to install"),
    ],
)
def test_none_at_all(program: Program, machine: str, library: str, words: str) -> None:
    # An empty environment: no site-packages, and a prefix without libraries.
    code = f"""
    import sys, platform
    sys.path[:] = [path for path in sys.path if "site-packages" not in path] + [{SOURCES!r}]
    sys.prefix = "/nowhere"
    platform.machine = lambda: "{machine}"
    {LOAD.replace("onednn.library()", f"{library}.library()")}
    """
    title = {"onednn": "oneDNN (libdnnl.so.3)", "mkl": "oneMKL (libmkl_rt.so.3)"}[library]
    assert said(program, code, CONDA_PREFIX="", MKLROOT="", DNNLROOT="").startswith(f"{title} was not found")
    assert words in said(program, code, CONDA_PREFIX="", MKLROOT="", DNNLROOT="")
