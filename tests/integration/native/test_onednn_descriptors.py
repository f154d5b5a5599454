"""Memory descriptors: names of layouts as oneDNN prints them, and what can't be described."""

from __future__ import annotations

import math
import re
import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpulens.errors import NativeError, UsageError
from cpulens.native.onednn import Memory, MemoryDescriptor, library, memory_of
from tests_support import Program

PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)


def blocks_of(tag: str) -> list[tuple[int, int]]:
    return [(string.ascii_lowercase.index(axis), int(size)) for size, axis in re.findall(r"(\d+)([a-z])", tag)]


def test_every_format_tag_comes_back_as_its_own_name() -> None:
    tags = library().format_tags
    assert len(tags) > 500
    for tag in tags:
        ndims = len({letter.lower() for letter in tag if letter.isalpha()})
        blocks = blocks_of(tag)
        # Whole blocks, and a different number of them in each dimension: no two strides are equal.
        dims = [
            PRIMES[axis] * math.prod(size for at, size in blocks if at == axis) if ndims <= 6 else 2
            for axis in range(ndims)
        ]
        descriptor = MemoryDescriptor(dims, "f32", tag)
        assert descriptor.tag == tag
        assert descriptor.dims == descriptor.padded_dims == tuple(dims)
        assert descriptor.inner_blocks == tuple(blocks)
        assert descriptor.size_bytes == 4 * math.prod(dims)


@pytest.mark.parametrize(
    ("ours", "letters"),
    [
        ("nchw", "abcd"),
        ("nhwc", "acdb"),
        ("ncw", "abc"),
        ("nwc", "acb"),
        ("ncdhw", "abcde"),
        ("ndhwc", "acdeb"),
        ("nChw16c", "aBcd16b"),
        ("nc", "ab"),
        ("oihw", "abcd"),
        ("hwio", "cdba"),
        ("goihw", "abcde"),
        ("OIhw16i16o", "ABcd16b16a"),
        ("gOIhw16i16o", "aBCde16c16b"),
    ],
)
def test_letters_of_the_field(ours: str, letters: str) -> None:
    dims = PRIMES[: len({letter.lower() for letter in letters if letter.isalpha()})]
    assert MemoryDescriptor(dims, "f32", ours) == MemoryDescriptor(dims, "f32", letters)


@given(st.permutations(range(4)), st.lists(st.integers(1, 6), min_size=4, max_size=4))
@settings(max_examples=50, deadline=None)
def test_strides_and_tags_describe_the_same_layout(order: list[int], dims: list[int]) -> None:
    strides, step = [0] * 4, 1
    for axis in reversed(order):
        strides[axis] = step
        step *= dims[axis]
    by_strides = MemoryDescriptor(dims, "bf16", strides=strides)
    assert by_strides.strides == tuple(strides)
    assert by_strides.is_plain
    assert by_strides.size_bytes == 2 * math.prod(dims)
    if min(dims) > 1:
        assert by_strides.tag == "".join(string.ascii_lowercase[axis] for axis in order)


def test_padding_counts() -> None:
    descriptor = MemoryDescriptor((2, 3, 4, 5), "f32", "nChw16c")
    assert descriptor.padded_dims == (2, 16, 4, 5)
    assert descriptor.size_bytes == 2 * 16 * 4 * 5 * 4
    assert not descriptor.is_plain


def test_any_has_no_layout() -> None:
    descriptor = MemoryDescriptor((2, 3), "f32", "any")
    assert (descriptor.tag, descriptor.strides, descriptor.size_bytes) == ("any", (), 0)
    with pytest.raises(UsageError, match="leaves it open"):
        Memory(descriptor)


def test_equal_descriptors_have_equal_hashes() -> None:
    one, other = MemoryDescriptor((4, 5), "s8"), MemoryDescriptor((4, 5), "s8", strides=(5, 1))
    assert one == other
    assert len({one, other, MemoryDescriptor((4, 5), "s8", "ba")}) == 2
    assert one != MemoryDescriptor((4, 5), "u8")
    assert one != "ab"


