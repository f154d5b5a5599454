"""oneMKL's products and transforms on real data, against numpy in double precision."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpulens.errors import NativeError, UsageError
from cpulens.native import mkl, onednn
from tests_support import Program

SMALL = st.integers(1, 12)
SEEDS = st.integers(0, 2**32 - 1)
check = settings(max_examples=30, deadline=None)
#: Types of a, b → unit roundoff of the sum.
PRODUCTS = {
    "f32": 2.0**-24,
    "f64": 2.0**-53,
    "c64": 2.0**-24,
    "c128": 2.0**-53,
    "bf16": 2.0**-24,
    "f16": 2.0**-24,
    "u8s8": 0.0,
}


def make(kind: str, shape: tuple[int, ...], rng: np.random.Generator, left: bool) -> tuple[Any, Any]:
    """Data for oneMKL and its exact values."""
    if kind == "u8s8":
        # Where there are no VNNI instructions pairs of products are added in 16 bits: stay below 2¹⁵.
        data = rng.integers(0, 64, shape) if left else rng.integers(-128, 128, shape)
        return data.astype(np.uint8 if left else np.int8), data.astype(np.float64)
    if kind.startswith("c"):
        values = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
        data = values.astype(np.complex64 if kind == "c64" else np.complex128)
        return data, data.astype(np.complex128)
    values = rng.standard_normal(shape)
    if kind == "bf16":
        bits = onednn.to_bf16(values)
        return bits, onednn.from_bf16(bits).astype(np.float64)
    data = values.astype({"f32": np.float32, "f64": np.float64, "f16": np.float16}[kind])
    return data, data.astype(np.float64)


@pytest.mark.parametrize("kind", PRODUCTS)
@given(SMALL, SMALL, SMALL, st.booleans(), st.booleans(), SEEDS)
@check
def test_gemm(kind: str, m: int, k: int, n: int, a_by_columns: bool, b_by_columns: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    (a, a64), (b, b64) = make(kind, (m, k), rng, left=True), make(kind, (k, n), rng, left=False)
    a, b = (np.asfortranarray(one) if flag else one for one, flag in ((a, a_by_columns), (b, b_by_columns)))
    result = mkl.gemm(a, b)
    # A sum of k products, in any order; a complex product is two real ones and an addition.
    bound = 2 * (k + 2) * PRODUCTS[kind] * (np.abs(a64) @ np.abs(b64))
    assert result.shape == (m, n)
    assert np.all(np.abs(result - a64 @ b64) <= bound)


@pytest.mark.parametrize("kind", ["f32", "f64", "c64", "c128"])
def test_gemm_with_scalars_leaves_c_alone(kind: str) -> None:
    rng = np.random.default_rng(2)
    (a, a64), (b, b64) = make(kind, (5, 6), rng, left=True), make(kind, (6, 7), rng, left=False)
    c, c64 = make(kind, (5, 7), rng, left=True)
    alpha, beta = (0.5 + 2j, -1.5j) if kind.startswith("c") else (0.5, -1.5)
    before = c.copy()
    np.testing.assert_allclose(mkl.gemm(a, b, alpha=alpha, beta=beta, c=c), alpha * a64 @ b64 + beta * c64, rtol=1e-4)
    np.testing.assert_array_equal(c, before)


@pytest.mark.parametrize("kind", ["f32", "f64"])
@given(st.integers(1, 5), SMALL, SMALL, SMALL, SEEDS)
@check
def test_gemm_batch(kind: str, batch: int, m: int, k: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    (a, a64), (b, b64) = make(kind, (batch, m, k), rng, left=True), make(kind, (batch, k, n), rng, left=False)
    bound = (k + 2) * PRODUCTS[kind] * (np.abs(a64) @ np.abs(b64))
    assert np.all(np.abs(mkl.gemm(a, b) - a64 @ b64) <= bound)
    # The same through arrays of pointers; column-major: the operands change places.
    routine, result = {"f32": "sgemm", "f64": "dgemm"}[kind], np.zeros_like(a64 @ b64, dtype=a.dtype)
    product = mkl.Gemm(routine, n, m, k, batch=batch, pointers=True)
    product.bind(b.ctypes.data, a.ctypes.data, result.ctypes.data, keep=(a, b, result))
    product.execute()
    assert np.all(np.abs(result - a64 @ b64) <= bound)


def test_sgemm_and_dgemm_convert() -> None:
    a, b = np.arange(6).reshape(2, 3), np.arange(12).reshape(3, 4)
    for call, dtype in ((mkl.sgemm, np.float32), (mkl.dgemm, np.float64)):
        result = call(a, b)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, a @ b)


def test_empty_products() -> None:
    empty = mkl.sgemm(np.zeros((2, 0), "f4"), np.zeros((0, 3), "f4"), beta=2.0, c=np.ones((2, 3), "f4"))
    np.testing.assert_array_equal(empty, np.full((2, 3), 2, np.float32))
    assert mkl.sgemm(np.zeros((0, 4), "f4"), np.zeros((4, 3), "f4")).shape == (0, 3)


def test_gemm_by_its_numbers() -> None:
    # Column-major, with transposes and leading dimensions larger than dense, as a verbose line may give them.
    m, n, k, lda, ldb, ldc = 3, 4, 5, 7, 6, 8
    product = mkl.Gemm("dgemm", m, n, k, transa="T", transb="T", alpha=2.0, beta=1.0, lda=lda, ldb=ldb, ldc=ldc)
    views = product.allocate()
    assert [view.nbytes for view in views] == list(product.sizes_bytes) == [8 * lda * m, 8 * ldb * k, 8 * ldc * n]
    rng = np.random.default_rng(6)
    a, b, c = (rng.standard_normal((columns, ld)) for columns, ld in ((m, lda), (k, ldb), (n, ldc)))
    for view, data in zip(views, (a, b, c), strict=True):
        view[:] = data.tobytes()
    product.execute()
    found = np.frombuffer(views[2]).reshape(n, ldc)
    np.testing.assert_allclose(found[:, :m].T, 2 * a[:, :k] @ b[:, :n] + c[:, :m].T, atol=1e-12)
    np.testing.assert_array_equal(found[:, m:], c[:, m:])


def fft_case(kind: str, shape: tuple[int, ...], seed: int) -> Any:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    if kind.startswith("c"):
        values = values + 1j * rng.standard_normal(shape)
    return values.astype({"c64": "c8", "c128": "c16", "f32": "f4", "f64": "f8"}[kind])


SHAPES = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)
#: An FFT of n points is off by a few log2(n) units of the largest possible result, the sum of magnitudes.
ROUNDOFF = {"c64": 2e-6, "f32": 2e-6, "c128": 4e-15, "f64": 4e-15}


@pytest.mark.parametrize("kind", ["c64", "c128"])
@given(SHAPES, st.data(), st.booleans(), SEEDS)
@check
def test_complex_fft(kind: str, shape: tuple[int, ...], data: st.DataObject, in_place: bool, seed: int) -> None:
    ndim = data.draw(st.integers(1, min(3, len(shape))))
    axes = tuple(range(-ndim, 0))
    x = fft_case(kind, shape, seed)
    before, exact = x.copy(), np.fft.fftn(x.astype(np.complex128), axes=axes)
    bound = ROUNDOFF[kind] * np.abs(x).sum(axes, keepdims=True) + 1e-30
    result = mkl.fft(x, ndim, in_place=in_place)
    assert (result is x) == in_place
    if not in_place:
        np.testing.assert_array_equal(x, before)
    assert result.dtype == x.dtype
    assert np.all(np.abs(result - exact) <= bound)
    again = mkl.fft(result.copy(), ndim, inverse=True)
    assert np.all(np.abs(again - before) <= bound)


@pytest.mark.parametrize("kind", ["f32", "f64"])
@given(SHAPES, st.data(), SEEDS)
@check
def test_real_fft_there_and_back(kind: str, shape: tuple[int, ...], data: st.DataObject, seed: int) -> None:
    ndim = data.draw(st.integers(1, min(3, len(shape))))
    axes = tuple(range(-ndim, 0))
    x = fft_case(kind, shape, seed)
    spectrum = mkl.rfft(x, ndim)
    exact = np.fft.rfftn(x.astype(np.float64), axes=axes)
    bound = ROUNDOFF[kind] * np.abs(x).sum(axes, keepdims=True) + 1e-30
    assert spectrum.shape == exact.shape
    assert np.all(np.abs(spectrum - exact) <= bound)
    kept = spectrum.copy()
    assert np.all(np.abs(mkl.irfft(spectrum, shape[-1], ndim) - x) <= bound)
    np.testing.assert_array_equal(spectrum, kept)


def test_real_fft_in_place_pads_its_rows() -> None:
    rng = np.random.default_rng(8)
    data = rng.standard_normal((3, 5, 7))
    with mkl.Fft((5, 7), precision="double", domain="real", batch=3, in_place=True) as plan:
        assert (plan.input_shape, plan.output_shape) == ((3, 5, 8), (3, 5, 4))
        buffer = np.zeros(plan.input_shape)
        buffer[..., :7] = data
        plan.execute(buffer.ctypes.data)
    np.testing.assert_allclose(buffer.view(np.complex128), np.fft.rfftn(data, axes=(1, 2)), atol=1e-12)


def test_one_descriptor_transforms_many_times() -> None:
    with mkl.Fft((16,), precision="double", scale=0.5) as plan:
        for seed in range(5):
            x = fft_case("c128", (1, 16), seed)
            result = np.empty_like(x)
            plan.execute(x.ctypes.data, result.ctypes.data)
            np.testing.assert_allclose(result, np.fft.fft(x) / 2, atol=1e-12)
    plan.close()
    with pytest.raises(ValueError, match="this Fft is closed"):
        plan.execute(x.ctypes.data, result.ctypes.data)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: mkl.gemm(x, x), "can't multiply arrays of shapes (3, 4) and (3, 4)"),
        (lambda x: mkl.gemm(x, x.T.astype("f8")), "no product of float32 by float64; it has float32 by float32"),
        (lambda x: mkl.gemm(x, x.T, c=np.zeros((2, 2))), "c has the shape (2, 2); the product has (3, 3)"),
        (lambda x: mkl.gemm(x, x.T, alpha=1j), "can't be multiplied by 1j"),
        (lambda x: mkl.gemm(*[np.zeros((2, 3, 3), "u2")] * 2), "no batch of gemm_bf16bf16f32"),
        (lambda x: mkl.Gemm("sgem", 1, 1, 1), "unknown oneMKL routine 'sgem'; known: sgemm"),
        (lambda x: mkl.Gemm("sgemm", -1, 1, 1), "can't have sizes m=-1 n=1 k=1"),
        (lambda x: mkl.Gemm("sgemm", 3, 1, 1, lda=2), "below its rows (3, 1, 3)"),
        (lambda x: mkl.Gemm("sgemm", 1, 1, 1, transa="X"), "transpose letters are N, T, C; not X, N"),
        (lambda x: mkl.Gemm("sgemm", 2, 2, 2, batch=2, strides=(0, 0, 3)), "lets the results of sgemm overlap"),
        (lambda x: mkl.Gemm("sgemm", 2, 2, 2).execute(), "can't run yet"),
        (lambda x: mkl.fft(x, in_place=True), "needs a row-major complex array, not float32"),
        (lambda x: mkl.fft(x, 3), "can't transform 3 dimension(s) of an array of shape (3, 4)"),
        (lambda x: mkl.fft(x[:0]), "can't transform"),
        (lambda x: mkl.irfft(x, 9), "has 5 numbers, not 4"),
        (lambda x: mkl.Fft(()), "1 to 7 dimensions"),
        (lambda x: mkl.Fft((4, 0)), "no length or batch below 1"),
        (lambda x: mkl.Fft((4,)).execute(x.ctypes.data), "an in-place FFT takes one address, any other two"),
        (lambda x: mkl.set_num_threads(0), "can't run on 0 threads"),
        (lambda x: mkl.set_threading_layer("omp"), "unknown oneMKL threading layer 'omp'"),
    ],
)
def test_what_can_not_be_computed(call: Any, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        call(np.zeros((3, 4), np.float32))


def test_version_and_threads() -> None:
    assert re.search(r"Math Kernel Library.* Version \d{4}\.\d", mkl.version())
    before = mkl.max_threads()
    assert before >= 1
    mkl.set_num_threads(1)
    assert mkl.max_threads() == 1
    mkl.set_num_threads(before)
    assert mkl.max_threads() == before


def test_another_threading_layer_comes_too_late() -> None:
    mkl.set_threading_layer("gnu")
    with pytest.raises(NativeError, match="can't take the intel threading layer: gnu is in use"):
        mkl.set_threading_layer("intel")
    assert mkl.threading_layer() == "gnu"


LAYERS = """
    import numpy as np
    from cpulens.native import loaded, mkl, onednn
    def runtimes():
        return sorted({"iomp" if "iomp" in one.name else "gomp" for one in loaded.objects()
                       if one.name.startswith(("libiomp", "libgomp"))})
