"""Kernels, and then a read of address 0; without an argument it ends well."""

import ctypes
import sys

from wheel import matmul

matmul(64, 64, 64).execute()
matmul(96, 64, 64).execute()
if len(sys.argv) > 1:
    ctypes.string_at(0)
