"""One line of every shape there is, and every column that it must be read as. Worked out by hand from the line."""

# ruff: noqa: E501
from __future__ import annotations

from typing import Any

import pytest

from cpulens.verbose import load


def read(line: str | bytes) -> dict[str, Any]:
    """The one record of a line."""
    data = line if isinstance(line, bytes) else line.encode()
    frame = load(data).frame.collect()
    assert len(frame) == 1, frame["raw"].to_list()
    return frame.row(0, named=True)


def holds(line: str, **expected: object) -> None:
    row = read(line)
    assert {name: row[name] for name in expected} == expected


# --- oneDNN, era by era ------------------------------------------------------------------------------------------


def test_mkldnn_0_convolution() -> None:
    """No engine, old layout names, groups always printed, no types."""
    holds(
        "mkldnn_verbose,exec,convolution,jit:avx2,forward_inference,fsrc:nChw8c fwei:OIhw8i8o fbia:x fdst:nChw8c,"
        "alg:convolution_direct,mb8_g1ic64oc128_ih28oh14kh3sh2dh0ph1_iw28ow14kw3sw2dw0pw1,1.5",
        library="onednn",
        component="primitive",
        event="exec",
        engine=None,
        primitive="convolution",
        implementation="jit:avx2",
        family="jit",
        isa="avx2",
        prop_kind="forward_inference",
        src_dt=None,
        tensors="src:::blocked:aBcd8b:: wei:::blocked:ABcd8b8a:: bia:::blocked:a:: dst:::blocked:aBcd8b::",
        attributes=None,
        auxiliary="alg:convolution_direct",
        problem="mb8_ic64oc128_ih28oh14kh3sh2dh0ph1_iw28ow14kw3sw2dw0pw1",
        duration_ms=1.5,
        start_ns=None,
    )


def test_mkldnn_0_grouped_convolution_and_layouts() -> None:
    holds(
        "mkldnn_verbose,exec,convolution,jit_dw:avx512_core,forward_training,fsrc:nhwc fwei:Goihw16g fbia:undef fdst:any,"
        "alg:convolution_direct,mb1_g32ic32oc32_ih14oh14kh3sh1dh0ph1_iw14ow14kw3sw1dw0pw1,0.25",
        problem="g32mb1_ic32oc32_ih14oh14kh3sh1dh0ph1_iw14ow14kw3sw1dw0pw1",
        tensors="src:::blocked:acdb:: wei:::blocked:Abcde16a:: bia:undef::undef::: dst:::any:any::",
    )


@pytest.mark.parametrize(
    ("line", "tensors", "auxiliary", "problem"),
    [
        (
            "mkldnn_verbose,exec,reorder,jit:uni,undef,in:f32_oihw out:s8_OIhw4i16o4i,num:1,64x64x3x3,0.1",
            "src:f32::blocked:abcd:: dst:s8::blocked:ABcd4b16a4b::",
            None,
            "64x64x3x3",
        ),
        (
            "mkldnn_verbose,create,concat,simple:any,undef,in:f32_nchw in:f32_nchw out:f32_nchw,axis:1 num:2,1x64x56x56,0.02",
            "src:f32::blocked:abcd:: src:f32::blocked:abcd:: dst:f32::blocked:abcd::",
            "axis:1",
            "1x64x56x56",
        ),
        (
            "mkldnn_verbose,exec,batch_normalization,bnorm_jit:avx2,forward_inference,fdata:nChw8c fdiff:undef,flags:7,mb1ic64ih7iw7,0.02",
            "data:::blocked:aBcd8b::",
            "flags:GCHR",
            "mb1ic64ih7iw7",
        ),
        (
            "mkldnn_verbose,exec,shuffle,ref:any,forward_training,dt:f32 fmt:nchw,axis:1 group_size:4,1x8x4x4,0.02",
            "data:f32::blocked:abcd::",
            "axis:1 group:4",
            "1x8x4x4",
        ),
        (
            "mkldnn_verbose,exec,pooling,jit:avx2,forward_inference,fdata:nChw8c fws:undef,alg:pooling_max,mb1ic64_ih8oh4kh2sh2ph0_iw8ow4kw2sw2pw0,0.02",
            "data:::blocked:aBcd8b::",
            "alg:pooling_max",
            "mb1ic64_ih8oh4kh2sh2ph0_iw8ow4kw2sw2pw0",
        ),
    ],
)
def test_mkldnn_0_other_primitives(line: str, tensors: str, auxiliary: str | None, problem: str) -> None:
    holds(line, tensors=tensors, auxiliary=auxiliary, problem=problem)


