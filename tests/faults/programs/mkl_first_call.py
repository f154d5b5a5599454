"""oneMKL's first call in a process, against its later ones."""

import numpy as np

from cpulens.native import mkl

SQUARE = np.ones((64, 64), "float32")


def _run():
    for _ in range(20):
        mkl.sgemm(SQUARE, SQUARE)


def faulty():
    mkl.library()
    return _run


def healthy():
    _run()
    return _run
