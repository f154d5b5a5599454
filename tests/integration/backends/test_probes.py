"""oneDNN, oneMKL and OpenMP where they are loaded, installed, broken, deadly or absent: real libraries throughout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cpulens.errors import BackendUnavailable
from cpulens.native import find
from tests_support import Program

SOURCES = str(Path(__file__).parents[3] / "src")
ASK = """
import json
from cpulens.backends import mkl, mkldnn, openmp
print(json.dumps({m.__name__.rpartition(".")[2]: [m.is_available(), m.why_not(), m.version()]
                  for m in (mkl, mkldnn, openmp)}))
"""


def answers(done: subprocess.CompletedProcess[bytes]) -> dict[str, list[object]]:
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, list[object]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_installed_but_not_loaded(program: Program) -> None:
    found = answers(program(ASK))
    for name, title in (("mkl", "oneMKL"), ("mkldnn", "oneDNN")):
        available, reason, version = found[name]
        assert available is True
        assert reason == f"{title} {version} is installed but not loaded: {str(reason).rpartition(': ')[2]}"
        assert os.path.exists(str(reason).rpartition(": ")[2])
    assert str(found["mkldnn"][2]).startswith("3.")
    assert found["openmp"][0] is True and "installed but not loaded" in str(found["openmp"][1])


def test_the_trial_leaves_the_process_as_it_is(program: Program) -> None:
    code = """
    from cpulens.native import loaded
    from cpulens.backends import mkl, mkldnn, openmp
    before = set(loaded.objects())
    assert mkl.is_available() and mkldnn.is_available() and openmp.is_available()
    new = {obj.name for obj in set(loaded.objects()) - before}
    assert not any(name.startswith(("libmkl", "libdnnl", "libgomp", "libiomp")) for name in new), new
    """
    done = program(code)
    assert done.returncode == 0, done.stderr.decode()


def test_loaded_by_the_program(program: Program) -> None:
    load = "from cpulens.native import find; a = find.load(find.ONEDNN); b = find.load(find.ONEMKL)\n"
    found = answers(
        program(load + "print(json.dumps([a._name, b._name]))\n".replace("json", "__import__('json')") + ASK)
    )
    assert str(found["mkldnn"][1]).startswith("oneDNN is loaded as /") and "libdnnl.so.3" in str(found["mkldnn"][1])
    assert str(found["mkl"][1]).startswith("oneMKL is loaded as /") and "libmkl_rt" in str(found["mkl"][1])
    assert found["mkldnn"][0] is found["mkl"][0] is True
    # oneDNN brought GNU's OpenMP with it.
    assert str(found["openmp"][1]).startswith("OpenMP is loaded as /")


def test_a_file_that_is_no_library(program: Program, tmp_path: Path) -> None:
    broken = tmp_path / "libdnnl.so.3"
    broken.write_text("not a library")
    found = answers(program(ASK, CPULENS_LIBDNNL=str(broken), CPULENS_LIBMKL=str(tmp_path / "nothing.so")))
    assert found["mkldnn"][0] is False
    assert f"oneDNN is here but does not load: {broken}" in str(found["mkldnn"][1])
    assert found["mkl"][0] is False and "nothing.so" in str(found["mkl"][1])
    assert found["mkldnn"][2] is None
    assert found["openmp"][0] is True, "the others are told all the same"


def test_a_library_that_kills_its_process(program: Program, tmp_path: Path) -> None:
    """A copy cut in half: the dynamic linker maps pages behind the end of the file and dies of it."""
    whole = find.load(find.ONEDNN)._name
    deadly = tmp_path / "libdnnl.so.3"
    shutil.copy(whole, deadly)
    os.truncate(deadly, os.path.getsize(whole) // 2)
    found = answers(program(ASK, CPULENS_LIBDNNL=str(deadly)))
    assert found["mkldnn"][0] is False
    assert "loading onednn ended its process (signal" in str(found["mkldnn"][1])
    assert found["mkl"][0] is True and found["openmp"][0] is True


def test_nothing_installed() -> None:
    """The interpreter below the environment: standard library and our sources only."""
    base = getattr(sys, "_base_executable", sys.executable)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CONDA", "DNNL", "MKL", "LD_"))}
    done = subprocess.run(
        [base, "-S", "-c", f"import sys; sys.path.insert(0, {SOURCES!r})\n{ASK}"],
        env={**clean, "PYTHONPATH": ""},
        capture_output=True,
        timeout=60,
    )
    found = answers(done)
    assert found["mkl"] == [False, found["mkl"][1], None]
    for name, package in (("mkl", "mkl"), ("mkldnn", "onednn-cpu-gomp")):
        assert "was not found in this environment" in str(found[name][1])
        assert f"pip install {package}" in str(found[name][1])


def test_no_child_can_be_started(program: Program) -> None:
    code = (
        "import subprocess\n"
        "def refuse(*a, **k): raise PermissionError(1, 'Operation not permitted')\n"
        "subprocess.Popen = refuse\n"
    )
    found = answers(program(code + ASK))
    assert found["mkl"][0] is False
    assert "no child can be started to try it (Operation not permitted)" in str(found["mkl"][1])


def test_a_program_that_embeds_python_is_not_started_again(program: Program) -> None:
    found = answers(program("import sys; sys.executable = '/usr/sbin/server'\n" + ASK))
    assert found["mkl"][0] is False
    assert "/usr/sbin/server is no Python interpreter that a child could run" in str(found["mkl"][1])


def test_two_openmp_runtimes(program: Program) -> None:
    """GNU's and Intel's in one process: found, told apart, counted, and set together."""
    done = program(
        """
        import ctypes, os, sys
        from cpulens.backends import openmp, settings
        assert openmp.runtimes() == [] and openmp.conflict() == ""
        ctypes.CDLL("libgomp.so.1")
        assert openmp.conflict() == ""
        ctypes.CDLL(os.path.join(sys.prefix, "lib", "libiomp5.so"))
        one, two = openmp.runtimes()
        assert (one.family, two.family) == ("GNU", "Intel")
        assert one.threads == two.threads == 3
        assert (one.proc_bind, one.places) == ("false", 0)
        assert "GNU's /" in openmp.conflict() and "Intel's /" in openmp.conflict()
        with settings({"openmp.num_threads": 2}):
            assert [r.threads for r in openmp.runtimes()] == [2, 2]
        assert [r.threads for r in openmp.runtimes()] == [3, 3]
        assert openmp.is_available() and "libiomp5.so" in openmp.why_not() and openmp.version() is None
        assert openmp.details()["conflict"] == openmp.conflict()
        """,
        OMP_NUM_THREADS="3",
    )
    assert done.returncode == 0, done.stderr.decode()


def test_a_runtime_that_would_bind_is_not_asked(program: Program) -> None:
    """With KMP_AFFINITY set, Intel's runtime binds the calling thread at its first call: looking must not cause it."""
    done = program(
        """
        import ctypes, os, sys
        from cpulens.backends import doctor, openmp
        before = os.sched_getaffinity(0)
        ctypes.CDLL(os.path.join(sys.prefix, "lib", "libiomp5.so"))
        (runtime,) = openmp.runtimes()
        assert (runtime.threads, runtime.proc_bind, runtime.places) == (None, None, None)
        assert doctor.snapshot()["runtimes"][0]["threads"] is None
        assert os.sched_getaffinity(0) == before
        assert openmp.runtimes(ask=True)[0].threads == 2
        """,
        KMP_AFFINITY="granularity=fine,compact,1,0",
        OMP_NUM_THREADS="2",
    )
    assert done.returncode == 0, done.stderr.decode()


