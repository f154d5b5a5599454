"""Hundreds of operations on 64 numbers, against few on a million."""

from wheel import eltwise, repeat


def faulty():
    return repeat(400, eltwise(64))


def healthy():
    return repeat(20, eltwise(1 << 20))
