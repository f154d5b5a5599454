"""Memory descriptors: the logical shape, the data type and the physical layout of a tensor."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from ctypes import c_int, c_int64, c_void_p
from functools import cached_property
from typing import Any, Self

from cpulens.errors import UsageError
from cpulens.native.handles import Owned
from cpulens.native.onednn.api import OneDnn, library
from cpulens.native.onednn.types import MAX_NDIMS, DataType, FormatKind, Query, named

#: The dimensions' letters in names such as nChw16c, gOIhw16i16o, in their logical order.
_SEMANTIC_ORDER = "gnoicdhw"
_AXES = "abcdefghijkl"
_ANY_TAG = 1


def c_dims(values: Sequence[int]) -> Any:
    """A ``dnnl_dims_t``."""
    return (c_int64 * MAX_NDIMS)(*values)


class MemoryDescriptor(Owned):
    """The description of a tensor, as a value: it never changes.

    `dims` is the logical shape, `dtype` a name such as "bf16". The layout is one of: `tag`, a name as verbose lines
    print it ("abcd", "acdb", "aBcd16b") or with the letters of the field ("nchw", "nhwc", "OIhw16i16o"); `strides` in
    elements; or neither, which means row-major. The tag "any" leaves the layout to the primitive that it is given to.

    Raises `UsageError` for a tag that the library does not know, or that does not fit the number of dimensions, and
    `NativeError` where the library refuses the combination.
    """

    def __init__(
        self,
        dims: Sequence[int],
        dtype: str | DataType,
        tag: str | None = None,
        *,
        strides: Sequence[int] | None = None,
    ) -> None:
        dims = tuple(int(size) for size in dims)
        if not 1 <= len(dims) <= MAX_NDIMS or min(dims) < 0:
            raise UsageError(f"oneDNN tensors have 1 to {MAX_NDIMS} dimensions, none negative, not {dims}")
        if tag is not None and strides is not None:
            raise UsageError(f"a memory descriptor takes a format tag or strides, not both ({tag!r}, {strides})")
        if strides is not None and len(strides) != len(dims):
            raise UsageError(f"{len(strides)} strides {tuple(strides)} do not fit {len(dims)} dimensions {dims}")
        lib, kind, raw = library(), named(DataType, dtype), c_void_p()
        if strides is not None:
            call = lib.dnnl_memory_desc_create_with_strides
            call(ctypes.byref(raw), len(dims), c_dims(dims), kind, c_dims(strides))
        else:
            value = tag_value(lib, tag if tag is not None else _AXES[: len(dims)], len(dims))
            lib.dnnl_memory_desc_create_with_tag(ctypes.byref(raw), len(dims), c_dims(dims), kind, value)
        self._adopt(lib, raw)

    def _adopt(self, lib: OneDnn, raw: c_void_p) -> None:
        self._lib = lib
        super().__init__(raw, lib.dnnl_memory_desc_destroy)

    @classmethod
    def copy_of(cls, raw: c_void_p) -> Self:
        """A descriptor of its own from a C one that somebody else owns (a primitive's)."""
        lib, clone = library(), c_void_p()
        lib.dnnl_memory_desc_clone(ctypes.byref(clone), raw)
        self = cls.__new__(cls)
        self._adopt(lib, clone)
        return self

    def _number(self, what: Query) -> int:
        found = c_int()
        self._lib.dnnl_memory_desc_query(self, what, ctypes.byref(found))
        return found.value

    def _numbers(self, what: Query, count: int) -> tuple[int, ...]:
        found = ctypes.POINTER(c_int64)()
        self._lib.dnnl_memory_desc_query(self, what, ctypes.byref(found))
        return tuple(found[:count])

    @cached_property
    def ndims(self) -> int:
        """Number of dimensions; 0 for an argument that a primitive does not have."""
        return self._number(Query.ndims)

    @cached_property
    def dims(self) -> tuple[int, ...]:
        """The logical shape."""
        return self._numbers(Query.dims, self.ndims)

    @cached_property
    def padded_dims(self) -> tuple[int, ...]:
        """The shape that the layout stores: dims rounded up to whole blocks."""
        return self._numbers(Query.padded_dims, self.ndims)

    @cached_property
    def dtype(self) -> DataType:
        """Data type of an element."""
        return DataType(self._number(Query.data_type))

    @cached_property
    def format_kind(self) -> FormatKind:
        """`any`, `blocked` (plain ones too) or `opaque` (a private layout of one implementation)."""
        kind = self._number(Query.format_kind)
        return FormatKind(kind) if kind in FormatKind._value2member_map_ else FormatKind.opaque

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Elements from one (outer) index of a dimension to the next; () unless the format is blocked."""
        return self._numbers(Query.strides, self.ndims) if self.format_kind is FormatKind.blocked else ()

    @cached_property
    def inner_blocks(self) -> tuple[tuple[int, int], ...]:
        """(dimension, block) from the outermost inner block to the innermost; () for a plain layout."""
        if self.format_kind is not FormatKind.blocked:
            return ()
        count = self._number(Query.inner_nblks)
        return tuple(zip(self._numbers(Query.inner_idxs, count), self._numbers(Query.inner_blks, count), strict=True))

    @property
    def is_plain(self) -> bool:
        """Whether an element lies where its index times the strides says."""
        return self.format_kind is FormatKind.blocked and not self.inner_blocks

    @property
    def size_bytes(self) -> int:
        """Bytes that the tensor needs, padding included; 0 for "any"."""
        return 0 if self.format_kind is FormatKind.any else int(self._lib.dnnl_memory_desc_get_size(self))

    @cached_property
    def reach_bytes(self) -> int:
        """Bytes from the first element to the end of the last: less than `size_bytes` where rows are padded."""
        if not self.is_plain or 0 in self.dims:
            return self.size_bytes
        last = sum((size - 1) * step for size, step in zip(self.dims, self.strides, strict=True))
        return (last + 1) * self.dtype.size_bytes

    @cached_property
    def tag(self) -> str:
        """The layout's name as verbose lines print it, such as "acdb" or "ABcd16b16a"; "any", "opaque", "undef"."""
        if self.format_kind is not FormatKind.blocked:
            return self.format_kind.name
        return _layout_name(self.padded_dims, self.strides, self.inner_blocks)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MemoryDescriptor):
            return NotImplemented
        return bool(self._lib.dnnl_memory_desc_equal(self, other))

    def __hash__(self) -> int:
        return hash((self.dims, self.dtype, self.strides, self.inner_blocks))

    def __repr__(self) -> str:
        return f"{self.dtype.name}:{self.tag}:{'x'.join(map(str, self.dims))}"


