"""A product of matrices that don't fit."""

import contextlib

from wheel import matmul, repeat

from cpulens.errors import NativeError
from cpulens.native.onednn import Matmul, MemoryDescriptor


def faulty():
    run = repeat(3, matmul(128, 128, 128, "bf16"))

    def part():
        run()
        with contextlib.suppress(NativeError):
            Matmul(*(MemoryDescriptor(dims, "f32") for dims in ((4, 5), (6, 7), (4, 7))))

    return part


def healthy():
    return repeat(3, matmul(128, 128, 128, "bf16"))
