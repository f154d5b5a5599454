"""oneDNN's C API through ctypes: run one primitive of a given problem on real data, and read the result back.

Two ways in. With numpy arrays: ``matmul``, ``convolution``, ``inner_product``, ``eltwise``, ``softmax``, ``reorder``,
``read``. With memory descriptors, for a primitive that runs many times, without numpy: ``MemoryDescriptor``,
``Memory``, ``Attributes``, ``Matmul``, ``Convolution``, ``InnerProduct``, ``Eltwise``, ``Softmax``, ``Reorder``.

Works with every ``libdnnl.so.3``; where it comes from is told in `cpulens.native.find`. Names of types, algorithms and
formats are those of verbose lines. The library prints its lines for these calls as for any client.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cpulens.native.onednn.api import library

if TYPE_CHECKING:
    from cpulens.native.onednn.arrays import array_of as array_of
    from cpulens.native.onednn.arrays import from_bf16 as from_bf16
    from cpulens.native.onednn.arrays import memory_of as memory_of
    from cpulens.native.onednn.arrays import read as read
    from cpulens.native.onednn.arrays import to_bf16 as to_bf16
    from cpulens.native.onednn.attributes import Attributes as Attributes
    from cpulens.native.onednn.attributes import BinaryPostOp as BinaryPostOp
    from cpulens.native.onednn.attributes import EltwisePostOp as EltwisePostOp
    from cpulens.native.onednn.attributes import SumPostOp as SumPostOp
    from cpulens.native.onednn.calls import convolution as convolution
    from cpulens.native.onednn.calls import eltwise as eltwise
    from cpulens.native.onednn.calls import inner_product as inner_product
    from cpulens.native.onednn.calls import matmul as matmul
    from cpulens.native.onednn.calls import reorder as reorder
    from cpulens.native.onednn.calls import softmax as softmax
    from cpulens.native.onednn.descriptors import MemoryDescriptor as MemoryDescriptor
    from cpulens.native.onednn.memory import Memory as Memory
    from cpulens.native.onednn.primitive import Primitive as Primitive
    from cpulens.native.onednn.primitives import Convolution as Convolution
    from cpulens.native.onednn.primitives import Eltwise as Eltwise
    from cpulens.native.onednn.primitives import InnerProduct as InnerProduct
    from cpulens.native.onednn.primitives import Matmul as Matmul
    from cpulens.native.onednn.primitives import Reorder as Reorder
    from cpulens.native.onednn.primitives import Softmax as Softmax
    from cpulens.native.onednn.types import DataType as DataType

_HOMES = {
    "array_of": "arrays",
    "from_bf16": "arrays",
    "memory_of": "arrays",
    "read": "arrays",
    "to_bf16": "arrays",
    "Attributes": "attributes",
    "BinaryPostOp": "attributes",
    "EltwisePostOp": "attributes",
    "SumPostOp": "attributes",
    "convolution": "calls",
    "eltwise": "calls",
    "inner_product": "calls",
    "matmul": "calls",
    "reorder": "calls",
    "softmax": "calls",
    "MemoryDescriptor": "descriptors",
    "Memory": "memory",
    "Primitive": "primitive",
    "Convolution": "primitives",
    "Eltwise": "primitives",
    "InnerProduct": "primitives",
    "Matmul": "primitives",
    "Reorder": "primitives",
    "Softmax": "primitives",
    "DataType": "types",
}

__all__ = [
    "Attributes",
    "BinaryPostOp",
    "Convolution",
    "DataType",
    "Eltwise",
    "EltwisePostOp",
    "InnerProduct",
    "Matmul",
    "Memory",
    "MemoryDescriptor",
    "Primitive",
    "Reorder",
    "Softmax",
    "SumPostOp",
    "array_of",
    "convolution",
    "eltwise",
    "from_bf16",
    "inner_product",
    "library",
    "matmul",
    "memory_of",
    "read",
    "reorder",
    "set_verbose",
    "softmax",
    "to_bf16",
    "version",
]


def version() -> str:
    """Version of the loaded library, such as "3.2.0"; loads it. Raises `BackendUnavailable`."""
    return library().version_text


def set_verbose(level: int) -> None:
    """Set the library's verbose level: 0 off, 1 executions, 2 creations too.

    It replaces all that ``ONEDNN_VERBOSE`` asked for, and can't be asked back; scopes that nest and restore are in
    `cpulens.backends.mkldnn`.
    """
    library().dnnl_set_verbose(level)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
