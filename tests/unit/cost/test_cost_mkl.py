"""oneMKL's routines against loops that count; LAPACK's lower terms against Working Note 41 where the loop is exact."""

from __future__ import annotations

import cmath
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_counting import Machine, call_row, indices
from cpulens.cost import cost_of

SIZE = st.integers(1, 5)
REAL = {"s": ("f32", 4), "d": ("f64", 8)}
COMPLEX = {"c": ("cf32", 8), "z": ("cf64", 16)}


def product(machine, a, b, c):
    """c = a × b on tensors, the textbook loop."""
    for i, j in indices(c.dims):
        total = machine.number()
        for x in range(a.dims[1]):
            total = total + a[i, x] * b[x, j]
        c[i, j] = total


@given(m=SIZE, n=SIZE, k=SIZE)
@pytest.mark.parametrize(
    ("routine", "types", "sizes"),
    [
        ("sgemm", ("f32", "f32", "f32"), (4, 4, 4)),
        ("dgemm", ("f64", "f64", "f64"), (8, 8, 8)),
        ("sgemm_compute", ("f32", "f32", "f32"), (4, 4, 4)),
        ("gemm_bf16bf16f32", ("bf16", "bf16", "f32"), (2, 2, 4)),
        ("gemm_f16f16f32", ("f16", "f16", "f32"), (2, 2, 4)),
        ("gemm_s8u8s32", ("s8", "u8", "s32"), (1, 1, 4)),
        ("gemm_s16s16s32", ("s16", "s16", "s32"), (None, None, 4)),
    ],
)
def test_gemm(routine, types, sizes, m, n, k):
    machine = Machine()
    a, b, c = (machine.tensor(dims, size or 0) for dims, size in zip(((m, k), (k, n), (m, n)), sizes, strict=True))
    product(machine, a, b, c)
    text = call_row("blas", routine, f"m{m}n{n}k{k}", types[0], wei_dt=types[1], dst_dt=types[2])
    found = cost_of(text)
    assert found.flops == machine.operations
    assert found.bytes == (machine.bytes if None not in sizes else None)


@pytest.mark.parametrize("routine", ["cgemm", "zgemm3m"])
def test_complex_products_are_eight_real_operations(routine):
    dt, element = COMPLEX[routine[0]]
    found = cost_of(call_row("blas", routine, "m2n3k4", dt, wei_dt=dt))
    real = 4 + 2 + 2  # (a + bi)(c + di): four products and two sums; adding it: two sums
    assert found == (real * 24, element * (8 + 12 + 6))


@pytest.mark.parametrize("routine", ["sgemm_batch", "sgemm_batch_strided"])
def test_batches(routine):
    assert cost_of(call_row("blas", routine, "b5m2n3k4", "f32", wei_dt="f32")) == (5 * 48, 5 * 4 * (8 + 12 + 6))
    # Without its number of matrices (pointers only, or several groups) a batch is not known.
    assert cost_of(call_row("blas", routine, "m2n3k4", "f32", wei_dt="f32")) == (None, None)


def triangular_solve(machine, n, columns, *, unit=False):
    """x = U⁻¹ x for each column, from the last row up."""
    triangle, x = machine.tensor((n, n), 8), machine.tensor((n, columns), 8)
    for j in range(columns):
        for i in reversed(range(n)):
            value = x[i, j]
            for at in range(i + 1, n):
                value = value - triangle[i, at] * machine.number()
            x[i, j] = value if unit else value / triangle[i, i]


@given(m=SIZE, n=SIZE)
@pytest.mark.parametrize("side", ["L", "R", "l"])
@pytest.mark.parametrize("routine", ["dtrsm", "dtrmm"])
def test_triangular_products_and_solves(routine, side, m, n):
    machine = Machine()
    triangular_solve(machine, *((m, n) if side in "Ll" else (n, m)))
    assert cost_of(call_row("blas", routine, f"m{m}n{n}", "f64", auxiliary=f"flags:{side},U,N,N")) == (
        machine.operations,
        machine.bytes,
    )


