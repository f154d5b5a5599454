"""Every switch set and put back: alone, several, nested, after exceptions; with PyTorch and without."""

from __future__ import annotations

import pytest

from cpulens.backends import settings
from cpulens.errors import BackendUnavailable, UsageError
from tests_support import Program

CHECK = """
import contextlib, warnings
from cpulens.backends import settings, verbosity
from cpulens.errors import BackendUnavailable, UsageError

def raises(kind, ask, *words):
    try:
        ask()
    except kind as error:
        for word in words:
            assert word in str(error), (word, str(error))
        assert "\\n" not in str(error)
    else:
        raise AssertionError(f"no {kind.__name__}")

def enter(values):
    with settings(values):
        pass
"""


@pytest.mark.torch
def test_every_switch_is_set_and_put_back(program: Program) -> None:
    """Another value for each, one at a time, with an exception inside; then the whole state is what it was."""
    done = program(
        CHECK
        + """
import torch
OTHERS = {
    "mkl.verbose": "ON", "mkldnn.verbose": 2, "openmp.num_threads": 1, "opt_einsum.strategy": "greedy",
    "python_native.disabled_operations": ["scaled_mm"], "cuda.preferred_rocm_fa_library": "ck",
    "fp32_precision": "ieee", "mkldnn.fp32_precision": "bf16", "mkldnn.matmul.fp32_precision": "bf16",
    "mkldnn.conv.fp32_precision": "bf16", "mkldnn.rnn.fp32_precision": "bf16",
    "cuda.preferred_blas_library": "default", "cuda.preferred_linalg_library": "cusolver",
}
tree = lambda: [torch._C._get_fp32_precision_getter(b, o) for b in ("generic", "mkldnn", "cuda")
                for o in (("all",) if b == "generic" else ("all", "matmul", "conv", "rnn"))]
torch.set_num_threads(2)
before, precisions = settings.read(), tree()
tried = []
for row in settings.TABLE:
    if row.name in settings.unavailable() or row.change is None:
        continue
    value = OTHERS.get(row.name, None if before[row.name] is None else not before[row.name])
    if value is None or row.name == "cuda.preferred_linalg_library":
        continue
    try:
        with settings({row.name: value}):
            inside = settings.read(row.name)[row.name]
            # An operator that no DSL brings can't be listed; it is looked up by its name below.
            expected = {"ON": 1}.get(value, value) if not isinstance(value, list) else []
            if row.name != "cuda.preferred_blas_library":   # this build has one only
                assert inside == expected, (row.name, inside)
            raise KeyError(row.name)
    except KeyError as error:
        assert error.args == (row.name,)
    assert settings.diff(before, settings.read()) == {}, (row.name, settings.diff(before, settings.read()))
    assert tree() == precisions, (row.name, tree())
    tried.append(row.name)
assert len(tried) >= 33, tried
print(len(tried))
from cpulens.backends import python_native
with settings({"python_native.disabled_operations": ["scaled_mm"]}):
    assert torch.backends.python_native.is_operation_disabled("scaled_mm")
assert not python_native.is_operation_disabled("scaled_mm")
"""
    )
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.torch
def test_several_nested_and_refused(program: Program) -> None:
    done = program(
        CHECK
        + """
import torch
b = torch.backends
before = settings.read()
with settings({"mkldnn.enabled": False, "cudnn.benchmark": True, "opt_einsum.enabled": True, "nnpack.enabled": False}):
    assert (b.mkldnn.enabled, b.cudnn.benchmark, torch._C._get_nnpack_enabled()) == (False, True, False)
    outer = settings.read()
    with settings({"mkldnn.enabled": True, "mha.fastpath_enabled": False}):
        assert b.mkldnn.enabled and not b.mha.get_fastpath_enabled()
        b.cudnn.benchmark = False            # the program's own change inside: not of this scope, so it stays
    assert settings.diff(outer, settings.read()) == {"cudnn.benchmark": (True, False)}
assert settings.diff(before, settings.read()) == {}

# A strategy needs opt_einsum enabled; what was found comes back in the opposite order.
with settings({"opt_einsum.strategy": "optimal", "opt_einsum.enabled": False}):
    assert (b.opt_einsum.strategy, b.opt_einsum.enabled) == ("optimal", False)
assert (b.opt_einsum.strategy, b.opt_einsum.enabled) == ("auto", True)
with b.opt_einsum.flags(strategy="greedy"):   # PyTorch's own scope still works after ours
    assert b.opt_einsum.strategy == "greedy"
b.opt_einsum.strategy = "greedy"              # an assignment shadows PyTorch's functions from now on
with settings({"opt_einsum.strategy": "optimal"}):
    assert b.opt_einsum.strategy == "optimal"
assert b.opt_einsum.strategy == "greedy"
b.opt_einsum.strategy = "auto"

# A failure half-way undoes the part before it.
raises(UsageError, lambda: enter({"mkldnn.enabled": False, "opt_einsum.strategy": "best"}), "auto, greedy, optimal")
raises(UsageError, lambda: enter({"mkldnn.enabled": False, "fp32_precision": "fp7"}), "fp32_precision can't be set")
raises(UsageError, lambda: enter({"mkldnn.enabled": "yes"}), "takes a bool")
raises(UsageError, lambda: enter({"openmp.num_threads": 0}), "from 1 on")
raises(UsageError, lambda: enter({"openmp.num_threads": True}), "takes a int")
raises(UsageError, lambda: enter({"mkldnn.verbose": 7}), "verbose level")
raises(UsageError, lambda: enter({"mkldnn.enable": False}), "did you mean mkldnn.enabled?")
raises(UsageError, lambda: enter({"cpu.cpu_capability": "AVX2"}), "can only be read", "ATEN_CPU_CAPABILITY")
raises(UsageError, lambda: enter({"cuda.matmul.allow_fp16_reduced_precision_reduction_split_k": False}), "as a pair")
raises(BackendUnavailable, lambda: enter({"cudnn.benchmark_limit": 3}), "built without its device")
raises(BackendUnavailable, lambda: enter({"mkldnn.allow_tf32": True}), "built without its device")
raises(BackendUnavailable, lambda: enter({"cuda.cublas_workspace_size": 1 << 20}), "")
raises(BackendUnavailable, lambda: settings.read("cuda.cufft_plan_cache.size"), "CUDA")
assert settings.diff(before, settings.read()) == {}

# The pair of reductions: both come back.
with settings({"cuda.matmul.allow_fp16_reduced_precision_reduction": (False, False)}):
    assert b.cuda.matmul.allow_fp16_reduced_precision_reduction_split_k is False
    with settings({"cuda.matmul.allow_fp16_reduced_precision_reduction": False}):
        assert b.cuda.matmul.allow_fp16_reduced_precision_reduction_split_k is True
    assert b.cuda.matmul.allow_fp16_reduced_precision_reduction_split_k is False
assert settings.diff(before, settings.read()) == {}

# oneDNN's place in the tree of precisions is set, not the root.
with settings({"fp32_precision": "ieee"}):
    with settings({"mkldnn.fp32_precision": "bf16"}):
        assert settings.read("fp32_precision", "mkldnn.matmul.fp32_precision") == {
            "fp32_precision": "ieee", "mkldnn.matmul.fp32_precision": "bf16"}
    assert settings.read("mkldnn.fp32_precision") == {"mkldnn.fp32_precision": "ieee"}
assert settings.diff(before, settings.read()) == {}

@settings({"mkldnn.enabled": False})
def decorated():
    return b.mkldnn.enabled
assert decorated() is False and b.mkldnn.enabled is True

# A program that forbids plain assignments still has scopes.
b.disable_global_flags()
with settings({"cudnn.enabled": False, "miopen.immediate": True}):
    assert not b.cudnn.enabled
assert settings.diff(before, settings.read()) == {}
"""
    )
    assert done.returncode == 0, done.stderr.decode()


