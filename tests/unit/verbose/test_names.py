"""What implementation names say, and problems as named numbers."""

# ruff: noqa: E501
from __future__ import annotations

import pytest

from cpulens.verbose.dimensions import dimensions
from cpulens.verbose.implementations import family, isa
from cpulens.verbose.old_layouts import letters


@pytest.mark.parametrize(
    ("name", "expected_family", "expected_isa"),
    [
        ("jit:avx512_core", "jit", "avx512_core"),
        ("jit_1x1:avx2", "jit", "avx2"),
        ("jit_int8:avx512_core_vnni", "jit", "avx512_core_vnni"),
        ("jit_fp32_wino_2x3:avx512_core", "jit", "avx512_core"),
        ("jit:sse41", "jit", "sse41"),
        ("jit:uni", "jit", None),
        ("jit:avx512_common", "jit", "avx512_common"),
        ("brg:avx2_vnni_2", "brgemm", "avx2_vnni_2"),
        ("brg_matmul:avx10_1_512_amx_fp16", "brgemm", "avx10_1_512_amx_fp16"),
        ("brgconv:avx512_core_amx_fp16", "brgemm", "avx512_core_amx_fp16"),
        ("brdgmm_dw:undef", "brgemm", None),
        ("brgemm:", "brgemm", None),
        ("brgemm", "brgemm", None),
        # An eltwise that only carries the name of the newest instruction set.
        ("jit:avx10_1_512_amx", "jit", "avx10_1_512_amx"),
        ("gemm:jit", "gemm", None),
        ("x64:gemm:jit", "gemm", None),
        ("gemm:jit:bf16", "gemm", None),
        ("gemm:blas", "gemm", None),
        ("gemm:rvv", "gemm", "rvv"),
        ("jit:gemm:any", "gemm", None),
        ("ref:any", "ref", None),
        ("ref_int8:any", "ref", None),
        ("lrn_ref:any", "ref", None),
        ("ocl:ref:any", "ref", None),
        ("simple:any", "simple", None),
        ("ncsp_bnorm:any", "simple", None),
        # Composites: the kernels inside do the work.
        ("ref_fused_convolution:any:brgconv_1x1:avx512_core:brdgmm_dw:avx512_core", "brgemm", "avx512_core"),
        ("conv:any+jit:avx512_core", "jit", "avx512_core"),
        ("brg_conv:avx512_core+brgconv_strided:avx512_core", "brgemm", "avx512_core"),
        ("acl", "acl", None),
        ("gemm:acl", "acl", None),
        ("indirect_gemm:acl", "acl", None),
        ("lowp_gemm_sq:acl", "acl", None),
        ("jit:sve_512", "jit", "sve_512"),
        ("brg:sve_256", "brgemm", "sve_256"),
        ("jit:asimd", "jit", "asimd"),
        ("zen:matmul:bf16:amd", "zen", None),
        ("jit:ir_v2", "jit", None),
        ("ocl:micro:reusable", "ocl", None),
        ("cuda:cudnn:any", "vendor", None),
        ("brgemm_matmul_copy_reorder_t", "reorder", None),
        ("rnn_weights_reorder_s8", "reorder", None),
        ("something_new", "other", None),
        ("", None, None),
    ],
)
def test_family_and_instruction_set(name: str, expected_family: str | None, expected_isa: str | None) -> None:
    assert (family(name), isa(name)) == (expected_family, expected_isa)


@pytest.mark.parametrize(
    ("primitive", "problem", "expected"),
    [
        ("convolution", "g2mb4_ic16oc32_ih8oh6kh3sh1dh0ph0", {"g": 2, "mb": 4, "ic": 16, "oc": 32, "ih": 8, "oh": 6, "kh": 3, "sh": 1, "dh": 0, "ph": 0}),
        ("matmul", "8x64:64x128", {"m": 8, "n": 128, "k": 64}),
        ("matmul", "2x1x8x64:2x3x64x128", {"m": 8, "n": 128, "k": 64, "batch": 6}),
        ("matmul", "*x32:32x64", {"m": None, "n": 64, "k": 32}),
        ("reorder", "2x3x4", {"d0": 2, "d1": 3, "d2": 4, "elements": 24}),
        ("binary", "2x3:1x3", {"d0": 2, "d1": 3, "elements": 6, "elements1": 3}),
        ("softmax", "1000", {"d0": 1000, "elements": 1000}),
        ("lrn", "mb2ic8ih7iw7ls5beta0.75", {"mb": 2, "ic": 8, "ih": 7, "iw": 7, "ls": 5, "beta": 0.75}),
        ("rnn", "l1t5mb3sic32slc32dhc32dic32", {"l": 1, "t": 5, "mb": 3, "sic": 32, "slc": 32, "dhc": 32, "dic": 32}),
        ("sgemm", "m16n8k32", {"m": 16, "n": 8, "k": 32}),
        ("dgetrs", "n64nrhs8", {"n": 64, "nrhs": 8}),
        ("fft", "16x16", {"d0": 16, "d1": 16, "elements": 256}),
        ("odd", "what is this?", {}),
        ("odd", None, {}),
    ],
)  # fmt: skip
def test_dimensions(primitive: str, problem: str | None, expected: dict[str, int | None]) -> None:
    assert dimensions(primitive, problem) == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("nchw", "abcd"), ("nhwc", "acdb"), ("nChw16c", "aBcd16b"), ("ncdhw", "abcde"), ("x", "a"), ("nc", "ab"),
        ("oihw", "abcd"), ("hwio", "cdba"), ("OIhw16i16o", "ABcd16b16a"), ("gOIhw4i16o4i", "aBCde4c16b4c"), ("Goihw8g", "Abcde8a"),
        ("io", "ba"), ("tnc", "abc"), ("no layout", "no layout"), ("zz", "zz"), ("", ""),
    ],
)  # fmt: skip
def test_old_layouts(old: str, new: str) -> None:
    assert letters(old) == new