def test_mkldnn_1_has_an_engine_and_no_attributes() -> None:
    holds(
        "mkldnn_verbose,exec,cpu,eltwise,jit:avx2,forward_training,data_f32::blocked:aBcd8b:f0 diff_undef::undef::f0,"
        "alg:eltwise_relu:0.5:0,1x64x56x56,0.0625",
        engine="cpu",
        primitive="eltwise",
        tensors="data:f32::blocked:aBcd8b::f0",
        src_dt="f32",
        dst_dt="f32",
        auxiliary="alg:eltwise_relu alpha:0.5 beta:0",
        problem="1x64x56x56",
        duration_ms=0.0625,
    )


def test_mkldnn_1_rnn_descriptors_without_blanks() -> None:
    holds(
        "mkldnn_verbose,exec,cpu,rnn,ref:any,forward_inference,src_layer_f32::blocked:abc:f0wei_layer_f32::blocked:abcde:f0dst_layer_f32::blocked:abc:f0,"
        "alg:vanilla_rnn direction:unidirectional_left2right activation:undef,l1t5mb3sic32slc32dhc32dlc32,2.5",
        tensors="src_layer:f32::blocked:abc::f0 wei_layer:f32::blocked:abcde::f0 dst_layer:f32::blocked:abc::f0",
        auxiliary="alg:vanilla_rnn direction:unidirectional_left2right activation:undef flags:",
        problem="l1t5mb3sic32slc32dhc32dic32",
        wei_dt="f32",
    )


def test_dnnl_1_2_attributes_with_quotes_and_a_matmul_by_letters() -> None:
    holds(
        "dnnl_verbose,exec,cpu,matmul,gemm:jit,undef,src_u8::blocked:abc:f0 wei_s8::blocked:abc:f0 dst_f32::blocked:abc:f0,"
        "scratchpad_mode:user;oscale:0:nan;zero_points:'src:0:*_dst:0:3';post_ops:'sum:0.5;eltwise_relu:0.1;';,,b4m8n16k32,4.021",
        attributes="attr-scratchpad:user attr-oscale:0:* attr-zero-points:src0:0:*+dst:0:3 attr-post-ops:sum:0.5+eltwise_relu:0.1",
        problem="4x8x32:4x32x16",
        src_dt="u8",
        wei_dt="s8",
        dst_dt="f32",
        duration_ms=4.021,
    )


def test_run_time_dimensions_of_version_1_are_stars() -> None:
    smallest = "-9223372036854775808"
    holds(
        f"dnnl_verbose,exec,cpu,matmul,gemm:jit,undef,src_f32::blocked:ab:f0 wei_f32::blocked:ab:f0 dst_f32::blocked:ab:f0,,,m{smallest}n512k{smallest},9.5",
        problem="*x*:*x512",
    )


def test_overflown_fields_lose_their_sign_and_a_cut_field_stays_as_it_is() -> None:
    row = read(
        "dnnl_verbose,exec,cpu,concat,simple:any,undef,# src_f32::blocked:abcd:f0 src_f32::blocked:abcd:f0 dst_f32::blocked:abcd:f0,,axis:1,2x8x4x4:2x8x4x4:2x8,0.02"
    )
    assert row["tensors"] == "src:f32::blocked:abcd::f0 src:f32::blocked:abcd::f0 dst:f32::blocked:abcd::f0"
    assert row["problem"] == "2x8x4x4:2x8x4x4:2x8"
    assert row["raw"].startswith("dnnl_verbose,exec,cpu,concat,simple:any,undef,# src_f32")


