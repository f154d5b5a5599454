"""Every name that PyTorch documents under torch.backends has its counterpart here, with the same parameters."""

from __future__ import annotations

import json

import pytest

from cpulens.errors import BackendUnavailable
from tests_support import Program

DOCUMENTED = {
    "cpu": "get_cpu_capability",
    "mkl": "VERBOSE_ON VERBOSE_OFF is_available verbose",
    "mkldnn": "VERBOSE_ON VERBOSE_OFF VERBOSE_ON_CREATION is_available is_acl_available verbose",
    "openmp": "is_available",
    "nnpack": "flags is_available set_flags",
    "kleidiai": "is_available",
    "opt_einsum": "enabled get_opt_einsum is_available strategy",
    "mha": "get_fastpath_enabled set_fastpath_enabled",
    "python_native": (
        "available_dsls all_dsls triton cutedsl disable_operations enable_operations operations_disabled "
        "get_dsl_operations is_dsl_disabled is_operation_disabled"
    ),
    "python_native.triton": "enabled disabled",
    "python_native.cutedsl": "enabled disabled",
    "xeon.run_cpu": "create_args",
    "cuda": (
        "SDPAParams allow_fp16_bf16_reduction_math_sdp blas_workspace_size can_use_cudnn_attention "
        "can_use_efficient_attention can_use_flash_attention cublas_workspace_size cublaslt_workspace_size "
        "cudnn_sdp_enabled cufft_plan_cache enable_cudnn_sdp enable_flash_sdp enable_math_sdp enable_mem_efficient_sdp "
        "flash_sdp_enabled fp16_bf16_reduction_math_sdp_allowed is_built is_ck_sdpa_available "
        "is_flash_attention_available math_sdp_enabled matmul mem_efficient_sdp_enabled preferred_blas_library "
        "preferred_linalg_library preferred_rocm_fa_library sdp_kernel"
    ),
    "cuda.cufft_plan_cache": "clear max_size size",
    "cuda.matmul": (
        "allow_bf16_reduced_precision_reduction allow_bf16_reduced_precision_reduction_split_k "
        "allow_fp16_reduced_precision_reduction allow_fp16_reduced_precision_reduction_split_k allow_tf32 "
        "prefer_cublaslt_grouped_gemm"
    ),
    "cudnn": "allow_tf32 benchmark benchmark_limit deterministic enabled is_available version",
    "cusparselt": "get_max_alg_id is_available version",
    "miopen": "immediate",
    "mps": "get_core_count get_name is_available is_built is_macos13_or_newer is_macos_or_newer",
}
NAMES = [f"{space}.{name}" for space, names in DOCUMENTED.items() for name in names.split()]

WALK = """
import importlib, inspect, json, sys

def space(root, path):
    first, _, rest = path.partition(".")
    found = importlib.import_module(f"{root}.{first}")
    for part in rest.split(".") if rest else []:
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(f"{root}.{path}")
    return found

def parameters(value):
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    kinds = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}
    return [
        (kinds.get(p.kind.name, "") + p.name, None if p.default is p.empty else repr(p.default), p.default is p.empty)
        for p in signature.parameters.values()
    ]

def answer(ask):
    from cpulens.errors import BackendUnavailable
    try:
        return {"value": repr(ask())}
    except BackendUnavailable as error:
        return {"sentence": str(error)}
"""


def test_each_name_is_found_without_pytorch_loaded(program: Program) -> None:
    code = WALK + (
        "names = sys.argv[1].split()\n"
        "print(json.dumps([n for n in names if n.rpartition('.')[2] not in"
        " dir(space('cpulens.backends', n.rpartition('.')[0]))]))\n"
        "assert 'torch' not in sys.modules"
    )
    done = program(code, " ".join(NAMES))
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize("space", [name for name in DOCUMENTED if "." not in name])
def test_each_space_is_a_module_to_import(program: Program, space: str) -> None:
    done = program(
        f"import cpulens.backends.{space} as one; from cpulens.backends import {space}; assert one is {space}"
    )
    assert done.returncode == 0, done.stderr.decode()


