"""Primitive attributes as plain values; they become C objects only while a primitive is made."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ctypes import c_void_p
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from cpulens.native.onednn.api import OneDnn, library
from cpulens.native.onednn.descriptors import MemoryDescriptor
from cpulens.native.onednn.types import Algorithm, DataType, FpMathMode, ScratchpadMode, argument_index, named

_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(frozen=True)
class EltwisePostOp:
    """Apply `algorithm` (such as "eltwise_relu") to the result."""

    algorithm: str
    alpha: float = 0.0
    beta: float = 0.0

    def append(self, lib: OneDnn, chain: c_void_p) -> None:
        """Add to a C chain of post-operations."""
        lib.dnnl_post_ops_append_eltwise(chain, named(Algorithm, self.algorithm), self.alpha, self.beta)


@dataclass(frozen=True)
class SumPostOp:
    """Add `scale` × (what dst held before - `zero_point`); dst read as `dtype`, or as its own type."""

    scale: float = 1.0
    zero_point: int = 0
    dtype: str | None = None

    def append(self, lib: OneDnn, chain: c_void_p) -> None:
        """Add to a C chain of post-operations."""
        dtype = 0 if self.dtype is None else named(DataType, self.dtype)
        lib.dnnl_post_ops_append_sum(chain, self.scale, self.zero_point, dtype)


@dataclass(frozen=True)
class BinaryPostOp:
    """Combine by `algorithm` (such as "binary_add") with a second source, given at execution (``post_op_N``)."""

    algorithm: str
    source: MemoryDescriptor

    def append(self, lib: OneDnn, chain: c_void_p) -> None:
        """Add to a C chain of post-operations."""
        lib.dnnl_post_ops_append_binary(chain, named(Algorithm, self.algorithm), self.source)


PostOp = EltwisePostOp | SumPostOp | BinaryPostOp


@dataclass(frozen=True)
class Attributes:
    """What changes how a primitive computes.

    `scales` and `zero_points` map an argument ("src", "weights", "dst") to its mask: bit d set means one value for
    each index of dimension d, 0 one value in all; the values themselves are arguments of the execution
    (``scales_src``: f32; ``zero_points_src``: s32). `fpmath` other than "strict" allows f32 computations in that
    type. `scratchpad` "user" makes the temporary memory an argument too.
    """

    scales: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    zero_points: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    post_ops: tuple[PostOp, ...] = ()
    fpmath: str = "strict"
    scratchpad: str = "library"

    @contextmanager
    def as_c(self) -> Iterator[c_void_p | None]:
        """A ``dnnl_primitive_attr_t`` for the time of the block; None where all is default."""
        if self == _DEFAULT:
            yield None
            return
        lib, raw = library(), c_void_p()
        lib.dnnl_primitive_attr_create(ctypes.byref(raw))
        try:
            self._fill(lib, raw)
            yield raw
        finally:
            lib.dnnl_primitive_attr_destroy(raw)

    def _fill(self, lib: OneDnn, raw: c_void_p) -> None:
        for name, mask in self.scales.items():
            lib.dnnl_primitive_attr_set_scales_mask(raw, argument_index(name), mask)
        for name, mask in self.zero_points.items():
            lib.dnnl_primitive_attr_set_zero_points_mask(raw, argument_index(name), mask)
        if self.fpmath != "strict":
            lib.dnnl_primitive_attr_set_fpmath_mode(raw, named(FpMathMode, self.fpmath))
        if self.scratchpad != "library":
            lib.dnnl_primitive_attr_set_scratchpad_mode(raw, named(ScratchpadMode, self.scratchpad))
        if self.post_ops:
            chain = c_void_p()
            lib.dnnl_post_ops_create(ctypes.byref(chain))
            try:
                for one in self.post_ops:
                    one.append(lib, chain)
                lib.dnnl_primitive_attr_set_post_ops(raw, chain)
            finally:
                lib.dnnl_post_ops_destroy(chain)


_DEFAULT: Final = Attributes()
