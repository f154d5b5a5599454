"""One OpenMP runtime in the tests' process: oneMKL gets GNU's threading layer before anything else calls it."""

from __future__ import annotations

import pytest

from cpulens.native import mkl


@pytest.fixture(scope="session", autouse=True)
def one_openmp_runtime() -> None:
    mkl.set_threading_layer("gnu")
