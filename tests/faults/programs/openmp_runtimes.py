"""oneDNN on GNU's OpenMP and oneMKL on Intel's in one process, against one for both."""

import numpy as np
from wheel import matmul, repeat

from cpulens.native import mkl


def _part(layer):
    mkl.set_threading_layer(layer)
    product = matmul(256, 256, 256, "bf16")
    square = np.ones((64, 64), "float32")
    mkl.sgemm(square, square)
    run = repeat(5, product)

    def part():
        mkl.sgemm(square, square)
        run()

    return part


def faulty():
    return _part("intel")


def healthy():
    return _part("gnu")
