"""A tensor that goes to bfloat16 for one operation and comes straight back."""

from wheel import eltwise, matmul, reorder, repeat

DIMS = (64, 4096)


def faulty():
    there, back = reorder(DIMS, ("f32", "ab"), ("bf16", "ab")), reorder(DIMS, ("bf16", "ab"), ("f32", "ab"))
    return repeat(8, there, eltwise(1 << 14), back, matmul(128, 128, 128))


def healthy():
    return repeat(8, reorder(DIMS, ("f32", "ab"), ("bf16", "ab")), eltwise(1 << 14), matmul(128, 128, 128))