def test_which_blas_numpy_uses(program: Program) -> None:
    """Independently: the library that numpy's extension module names is the one that is found, and only it."""
    done = program(
        """
        import os
        from cpulens.backends import blas, frameworks
        assert blas.libraries() == []
        import numpy
        (found,) = blas.libraries()
        said = numpy.__config__.show(mode="dicts")["Build Dependencies"]["blas"]["name"]
        assert found.name == "OpenBLAS" and "openblas" in said, said
        assert found.owner == "numpy" and found.threads and os.path.exists(found.path)
        assert blas.libraries(extra=False)[0].version is None
        assert "KMP_DUPLICATE_LIB_OK" not in os.environ      # threadpoolctl sets it at import
        (framework,) = frameworks.frameworks()
        assert framework.title == "numpy" and "OpenBLAS" in framework.libraries[0]
        assert "OPENBLAS_NUM_THREADS" in framework.by_environment
        assert framework.never == ("lines of single calls: OpenBLAS prints none",)
        """
    )
    assert done.returncode == 0, done.stderr.decode()


def test_a_shared_blas_counts_for_numpy_where_it_has_none_of_its_own() -> None:
    from cpulens.backends import blas

    assert blas.owner("/env/lib/python3.12/site-packages/numpy.libs/libopenblas.so") == "numpy"
    assert blas.owner("/env/lib/python3.12/site-packages/torch/lib/libtorch_cpu.so") == "torch"
    assert blas.owner("/usr/lib/x86_64-linux-gnu/libblas.so.3") == ""


