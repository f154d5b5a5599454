"""The table behind `settings`: one row a switch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Final

from cpulens.backends import cpu, openmp, python_native, pytorch
from cpulens.backends.pytorch import Lacking
from cpulens.backends.switch_kinds import (
    Switch,
    attribute,
    both,
    dsl,
    einsum,
    functions,
    precision,
    read_only,
    reduction,
    tf32,
    verbose,
)


def _disabled_operations() -> list[str]:
    if not python_native.is_available():
        raise Lacking(f"python_native can't be used: {python_native.why_not()}")
    known = [name for dsl in python_native.all_dsls for name in python_native.get_dsl_operations(dsl)]
    return sorted(name for name in set(known) if python_native.is_operation_disabled(name))


def _change_operations(value: Any) -> Callable[[], None]:
    stack = contextlib.ExitStack()
    stack.enter_context(python_native.operations_disabled(*value))
    return stack.close


_SDP: Final = "whether attention may use it: "
TABLE: Final = (
    read_only(
        "cpu.cpu_capability",
        "the capability that PyTorch's kernels are chosen for",
        cpu.get_cpu_capability,
        "PyTorch reads ATEN_CPU_CAPABILITY once, when its first kernel is chosen",
    ),
    read_only(
        "cpu.onednn_isa",
        "the highest instruction set that oneDNN uses",
        cpu.onednn_isa,
        "oneDNN reads ONEDNN_MAX_CPU_ISA once, at its first kernel",
    ),
    verbose("mkl.verbose", "mkl"),
    verbose("mkldnn.verbose", "onednn"),
    Switch(
        "openmp.num_threads",
        "threads of a parallel region",
        openmp.get_num_threads,
        openmp.swap_num_threads,
        kind=int,
    ),
    precision("fp32_precision", "generic", "all", "precision in which float32 may be computed, everywhere"),
    attribute("mkldnn.enabled", "whether PyTorch uses oneDNN"),
    attribute("mkldnn.deterministic", "whether oneDNN uses deterministic kernels only"),
    attribute("mkldnn.allow_tf32", "whether oneDNN may use TF32"),
    precision("mkldnn.fp32_precision", "mkldnn", "all", "precision in which oneDNN may compute float32"),
    precision("mkldnn.matmul.fp32_precision", "mkldnn", "matmul", "the same, of matrix products"),
    precision("mkldnn.conv.fp32_precision", "mkldnn", "conv", "the same, of convolutions"),
    precision("mkldnn.rnn.fp32_precision", "mkldnn", "rnn", "the same, of recurrent layers"),
    functions("nnpack.enabled", "whether NNPACK is used", "_C._get_nnpack_enabled", "_C._set_nnpack_enabled"),
    einsum("enabled", "whether torch.einsum plans with opt_einsum", bool),
    einsum("strategy", "how opt_einsum plans: auto, greedy, optimal", str),
    functions(
        "mha.fastpath_enabled",
        "fast path of attention layers",
        "backends.mha.get_fastpath_enabled",
        "backends.mha.set_fastpath_enabled",
    ),
    dsl(python_native.triton),
    dsl(python_native.cutedsl),
    Switch(
        "python_native.disabled_operations",
        "operators that are switched off, by name; a scope adds to them",
        _disabled_operations,
        _change_operations,
        kind=None,
    ),
    tf32("cuda.matmul.allow_tf32", "whether products may use TF32", ("matmul",)),
    *reduction("fp16"),
    *reduction("bf16"),
    attribute("cuda.matmul.allow_fp16_accumulation", "whether fp16 products may accumulate in it"),
    attribute("cuda.matmul.prefer_cublaslt_grouped_gemm", "whether grouped products prefer cuBLASLt"),
    both("cuda.preferred_blas_library", "BLAS that is preferred", str),
    both("cuda.preferred_linalg_library", "linear algebra that is preferred", str),
    both("cuda.preferred_rocm_fa_library", "flash attention that ROCm prefers", str),
    both("cuda.cublas_workspace_size", "workspace of cuBLAS in bytes", int),
    both("cuda.cublaslt_workspace_size", "workspace of cuBLASLt in bytes", int),
    attribute("cuda.cufft_plan_cache.max_size", "plans that cuFFT keeps", int),
    read_only(
        "cuda.cufft_plan_cache.size",
        "plans that cuFFT has now",
        lambda: pytorch.lookup("backends.cuda.cufft_plan_cache.size"),
        "it counts the plans in the cache; max_size sets how many may be",
    ),
    *(
        functions(
            f"cuda.{name}_enabled", _SDP + kernel, f"backends.cuda.{name}_enabled", f"backends.cuda.enable_{name}"
        )
        for name, kernel in (
            ("flash_sdp", "flash attention"),
            ("mem_efficient_sdp", "memory-efficient attention"),
            ("math_sdp", "plain operations"),
            ("cudnn_sdp", "cuDNN"),
        )
    ),
    functions(
        "cuda.fp16_bf16_reduction_math_sdp_allowed",
        "whether plain attention may reduce in fp16 and bf16",
        "backends.cuda.fp16_bf16_reduction_math_sdp_allowed",
        "backends.cuda.allow_fp16_bf16_reduction_math_sdp",
    ),
    attribute("cudnn.enabled", "whether cuDNN is used"),
    attribute("cudnn.deterministic", "whether cuDNN uses deterministic algorithms only"),
    attribute("cudnn.benchmark", "whether cuDNN tries algorithms and keeps the fastest"),
    attribute("cudnn.benchmark_limit", "how many algorithms are tried; None without cuDNN", int),
    tf32("cudnn.allow_tf32", "whether convolutions may use TF32", ("conv", "rnn")),
    attribute("miopen.immediate", "whether MIOpen picks an algorithm at once"),
)
