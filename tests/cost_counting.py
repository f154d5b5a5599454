"""Numbers that count what is done to them, and tensors that remember what was touched: for naive loops in tests.

Nothing here knows a formula: a test writes the textbook loop of a primitive with them, and reads the counts.
"""

from __future__ import annotations

import itertools
from collections import Counter


class Machine:
    """Counts operations of its numbers, and bytes of its tensors' elements that were read or written."""

    def __init__(self):
        self.operations = 0
        self.by_kind = Counter()
        self.tensors = []

    def number(self, value=1.5):
        return Number(self, value)

    def tensor(self, dims, element_bytes, padded=None):
        """A tensor; `padded`: axis → block, for layouts that store whole blocks."""
        one = Tensor(self, dims, element_bytes, padded or {})
        self.tensors.append(one)
        return one

    def count(self, kind):
        self.operations += 1
        self.by_kind[kind] += 1

    @property
    def bytes(self):
        return sum(one.bytes for one in self.tensors)


class Number:
    """A float whose arithmetic is counted; constants (plain numbers) combined among themselves are not."""

    def __init__(self, machine, value):
        self.machine, self.value = machine, value

    def _made(self, kind, value):
        self.machine.count(kind)
        return Number(self.machine, value)

    def __add__(self, other):
        return self._made("add", self.value + getattr(other, "value", other))

    def __sub__(self, other):
        return self._made("add", self.value - getattr(other, "value", other))

    def __rsub__(self, other):
        return self._made("add", other - self.value)

    def __mul__(self, other):
        return self._made("multiply", self.value * getattr(other, "value", other))

    def __truediv__(self, other):
        return self._made("multiply", self.value / (getattr(other, "value", other) or 1.0))

    def __rtruediv__(self, other):
        return self._made("multiply", other / (self.value or 1.0))

    def __neg__(self):  # a change of sign is free
        return Number(self.machine, -self.value)

    def __abs__(self):
        return self._made("function", abs(self.value))

    __radd__, __rmul__ = __add__, __mul__


def call(x):
    """An elementary function, a comparison or a rounding of x: one operation."""
    return x._made("function", x.value)


def larger(x, y):
    """The maximum (or minimum, or a choice by comparison): one operation."""
    return (x if isinstance(x, Number) else y)._made("function", getattr(x, "value", x))


class Tensor:
    """Its elements are touched by reading or writing; each way counts their bytes once."""

    def __init__(self, machine, dims, element_bytes, padded):
        self.machine, self.dims, self.element_bytes, self.padded = machine, dims, element_bytes, padded
        self.read, self.written = set(), set()

    def __getitem__(self, index):
        assert all(0 <= at < size for at, size in zip(index, self.dims, strict=True)), (index, self.dims)
        self.read.add(index)
        return self.machine.number()

    def __setitem__(self, index, value):
        assert all(0 <= at < size for at, size in zip(index, self.dims, strict=True)), (index, self.dims)
        self.written.add(index)

    @property
    def bytes(self):
        return self.element_bytes * sum(len(self._stored(touched)) for touched in (self.read, self.written))

    def _stored(self, touched):
        """The touched elements, and with each the whole block that stores it."""
        if not self.padded:
            return touched
        found = set()
        for index in touched:
            spans = [
                range(at // block * block, (at // block + 1) * block)
                for at, block in ((at, self.padded.get(axis, 1)) for axis, at in enumerate(index))
            ]
            found.update(itertools.product(*spans))
        return found


def indices(dims):
    return itertools.product(*map(range, dims))


def spell(name, dt, ndims, tag=None, strides="", flags="f0"):
    tag = "abcdefghijkl"[:ndims] if tag is None else tag
    return f"{name}:{dt}::blocked:{tag}:{strides}:{flags}"


def row(primitive, problem, tensors, *, auxiliary=None, attributes=None, prop_kind="forward_inference", **columns):
    """The columns of a text of oneDNN, as the reader gives them."""
    return {
        "library": "onednn",
        "component": "primitive",
        "event": "exec",
        "primitive": primitive,
        "prop_kind": prop_kind,
        "tensors": " ".join(tensors),
        "attributes": attributes,
        "auxiliary": auxiliary,
        "problem": problem,
        **columns,
    }


def call_row(component, primitive, problem, dt, *, auxiliary=None, wei_dt=None, dst_dt=None, **columns):
    """The columns of a call of oneMKL."""
    return {
        "library": "mkl",
        "component": component,
        "event": "exec",
        "primitive": primitive,
        "src_dt": dt,
        "wei_dt": wei_dt,
        "dst_dt": dst_dt or dt,
        "problem": problem,
        "auxiliary": auxiliary,
        **columns,
    }