def test_dnnl_2_with_a_stamp_and_renamed_primitives() -> None:
    holds(
        "dnnl_verbose,1796113332873.754883,create:cache_miss,cpu,pooling_v2,jit:avx512_core,forward_training,"
        "src_f32::blocked:abcd:f0 dst_f32::blocked:abcd:f0 ws_u8::blocked:abcd:f0,,alg:pooling_max,"
        "mb2ic8_ih8oh4kh2dh0sh2ph0_iw8ow4kw2dw0sw2pw0,0.25708",
        event="create",
        cache="miss",
        primitive="pooling",
        problem="mb2ic8_ih8oh4kh2sh2dh0ph0_iw8ow4kw2sw2dw0pw0",
        start_ns=1796113332873754883,
        duration_ms=0.25708,
    )


def test_a_one_dimensional_convolution_of_2_0_looks_like_a_later_one() -> None:
    holds(
        "dnnl_verbose,exec,cpu,convolution,jit:avx2,forward_inference,src_f32::blocked:abc:f0 wei_f32:p:blocked:Acb16a:f0 "
        "bia_undef::undef::f0 dst_f32:p:blocked:aBc16b:f0,,alg:convolution_direct,mb1_ic3oc8_ih1oh1kh1sh1dh1ph0_iw50ow46kw5sw1dw0pw0,0.5",
        problem="mb1_ic3oc8_iw50ow46kw5sw1dw0pw0",
        tensors="src:f32::blocked:abc::f0 wei:f32:p:blocked:Acb16a::f0 bia:undef::undef::: dst:f32:p:blocked:aBc16b::f0",
    )


def test_onednn_3_1_null_descriptors_and_a_matmul_with_its_result() -> None:
    holds(
        "onednn_verbose,1796113335933.742920,exec,cpu,matmul,ref:any,undef,src_f32::blocked:ab:f0 wei_f32::blocked:ab:f0 "
        "bia_undef::undef:: dst_f32::blocked:ab:f0,attr-scratchpad:user ,,0x16:16x8:0x8,0.00219727",
        tensors="src:f32::blocked:ab::f0 wei:f32::blocked:ab::f0 bia:undef::undef::: dst:f32::blocked:ab::f0",
        attributes="attr-scratchpad:user",
        problem="0x16:16x8",
    )


def test_onednn_3_2_strides() -> None:
    holds(
        "onednn_verbose,exec,cpu,matmul,gemm:jit:f32,undef,src_f32::blocked:abc:256x32x1:f0 wei_f32::blocked:acb::f0 "
        "dst_f32::blocked:abc::f0,,,4x8x16:4x16x8,7.90015",
        tensors="src:f32::blocked:abc:256x32x1:f0 wei:f32::blocked:acb::f0 dst:f32::blocked:abc::f0",
        family="gemm",
    )


def test_onednn_3_3_component_without_version() -> None:
    holds(
        "onednn_verbose,1700000000000.000001,primitive,create:persistent_cache_hit,gpu:0,convolution,jit:ir,forward_inference,"
        "src_f16::blocked:abcd::f0 wei_f16:a:blocked:ABcd8b8a::f8:s8m1:zpm3 dst_f16::blocked:abcd::f0,attr-acc:f32 ,"
        "alg:convolution_direct,g2mb1_ic16oc16_ih8oh8kh3sh1dh0ph1_iw8ow8kw3sw1dw0pw1,1.25e-05",
        engine="gpu:0",
        cache="persistent_hit",
        attributes="attr-acc-mode:f32",
        tensors="src:f16::blocked:abcd::f0 wei:f16:a:blocked:ABcd8b8a::f8:s8m1:zpm3 dst:f16::blocked:abcd::f0",
        duration_ms=1.25e-05,
        start_ns=1700000000000000001,
    )


