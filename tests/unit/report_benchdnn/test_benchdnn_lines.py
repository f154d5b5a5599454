"""Command lines of benchdnn for every kind of primitive, against lines written by hand from oneDNN's documentation."""

from __future__ import annotations

import pytest

import cpulens
from cpulens.report.benchdnn import Command, command


def columns(primitive: str, prop_kind: str, tensors: str, attributes: str, auxiliary: str, problem: str, engine="cpu"):
    """A line in the spelling of oneDNN 3.6 and later, read by the reader."""
    fields = (engine, primitive, "jit:avx2", prop_kind, tensors, attributes, auxiliary, problem, "0.5")
    line = f"onednn_verbose,v1,primitive,exec,{','.join(fields)}\n"
    (found,) = cpulens.load(line.encode()).texts.iter_rows(named=True)
    return found


def line(*fields: str, exact: bool = False, **more: str) -> str:
    made = command(columns(*fields, **more), exact=exact)
    assert isinstance(made, Command), made
    return " ".join(made.arguments)


FWD = "forward_inference"
CASES = [
    (
        ("convolution", "forward_training",
         "src:u8:a:blocked:acdb::f0 wei:s8:a:blocked:Acdb32a4b::f9:s8m1:zpm1 bia:f32::blocked:a::f0 "
         "dst:u8::blocked:acdb::f0",
         "attr-scales:src0:0:f32+wei:1:f32+dst:0 attr-post-ops:eltwise_relu:0.5+sum:2:3:u8",
         "alg:convolution_direct", "g2mb1_ic16oc32_ih7oh7kh3sh1dh0ph1_iw7ow7kw3sw1dw0pw1"),
        "--conv --engine=cpu --dir=FWD_D --alg=DIRECT --dt=u8:s8:u8 --bia-dt=f32 --stag=any --wtag=any --dtag=acdb "
        "--attr-scales=src:0:0.5+wei:1+dst:0:0.5 --attr-post-ops=relu:0.5+sum:2:3:u8 "
        "g2mb1_ic16oc32_ih7oh7kh3sh1dh0ph1_iw7ow7kw3sw1dw0pw1",
    ),
    (
        ("deconvolution", "backward_data",
         "diff_src:f32::blocked:abcd::f0 wei:f32::blocked:abcd::f0 diff_dst:f32::blocked:abcd::f0",
         "", "alg:deconvolution_direct", "mb1_ic8oc16_ih4oh8kh2sh2dh0ph0_iw4ow8kw2sw2dw0pw0"),
        "--deconv --engine=cpu --dir=BWD_D --alg=DIRECT --dt=f32:f32:f32 --stag=abcd --wtag=abcd --dtag=abcd "
        "mb1_ic8oc16_ih4oh8kh2sh2dh0ph0_iw4ow8kw2sw2dw0pw0",
    ),
    (
        ("inner_product", FWD, "src:bf16::blocked:ab::f0 wei:bf16:a:blocked:AB16b64a2b::f0 dst:f32::blocked:ab::f0",
         "attr-fpmath:bf16:true", "", "mb4ic64oc100"),
        "--ip --engine=cpu --dir=FWD_I --dt=bf16:bf16:f32 --stag=ab --wtag=any --dtag=ab --attr-fpmath=bf16:true "
        "mb4ic64oc100",
    ),
    (
        ("matmul", "undef",
         "src:f32::blocked:abc:256x32x1:f0 wei:s8::blocked:abc::f0 bia:f32::blocked:abc::f0_mask4 "
         "dst:f32::blocked:abc::f0",
         "attr-scratchpad:user attr-scales:wei:6:bf16:32x1 attr-zero-points:wei:6:s8:32x1", "", "4x8x32:4x32x8"),
        "--matmul --engine=cpu --bia_mask=4 --dt=f32:s8:f32 --bia-dt=f32 --wtag=abc --dtag=abc --strides=256x32x1:: "
        "--attr-scratchpad=user --attr-scales=wei:6:bf16:32x1 --attr-zero-points=wei:6:s8:32x1 4x8x32:4x32x8",
    ),
    (
        ("reorder", "undef", "src:f32::blocked:abcd::f0 dst:s8::blocked:ABcd16b16a::f9:s8m1:zpm1", "attr-scales:src0:0",
         "", "32x32x3x3"),
        "--reorder --engine=cpu --sdt=f32 --ddt=s8 --stag=abcd --dtag=ABcd16b16a --oflag=s8s8_comp:1+zp_comp:1 "
        "--attr-scales=src:0:0.5 32x32x3x3",
    ),
    (
        ("eltwise", "forward_training", "data:f32::blocked:ab::f0", "",
         "alg:eltwise_clip_v2_use_dst_for_bwd alpha:-1 beta:1", "8x16"),
        "--eltwise --engine=cpu --dir=FWD_D --dt=f32 --tag=ab --alg=clip_v2_dst --alpha=-1 --beta=1 8x16",
    ),
    (
        ("softmax", FWD, "src:f32::blocked:abc::f0 dst:bf16:a:blocked:abc::f0", "", "alg:softmax_log axis:2", "2x3x4"),
        "--softmax --engine=cpu --dir=FWD_I --alg=LOGSOFTMAX --axis=2 --sdt=f32 --ddt=bf16 --stag=abc --dtag=any 2x3x4",
    ),
    (
        ("batch_normalization", FWD, "data:f32::blocked:acdb::f0", "", "flags:GCHR", "mb2ic8ih7iw7"),
        "--bnorm --engine=cpu --dir=FWD_I --dt=f32 --tag=acdb --flags=GCHR mb2ic8ih7iw7",
    ),
    (
        ("group_normalization", FWD, "src:f32::blocked:abcd::f0 dst:u8::blocked:abcd::f0", "", "flags:CH",
         "g4mb2ic8ih7iw7"),
        "--gnorm --engine=cpu --dir=FWD_I --dt=f32:u8 --tag=abcd:abcd --flags=CH g4mb2ic8ih7iw7",
    ),
    (
        ("layer_normalization", FWD,
         "src:f32::blocked:abc::f0 dst:bf16::blocked:abc::f0 stats:f32::blocked:ab::f0 scale:f32::blocked:a::f0",
         "", "flags:GC", "2x8x32"),
        "--lnorm --engine=cpu --dir=FWD_I --dt=f32:bf16 --tag=abc:abc --stat_tag=ab --ss_dt=f32 --flags=GC 2x8x32",
    ),
    (
        ("lrn", FWD, "data:f32::blocked:abcd::f0", "", "alg:lrn_within_channel", "mb2ic8ih7iw7ls5beta0.75"),
        "--lrn --engine=cpu --dir=FWD_I --dt=f32 --tag=abcd --alg=WITHIN mb2ic8ih7iw7ls5beta0.75",
    ),
    (
        ("pooling", FWD, "src:u8::blocked:acdb::f0 dst:u8:a:blocked:acdb::f0", "", "alg:pooling_avg_include_padding",
         "mb2ic8_ih8oh4kh2sh2dh0ph0_iw8ow4kw2sw2dw0pw0"),
        "--pool --engine=cpu --dir=FWD_I --alg=avg_p --dt=u8:u8 --tag=acdb "
        "mb2ic8_ih8oh4kh2sh2dh0ph0_iw8ow4kw2sw2dw0pw0",
    ),
    (
        ("resampling", FWD, "src:f32::blocked:abcd::f0 dst:f32::blocked:abcd::f0", "", "alg:resampling_nearest",
         "mb2ic8_ih4oh8_iw4ow8"),
        "--resampling --engine=cpu --dir=FWD_I --alg=nearest --sdt=f32 --ddt=f32 --tag=abcd mb2ic8_ih4oh8_iw4ow8",
    ),
    (
        ("shuffle", "forward_training", "data:f32::blocked:abcd::f0", "", "axis:1 group:4", "2x8x4x4"),
        "--shuffle --engine=cpu --dir=FWD_D --dt=f32 --tag=abcd --axis=1 --group=4 2x8x4x4",
    ),
    (
        ("binary", "undef", "src:f32::blocked:abcd::f0 src:u8::blocked:abcd::f0 dst:f32::blocked:abcd::f0",
         "attr-scales:src0:0+src1:0 attr-post-ops:binary_add:f32:2:ab+binary_mul:f32:3:ab", "alg:binary_div",
         "2x8x4x4:1x8x1x1"),
        "--binary --engine=cpu --alg=DIV --sdt=f32:u8 --ddt=f32 --stag=abcd:abcd --dtag=abcd "
        "--attr-scales=src:0:0.5+src1:0:0.5 --attr-post-ops=add:f32:2+mul:f32:3:ab 2x8x4x4:1x8x1x1",
    ),
    (
        ("concat", "undef", "src:s8::blocked:abcd::f0 src:s8::blocked:acdb::f0 dst:s8::blocked:acdb::f0", "", "axis:1",
         "2x8x4x4:2x16x4x4"),
        "--concat --engine=cpu --axis=1 --sdt=s8 --ddt=s8 --stag=abcd:acdb --dtag=acdb 2x8x4x4:2x16x4x4",
    ),
    (
        ("sum", "undef", "src:f32::blocked:ab::f0 src:bf16::blocked:ab::f0 dst:f32:a:blocked:ab::f0", "", "", "2x8"),
        "--sum --engine=cpu --sdt=f32:bf16 --ddt=f32 --stag=ab --dtag=any 2x8",
    ),
    (
        ("reduction", "undef", "src:f32::blocked:abcd::f0 dst:f32:a:blocked:abcd::f0", "",
         "alg:reduction_norm_lp_sum p:2 eps:0.001", "2x8x4x4:2x8x1x1"),
        "--reduction --engine=cpu --alg=norm_lp_sum --sdt=f32 --ddt=f32 --stag=abcd --dtag=any --p=2 --eps=0.001 "
        "2x8x4x4:2x8x1x1",
    ),
    (
        ("prelu", FWD, "data:f32::blocked:abcd::f0 wei:f32:a:blocked:abcd::f0", "", "", "2x8x4x4:1x8x1x1"),
        "--prelu --engine=cpu --dir=FWD_I --sdt=f32:f32 --stag=abcd:any 2x8x4x4:1x8x1x1",
    ),
    (
        ("rnn", FWD,
         "src_layer:bf16::blocked:abc::f0 src_iter:bf16::blocked:abcd::f0 wei_layer:bf16:a:blocked:abdEC32e2c::f0 "
         "wei_iter:bf16:a:blocked:abdEC32e2c::f0 bias:f32::blocked:abcd::f0 dst_layer:bf16::blocked:abc::f0",
         "", "alg:lbr_gru direction:bidirectional_sum activation:undef flags:", "l1t20mb4sic64slc32dhc64dic64"),
        "--rnn --engine=cpu --prop=FWD_I --cfg=bf16f32 --tag=abc:any:abc --alg=LBR_GRU --direction=sum "
        "--trivial-strides=true l1t20mb4sic64slc32dhc64dic64",
    ),
    (
        ("sdpa", FWD,
         "query:f16::blocked:abcd::f0 key:f16::blocked:abdc::f0 val:f16::blocked:abcd::f0 msk:f16::blocked:abcd::f0 "
         "dst:f16::blocked:abcd::f0", "", "alg:softmax_accurate msk:buffer_2d scl:div:f16:host",
         "1x16x384x64:1x16x64x384:1x16x384x64", ),
        "--sdpa --engine=gpu --dir=FWD_I --dt=f16:f16:f16:f16 --qtag=abcd --ktag=abdc --vtag=abcd --dtag=abcd "
        "--mask=buffer_2d --mdt=f16 --scale=div 1x16x384x64:1x16x64x384:1x16x384x64",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "expected"), CASES, ids=[case[0][0] for case in CASES])