@given(n=SIZE, k=SIZE)
def test_rank_k_updates(n, k):
    machine = Machine()
    a, c = machine.tensor((n, k), 8), machine.tensor((n, n), 8)
    for i, j in indices((n, n)):
        if j <= i:
            total = machine.number()
            for x in range(k):
                total = total + a[i, x] * a[j, x]
            c[i, j] = total
    assert cost_of(call_row("blas", "dsyrk", f"n{n}k{k}", "f64", auxiliary="flags:U,N")) == (
        machine.operations,
        machine.bytes,
    )
    two = cost_of(call_row("blas", "dsyr2k", f"n{n}k{k}", "f64", auxiliary="flags:U,N"))
    assert two.flops == 2 * k * n * n + n  # Working Note 41: k n² multiplications, k n² + n additions
    assert two.bytes == 8 * (2 * n * k + n * (n + 1) / 2)


@given(m=SIZE, n=SIZE)
@pytest.mark.parametrize("side", ["L", "R"])
def test_symmetric_products(side, m, n):
    machine = Machine()
    order = m if side == "L" else n
    a, b, c = machine.tensor((order, order), 8), machine.tensor((m, n), 8), machine.tensor((m, n), 8)
    for i, j in indices((m, n)):
        total = machine.number()
        for x in range(order):
            row, column = (i, x) if side == "L" else (x, j)
            total = total + a[max(row, column), min(row, column)] * (b[x, j] if side == "L" else b[i, x])
        c[i, j] = total
    text = call_row("blas", "dsymm", f"m{m}n{n}", "f64", auxiliary=f"flags:{side},U")
    assert cost_of(text) == (machine.operations, machine.bytes)


def band(rows, columns, below, above):
    return [(i, j) for i, j in indices((rows, columns)) if -above <= i - j <= below]


@given(m=SIZE, n=SIZE, kl=st.integers(0, 6), ku=st.integers(0, 6))
def test_matrix_vector_products(m, n, kl, ku):
    """General, banded, symmetric and triangular matrices: the elements that are there, each once."""

    def multiply(entries, rows, columns):
        machine = Machine()
        a, x, y = machine.tensor((rows, columns), 8), machine.tensor((columns,), 8), machine.tensor((rows,), 8)
        for i, j in entries:
            machine.number() + a[i, j] * x[(j,)]
        for i in range(rows):
            y[(i,)] = machine.number()
        for j in range(columns):
            x[(j,)]
        return machine

    machine = multiply(band(m, n, m, n), m, n)
    assert cost_of(call_row("blas", "dgemv", f"m{m}n{n}", "f64", auxiliary="flags:T")) == (
        machine.operations,
        machine.bytes,
    )
    machine = multiply(band(m, n, kl, ku), m, n)
    assert cost_of(call_row("blas", "dgbmv", f"m{m}n{n}kl{kl}ku{ku}", "f64", auxiliary="flags:N")) == (
        machine.operations,
        machine.bytes,
    )
    symmetric = multiply(band(n, n, kl, kl), n, n)
    found = cost_of(call_row("blas", "dsbmv", f"n{n}k{kl}", "f64", auxiliary="flags:U"))
    assert found.flops == symmetric.operations
    assert found.bytes == 8 * (len(band(n, n, 0, kl)) + 2 * n)
    full = cost_of(call_row("blas", "dsymv", f"n{n}", "f64", auxiliary="flags:U"))
    assert full == (2 * n * n, 8 * (len(band(n, n, 0, n)) + 2 * n))
    solve = Machine()
    triangular_solve(solve, n, 1)
    assert cost_of(call_row("blas", "dtrsv", f"n{n}", "f64", auxiliary="flags:U,N,N")) == (
        solve.operations,
        solve.bytes,
    )
    entries = band(n, n, 0, kl)
    found = cost_of(call_row("blas", "dtbsv", f"n{n}k{kl}", "f64", auxiliary="flags:U,N,N"))
    assert found == (2 * len(entries) - n, 8 * (len(entries) + 2 * n))