def test_without_pytorch(program: Program) -> None:
    done = program(
        CHECK
        + """
import ctypes, sys
from cpulens.backends import openmp, opt_einsum
before = settings.read()
assert set(before) >= {"cpu.cpu_capability", "cpu.onednn_isa", "mkl.verbose", "mkldnn.verbose", "opt_einsum.enabled"}
reasons = settings.unavailable()
assert not set(before) & set(reasons) and set(before) | set(reasons) == set(settings.names())
for name, reason in reasons.items():
    assert "PyTorch" in reason or name == "openmp.num_threads", (name, reason)
raises(BackendUnavailable, lambda: enter({"mkldnn.enabled": False}), "inside PyTorch", "installed")
raises(BackendUnavailable, lambda: enter({"openmp.num_threads": 1}), "no OpenMP threads to set")

with settings({"mkldnn.verbose": "ON_CREATION", "mkl.verbose": 1}):
    assert settings.read("mkldnn.verbose", "mkl.verbose") == {"mkldnn.verbose": 2, "mkl.verbose": 1}
    with settings({"mkldnn.verbose": 0}):
        assert settings.read("mkldnn.verbose") == {"mkldnn.verbose": 0}

ctypes.CDLL("libgomp.so.1")
found = openmp.get_num_threads()
with contextlib.suppress(KeyError), settings({"openmp.num_threads": found + 3}):
    assert openmp.get_num_threads() == found + 3
    raise KeyError
assert openmp.get_num_threads() == found

opt_einsum.enabled = False
with settings({"opt_einsum.enabled": True, "opt_einsum.strategy": "greedy"}):
    assert (opt_einsum.enabled, opt_einsum.strategy) == (True, "greedy")
assert (opt_einsum.enabled, opt_einsum.strategy) == (False, "auto")
assert not verbosity._requests and "torch" not in sys.modules
"""
    )
    assert done.returncode == 0, done.stderr.decode()


def test_verbose_level_of_the_environment_is_the_base(program: Program) -> None:
    code = CHECK + "print(settings.read('mkldnn.verbose', 'mkl.verbose'))"
    assert b"{'mkldnn.verbose': 1, 'mkl.verbose': 0}" in program(code, ONEDNN_VERBOSE="1").stdout
    assert b"{'mkldnn.verbose': None, 'mkl.verbose': 1}" in program(code, DNNL_VERBOSE="all", MKL_VERBOSE="1").stdout


def test_diff() -> None:
    before, after = {"a": 1, "b": None, "c": True}, {"a": 1, "b": 2, "d": False}
    assert settings.diff(before, after) == {
        "b": (None, 2),
        "c": (True, settings.ABSENT),
        "d": (settings.ABSENT, False),
    }
    assert repr(settings.ABSENT) == "absent"


def test_names_are_unique_and_unknown_ones_refused() -> None:
    assert len(set(settings.names())) == len(settings.TABLE)
    with pytest.raises(UsageError, match=r"no switch 'nonsense'; settings.names\(\) lists them"):
        settings({"nonsense": 1})
    with pytest.raises(BackendUnavailable, match="PyTorch"):
        settings.read("mha.fastpath_enabled")