def test_onednn_3_6_and_later() -> None:
    holds(
        "onednn_verbose,v1,1796113276328.277100,primitive,exec,cpu,matmul,brg_matmul:avx10_1_512_amx,undef,"
        "src:bf16:a:blocked:ab::f0 wei:f8_e4m3:ap:blocked:BA16a64b4a::f8:zpm2 bia:f32::blocked:ab::f0_mask2 dst:bf16::blocked:ab::f0,"
        "attr-scratchpad:user attr-scales:src0:0:f32+wei:2:f32,,8x64:64x128,0.0390625",
        component="primitive",
        implementation="brg_matmul:avx10_1_512_amx",
        family="brgemm",
        isa="avx10_1_512_amx",
        src_dt="bf16",
        wei_dt="f8_e4m3",
        attributes="attr-scratchpad:user attr-scales:src0:0:f32+wei:2:f32",
        auxiliary=None,
        problem="8x64:64x128",
    )


@pytest.mark.parametrize(
    ("printed", "cache"),
    [
        ("create", None),
        ("create:cache_hit", "hit"),
        ("create:from_cache_blob", "from_cache_blob"),
        ("create:kernel_cache_hit", "kernel_hit"),
        ("create:nested_primitive_cache_hit", "nested_hit"),
        ("create_nested:cache_miss", "miss"),
    ],
)
def test_states_of_a_creation(printed: str, cache: str | None) -> None:
    line = f"onednn_verbose,v1,primitive,{printed},cpu,sum,jit:uni,undef,src:f32::blocked:a::f0 dst:f32::blocked:a::f0,,,1000,0.5"
    holds(line, event=printed.partition(":")[0], cache=cache, problem="1000")


# --- irregular lines of oneDNN -----------------------------------------------------------------------------------


def test_gemm_api_speaks_the_old_way_even_under_v1() -> None:
    holds(
        "onednn_verbose,v1,primitive,exec,cpu,gemm_api,,undef,src_f32::blocked:ab:f0 wei_f32::blocked:ba:f0 dst_f32::blocked:ab:f0,"
        "lda:16 ldb:16 attr-scales:src:common:2 ,,8x16:16x8,0.5",
        primitive="gemm_api",
        implementation=None,
        family=None,
        tensors="src:f32::blocked:ab::f0 wei:f32::blocked:ba::f0 dst:f32::blocked:ab::f0",
        attributes="lda:16 ldb:16 attr-scales:src0:common:2",
        problem="8x16:16x8",
    )


def test_gemm_api_of_2_7_has_a_field_less() -> None:
    holds(
        "onednn_verbose,exec,cpu,gemm_api,,undef,src_f32::blocked:ab:f0 wei_f32::blocked:ab:f0 dst_f32::blocked:ab:f0,,4x512:512x256,0.25",
        primitive="gemm_api",
        problem="4x512:512x256",
        attributes=None,
    )


def test_a_stamp_printed_with_six_digits_is_unknown() -> None:
    holds(
        "onednn_verbose,1.79611e+12,exec,cpu,gemm_api,,undef,src_f32::blocked:ab:f0 wei_f32::blocked:ba:f0 dst_f32::blocked:ab:f0,,,64x64:64x64,7.85",
        start_ns=None,
        duration_ms=7.85,
        problem="64x64:64x64",
    )


def test_sdpa_without_a_time() -> None:
    holds(
        "onednn_verbose,v1,primitive,exec,gpu,sdpa,ocl:micro:reusable,undef,query:f16::blocked:abcd::f0 key:f16::blocked:abdc::f0 "
        "val:f16::blocked:abcd::f0 dst:f16::blocked:abcd::f0,,alg:softmax_accurate msk:causal_top_left,1x16x384x64:1x16x64x384:1x16x384x64",
        primitive="sdpa",
        duration_ms=None,
        src_dt="f16",
        problem="1x16x384x64:1x16x64x384:1x16x384x64",
    )


def test_zero_padding_says_little() -> None:
    holds(
        "onednn_verbose,v1,primitive,exec,zero_pad, unknown info,0.25",
        primitive="zero_pad",
        event="exec",
        duration_ms=0.25,
    )