@pytest.mark.parametrize(
    ("dims", "dtype", "how", "words"),
    [
        ((2, 3), "f32", {"tag": "abcx"}, "no format tag 'abcx'"),
        ((2, 3), "f32", {"tag": "abc"}, "for 3 dimensions; the tensor has 2"),
        ((2, 3), "f31", {}, "unknown DataType 'f31'"),
        ((), "f32", {}, "1 to 12 dimensions"),
        ((1,) * 13, "f32", {}, "1 to 12 dimensions"),
        ((2, -3), "f32", {}, "none negative"),
        ((2, 3), "f32", {"strides": (1,)}, "do not fit 2 dimensions"),
        ((2, 3), "f32", {"tag": "ab", "strides": (3, 1)}, "not both"),
    ],
)
def test_what_can_not_be_described(dims: tuple[int, ...], dtype: str, how: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        MemoryDescriptor(dims, dtype, **how)  # type: ignore[arg-type]


def test_a_type_that_this_library_lacks_is_refused_with_its_status() -> None:
    if library().version < (3, 5, 0):
        with pytest.raises(NativeError, match="dnnl_memory_desc_create_with_tag: invalid_arguments"):
            MemoryDescriptor((2, 3), "f8_e5m2")
    else:
        assert MemoryDescriptor((2, 3), "f8_e5m2").size_bytes == 6


def test_memory_on_buffers() -> None:
    descriptor = MemoryDescriptor((2, 3), "s32")
    own = Memory(descriptor)
    own.bytes_view()[:] = np.arange(6, dtype=np.int32).tobytes()
    assert bytes(own.bytes_view()) == np.arange(6, dtype=np.int32).tobytes()
    buffer = bytearray(24)
    Memory(descriptor, buffer).bytes_view()[4:8] = b"\x07\0\0\0"
    assert buffer[4:8] == b"\x07\0\0\0"
    assert bytes(Memory(descriptor, bytes(range(24))).bytes_view()) == bytes(range(24))
    for small in (bytearray(23), np.zeros(5, np.int32), np.zeros((0, 3), np.int32)):
        with pytest.raises(UsageError, match="needs 24 bytes; the buffer has"):
            Memory(descriptor, small)
    with pytest.raises(UsageError, match="contiguous"):
        Memory(descriptor, memoryview(bytearray(96))[::2])


def test_the_view_of_a_memory_keeps_it_alive() -> None:
    view = Memory(MemoryDescriptor((1000,), "f32")).bytes_view()
    view[:] = b"\x01" * 4000
    assert bytes(view) == b"\x01" * 4000


def test_arrays_are_used_where_they_lie() -> None:
    array = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    for view, strides in [
        (array, (20, 5, 1)),
        (array.transpose(2, 0, 1), (1, 20, 5)),
        (array[1:, ::2, 1:], (20, 10, 1)),
    ]:
        memory = memory_of(view)
        assert memory.address == view.ctypes.data
        assert memory.descriptor.strides == strides
    read_only = array.view()
    read_only.flags.writeable = False
    assert memory_of(read_only).address == array.ctypes.data
    # Strides that oneDNN can't have: a copy.
    for view in (array[::-1], np.broadcast_to(array[:1], array.shape)):
        assert memory_of(view).descriptor.strides == (20, 5, 1)


def test_arrays_without_a_onednn_type_are_refused() -> None:
    with pytest.raises(UsageError, match="no data type for int64 arrays; it takes float32"):
        memory_of(np.zeros(3, np.int64))


def test_names_are_those_of_verbose_lines(program: Program) -> None:
    code = """
        from cpulens.native import onednn
        for dims, tag in [((20, 33), "ba"), ((2, 3, 4, 5), "nhwc"), ((2, 20, 4, 5), "nChw16c"),
                          ((33, 20, 3, 3), "OIhw16i16o"), ((1, 1, 4, 5), "abcd"), ((2, 1, 1, 5), "acdb"),
                          ((1, 1, 1, 1), "abcd"), ((4, 1), "ba"), ((7, 16, 1), "aBc16b")]:
            there = onednn.MemoryDescriptor(dims, "f32", tag)
            source, target = onednn.Memory(onednn.MemoryDescriptor(dims, "f32")), onednn.Memory(there)
            source.bytes_view()[:] = bytes(source.descriptor.size_bytes)
            reorder = onednn.Reorder(source.descriptor, there)
            reorder.bind(src=source, dst=target)
            reorder.execute()
            print("ours", repr(there), flush=True)
    """
    done = program(code, ONEDNN_VERBOSE="1")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    printed = [re.search(r" dst[_:]f32:[a-z]*:blocked:(\w+):", line)[1] for line in lines if ",exec," in line]  # type: ignore[index]
    ours = [line.split(":")[1] for line in lines if line.startswith("ours")]
    assert len(printed) == 9
    assert ours == printed
