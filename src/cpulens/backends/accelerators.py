"""What PyTorch says and switches about other devices: the table of cuda, cudnn, cusparselt, miopen and mps.

On a host for inference on processors they are absent; the names are here so that a program keeps working.
"""

from __future__ import annotations

import platform
from typing import Final

from cpulens.backends import pytorch
from cpulens.backends.forwarding import REQUIRED, Attribute, Function, Space, install


def _macos_or_newer(major: int, minor: int) -> bool:
    release = pytorch.numbers(platform.mac_ver()[0] + ".0")
    return release is not None and release >= (major, minor)


_ENABLED: Final = {"enabled": REQUIRED}
_PARAMS: Final = {"params": REQUIRED, "debug": False}
_PREFERRED: Final = {"backend": None}

CUDA: Final = (
    Function("is_built", "Whether PyTorch is built with CUDA; False without PyTorch.", otherwise=False),
    Space(
        "matmul",
        "precision of matrix products on a GPU",
        (
            *("allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction"),
            "allow_fp16_reduced_precision_reduction_split_k",
            "allow_bf16_reduced_precision_reduction_split_k",
            *("prefer_cublaslt_grouped_gemm", "allow_fp16_accumulation", "fp32_precision"),
        ),
    ),
    Space(
        "cufft_plan_cache", "the cache of cuFFT plans, of the current device or by index", ("size", "max_size", "clear")
    ),
    Space("SDPAParams", "the tensors and options of one attention, to ask which kernel can take it"),
    Function("preferred_blas_library", "The BLAS that is preferred; sets it when one is given.", _PREFERRED),
    Function("preferred_linalg_library", "The linear algebra library that is preferred; sets it.", _PREFERRED),
    Function("preferred_rocm_fa_library", "The flash attention that ROCm prefers; sets it.", _PREFERRED),
    Function("cublas_workspace_size", "The workspace of cuBLAS in bytes; sets it when one is given.", {"size": None}),
    Function("cublaslt_workspace_size", "The workspace of cuBLASLt in bytes; sets it.", {"size": None}),
    Function("blas_workspace_size", "The workspace of one BLAS in bytes; sets it.", {"size": None, **_PREFERRED}),
    Function("flash_sdp_enabled", "Whether flash attention is enabled."),
    Function("enable_flash_sdp", "Enable or disable flash attention.", _ENABLED),
    Function("mem_efficient_sdp_enabled", "Whether memory-efficient attention is enabled."),
    Function("enable_mem_efficient_sdp", "Enable or disable memory-efficient attention.", _ENABLED),
    Function("math_sdp_enabled", "Whether attention by plain operations is enabled."),
    Function("enable_math_sdp", "Enable or disable attention by plain operations.", _ENABLED),
    Function("cudnn_sdp_enabled", "Whether cuDNN's attention is enabled."),
    Function("enable_cudnn_sdp", "Enable or disable cuDNN's attention.", _ENABLED),
    Function("fp16_bf16_reduction_math_sdp_allowed", "Whether plain attention may reduce in fp16 and bf16."),
    Function("allow_fp16_bf16_reduction_math_sdp", "Let plain attention reduce in fp16 and bf16, or not.", _ENABLED),
    Function("is_ck_sdpa_available", "Whether composable_kernel can do attention.", otherwise=False),
    Function("is_flash_attention_available", "Whether PyTorch is built with flash attention.", otherwise=False),
    Function("can_use_flash_attention", "Whether flash attention takes these tensors.", _PARAMS),
    Function("can_use_efficient_attention", "Whether memory-efficient attention takes these tensors.", _PARAMS),
    Function("can_use_cudnn_attention", "Whether cuDNN's attention takes these tensors.", _PARAMS),
    Function(
        "sdp_kernel",
        "A scope in which only some kernels for attention are enabled; PyTorch has deprecated it.",
        {"enable_flash": True, "enable_math": True, "enable_mem_efficient": True, "enable_cudnn": True},
    ),
)
CUDNN: Final = (
    Function("is_available", "Whether PyTorch is built with cuDNN; False without PyTorch.", otherwise=False),
    Function("version", "The version of cuDNN as a number; None without it.", otherwise=None),
    Attribute("enabled", "whether cuDNN is used"),
    Attribute("deterministic", "whether only deterministic algorithms are used"),
    Attribute("benchmark", "whether algorithms are tried and the fastest kept"),
    Attribute("benchmark_limit", "how many algorithms are tried; None without cuDNN"),
    Attribute("allow_tf32", "whether convolutions may use TF32"),
)
CUSPARSELT: Final = (
    Function("is_available", "Whether PyTorch is built with cuSPARSELt; False without PyTorch.", otherwise=False),
    Function("version", "The version of cuSPARSELt as a number; None without it.", otherwise=None),
    Function("get_max_alg_id", "The highest number of an algorithm; None without cuSPARSELt.", otherwise=None),
)
MIOPEN: Final = (Attribute("immediate", "whether MIOpen picks an algorithm at once"),)
MPS: Final = (
    Function("is_built", "Whether PyTorch is built with MPS; False without PyTorch.", otherwise=False),
    Function("is_available", "Whether MPS can be used now; False without PyTorch.", otherwise=False),
    Function("get_name", "The name of the Metal device."),
    Function("get_core_count", "The number of cores of the Metal device."),
    Function(
        "is_macos_or_newer",
        "Whether this is macOS of that version or newer; False on other systems.",
        {"major": REQUIRED, "minor": REQUIRED},
        _macos_or_newer,
    ),
    Function(
        "is_macos13_or_newer",
        "Whether this is macOS 13 or newer; False on other systems.",
        {"minor": 0},
        lambda minor=0: _macos_or_newer(13, minor),
    ),
)
TABLE: Final = {"cuda": CUDA, "cudnn": CUDNN, "cusparselt": CUSPARSELT, "miopen": MIOPEN, "mps": MPS}
_BUILD_FLAGS: Final = {"cuda": "_has_cuda", "cudnn": "_has_cudnn", "cusparselt": "_has_cusparselt", "mps": "_has_mps"}


def built(device: str) -> bool:
    """Whether this PyTorch is built with a device of the table; False without PyTorch. MIOpen comes with ROCm."""
    if device == "miopen":
        torch = pytorch.loaded()
        return getattr(getattr(torch, "version", None), "hip", None) is not None
    return bool(pytorch.built_with(_BUILD_FLAGS[device]))


def why_not(device: str) -> str:
    """One sentence: why PyTorch can't use a device of the table, or that it is built with it."""
    if pytorch.loaded() is None:
        return pytorch.absence()
    words = "is built with" if built(device) else "is built without"
    return f"PyTorch {pytorch.version()} {words} {device}"


def setup(module_name: str) -> None:
    """Fill one of the modules of the table."""
    device = module_name.rpartition(".")[2]
    install(module_name, TABLE[device], lambda: built(device))