def test_a_kernel_of_acl_is_external() -> None:
    holds(
        "onednn_verbose,v1,primitive,exec:external,NEGEMMKernel,2.5",
        event="external",
        implementation="NEGEMMKernel",
        duration_ms=2.5,
    )


def test_acl_refuses_with_commas() -> None:
    holds(
        "onednn_verbose,v1,cpu,acl,unsupported: Only Ab4a, BA8b4a supported",
        event="dispatch",
        message="acl,unsupported: Only Ab4a, BA8b4a supported",
    )


def test_ukernel() -> None:
    holds(
        "onednn_verbose,v1,ukernel,exec,cpu,brgemm,,undef,src:f32::blocked:ab::f0 wei:f32::blocked:ab::f0 dst:f32::blocked:ab::f0,,bs:4 beta:1,16x32:32x64,0.125",
        component="ukernel",
        primitive="brgemm",
        duration_ms=0.125,
    )


def test_dispatch_in_full_with_commas_in_its_reason() -> None:
    holds(
        "onednn_verbose,v1,1796113302679.739014,primitive,create:dispatch,convolution,cpu,convolution,brdgmm_dw:undef,forward_training,"
        "src:f32:a:any:any::f0 wei:f32:a:any:any::f0 dst:f32:a:any:any::f0,attr-scratchpad:user,alg:convolution_direct,"
        "mb1_ic3oc64_ih64oh32kh7sh2dh0ph3_iw64ow32kw7sw2dw0pw3,unsupported padding: f,t,l not supported,src/cpu/x64/jit_conv.cpp:181",
        event="dispatch",
        engine="cpu",
        primitive="convolution",
        implementation="brdgmm_dw:undef",
        message="unsupported padding: f,t,l not supported",
        source="src/cpu/x64/jit_conv.cpp:181",
        duration_ms=None,
        start_ns=1796113302679739014,
    )


def test_dispatch_in_short() -> None:
    holds(
        "onednn_verbose,primitive,create:dispatch,convolution,scratchpad memory limit exceeded,src/cpu/gemm_utils.cpp:2119",
        event="dispatch",
        primitive="convolution",
        implementation=None,
        message="scratchpad memory limit exceeded",
        source="src/cpu/gemm_utils.cpp:2119",
    )


def test_check_with_a_windows_path() -> None:
    holds(
        r"onednn_verbose,primitive,exec:check,primitive,unused primitive execution argument (4113),C:\src\common\types.cpp:74",
        event="check",
        primitive=None,
        message="unused primitive execution argument (4113)",
        source=r"C:\src\common\types.cpp:74",
    )


def test_pattern_matcher_noise() -> None:
    holds(
        "onednn_verbose,v1,1796113302700.000000,graph,create:dispatch,pattern_matcher,fp_gelu_fusion,dnnl_backend",
        component="graph",
        event="dispatch",
        message="pattern_matcher,fp_gelu_fusion,dnnl_backend",
    )


@pytest.mark.parametrize(
    ("line", "event", "message"),
    [
        ("onednn_verbose,v1,common,error,runtime,errcode -30,CL_INVALID_VALUE,src/ocl/utils.cpp:137", "error", "runtime,errcode -30,CL_INVALID_VALUE"),
        ("onednn_verbose,v1,common,error,filter format is ill-formed and is not applied, error: x", "error", "filter format is ill-formed and is not applied, error: x"),
        ("onednn_verbose,v1,primitive,warning,matmul,slow path,src/a.cpp:7", "warn", "matmul,slow path"),
        ("onednn_verbose,v1,graph,warn,pattern,something odd", "warn", "pattern,something odd"),
        ("onednn_verbose,v1,info,gpu,gemm,consider:16x32,8x4x1,score:226109185.005638", "info", "gpu,gemm,consider:16x32,8x4x1,score:226109185.005638"),
    ],
)  # fmt: skip
def test_messages(line: str, event: str, message: str) -> None:
    holds(line, event=event, message=message)


# --- graph -------------------------------------------------------------------------------------------------------

