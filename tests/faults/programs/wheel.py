"""Prepared primitives of the oneDNN wheel, on memory filled once."""

import numpy as np

from cpulens.native.onednn import Eltwise, Matmul, MemoryDescriptor, Reorder, array_of


def filled(primitive, value=0.5):
    """Allocate all that a primitive needs, and fill what it reads."""
    for name, memory in primitive.allocate().items():
        if name in ("src", "weights") and memory.descriptor.is_plain:
            array_of(memory)[...] = value
    return primitive


def matmul(m, k, n, dtype="f32", **layout):
    src = MemoryDescriptor((m, k), dtype, **layout)
    return filled(Matmul(src, MemoryDescriptor((k, n), dtype), MemoryDescriptor((m, n), dtype)))


def eltwise(elements, algorithm="eltwise_tanh"):
    vector = MemoryDescriptor((elements,), "f32")
    return filled(Eltwise(algorithm, vector, vector))


def reorder(dims, source, target):
    return filled(Reorder(MemoryDescriptor(dims, *source), MemoryDescriptor(dims, *target)))


def repeat(number, *primitives):
    """The recorded part: these primitives in turn, `number` times; once before, so that they are warm."""
    for primitive in primitives:
        primitive.execute()

    def part():
        for _ in range(number):
            for primitive in primitives:
                primitive.execute()

    return part


__all__ = ["eltwise", "filled", "matmul", "np", "reorder", "repeat"]
