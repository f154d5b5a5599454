"""Products in float32 on a machine that has units for bfloat16, against bfloat16."""

from wheel import matmul, repeat


def faulty():
    return repeat(12, matmul(512, 512, 512))


def healthy():
    return repeat(12, matmul(512, 512, 512, "bf16"))