TENSORS = "in0_f32:0:strided:undef:4x64:64s1 in1_f32:1:strided:constant:64x32:32s1 out0_f32:3:strided:undef:4x32:32s1"


def test_graph_of_3_2_has_its_own_marker_and_commas_in_names() -> None:
    holds(
        f"onednn_graph_verbose,exec,cpu,100002,matmul_post_ops,my,matmul with comma;relu;1,,{TENSORS},fpm:strict,dnnl_backend,0.5",
        component="graph",
        event="exec",
        engine="cpu",
        primitive="matmul_post_ops",
        implementation=None,
        auxiliary="ops:my,matmul with comma;relu;1",
        attributes="fpm:strict",
        tensors=TENSORS,
        src_dt="f32",
        dst_dt="f32",
        problem="4x64:64x32:4x32",
        duration_ms=0.5,
    )


def test_graph_compilation_of_3_6() -> None:
    holds(
        f"onednn_verbose,v1,1796113302700.000000,graph,compile:compiled_partition_cache_hit,cpu,7,matmul_post_ops,aten::linear,"
        f"data:NCX; filter:OIX;;,{TENSORS},fpm:strict:true,matmul_t,dnnl_backend,1.25",
        event="compile",
        cache="hit",
        implementation="matmul_t",
        attributes="fpm:strict:true",
        auxiliary="ops:aten::linear data:NCX; filter:OIX;;",
        start_ns=1796113302700000000,
    )


def test_graph_of_3_13_under_the_wrong_component_with_a_new_field() -> None:
    holds(
        f"onednn_verbose,v1,primitive,exec,gpu,100002,sdp,qk;softmax;v,,{TENSORS},fpm:strict,scratchpad:user:9437248,larger_partition_kernel_t,dnnl_backend,0.02768",
        component="graph",
        primitive="sdp",
        implementation="larger_partition_kernel_t",
        attributes="fpm:strict scratchpad:user:9437248",
        duration_ms=0.02768,
    )


def test_graph_with_fields_of_a_memory_check_behind_the_time() -> None:
    holds(
        f"onednn_verbose,v1,graph,exec,cpu,1,misc,relu,,{TENSORS},fpm:strict,k_t,dnnl_backend,0.5,7,140001,4096,0",
        duration_ms=0.5,
        implementation="k_t",
    )


def test_graph_operation_outside_a_partition() -> None:
    holds(
        "onednn_verbose,v1,graph,exec,gpu,_gen_index(_gen_index),18446744073709551615,attrs:{axis:2},inputs:{f32:102:strided:1x16x384x384:2359296x147456x384x1},"
        "outputs:{s32:103:strided:1x16x384x384:2359296x147456x384x1},0.03125",
        component="graph",
        primitive="_gen_index",
        duration_ms=0.03125,
    )


# --- oneMKL ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "duration_ms"),
    [
        ("94.85us", 0.09485),
        ("1.25s", 1250.0),
        ("6.88ms", 6.88),
        ("12.00ns", 0.000012),
        ("0.00s", 0.0),
        ("4,04ms", 4.04),
    ],
)
def test_units_of_mkl(printed: str, duration_ms: float) -> None:
    holds(
        f"MKL_VERBOSE DDOT(64,0x7f3a4dd49e30,1,0x7f3a4dd4a030,1) {printed} CNR:OFF Dyn:1 FastMM:1 TID:3  NThr:2",
        duration_ms=duration_ms,
        thread=3,
    )


def test_gemm_of_mkl() -> None:
    holds(
        "MKL_VERBOSE SGEMM(N,T,16,8,32,0x7ffce3efc928,0x556c3147d8c0,16,0x556c3146c0c0,8,0x7ffce3efc930,0x556c314818d0,17) 12.93us CNR:AVX512,STRICT Dyn:1 FastMM:1 TID:0  NThr:2",
        library="mkl",
        component="blas",
        event="exec",
        primitive="sgemm",
        implementation=None,
        family="blas",
        src_dt="f32",
        wei_dt="f32",
        dst_dt="f32",
        problem="m16n8k32",
        attributes="lda:16 ldb:8 ldc:17",
        auxiliary="flags:N,T",
        threads=2,
        thread=0,
        raw="MKL_VERBOSE SGEMM(N,T,16,8,32,ptr,ptr,16,ptr,8,ptr,ptr,17) CNR:AVX512,STRICT Dyn:1 FastMM:1 NThr:2",
    )


