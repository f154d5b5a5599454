"""The same product; how many threads it gets is told in the environment."""

from wheel import matmul, repeat


def faulty():
    return repeat(10, matmul(512, 512, 512))


healthy = faulty