def test_a_framework_is_known_by_its_file_and_its_oneDNN_by_its_text(program: Program, tmp_path: Path) -> None:
    """Real copies of oneDNN under the names of frameworks' files: exported, hidden, and without verbose output."""
    whole = Path(find.load(find.ONEDNN)._name)
    content = whole.read_bytes()
    hidden = content.replace(b"dnnl_set_verbose", b"hidn_set_verbose")
    assert hidden != content
    silent = hidden.replace(b"onednn_verbose,", b"onednn_silence,").replace(b"dnnl_verbose,", b"dnnl_silence,")
    (tmp_path / "libtensorflow_cc.so.2").write_bytes(content)
    (tmp_path / "libpaddle.so").write_bytes(hidden)
    (tmp_path / "libintel-ext-pt-cpu.so").write_bytes(silent)
    done = program(
        """
        import ctypes, json, sys
        for name in ("libtensorflow_cc.so.2", "libpaddle.so", "libintel-ext-pt-cpu.so"):
            ctypes.CDLL(f"{sys.argv[1]}/{name}")
        from cpulens.backends import frameworks, mkldnn
        print(json.dumps([frameworks.as_values(), mkldnn.why_not(), mkldnn.details()]))
        """,
        str(tmp_path),
    )
    assert done.returncode == 0, done.stderr.decode()
    found, reason, details = json.loads(done.stdout)
    by_title = {one["title"]: one for one in found}
    assert set(by_title) == {"TensorFlow", "PaddlePaddle", "Intel Extension for PyTorch"}
    tensorflow, paddle, ipex = (by_title[t] for t in ("TensorFlow", "PaddlePaddle", "Intel Extension for PyTorch"))
    assert tensorflow["libraries"] == ["oneDNN in libtensorflow_cc.so.2"]
    assert "verbose lines of oneDNN: switched by dnnl_set_verbose" in tensorflow["at_run_time"]
    assert "TF_ENABLE_ONEDNN_OPTS" in tensorflow["by_environment"]
    assert paddle["libraries"] == ["oneDNN inside libpaddle.so, hidden"]
    assert "ONEDNN_VERBOSE" in paddle["by_environment"]
    assert "verbose lines of oneDNN at run time: its setter is hidden" in paddle["never"]
    assert ipex["libraries"] == ["oneDNN inside libintel-ext-pt-cpu.so, without verbose output"]
    assert any("this build holds none" in words for words in ipex["never"])
    assert reason == f"oneDNN is loaded as {tmp_path}/libtensorflow_cc.so.2"
    assert [copy["verbose_by"] for copy in details["copies"]] == ["dnnl_set_verbose"]
    assert [copy["framework"] for copy in details["hidden"]] == ["PaddlePaddle"]