@pytest.mark.parametrize(
    ("call", "component", "primitive", "event", "problem"),
    [
        ("SGEMM_BATCH(N,N,0x7ffcdacca2fc,0x7ffcdacca300,0x7ffcdacca1a8,0x7", "blas", "sgemm_batch", "exec", None),
        ("SGEMM_BATCH(N,N,8,9,10,0x7f120c49e5c0,0x7f120c31dad0,8,0x7f120c31db10,8,0x7f120c49e650,0x7f120c31da90,8,1,4)", "blas", "sgemm_batch", "exec", "b4m8n9k10"),
        ("SGEMM_BATCH_STRIDED(N,N,8,9,10,0x7fffcdcfb6c0,0x56103ffcb690,8,64,0x56103ffcb690,8,64,0x7fffcdcfb6bc,0x56103fef1dc0,8,64,4)", "blas", "sgemm_batch_strided", "exec", "b4m8n9k10"),
        ("GEMM_S8U8S32(N,N,F,64,32,16,0x7fff23978800,0x559e8a214430,64,0x7fff23978858,0x559e8a212d40,64,0x7fff23978870,0x7fff23978808,0x559e8a215b20,64,0x7fe882e9f580)", "blas", "gemm_s8u8s32", "exec", "m64n32k16"),
        ("DGETRF(64,32,0x556c314cfca0,64,0x7f3a4dd53830,0)", "lapack", "dgetrf", "exec", "m64n32"),
        ("DGETRI(64,0x556c314cfca0,64,0x7f3a4dd53830,0x7ffce3efcaf8,-1,0)", "lapack", "dgetri", "query", "n64"),
        ("DSYEVD(V,L,64,0x564cc253c640,64,0x564cc2512440,0x7ffc8aac8068,-1,0x7ffc8aac805c,-1,0)", "lapack", "dsyevd", "query", "n64"),
        ("DGESVD(N,N,64,32,0x556c314efce0,64,0x7f3a4dd4a430,(nil),64,(nil),64,0x556c314f7cf0,4096,0)", "lapack", "dgesvd", "exec", "m64n32"),
        ("DGETRS(N,64,8,0x564cc2513300,64,0x564cbd2300c0,0x564cc250b280,64,0)", "lapack", "dgetrs", "exec", "n64nrhs8"),
        ("FFT(dcfi1024,tLim:1,unaligned_input,desc:0x559e8a2392c0)", "fft", "fft", "exec", "1024"),
        ("FFT(drfo64*4,input_strides:{0,1},output_strides:{0,1},input_distance:64,output_distance:33,tLim:2,desc:0x56103ff3d2c0)", "fft", "fft", "exec", "64*4"),
        ("FFT(scfi16:-72:140153855893133x16:140153857186912:0x16:1072:0,input_strides:{0,-72,140153857186912,1072},tLim:2,desc:0x55b4cd5fac00)", "fft", "fft", "exec", "16x16x16"),
        ("vdRngUniform(0,0x56103fff1400,100,0x5610400baef0,0.000000,1.000000)", "rng", "vdRngUniform", "exec", "n100"),
        ("vdRngUniform(0,0x56103fff1400,100,0x5610400baef0,0,000000,1,000000)", "rng", "vdRngUniform", "exec", "n100"),
        ("vslNewStream(0x7f120c49fcd0,VSL_BRNG_MCG59,7)", "rng", "vslNewStream", "exec", None),
    ],
)  # fmt: skip
def test_calls_of_mkl(call: str, component: str, primitive: str, event: str, problem: str | None) -> None:
    holds(
        f"MKL_VERBOSE {call} 22.83us CNR:OFF Dyn:1 FastMM:1 TID:0  NThr:8",
        component=component,
        primitive=primitive,
        event=event,
        problem=problem,
        threads=8,
        duration_ms=0.02283,
    )


