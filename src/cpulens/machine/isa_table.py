"""The instruction set extensions that decide about inference kernels, and how each is recognised.

Bits: the kernel's ``arch/arm64/include/uapi/asm/hwcap.h``, ``arch/s390/include/asm/elf.h``,
``arch/powerpc/include/uapi/asm/cputable.h``; Intel's Software Developer's Manual, CPUID leaf 7 subleaf 1.
"""

from __future__ import annotations

from typing import NamedTuple


class Feature(NamedTuple):
    """One extension: its short name, what it is, and the flags that it needs, in the kernel's spelling."""

    name: str
    title: str
    flags: tuple[str, ...]


_AVX512 = ("avx512f", "avx512bw", "avx512vl", "avx512dq")
_X86 = (
    Feature("avx2", "256-bit vectors with fused multiply-add", ("avx2", "fma")),
    Feature("f16c", "conversion from and to float16", ("f16c",)),
    Feature("avx_vnni", "8-bit dot products in 256-bit vectors", ("avx_vnni",)),
    Feature("avx_vnni_int8", "8-bit dot products of any signs in 256-bit vectors", ("avx_vnni_int8",)),
    Feature("avx_ne_convert", "conversion from bfloat16 and float16 in 256-bit vectors", ("avx_ne_convert",)),
    Feature("avx512", "512-bit vectors (F, BW, VL, DQ)", _AVX512),
    Feature("avx512_vnni", "8-bit dot products in 512-bit vectors", (*_AVX512, "avx512_vnni")),
    Feature("avx512_bf16", "bfloat16 dot products in 512-bit vectors", (*_AVX512, "avx512_bf16")),
    Feature("avx512_fp16", "float16 arithmetic in 512-bit vectors", (*_AVX512, "avx512_fp16")),
    Feature("avx10", "AVX10, the numbered successor of AVX-512", ("avx10",)),
    Feature("amx_int8", "8-bit products of tiles", ("amx_tile", "amx_int8")),
    Feature("amx_bf16", "bfloat16 products of tiles", ("amx_tile", "amx_bf16")),
    Feature("amx_fp16", "float16 products of tiles", ("amx_tile", "amx_fp16")),
)
_AARCH64 = (
    Feature("asimd", "128-bit vectors (Neon)", ("asimd",)),
    Feature("fp16", "float16 arithmetic", ("asimdhp",)),
    Feature("dotprod", "8-bit dot products", ("asimddp",)),
    Feature("i8mm", "8-bit matrix products", ("i8mm",)),
    Feature("bf16", "bfloat16 dot and matrix products", ("bf16",)),
    Feature("sve", "scalable vectors", ("sve",)),
    Feature("sve2", "scalable vectors, second version", ("sve2",)),
    Feature("svei8mm", "8-bit matrix products in scalable vectors", ("svei8mm",)),
    Feature("svebf16", "bfloat16 products in scalable vectors", ("svebf16",)),
    Feature("sme", "outer products of scalable vectors", ("sme",)),
)
_POWER = (
    Feature("vsx", "128-bit vectors", ("vsx",)),
    Feature("mma", "matrix products (POWER10)", ("mma",)),
)
_S390X = (
    Feature("vx", "128-bit vectors", ("vx",)),
    Feature("vxe", "float32 in vectors", ("vxe",)),
    Feature("vxe2", "second extension of vectors", ("vxe2",)),
    Feature("nnpa", "neural network assist (z16)", ("nnpa",)),
)

#: Architecture, as in ``uname -m`` → its extensions, weakest first.
FEATURES = {"x86_64": _X86, "aarch64": _AARCH64, "ppc64le": _POWER, "ppc64": _POWER, "s390x": _S390X}

_ARM_HWCAP = (
    *("fp", "asimd", "evtstrm", "aes", "pmull", "sha1", "sha2", "crc32", "atomics", "fphp", "asimdhp", "cpuid"),
    *("asimdrdm", "jscvt", "fcma", "lrcpc", "dcpop", "sha3", "sm3", "sm4", "asimddp", "sha512", "sve", "asimdfhm"),
    *("dit", "uscat", "ilrcpc", "flagm", "ssbs", "sb", "paca", "pacg"),
)
_ARM_HWCAP2 = (
    *("dcpodp", "sve2", "sveaes", "svepmull", "svebitperm", "svesha3", "svesm4", "flagm2", "frint", "svei8mm"),
    *("svef32mm", "svef64mm", "svebf16", "i8mm", "bf16", "dgh", "rng", "bti", "mte", "ecv", "afp", "rpres", "mte3"),
    "sme",
)
#: Architecture → (bits of AT_HWCAP, bits of AT_HWCAP2), number of the bit → flag.
HWCAPS: dict[str, tuple[dict[int, str], dict[int, str]]] = {
    "aarch64": (dict(enumerate(_ARM_HWCAP)), dict(enumerate(_ARM_HWCAP2))),
    "ppc64le": ({7: "vsx"}, {17: "mma", 18: "arch_3_1"}),
    "ppc64": ({7: "vsx"}, {17: "mma", 18: "arch_3_1"}),
    "s390x": ({11: "vx", 13: "vxe", 15: "vxe2", 20: "nnpa"}, {}),
}
#: Bits of CPUID leaf 7 subleaf 1: (register, bit) → (flag, flag without which it means nothing here).
CPUID_7_1 = {
    (0, 4): ("avx_vnni", "avx2"),
    (0, 5): ("avx512_bf16", "avx512f"),
    (0, 21): ("amx_fp16", "amx_tile"),
    (3, 4): ("avx_vnni_int8", "avx2"),
    (3, 5): ("avx_ne_convert", "avx2"),
    (3, 8): ("amx_complex", "amx_tile"),
    (3, 19): ("avx10", "avx512f"),
}
#: Bits of the leaves that stand in for an unreadable /proc/cpuinfo: leaf → (register, bit) → flag.
CPUID = {
    "1": {(2, 12): "fma", (2, 19): "sse4_1", (2, 28): "avx", (2, 29): "f16c"},
    "7": {
        (1, 5): "avx2",
        (1, 16): "avx512f",
        (1, 17): "avx512dq",
        (1, 30): "avx512bw",
        (1, 31): "avx512vl",
        (2, 11): "avx512_vnni",
        (3, 22): "amx_bf16",
        (3, 23): "avx512_fp16",
        (3, 24): "amx_tile",
        (3, 25): "amx_int8",
    },
}
#: Field of /proc/cpuinfo that holds the flags.
FLAG_FIELDS = {"x86_64": "flags", "aarch64": "Features", "s390x": "features"}