def test_what_takes_no_torch_answers_without_it_and_the_rest_says_so(program: Program) -> None:
    """Without PyTorch loaded; `is_built`, `is_available` and `version` of another device are no, not errors."""
    code = (
        WALK
        + """
out = {}
for name in sys.argv[1].split():
    path, _, last = name.rpartition(".")
    home = space("cpulens.backends", path)
    def ask():
        value = getattr(home, last)
        required = [p for p in parameters(value) or [] if p[2]] if callable(value) else []
        return value if not callable(value) or required or inspect.isclass(value) else value()
    out[name] = answer(ask)
print(json.dumps(out))
"""
    )
    done = program(code, " ".join(name for name in NAMES if not name.startswith("xeon")))
    assert done.returncode == 0, done.stderr.decode()
    answers = json.loads(done.stdout)
    for name in ("cpu.get_cpu_capability", "mkl.is_available", "mkldnn.is_available", "openmp.is_available"):
        assert "value" in answers[name], name
    for name in ("cuda.is_built", "cudnn.is_available", "cusparselt.is_available", "mps.is_built", "mps.is_available"):
        assert answers[name] == {"value": "False"}, name
    assert answers["cudnn.version"] == answers["cusparselt.get_max_alg_id"] == {"value": "None"}
    assert answers["python_native.all_dsls"] == {"value": "[]"}
    assert answers["mps.is_macos13_or_newer"] == {"value": "False"}
    sentences = {name: answer["sentence"] for name, answer in answers.items() if "sentence" in answer}
    assert {"mha.get_fastpath_enabled", "cudnn.enabled", "miopen.immediate", "cuda.matmul.allow_tf32"} <= set(sentences)
    for name, sentence in sentences.items():
        assert "PyTorch" in sentence and "installed" in sentence, (name, sentence)
        assert "\n" not in sentence


@pytest.mark.torch
def test_parameters_are_pytorchs(program: Program) -> None:
    code = (
        WALK
        + """
import torch
out = {}
for name in sys.argv[1].split():
    path, _, last = name.rpartition(".")
    try:
        theirs = getattr(space("torch.backends", path), last)
    except Exception as error:
        out[name] = ["lacks", str(error)]
        continue
    ours = getattr(space("cpulens.backends", path), last)
    if inspect.isclass(theirs) and ours is theirs:
        out[name] = "same object"
    elif callable(theirs):
        out[name] = [parameters(ours), parameters(theirs)]
print(json.dumps(out))
"""
    )
    done = program(code, " ".join(NAMES))
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    lacking = {name for name, pair in found.items() if pair[0] == "lacks"}
    # This PyTorch has no grouped switch yet, and a build without CUDA has no plan cache.
    assert lacking == {
        "cuda.matmul.prefer_cublaslt_grouped_gemm",
        *(f"cuda.cufft_plan_cache.{name}" for name in ("clear", "max_size", "size")),
    }
    assert found["cuda.SDPAParams"] == "same object"
    compared = {name: pair for name, pair in found.items() if name not in lacking and pair != "same object"}
    assert len(compared) > 40
    for name, (ours, theirs) in compared.items():
        assert ours == theirs, name


@pytest.mark.torch
def test_every_answer_is_pytorchs(program: Program) -> None:
    """Functions without arguments and attributes: the same value, or a sentence where PyTorch raises."""
    code = (
        WALK
        + """
import torch
out = {}
for name in sys.argv[1].split():
    path, _, last = name.rpartition(".")
    def value(root):
        found = getattr(space(root, path), last)
        required = [p for p in parameters(found) or [] if p[2]] if callable(found) else []
        return ("needs arguments" if required or inspect.isclass(found) else repr(found()) if callable(found) else
                repr(found))
    try:
        theirs = value("torch.backends")
    except Exception as error:
        theirs = type(error).__name__
        out[name] = [answer(lambda: value("cpulens.backends")), theirs]
        continue
    out[name] = [value("cpulens.backends"), theirs]
print(json.dumps(out))
"""
    )
    skipped = ("xeon", "cuda.matmul", "cuda.cufft_plan_cache")
    names = [name for name in NAMES if not name.startswith(skipped) and not name.endswith((".verbose", "disabled"))]
    names += [f"cuda.matmul.{name}" for name in DOCUMENTED["cuda.matmul"].split()]
    names = [name for name in names if name not in ("nnpack.flags", "cuda.sdp_kernel", "python_native.triton")]
    names = [name for name in names if name not in ("python_native.cutedsl", "opt_einsum.get_opt_einsum")]
    names = [name for name in names if "operations" not in name]
    done = program(code, " ".join(names))
    assert done.returncode == 0, done.stderr.decode()
    answers = json.loads(done.stdout)
    equal = [name for name, (ours, theirs) in answers.items() if isinstance(ours, str) and ours == theirs]
    different = {name: pair for name, pair in answers.items() if name not in equal}
    assert len(equal) > 40
    # Where PyTorch raises an AttributeError about its own insides, there is a sentence, or (macOS) the plain answer.
    assert different.pop("mps.is_macos13_or_newer") == [{"value": "'False'"}, "RuntimeError"]
    assert set(different) == {
        *("cuda.cublas_workspace_size", "cuda.cublaslt_workspace_size", "cuda.blas_workspace_size"),
        *("mps.get_core_count", "mps.get_name", "cuda.matmul.prefer_cublaslt_grouped_gemm"),
    }
    for name, (ours, _) in different.items():
        assert ours["sentence"].startswith("PyTorch 2."), name