def test_each_kind_of_primitive(fields: tuple[str, ...], expected: str) -> None:
    assert line(*fields, engine="gpu" if "gpu" in expected else "cpu") == expected


def test_the_layout_that_ran_is_said_when_asked_for() -> None:
    fields = CASES[2][0]
    assert "--wtag=any" in line(*fields)
    assert "--wtag=AB16b64a2b" in line(*fields, exact=True)


def test_blocked_layout_with_strides_is_not_said() -> None:
    tensors = "src:f32::blocked:aBcd16b:1x2x3x4:f0 dst:f32::blocked:abcd::f0"
    assert "strides" in str(command(columns("reorder", "undef", tensors, "", "", "2x16x4x4")))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (("matmul", "undef", "src:f32::blocked:ab::f0 wei:f32::blocked:ab::f0 dst:f32::blocked:ab::f0", "", "",
          "*x4:4x4"),
         "at run time"),
        (("convolution", FWD, "src:f32::blocked:abcd::f0 wei:f32::blocked:abcd::f0 dst:f32::blocked:abcd::f0",
          "attr-oscale:2", "alg:convolution_direct", "mb1_ic1oc1_ih1oh1kh1sh1dh0ph0_iw1ow1kw1sw1dw0pw0"),
         "output scales"),
        (("concat", "undef", "src:f32::blocked:ab::f0 dst:f32::blocked:ab::f0", "", "axis:1", "2x2:2x2"),
         "only 1 of 2"),
        (("reorder", "undef", "src:f32::opaque:::f0 dst:f32::blocked:ab::f0", "", "", "2x2"), "no tag"),
        (("softmax", FWD, "src:f32::blocked:ab:8x1:f0 dst:f32::blocked:ab::f0", "",
          "alg:softmax_accurate axis:1", "2x4"),
         "no option"),
        (("reorder", "undef", "src:f32::blocked:ab::f0 dst:s8::blocked:ab::f2:sa0.5", "", "", "2x2"), "flags"),
        (("made_up", "undef", "src:f32::blocked:ab::f0", "", "", "2x2"), "no driver"),
        (("gemm_api", "undef", "src:f32::blocked:ab::f0", "", "", "2x2:2x2"), "dnnl_gemm"),
        (("eltwise", FWD, "data:f32::blocked:ab::f0", "", "alg:eltwise_made_up alpha:0 beta:0", "2x2"), "--alg"),
        (("eltwise", FWD, "data:f32::blocked:ab::f0", "", "alg:eltwise_relu alpha:0 beta:0", "2x2;rm"), "no problem"),
        (("eltwise", FWD, "data:f32::blocked:a$(id)b::f0", "", "alg:eltwise_relu alpha:0 beta:0", "2x2"), "--tag"),
    ],
)  # fmt: skip
def test_what_has_no_line_has_a_reason(fields: tuple[str, ...], reason: str) -> None:
    made = command(columns(*fields))
    assert isinstance(made, str)
    assert reason in made
