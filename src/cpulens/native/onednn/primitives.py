"""The primitives: matmul, convolution, inner product, eltwise, softmax, reorder.

Arguments of each are memory descriptors in the order of the C API; `attributes` adds scales, zero points and
post-operations. All raise `NativeError` for a problem that the library refuses or has no implementation of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cpulens.errors import UsageError
from cpulens.native.onednn.api import library
from cpulens.native.onednn.attributes import Attributes
from cpulens.native.onednn.descriptors import MemoryDescriptor, c_dims
from cpulens.native.onednn.primitive import Primitive
from cpulens.native.onednn.types import Algorithm, PropKind, named

_DEFAULTS: Final = Attributes()


def _spell(**tensors: MemoryDescriptor | None) -> str:
    return " ".join(f"{name}_{one!r}" for name, one in tensors.items() if one is not None)


class Matmul(Primitive):
    """dst = src × weights + bias over the last two dimensions; the leading ones are batch dimensions (1 broadcasts)."""

    kind = "matmul"

    def __init__(
        self,
        src: MemoryDescriptor,
        weights: MemoryDescriptor,
        dst: MemoryDescriptor,
        bias: MemoryDescriptor | None = None,
        *,
        attributes: Attributes = _DEFAULTS,
    ) -> None:
        lib = library()
        tensors = (src, weights, bias, dst)
        problem = _spell(src=src, wei=weights, bia=bias, dst=dst)
        create = lib.dnnl_matmul_primitive_desc_create
        super().__init__(create, lib.engine, *tensors, attributes=attributes, problem=problem)


class Convolution(Primitive):
    """Forward convolution: src (N, C, spatial…), weights (O, I, kernel…) or grouped (G, O/G, I/G, kernel…), bias (O).

    One number a spatial dimension in `strides`, `dilates` (0 is a dense kernel, as in the C API), `padding_left`,
    `padding_right`.
    """

    kind = "convolution"

    def __init__(
        self,
        src: MemoryDescriptor,
        weights: MemoryDescriptor,
        dst: MemoryDescriptor,
        bias: MemoryDescriptor | None = None,
        *,
        strides: Sequence[int],
        dilates: Sequence[int],
        padding_left: Sequence[int],
        padding_right: Sequence[int],
        algorithm: str = "convolution_direct",
        prop_kind: str = "forward_inference",
        attributes: Attributes = _DEFAULTS,
    ) -> None:
        lib, spatial = library(), src.ndims - 2
        for values in (strides, dilates, padding_left, padding_right):
            if len(values) != spatial:
                raise UsageError(f"a convolution over {spatial} spatial dimensions can't take {tuple(values)}")
        kinds = (named(PropKind, prop_kind), named(Algorithm, algorithm))
        tensors = (src, weights, bias, dst)
        windows = [c_dims(values) for values in (strides, dilates, padding_left, padding_right)]
        problem = _spell(src=src, wei=weights, bia=bias, dst=dst)
        create = lib.dnnl_convolution_forward_primitive_desc_create
        super().__init__(create, lib.engine, *kinds, *tensors, *windows, attributes=attributes, problem=problem)


class InnerProduct(Primitive):
    """Forward inner product: src (N, C, spatial…), weights (O, C, spatial…), bias (O), dst (N, O)."""

    kind = "inner_product"

    def __init__(
        self,
        src: MemoryDescriptor,
        weights: MemoryDescriptor,
        dst: MemoryDescriptor,
        bias: MemoryDescriptor | None = None,
        *,
        prop_kind: str = "forward_inference",
        attributes: Attributes = _DEFAULTS,
    ) -> None:
        lib = library()
        tensors = (src, weights, bias, dst)
        problem = _spell(src=src, wei=weights, bia=bias, dst=dst)
        create, how = lib.dnnl_inner_product_forward_primitive_desc_create, named(PropKind, prop_kind)
        super().__init__(create, lib.engine, how, *tensors, attributes=attributes, problem=problem)


class Eltwise(Primitive):
    """An element-wise function, such as "eltwise_gelu_erf"; what `alpha` and `beta` mean depends on it."""

    kind = "eltwise"

    def __init__(
        self,
        algorithm: str,
        src: MemoryDescriptor,
        dst: MemoryDescriptor,
        alpha: float = 0.0,
        beta: float = 0.0,
        *,
        prop_kind: str = "forward_inference",
        attributes: Attributes = _DEFAULTS,
    ) -> None:
        lib = library()
        kinds = (named(PropKind, prop_kind), named(Algorithm, algorithm))
        tensors = (src, dst)
        problem = f"{algorithm} {_spell(src=src, dst=dst)}"
        create = lib.dnnl_eltwise_forward_primitive_desc_create
        super().__init__(create, lib.engine, *kinds, *tensors, alpha, beta, attributes=attributes, problem=problem)


class Softmax(Primitive):
    """Softmax ("softmax_accurate") or its logarithm ("softmax_log") along dimension `axis`."""

    kind = "softmax"

    def __init__(
        self,
        src: MemoryDescriptor,
        dst: MemoryDescriptor,
        axis: int,
        *,
        algorithm: str = "softmax_accurate",
        prop_kind: str = "forward_inference",
        attributes: Attributes = _DEFAULTS,
    ) -> None:
        lib = library()
        kinds = (named(PropKind, prop_kind), named(Algorithm, algorithm))
        problem = f"{_spell(src=src, dst=dst)} axis:{axis}"
        create, tensors = lib.dnnl_softmax_forward_primitive_desc_create, (src, dst)
        super().__init__(create, lib.engine, *kinds, *tensors, axis, attributes=attributes, problem=problem)


class Reorder(Primitive):
    """Copy a tensor from one layout or data type to another."""

    kind = "reorder"

    def __init__(self, src: MemoryDescriptor, dst: MemoryDescriptor, *, attributes: Attributes = _DEFAULTS) -> None:
        lib = library()
        create, problem = lib.dnnl_reorder_primitive_desc_create, _spell(src=src, dst=dst)
        between = (src, lib.engine, dst, lib.engine)
        super().__init__(create, *between, attributes=attributes, problem=problem)