@pytest.mark.torch
def test_rarely_used_doors_of_the_forwarded_modules(program: Program) -> None:
    done = program(
        """
        import warnings
        import torch
        from cpulens.backends import cuda, cudnn, kleidiai, miopen, mkldnn, mps, nnpack, python_native
        from cpulens.errors import BackendUnavailable

        cudnn.benchmark = True
        assert torch.backends.cudnn.benchmark is True
        cudnn.benchmark = False
        with cudnn.flags(enabled=False):      # not documented, and still PyTorch's
            assert cudnn.enabled is False
        assert cudnn.enabled is True
        miopen.immediate = True
        assert torch.backends.miopen.immediate is True
        cuda.matmul.allow_tf32 = True
        assert torch.backends.cuda.matmul.allow_tf32 is True
        mkldnn.enabled = False
        assert torch.backends.mkldnn.enabled is False and mkldnn.is_available()
        mkldnn.matmul.fp32_precision = "bf16"
        assert torch.backends.mkldnn.matmul.fp32_precision == "bf16"
        q = torch.randn(1, 1, 4, 4)
        assert cuda.can_use_flash_attention(cuda.SDPAParams(q, q, q, None, 0.0, False, False)) is False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            with cuda.sdp_kernel(enable_flash=False):
                assert cuda.flash_sdp_enabled() is False
        assert cuda.flash_sdp_enabled() is True
        cuda.enable_math_sdp(False)
        assert torch.backends.cuda.math_sdp_enabled() is False

        for ask in (
            lambda: cuda.cufft_plan_cache.size,
            lambda: cuda.cufft_plan_cache.clear(),
            lambda: setattr(cuda.cufft_plan_cache, "max_size", 3),
            lambda: cuda.preferred_blas_library("cublaslt"),
            lambda: cuda.preferred_blas_library("nonsense"),
            mps.get_name,
        ):
            try:
                ask()
            except BackendUnavailable as error:
                assert str(error).startswith("PyTorch 2."), error
            else:
                raise AssertionError("no sentence")
        try:
            cuda.preferred_blas_library("magma", 1)
        except TypeError:
            pass
        assert nnpack.set_flags(False) == (True,)
        with nnpack.flags(True):
            assert torch._C._get_nnpack_enabled() is True
        assert torch._C._get_nnpack_enabled() is False
        assert python_native.all_dsls == torch.backends.python_native.all_dsls
        assert python_native.disable_dispatch_keys    # newer names are PyTorch's
        try:
            python_native.Dsl("nonsense").enabled
        except BackendUnavailable as error:
            assert "no DSL nonsense; it has " in str(error)
        assert "Arm" in kleidiai.why_not() or kleidiai.is_available()
        """
    )
    assert done.returncode == 0, done.stderr.decode()


def test_a_lacking_name_is_an_attribute_error_and_one_of_ours() -> None:
    from cpulens.backends.pytorch import Lacking

    assert issubclass(Lacking, BackendUnavailable) and issubclass(Lacking, AttributeError)


@pytest.mark.torch
def test_an_older_pytorch_without_python_native_gets_a_clear_word(program: Program) -> None:
    done = program(
        """
        import torch
        import cpulens.backends as ours
        from cpulens.errors import BackendUnavailable
        for home in (torch.backends, torch.backends.m):     # as in versions before it came
            vars(home).pop("python_native", None)
        assert ours.python_native.all_dsls == [] and not ours.python_native.is_available()
        assert "has no torch.backends.python_native" in ours.python_native.why_not()
        try:
            ours.python_native.triton.enabled
        except BackendUnavailable as error:
            assert "python_native can't be used: PyTorch 2" in str(error)
        else:
            raise AssertionError
        """
    )
    assert done.returncode == 0, done.stderr.decode()
