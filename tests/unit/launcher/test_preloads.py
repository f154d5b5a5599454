"""Which libraries are found, tried and preloaded, and what is set beside them; with real shared libraries."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from run_cpu import libraries
from run_cpu.cli import parse
from run_cpu.environment import Variable, kept_notes, variables_of
from run_cpu.placement import Instance
from run_cpu.preload import Preloads, choose_preloads

if not sys.platform.startswith("linux"):
    pytest.skip("the launcher is for Linux", allow_module_level=True)

INSTANCE = Instance(0, (0, 1, 2, 3), 4)


def a_real_library() -> str:
    """Some shared library of this process, to stand in for one that is not installed here."""
    with open("/proc/self/maps") as maps:
        paths = [line.split()[-1] for line in maps if ".so" in line]
    # One that needs nothing beside it: what lies in a wheel's folder would not load from elsewhere.
    return next(path for name in ("/libm.so", "/libm-", "/libc.so") for path in paths if name in path)


@pytest.fixture
def prefix(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """An environment whose lib folder holds copies of a real library under these names."""

    def make(*names: str) -> dict[str, str]:
        (tmp_path / "lib").mkdir(exist_ok=True)
        for name in names:
            shutil.copy(a_real_library(), tmp_path / "lib" / name)
        return {"CONDA_PREFIX": str(tmp_path)}

    return make


def choose(environ: dict[str, str], *options: str) -> Preloads:
    return choose_preloads(parse([*options, "prog"]), environ, "/")


def names(preloads: Preloads) -> list[str]:
    return [os.path.basename(path) for path in preloads.paths]


@pytest.mark.parametrize(
    "name", ["libtcmalloc.so", "libtcmalloc.so.4", "libtcmalloc_minimal.so.4", "libtcmalloc_minimal.so.4.5.9"]
)
def test_tcmalloc_by_its_real_names(name: str, prefix: Callable[..., dict[str, str]]) -> None:
    preloads = choose(prefix(name, "libtcmalloc.so.4-gdb.py", "libtcmalloc_debug.so.4"), "--disable-iomp")
    assert (names(preloads), preloads.allocator) == ([name], "tcmalloc")


def test_full_tcmalloc_before_minimal_and_environments_before_the_system(
    prefix: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    environ = prefix("libtcmalloc_minimal.so.4", "libtcmalloc.so.4")
    assert libraries.find("tcmalloc", environ)[:2] == [
        str(tmp_path / "lib/libtcmalloc.so.4"),
        str(tmp_path / "lib/libtcmalloc_minimal.so.4"),
    ]


def test_tcmalloc_then_jemalloc_then_nothing(prefix: Callable[..., dict[str, str]]) -> None:
    environ = prefix("libjemalloc.so.2", "libmimalloc.so.2")
    assert names(choose(environ, "--disable-iomp")) == ["libjemalloc.so.2"]
    assert names(choose(environ, "--disable-iomp", "--memory-allocator", "mimalloc")) == ["libmimalloc.so.2"]
    assert names(choose(environ, "--disable-iomp", "--use-default-allocator")) == []
    missing = choose(environ, "--disable-iomp", "--enable-tcmalloc")
    assert missing.paths == () and "tcmalloc was asked for" in missing.warnings[0]


def test_what_does_not_load_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    environ = {"CONDA_PREFIX": str(tmp_path)}
    broken = tmp_path / "lib/libtcmalloc.so.4"
    real = Path(a_real_library()).read_bytes()
    machine = (62).to_bytes(2, "little") if real[18:20] != (62).to_bytes(2, "little") else (183).to_bytes(2, "little")
    for content, reason in (
        (b"INPUT(-ltcmalloc)\n", "not a shared library"),
        (real[:18] + machine + real[20:], "built for another processor"),
        (real[:4096], "does not load in a child process"),
    ):
        broken.write_bytes(content)
        libraries._listed.cache_clear()
        preloads = choose(environ, "--disable-iomp", "--enable-tcmalloc")
        assert preloads.paths == ()
        assert reason in preloads.reasons[0]


@pytest.mark.parametrize("own", ["/opt/libtcmalloc_minimal.so.4", "libjemalloc.so.2", "/x/y.so:/z/libmimalloc.so.2.1"])
def test_no_second_allocator(own: str, prefix: Callable[..., dict[str, str]]) -> None:
    environ = {**prefix("libtcmalloc.so.4"), "LD_PRELOAD": own}
    assert choose(environ, "--disable-iomp").paths == ()


def test_the_order_of_ld_preload(prefix: Callable[..., dict[str, str]]) -> None:
    environ = {**prefix("libiomp5.so", "libtcmalloc.so.4"), "LD_PRELOAD": "/mine.so"}
    preloads = choose(environ)
    assert names(preloads) == ["libiomp5.so", "libtcmalloc.so.4"]
    value = setting("LD_PRELOAD", variables_of(INSTANCE, preloads, environ, True))
    assert value is not None
    assert [os.path.basename(path) for path in value.split(":")] == ["libiomp5.so", "libtcmalloc.so.4", "mine.so"]


@pytest.mark.parametrize("name", ["OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"])
def test_libiomp5_is_not_preloaded_beside_thread_binding(name: str, prefix: Callable[..., dict[str, str]]) -> None:
    """With both, all of its threads would end up on one CPU."""
    environ = {**prefix("libiomp5.so"), name: "close"}
    preloads = choose(environ, "--use-default-allocator")
    assert (preloads.paths, preloads.openmp) == ((), "")
    assert f"{name}=close" in preloads.reasons[0]
    variables = variables_of(INSTANCE, preloads, environ, True)
    assert setting("KMP_AFFINITY", variables) is None
    assert any(f"{name}=close is yours and stays" in note for note in kept_notes(variables, INSTANCE, environ))
    harmless = {**environ, name: "false"}
    assert names(choose(harmless, "--use-default-allocator")) == ["libiomp5.so"]


def setting(name: str, variables: list[Variable]) -> str | None:
    return next((variable.value for variable in variables if variable.name == name), None)


def test_intel_openmp_is_pinned_with_reset_or_not_at_all() -> None:
    iomp = Preloads(("/lib/libiomp5.so",), "", "iomp5")
    assert setting("KMP_AFFINITY", variables_of(INSTANCE, iomp, {}, True)) == "reset,granularity=fine,compact,1,0"
    assert setting("KMP_BLOCKTIME", variables_of(INSTANCE, iomp, {}, True)) == "1"
    unpinned = [
        variables_of(INSTANCE, iomp, {}, bound=False),  # every instance would start at the first core
        variables_of(INSTANCE, iomp, {}, bound=True, smt=True),
        variables_of(INSTANCE._replace(threads=2), iomp, {}, True),  # a quota: two threads may roam four CPUs
    ]
    assert [setting("KMP_AFFINITY", variables) for variables in unpinned] == [None] * 3
    without = variables_of(INSTANCE, Preloads(), {}, True)
    assert {variable.name for variable in without} == {
        *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    }


def test_the_users_own_variables_stay_and_are_said() -> None:
    own = {"OMP_NUM_THREADS": "9", "KMP_AFFINITY": "compact", "MALLOC_CONF": "narenas:1"}
    variables = variables_of(INSTANCE, Preloads(("/l",), "jemalloc", "iomp5"), own, True)
    assert [setting(name, variables) for name in own] == [None, None, None]
    notes = kept_notes(variables, INSTANCE, own)
    assert "OMP_NUM_THREADS=9 is yours and stays, more than it has CPUs; the plan has 4 threads" in notes[0]
    assert "without reset" in notes[1]


def test_jemallocs_settings_also_when_it_was_found_by_itself() -> None:
    jemalloc = Preloads(("/lib/libjemalloc.so.2",), "jemalloc")
    assert setting("MALLOC_CONF", variables_of(INSTANCE, jemalloc, {}, True)) == (
        "oversize_threshold:1,background_thread:true,metadata_thp:auto"
    )
    steady = variables_of(INSTANCE, jemalloc, {}, True, benchmark=True)
    assert "dirty_decay_ms:-1" in (setting("MALLOC_CONF", steady) or "")


def test_libraries_of_another_host_are_looked_for_there_only(tmp_path: Path) -> None:
    folder = tmp_path / "usr/lib/aarch64-linux-gnu"
    folder.mkdir(parents=True)
    (folder / "libtcmalloc.so.4").write_bytes(b"\x7fELF of an Arm host")
    preloads = choose_preloads(parse(["prog"]), dict(os.environ) | {"LD_PRELOAD": ""}, str(tmp_path))
    assert preloads.paths == ("/usr/lib/aarch64-linux-gnu/libtcmalloc.so.4",)


def test_what_ldconfig_has_recorded_is_found(tmp_path: Path) -> None:
    odd = tmp_path / "opt/odd"
    odd.mkdir(parents=True)
    (odd / "libjemalloc.so.2").write_bytes(b"")
    (tmp_path / "etc").mkdir()
    cache = b"ld.so-1.7.0\0glibc-ld.so.cache1.1\0libjemalloc.so.2\0/opt/odd/libjemalloc.so.2\0/gone/libjemalloc.so.1\0"
    (tmp_path / "etc/ld.so.cache").write_bytes(cache)
    assert libraries.find("jemalloc", {}, str(tmp_path)) == ["/opt/odd/libjemalloc.so.2"]


def test_this_machines_ldconfig_cache_is_understood() -> None:
    """Some library that ldconfig lists stands in its cache as the plain string that is searched for."""
    cache = Path("/etc/ld.so.cache")
    if not cache.exists():
        pytest.skip("no ldconfig cache here")
    strings = cache.read_bytes().split(b"\0")
    assert any(s.startswith(b"/") and b".so" in s and os.path.exists(s) for s in strings)
