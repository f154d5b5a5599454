"""oneDNN prints its verbose lines for these calls as for any client, with the problem that was asked for."""

from __future__ import annotations

import re

import pytest

from tests_support import Program

START = """
    import numpy as np
    from cpulens.native import onednn
    x = np.ones((2, 8, 9, 10), np.float32)
    w = np.ones((12, 4, 3, 2), np.float32)
"""


def executed(stdout: bytes) -> list[list[str]]:
    """Fields of the exec lines from the primitive on: kind, implementation, prop_kind, tensors, attributes, …"""
    found = []
    for line in stdout.decode().splitlines():
        after = re.match(r"onednn_verbose(?:,v1,primitive)?,exec,cpu,(.*)", line)
        if after:
            found.append(after[1].split(","))
    return found


@pytest.mark.parametrize(
    ("call", "kind", "prop", "tensors", "auxiliary", "problem"),
    [
        (
            "onednn.matmul(x[0, 0], x[0, 0].T.copy().astype('f4'))",
            *("matmul", "undef", ["src_f32::blocked:ab", "wei_f32::blocked:ab", "dst_f32::blocked:ab"]),
            *("", "9x10:10x9"),
        ),
        (
            "onednn.convolution(x, w, groups=2, strides=(2, 1), padding=[(1, 0), (0, 1)], dilation=(1, 2))",
            *("convolution", "forward_inference", ["src_f32::blocked:abcd", "wei_f32::blocked:abcde"]),
            # 9 rows + 1, kernel 3, stride 2 → 4; 10 columns + 1, kernel spanning 3, stride 1 → 9.
            "alg:convolution_direct",
            "mb2_g2ic8oc12_ih9oh4kh3sh2dh0ph1_iw10ow9kw2sw1dw1pw0",
        ),
        (
            "onednn.inner_product(x, np.ones((5, 8, 9, 10), 'f4'))",
            *("inner_product", "forward_inference", ["src_f32::blocked:abcd", "dst_f32::blocked:ab"]),
            *("", "mb2ic8ih9iw10oc5"),
        ),
        (
            "onednn.eltwise('eltwise_swish', x, 1.5)",
            *("eltwise", "forward_inference", ["data_f32::blocked:abcd"]),
            *("alg:eltwise_swish alpha:1.5 beta:0", "2x8x9x10"),
        ),
        (
            "onednn.softmax(onednn.to_bf16(x), axis=1)",
            *("softmax", "forward_inference", ["src_bf16::blocked:abcd", "dst_bf16::blocked:abcd"]),
            *("alg:softmax_accurate axis:1", "2x8x9x10"),
        ),
        (
            "onednn.reorder(x, 'nChw16c', 'f16')",
            *("reorder", "undef", ["src_f32::blocked:abcd", "dst_f16:p:blocked:aBcd16b"]),
            *("", "2x8x9x10"),
        ),
    ],
)
def test_lines_hold_the_problem(
    program: Program, call: str, kind: str, prop: str, tensors: list[str], auxiliary: str, problem: str
) -> None:
    done = program(f"{START}\n    {call}", ONEDNN_VERBOSE="2")
    assert done.returncode == 0, done.stderr
    (fields,) = executed(done.stdout)
    assert [fields[0], fields[2]] == [kind, prop]
    written = re.sub(r"\b(src|wei|dst|data):", r"\1_", fields[3])  # later versions write a colon
    for tensor in tensors:
        assert tensor in written
    # Up to 3.2 at least the groups stand before the batch.
    assert fields[5:7] in ([auxiliary, problem], [auxiliary, problem.replace("mb2_g2", "g2mb2_")])
    assert float(fields[7]) >= 0
    assert b"create" in done.stdout


def test_any_layouts_make_reorders(program: Program) -> None:
    code = START + "    onednn.convolution(x, np.ones((32, 8, 3, 3), 'f4'), formats='any')"
    kinds = [fields[0] for fields in executed(program(code, ONEDNN_VERBOSE="1").stdout)]
    assert "convolution" in kinds
    assert "reorder" in kinds[: kinds.index("convolution")]


def test_the_implementation_is_the_one_printed(program: Program) -> None:
    code = """
        from cpulens.native.onednn import Matmul, MemoryDescriptor
        product = Matmul(*(MemoryDescriptor((32, 32), "f32") for _ in range(3)))
        product.allocate()
        product.execute()
        print("ours", product.implementation)
    """
    lines = program(code, ONEDNN_VERBOSE="1").stdout
    (fields,) = executed(lines)
    assert f"ours {fields[1]}\n".encode() in lines


def test_attributes_are_printed(program: Program) -> None:
    code = """
        import numpy as np
        from cpulens.native import onednn
        a, b = np.ones((4, 8), np.uint8), np.ones((8, 4), np.int8)
        onednn.matmul(a, b, dtype="f32", scales={"src": 2.0, "weights": np.ones(4)}, zero_points={"src": 1},
                      post_ops=[onednn.SumPostOp(0.5), onednn.EltwisePostOp("eltwise_relu")],
                      initial=np.zeros((4, 4), np.float32))
    """
    (fields,) = executed(program(code, ONEDNN_VERBOSE="1").stdout)
    attributes = fields[4]
    assert "attr-scales:src0:0" in attributes
    assert "wei:2" in attributes  # one scale for each column: dimension 1, so mask 2
    assert "attr-zero-points:src0:0" in attributes
    assert re.search(r"attr-post-ops:'?sum:0\.5\+eltwise_relu", attributes)


def test_set_verbose_switches(program: Program) -> None:
    code = START + "\n".join(
        f"    onednn.set_verbose({level}); onednn.eltwise('eltwise_relu', x[..., :{at + 1}])"
        for at, level in enumerate([0, 1, 0, 2])
    )
    problems = [fields[6] for fields in executed(program(code).stdout)]
    assert problems == ["2x8x9x2", "2x8x9x4"]