def test_a_failed_lapack_call_says_its_info() -> None:
    holds("MKL_VERBOSE DPOTRF(L,64,0x556c314d7cb0,64,5) 1.00us CNR:OFF Dyn:1 FastMM:1 TID:0  NThr:2", message="info=5")


def test_the_oldest_fft_line_is_no_execution() -> None:
    holds(
        "MKL_VERBOSE FFT: MAIN_DESC | sci16:256:256x16:16:16x16:1:1 | THR_LIMIT = 2 | 0.00s CNR:OFF Dyn:1 FastMM:1 TID:0  NThr:2",
        event="create",
        primitive="fft",
        problem="16x16x16",
        duration_ms=0.0,
    )


def test_sparse_calls_are_paired_with_their_beginnings() -> None:
    text = (
        "MKL_VERBOSE BEGIN mkl_sparse_d_mv(op:N,alpha:1,A:[fmt:csr,dims:3x4,nnz:5,indexing:0-based,prec:d,mat_id:0],x:0x7f781c8ea130,beta:0)\n"
        "MKL_VERBOSE END mkl_sparse_d_mv() 67.01us CNR:OFF Dyn:1 FastMM:1 TID:0  NThr:2\n"
    )
    rows = load(text.encode()).frame.collect().rows(named=True)
    assert [(row["event"], row["problem"], row["duration_ms"]) for row in rows] == [
        ("begin", "3x4nnz5", None),
        ("exec", "3x4nnz5", 0.06701),
    ]


def test_a_sparse_call_that_never_ends_is_noted() -> None:
    text = b"MKL_VERBOSE BEGIN mkl_sparse_d_mv(op:N,A:[fmt:csr,dims:3x4,nnz:5])\n"
    assert load(text).facts["notes"] == [
        "oneMKL calls that began and did not end, as in a crash inside: mkl_sparse_d_mv."
    ]


def test_mkl_on_a_gpu_without_a_time() -> None:
    """Level 1 prints 0.00s for what it does not time."""
    holds(
        "MKL_VERBOSE oneapi::mkl::blas::dgemm(0x7fffe44a77d0,ColumnMajor,NonTranspose,NonTranspose,2400,600,1200,1,0x7fffe44a7710,2400,0x7fffe44a7780,1200,0,0x7fffe44a7750,2400,0,0,0) 0.00s GPU0",
        engine="gpu:0",
        primitive="dgemm",
        component="blas",
        problem="m2400n600k1200",
        attributes="lda:2400 ldb:1200 ldc:2400",
        duration_ms=None,
    )


def test_mkl_without_thread_numbers() -> None:
    holds(
        "MKL_VERBOSE DNRM2(64,0x7f781ca11e30,1) 37.41us CNR:AUTO,STRICT Dyn:1 FastMM:1",
        threads=None,
        thread=None,
        duration_ms=0.03741,
    )


def test_cluster_and_domain_words_of_mkl() -> None:
    holds(
        "MKL_VERBOSE DGEMV(N,64,32,0x7ffd2b8b6920,0x55b4cd63ca50,64,0x7f781ca11e30,1,0x7ffd2b8b6910,0x7f781ca12030,1) 41.87us CNR:OFF Dyn:1 FastMM:1 TID:0  NThr:4,FFT:2 WDiv:HOST:+0.000",
        threads=4,
        problem="m64n32",
    )


@pytest.mark.parametrize(
    "line",
    [
        "MKL_VERBOSE WARNING: Unable to open verbose output file.",
        "MKL_VERBOSE Detected GPU0 Intel(R)_Xe-HP Backend:Level_Zero VE:960",
    ],
)
def test_words_of_mkl_are_no_calls(line: str) -> None:
    row = read(line)
    assert row["event"] in ("warn", "info")
    assert row["message"] == line.removeprefix("MKL_VERBOSE ")
