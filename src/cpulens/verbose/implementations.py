"""What an implementation's name says: its family and its instruction set.

The name is a path such as ``brgconv_1x1:avx512_core_bf16`` or, for one that is put together of others,
``ref_fused_convolution:any:brgconv_1x1:avx512_core:brdgmm_dw:avx512_core`` and ``conv:any+jit:avx512_core``: there the
kernels inside do the work, so they decide, not the word in front.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

#: Longest first; `uni` and `any` name no instruction set.
_ISA: Final = re.compile(
    r"(?:^|[:_+])("
    r"avx10_\d(?:_\d+)?(?:_amx(?:_\d)?)?(?:_fp16)?|avx512_core(?:_(?:amx|fp16|bf16|vnni|fp8))*|avx512_(?:common|mic_4ops|mic)|"
    r"avx2(?:_vnni(?:_2)?)?|avx|sse4[12]|sve_\d+|sve|asimd|neon|rvv|vsx|lasx|lsx)(?=$|[:_+])"
)
_NO_FAMILY: Final = frozenset(("", "x64", "ppc64le", "s390x", "rv64", "any", "undef"))
#: Family by the beginning of a part of the name; the first that fits decides.
_FAMILIES: Final = (
    ("brgemm", ("brg", "brdgmm")),
    ("acl", ("acl",)),
    ("gemm", ("gemm", "x64:gemm", "indirect_gemm", "lowp_gemm", "igemm")),
    ("ref", ("ref", "lrn_ref", "sycl:ref", "ocl:ref")),
    ("simple", ("simple", "ncsp_bnorm", "nspc_bnorm", "nchw_pooling", "nhwc_pooling", "ocl:simple")),
    ("jit", ("jit", "xe_", "ir")),
    ("zen", ("zen",)),
    ("vendor", ("cuda", "cudnn", "hip", "miopen", "cublas", "mkl")),
    ("ocl", ("ocl", "ngen", "sycl")),
)


@lru_cache(maxsize=4096)
def family(name: str) -> str | None:
    """Give the family of an implementation: brgemm, jit, gemm, ref, simple, acl, …; None for an empty name."""
    if not name:
        return None
    parts = _parts(name)
    if name.endswith(":acl") or "acl" in parts:
        return "acl"
    if "reorder" in name:
        return "reorder"
    if name.startswith("jit:gemm"):
        return "gemm"
    for plain in ("ref", "simple"):
        if plain in parts:
            return plain
    for part in parts:
        found = _family_of(part)
        if found:
            return found
    return _family_of(name) or "other"


def _parts(name: str) -> list[str]:
    """Split a name into parts, the shells of composite ones left out."""
    if name.startswith("ref_fused_convolution:") and name.count(":") > 1:
        name = name.split(":", 2)[2]
    if "+" in name and name.startswith("conv:any+"):
        name = name.removeprefix("conv:any+")
    return [
        part for part in re.split(r"[:+]", name) if part not in ("", "x64", "ppc64le", "s390x", "rv64", "any", "undef")
    ] or [name]


def _family_of(part: str) -> str | None:
    for found, beginnings in _FAMILIES:
        if part.startswith(beginnings):
            return found
    return None


@lru_cache(maxsize=4096)
def isa(name: str) -> str | None:
    """Give the instruction set in an implementation's name, the last one where it holds several; None: it says none.

    It is a name, not a proof: an eltwise may be called ``jit:avx10_1_512_amx`` and use no tile at all.
    """
    found = _ISA.findall(name)
    return found[-1] if found else None