def test_vectors():
    n = 7
    expected = {  # operations, and vectors' elements read and written
        "daxpy": (2 * n, 3 * n),
        "daxpby": (3 * n, 3 * n),
        "ddot": (2 * n, 2 * n),
        "dnrm2": (2 * n, n),
        "dasum": (n, n),
        "dscal": (n, 2 * n),
        "dcopy": (0, 2 * n),
        "dswap": (0, 4 * n),
        "drot": (6 * n, 4 * n),
        "idamax": (0, n),
    }
    for routine, (flops, elements) in expected.items():
        assert cost_of(call_row("blas", routine, f"n{n}", "f64")) == (flops, 8 * elements), routine
    assert cost_of(call_row("blas", "zdotc", f"n{n}", "cf64")) == (8 * n, 16 * 2 * n)
    assert cost_of(call_row("blas", "csscal", f"n{n}", "cf32")) == (2 * n, 8 * 2 * n)
    assert cost_of(call_row("blas", "scnrm2", f"n{n}", "f32")) == (4 * n, 8 * n)
    assert cost_of(call_row("blas", "dzasum", f"n{n}", "f64")) == (2 * n, 16 * n)
    assert cost_of(call_row("blas", "dger", "m3n5", "f64")) == (2 * 15, 8 * (30 + 8))
    assert cost_of(call_row("blas", "dsyr2", "n4", "f64")) == (4 * 10, 8 * (20 + 8))


def lu(m, n):
    """With a reciprocal for each pivot; of a wide matrix the upper factor has the unit diagonal."""
    machine = Machine()
    a = machine.tensor((m, n), 8)
    tall, thin = max(m, n), min(m, n)
    for k in range(thin):
        reciprocal = 1 / machine.number()
        for _ in range(k + 1, tall):
            machine.number() * reciprocal
            for _ in range(k + 1, thin):
                machine.number() - machine.number() * machine.number()
    for at in indices((m, n)):
        a[at] = a[at]
    return machine


@given(m=st.integers(1, 7), n=st.integers(1, 7))
def test_lu_as_the_loop_does_it(m, n):
    machine = lu(m, n)
    found = cost_of(call_row("lapack", "dgetrf", f"m{m}n{n}", "f64"))
    assert found.flops == pytest.approx(machine.operations)
    assert found.bytes == machine.bytes


@given(n=st.integers(1, 8))
def test_cholesky_as_the_loop_does_it(n):
    machine = Machine()
    a = machine.tensor((n, n), 8)
    for j in range(n):
        for _ in range(j):  # diagonal
            machine.number() - machine.number() * machine.number()
        machine.count("root")
        for _ in range(j + 1, n):
            for _ in range(j):
                machine.number() - machine.number() * machine.number()
            machine.number() / machine.number()
    for i, j in indices((n, n)):
        if j <= i:
            a[i, j] = a[i, j]
    found = cost_of(call_row("lapack", "dpotrf", f"n{n}", "f64", auxiliary="flags:L"))
    assert found.flops == pytest.approx(machine.operations)
    assert found.bytes == machine.bytes


@given(n=st.integers(1, 6), nrhs=st.integers(1, 4))
def test_solves(n, nrhs):
    unit, full = Machine(), Machine()
    triangular_solve(unit, n, nrhs, unit=True)
    triangular_solve(full, n, nrhs)
    getrs = cost_of(call_row("lapack", "dgetrs", f"n{n}nrhs{nrhs}", "f64", auxiliary="flags:N"))
    potrs = cost_of(call_row("lapack", "dpotrs", f"n{n}nrhs{nrhs}", "f64", auxiliary="flags:L"))
    trtrs = cost_of(call_row("lapack", "dtrtrs", f"n{n}nrhs{nrhs}", "f64", auxiliary="flags:L,N,N"))
    assert getrs.flops == unit.operations + full.operations
    assert potrs.flops == 2 * full.operations
    assert trtrs == (full.operations, full.bytes)
    assert getrs.bytes == 8 * (n * n + 2 * n * nrhs)
    assert potrs.bytes == 8 * (n * (n + 1) / 2 + 2 * n * nrhs)