"""


@pytest.mark.parametrize(
    ("layer", "runtimes"), [("gnu", ["gomp"]), ("intel", ["iomp"]), ("sequential", []), ("tbb", [])]
)
def test_each_threading_layer_computes(program: Program, layer: str, runtimes: list[str]) -> None:
    code = (
        LAYERS
        + f"""
    mkl.set_threading_layer("{layer}")
    assert mkl.sgemm(np.ones((2, 3)), np.ones((3, 2))).tolist() == [[3, 3], [3, 3]]
    print(mkl.threading_layer(), runtimes())
    """
    )
    done = program(code)
    assert done.stdout.decode().strip() == f"{layer} {runtimes}", done.stderr


def test_the_layer_follows_the_openmp_runtime_that_is_there(program: Program) -> None:
    code = (
        LAYERS
        + """
    onednn.eltwise("eltwise_relu", np.ones(4, np.float32))
    mkl.sgemm(np.ones((2, 2)), np.ones((2, 2)))
    print(mkl.threading_layer(), runtimes())
    """
    )
    assert program(code).stdout == b"gnu ['gomp']\n"


def test_the_environment_decides_before_that(program: Program) -> None:
    code = (
        LAYERS
        + """
    onednn.eltwise("eltwise_relu", np.ones(4, np.float32))
    mkl.sgemm(np.ones((2, 2)), np.ones((2, 2)))
    print(mkl.threading_layer())
    """
    )
    assert program(code, MKL_THREADING_LAYER="SEQUENTIAL").stdout == b"sequential\n"


def test_the_64_bit_interface_computes_the_same(program: Program) -> None:
    code = """
        import numpy as np
        from cpulens.native import mkl
        a, b = np.arange(12, dtype="f4").reshape(2, 2, 3), np.arange(12, dtype="f4").reshape(2, 3, 2)
        assert (mkl.gemm(a, b) == a @ b).all()
        assert (mkl.sgemm(a[0], b[0]) == a[0] @ b[0]).all()
        result = np.zeros((2, 2, 2), "f4")
        product = mkl.Gemm("sgemm", 2, 2, 3, batch=2, pointers=True)
        product.bind(b.ctypes.data, a.ctypes.data, result.ctypes.data)
        product.execute()
        assert (result == a @ b).all()
        assert (mkl.gemm(np.ones((2, 3), "u1"), np.ones((3, 2), "i1")) == 3).all()
        assert abs(mkl.rfft(a, 2) - np.fft.rfftn(a, axes=(1, 2))).max() < 1e-5
    """
    done = program(code, MKL_INTERFACE_LAYER="ILP64", MKL_VERBOSE="1")
    assert done.returncode == 0, done.stderr
    assert b" ilp64 " in done.stdout


def test_lines_hold_the_problem(program: Program) -> None:
    code = """
        import numpy as np
        from cpulens.native import mkl
        mkl.set_threading_layer("gnu")
        mkl.sgemm(np.ones((7, 5)), np.ones((5, 9)))
        mkl.sgemm(np.ones((5, 7)).T, np.asfortranarray(np.ones((5, 9), "f4")))
        mkl.Gemm("dgemm", 3, 4, 5, transa="T", lda=6).allocate()
        product = mkl.Gemm("dgemm", 3, 4, 5, transa="T", lda=6)
        product.allocate()
        product.execute()
        mkl.gemm(np.ones((3, 7, 5)), np.ones((3, 5, 9)))
        mkl.gemm(np.ones((7, 5), "u1"), np.ones((5, 9), "i1"))
        mkl.gemm(np.ones((7, 5), "u2"), np.ones((5, 9), "u2"))
        mkl.fft(np.ones((4, 16, 8), "c8"), 2)
        mkl.rfft(np.ones((6, 64)))
    """
    done = program(code, MKL_VERBOSE="1")
    assert done.returncode == 0, done.stderr
    lines = [line.removeprefix("MKL_VERBOSE ") for line in done.stdout.decode().splitlines() if "CNR:" in line]
    # Row-major products appear as the column-major ones that they are: n before m, b before a.
    expected = [
        r"SGEMM\(N,N,9,7,5,0x\w+,0x\w+,9,0x\w+,5,0x\w+,0x\w+,9\)",
        r"SGEMM\(T,T,9,7,5,0x\w+,0x\w+,5,0x\w+,7,0x\w+,0x\w+,9\)",
        r"DGEMM\(T,N,3,4,5,0x\w+,0x\w+,6,0x\w+,5,0x\w+,0x\w+,3\)",
        r"DGEMM_BATCH_STRIDED\(N,N,9,7,5,0x\w+,0x\w+,9,45,0x\w+,5,35,0x\w+,0x\w+,9,63,3\)",
        r"GEMM_S8U8S32\(N,N,F,9,7,5,",
        r"GEMM_BF16BF16F32\(N,N,9,7,5,",
        r"FFT\(scfo16x8\*4,",
        r"FFT\(drfo64\*6,",
    ]
    assert len(lines) == len(expected), lines
    for line, pattern in zip(lines, expected, strict=True):
        assert re.match(pattern, line), (line, pattern)


def test_set_verbose_switches(program: Program) -> None:
    code = """
        import numpy as np
        from cpulens.native import mkl
        mkl.set_threading_layer("gnu")
        for level, size in [(0, 2), (1, 3), (0, 4), (1, 5)]:
            assert mkl.set_verbose(level) == level
            mkl.sgemm(np.ones((size, size)), np.ones((size, size)))
    """
    done = program(code)
    assert done.returncode == 0, done.stderr
    assert re.findall(rb"SGEMM\(N,N,(\d)", done.stdout) == [b"3", b"5"]