def _layout_name(padded: tuple[int, ...], strides: tuple[int, ...], blocks: tuple[tuple[int, int], ...]) -> str:
    """Outer dimensions by falling stride (ties: the larger outer size first), blocked ones in capitals, then blocks."""
    per_axis = [math.prod(size for at, size in blocks if at == axis) for axis in range(len(padded))]
    outer = [size // block for size, block in zip(padded, per_axis, strict=True)]
    order = sorted(range(len(padded)), key=lambda axis: (-strides[axis], -outer[axis], axis))
    blocked = {axis for axis, _ in blocks}
    letters = [_AXES[axis].upper() if axis in blocked else _AXES[axis] for axis in order]
    return "".join(letters) + "".join(f"{size}{_AXES[axis]}" for axis, size in blocks)


def tag_value(lib: OneDnn, tag: str, ndims: int) -> int:
    """The library's number of a format tag of `ndims` dimensions, by either way of writing it. Raises `UsageError`."""
    if tag == "any":
        return _ANY_TAG
    letters = _by_axes(tag)
    value = lib.format_tags.get(letters)
    if value is None:
        raise UsageError(f"oneDNN {lib.version_text} has no format tag {tag!r} (tags look like abcd, nhwc, aBcd16b)")
    axes = {letter.lower() for letter in letters if letter.isalpha()}
    if len(axes) != ndims:
        raise UsageError(f"the format tag {tag!r} is for {len(axes)} dimensions; the tensor has {ndims}")
    return value


def _by_axes(tag: str) -> str:
    """Translate nChw16c into aBcd16b; a tag that is already written with a, b, c, … stays."""
    present = {letter for letter in tag.lower() if letter.isalpha()}
    if present == set(_AXES[: len(present)]) or not present <= set(_SEMANTIC_ORDER):
        return tag
    order = [letter for letter in _SEMANTIC_ORDER if letter in present]
    table = {letter: _AXES[at] for at, letter in enumerate(order)}
    table |= {letter.upper(): axis.upper() for letter, axis in table.items()}
    return "".join(table.get(letter, letter) for letter in tag)