@given(n=st.integers(1, 6), nrhs=st.integers(1, 4), precision=st.sampled_from("sdcz"))
def test_drivers_are_the_sum_of_what_they_call(n, nrhs, precision):
    dt, element = (REAL | COMPLEX)[precision]

    def one(name, problem):
        return cost_of(call_row("lapack", precision + name, problem, dt))

    square, solve = f"m{n}n{n}", f"n{n}nrhs{nrhs}"
    assert one("gesv", solve).flops == pytest.approx(one("getrf", square).flops + one("getrs", solve).flops)
    assert one("posv", solve).flops == pytest.approx(one("potrf", f"n{n}").flops + one("potrs", solve).flops)
    assert one("gesv", solve).bytes == element * (2 * n * n + 2 * n * nrhs)


def triangular_inverse(n):
    machine = Machine()
    for j in range(n):
        machine.count("reciprocal")
        for i in reversed(range(j)):
            total = machine.number() * machine.number()
            for _ in range(i + 1, j):
                total = total + machine.number() * machine.number()
            machine.number() * total
    return machine.operations


def test_inverses():
    for n in (1, 2, 5, 9):
        found = cost_of(call_row("lapack", "dtrtri", f"n{n}", "f64"))
        assert found.flops == pytest.approx(triangular_inverse(n))
    # Inverse of the factors, and a solve with the unit factor; of Cholesky's: the product of the inverse with itself.
    n = 60
    solve = sum(2 * n * (n - 1 - j) for j in range(n))
    assert cost_of(call_row("lapack", "dgetri", f"n{n}", "f64")).flops == pytest.approx(
        triangular_inverse(n) + solve, rel=0.02
    )
    twice = sum(2 * (n - max(i, j)) for i in range(n) for j in range(i + 1))
    assert cost_of(call_row("lapack", "dpotri", f"n{n}", "f64")).flops == pytest.approx(
        triangular_inverse(n) + twice, rel=0.02
    )


def reflections(m, n, apply_to):
    """Operations of the reflections that make the columns of an m × n matrix triangular; apply each to `apply_to(j)`
    more columns: a product with the vector and an update, two operations an element each."""
    return sum(4 * (m - j) * apply_to(j) + 3 * (m - j) for j in range(min(m - 1, n)))


@pytest.mark.parametrize(("m", "n"), [(120, 80), (80, 80), (80, 120)])
def test_orthogonal_factorizations(m, n):
    for routine, first, second in (("dgeqrf", m, n), ("dgelqf", n, m)):
        found = cost_of(call_row("lapack", routine, f"m{m}n{n}", "f64"))
        assert found.flops == pytest.approx(reflections(first, second, lambda j, s=second: s - j - 1), rel=0.03)
    k = min(m, n)
    found = cost_of(call_row("lapack", "dormqr", f"m{m}n{n}k{k}", "f64", auxiliary="flags:L,T"))
    assert found.flops == pytest.approx(sum(4 * (m - j) * n for j in range(k)), rel=0.03)
    found = cost_of(call_row("lapack", "dormqr", f"m{m}n{n}k{k}", "f64", auxiliary="flags:R,T"))
    assert found.flops == pytest.approx(sum(4 * (n - j) * m for j in range(k)), rel=0.03)
    if m >= n:
        found = cost_of(call_row("lapack", "dorgqr", f"m{m}n{n}k{n}", "f64"))
        assert found.flops == pytest.approx(sum(4 * (m - j) * (n - j) for j in range(n)), rel=0.03)
        found = cost_of(call_row("lapack", "dgels", f"m{m}n{n}nrhs10", "f64", auxiliary="flags:N"))
        whole = reflections(m, n, lambda j: n - j - 1) + sum(4 * (m - j) * 10 for j in range(n)) + 10 * n * n
        assert found.flops == pytest.approx(whole, rel=0.03)


def test_reductions_to_bands():
    """Two-sided reflections: a matrix-vector product and a rank-two update of what is left, 4 r² each step."""
    n = 200
    found = cost_of(call_row("lapack", "dsytrd", f"n{n}", "f64"))
    assert found.flops == pytest.approx(sum(2 * r * r + 2 * r * r for r in range(1, n)), rel=0.03)
    found = cost_of(call_row("lapack", "dgebrd", f"m{n}n{n}", "f64"))
    assert found.flops == pytest.approx(sum(4 * r * r + 4 * r * r for r in range(1, n)), rel=0.03)


