"""New memory for results: from the allocator, or in pages that were never touched.

Large allocations are often mappings of their own, whose pages the kernel makes when they are first written, inside of
the primitive (mallopt(3), M_MMAP_THRESHOLD); whether they are depends on all that the program allocated before.
"""

from __future__ import annotations

import mmap
from typing import Any, Final

import numpy as np

from cpulens.measure.replay.filling import Array

#: From here on glibc may map memory for one allocation.
MAPPED_FROM_BYTES: Final = 128 << 10
_CACHE_LINE: Final = 64


def new_array(
    shape: tuple[int, ...], dtype: np.dtype[Any] | type, *, aligned: bool = True, untouched: bool = False
) -> Array:
    """An array of undefined contents, in pages that were never touched where `untouched` is asked for.

    It begins at a cache line, or 16 bytes behind one where not `aligned`.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    total = size + 2 * _CACHE_LINE
    raw: Any = mmap.mmap(-1, total) if untouched else np.empty(total, np.uint8)
    view = np.frombuffer(raw, np.uint8)
    start = -view.ctypes.data % _CACHE_LINE + (0 if aligned else 16)
    found: Array = view[start : start + size].view(dtype).reshape(shape)
    return found
