"""A product in a blocked layout between operations in a plain one, against the same all in the plain one."""

from wheel import eltwise, matmul, reorder, repeat

DIMS, PLAIN, BLOCKED = (8, 64, 56, 56), ("f32", "abcd"), ("f32", "aBcd16b")


def faulty():
    there, back = reorder(DIMS, PLAIN, BLOCKED), reorder(DIMS, BLOCKED, PLAIN)
    return repeat(8, there, eltwise(1 << 16), back, matmul(256, 256, 256))


def healthy():
    return repeat(8, reorder(DIMS, PLAIN, BLOCKED), eltwise(1 << 16), matmul(256, 256, 256))