@pytest.mark.torch
def test_frameworks_with_copies_of_their_own(program: Program) -> None:
    done = program(
        """
        import json
        import torch, openvino, ctranslate2, scipy.linalg
        openvino.Core().get_property("CPU", "FULL_DEVICE_NAME")
        from cpulens.backends import frameworks, mkl, mkldnn
        print(json.dumps([frameworks.as_values(), mkldnn.details(), mkl.details(), mkl.why_not()]))
        """
    )
    assert done.returncode == 0, done.stderr.decode()
    found, onednn, mkl, mkl_reason = json.loads(done.stdout)
    by_title = {one["title"]: one for one in found}
    assert {"PyTorch", "OpenVINO", "CTranslate2", "numpy", "scipy"} <= set(by_title)
    torch, openvino, translate = (by_title[title] for title in ("PyTorch", "OpenVINO", "CTranslate2"))
    assert torch["libraries"] == ["oneMKL in libtorch_cpu.so", "oneDNN in libtorch_cpu.so"]
    assert any("torch._C._verbose" in way for way in torch["at_run_time"])
    assert openvino["libraries"] == ["oneDNN inside libopenvino_intel_cpu_plugin.so, hidden"]
    assert "ONEDNN_VERBOSE" in openvino["by_environment"] and any("TBB" in words for words in openvino["never"])
    assert {"MKL_VERBOSE", "ONEDNN_VERBOSE"} <= set(translate["by_environment"])
    assert "OpenBLAS" in by_title["scipy"]["libraries"][0]
    assert onednn["version"].startswith("3.") and {one["framework"] for one in onednn["hidden"]} == {
        "CTranslate2",
        "OpenVINO's CPU plugin",
    }
    assert "PyTorch 2." in mkl_reason and "is built with oneMKL; loaded as /" in mkl_reason
    assert mkl["version"].startswith("202")


@pytest.mark.torch
def test_onednn_hidden_in_openvino_alone(program: Program) -> None:
    done = program(
        """
        import openvino
        openvino.Core().get_property("CPU", "FULL_DEVICE_NAME")
        from cpulens.backends import mkldnn
        assert mkldnn.is_available() and mkldnn.version() is None
        assert "oneDNN is inside OpenVINO's CPU plugin, loaded as /" in mkldnn.why_not()
        assert mkldnn.why_not().endswith("which hides its functions")
        """
    )
    assert done.returncode == 0, done.stderr.decode()


def test_opt_einsum_present_broken_and_absent(program: Program, tmp_path: Path) -> None:
    (tmp_path / "opt_einsum.py").write_text("raise RuntimeError('broken on purpose')")
    code = """
    import sys
    from cpulens.backends import opt_einsum
    print(opt_einsum.details()["available"], "opt_einsum" in sys.modules)
    print(opt_einsum.is_available(), opt_einsum.get_opt_einsum() is not None, opt_einsum.enabled, opt_einsum.strategy)
    print(opt_einsum.why_not())
    try:
        opt_einsum.enabled = True
    except Exception as error:
        print(type(error).__name__, error)
    """
    here = program(code).stdout.decode().splitlines()
    assert here[0] == "True False"
    assert here[1] == "True True True auto" and here[2].startswith("opt_einsum 3.")
    broken = program(code, PYTHONPATH=str(tmp_path)).stdout.decode().splitlines()
    assert broken[1] == "False False False None"
    assert broken[2] == "opt_einsum is installed but raises at import: RuntimeError: broken on purpose"
    assert broken[3].startswith("UsageError opt_einsum has no use for enabled=True")
    absent = program(
        "import sys; sys.modules['opt_einsum'] = None\n" + "\n".join(map(str.strip, code.splitlines()[:3]))
    )
    assert absent.returncode == 0


def test_opt_einsum_not_installed() -> None:
    base = getattr(sys, "_base_executable", sys.executable)
    code = (
        f"import sys; sys.path.insert(0, {SOURCES!r})\nfrom cpulens.backends import opt_einsum as o\nprint(o.why_not())"
    )
    done = subprocess.run([base, "-S", "-c", code], capture_output=True, timeout=60)
    assert done.stdout.decode().strip() == "the package opt_einsum is not installed: pip install opt-einsum"


def test_threads_without_a_runtime_say_why(program: Program) -> None:
    done = program("from cpulens.backends import openmp; openmp.get_num_threads()")
    assert b"BackendUnavailable: there are no OpenMP threads to count in this process" in done.stderr
    assert issubclass(BackendUnavailable, Exception)