def test_what_depends_on_the_numbers_is_not_known():
    for routine, problem in (("dgesdd", "m8n8"), ("dsyevd", "n8"), ("dgesvd", "m8n8")):
        assert cost_of(call_row("lapack", routine, problem, "f64")) == (None, None)
    failed = call_row("lapack", "dgetrf", "m8n8", "f64", message="info=3")
    assert cost_of(failed) == (None, None)


def fourier(machine, points):
    """Radix 2 on lists of (real, imaginary): the classical butterfly, nothing saved for special factors."""
    if len(points) == 1:
        return points
    even, odd = fourier(machine, points[::2]), fourier(machine, points[1::2])
    low, high = [], []
    for k, ((a, b), (c, d)) in enumerate(zip(even, odd, strict=True)):
        w = cmath.exp(-2j * cmath.pi * k / len(points))
        turned = (c * w.real - d * w.imag, c * w.imag + d * w.real)
        low.append((a + turned[0], b + turned[1]))
        high.append((a - turned[0], b - turned[1]))
    return low + high


@pytest.mark.parametrize("n", [1, 2, 8, 32])
def test_fourier_transforms(n):
    machine = Machine()
    fourier(machine, [(machine.number(), machine.number()) for _ in range(n)])
    auxiliary = "precision:double domain:complex direction:forward placement:in"
    assert cost_of(call_row("fft", "fft", f"{n}", "cf64", auxiliary=auxiliary)) == (machine.operations, 2 * 16 * n)


def test_transforms_of_several_dimensions_and_of_real_data():
    auxiliary = "precision:single domain:complex direction:forward placement:out"
    found = cost_of(call_row("fft", "fft", "4x8*10", "cf32", auxiliary=auxiliary))
    assert found == (10 * 5 * 32 * 5, 10 * 2 * 8 * 32)
    auxiliary = "precision:single domain:real direction:forward placement:out"
    found = cost_of(call_row("fft", "fft", "4x8*10", "f32", auxiliary=auxiliary))
    assert found == (10 * 2.5 * 32 * 5, 10 * (4 * 32 + 8 * 4 * 5))
    found = cost_of(call_row("fft", "fft", "1000", "cf64", auxiliary=""))
    assert found.flops == pytest.approx(5 * 1000 * math.log2(1000))


@given(rows=SIZE, columns=SIZE, width=SIZE, data=st.data())
@pytest.mark.parametrize(("form", "indices_per_value"), [("csr", 1), ("csc", 1), ("coo", 2)])
def test_sparse_products(form, indices_per_value, rows, columns, width, data):
    stored = data.draw(st.sets(st.sampled_from(list(indices((rows, columns))))))
    machine = Machine()
    values = machine.tensor((rows, columns), 8 + 4 * indices_per_value)
    x, y = machine.tensor((columns, width), 8), machine.tensor((rows, width), 8)
    for i, j in stored:
        value = values[i, j]
        for _ in range(width):
            machine.number() + value * machine.number()
    for at in indices(x.dims):
        x[at]
    for at in indices(y.dims):
        y[at] = machine.number()
    pointers = {"csr": 4 * (rows + 1), "csc": 4 * (columns + 1), "coo": 0}[form]
    text = call_row("sparse", "mkl_sparse_d_mm", f"{rows}x{columns}nnz{len(stored)}n{width}", None)
    assert cost_of(text | {"auxiliary": f"format:{form}"}) == (machine.operations, machine.bytes + pointers)
    if width == 1:
        text |= {"primitive": "mkl_sparse_d_mv", "problem": f"{rows}x{columns}nnz{len(stored)}"}
        assert cost_of(text | {"auxiliary": f"format:{form}"}) == (machine.operations, machine.bytes + pointers)


def test_sparse_formats_whose_values_are_blocks_are_not_known():
    text = call_row("sparse", "mkl_sparse_d_mv", "3x3nnz5", None, auxiliary="format:bsr")
    assert cost_of(text) == (None, None)


def test_random_numbers_are_written():
    assert cost_of(call_row("rng", "vdRngUniform", "n100", None)) == (None, 800)
    assert cost_of(call_row("rng", "vslNewStream", None, None)) == (None, None)
