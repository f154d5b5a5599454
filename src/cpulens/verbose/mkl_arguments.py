"""Arguments of oneMKL's calls: sizes, flags, leading dimensions, FFT codes, sparse matrices.

Scalars print as values and pointers as ``ptr``; LAPACK prints its ``info`` last, after the call. A batch of MKL up to
2024 prints only pointers, so its sizes are not known.
"""

from __future__ import annotations

import itertools
import re
from typing import Final

_INTEGER: Final = re.compile(r"-?\d+")
_FFT_CODE: Final = re.compile(r"([sdh])([cr])([fb]?)([io])(.*)")
_MATRIX: Final = re.compile(r"(?:fmt:(\w+)|dims:(\w+)|nnz:(\d+)|rows:(\d+)|cols:(\d+))")
_LONG: Final = {"s": "single", "d": "double", "h": "half", "c": "complex", "r": "real", "f": "forward", "b": "backward"}
#: Names of the first sizes, by the routine without its precision; else n, or m n, or m n k.
_SIZES: Final = {
    "syrk": ("n", "k"), "herk": ("n", "k"), "syr2k": ("n", "k"), "her2k": ("n", "k"),
    "gbmv": ("m", "n", "kl", "ku"), "sbmv": ("n", "k"), "hbmv": ("n", "k"), "tbmv": ("n", "k"), "tbsv": ("n", "k"),
    "getrs": ("n", "nrhs"), "potrs": ("n", "nrhs"), "sytrs": ("n", "nrhs"), "hetrs": ("n", "nrhs"),
    "trtrs": ("n", "nrhs"), "gesv": ("n", "nrhs"), "posv": ("n", "nrhs"), "sysv": ("n", "nrhs"),
    "gels": ("m", "n", "nrhs"), "gelsd": ("m", "n", "nrhs"), "gelsy": ("m", "n", "nrhs"), "gelss": ("m", "n", "nrhs"),
    "gbtrf": ("m", "n", "kl", "ku"),
}  # fmt: skip
_DEFAULT_SIZES: Final = {1: ("n",), 2: ("m", "n"), 3: ("m", "n", "k")}

Fields = dict[str, str | int | None]


def understand(component: str, routine: str, body: str) -> Fields:
    """Give the columns that the arguments say; `body` is what stands between the brackets."""
    if component == "fft" and routine == "fft":
        return fft(body)
    if component == "sparse":
        return _sparse(body)
    arguments = body.split(",") if body else []
    if component == "rng":
        return _rng(routine, arguments)
    if "gemm" in routine and "gemmt" not in routine:
        return _gemm(routine, arguments)
    found = _sizes(routine, arguments)
    if component == "lapack":
        found |= _lapack(routine, arguments)
    return found


def _leading_integers(arguments: list[str]) -> tuple[int, list[str]]:
    """Find the first run of integers before a pointer: how many arguments stand before it, and its values."""
    first = next((at for at, argument in enumerate(arguments) if _INTEGER.fullmatch(argument)), len(arguments))
    last = first
    while last < len(arguments) and _INTEGER.fullmatch(arguments[last]):
        last += 1
    return first, arguments[first:last]


def _sizes(routine: str, arguments: list[str]) -> Fields:
    first, values = _leading_integers(arguments)
    flags = [argument for argument in arguments[:first] if argument.isalpha() and argument not in ("ptr", "nil")]
    names = _SIZES.get(routine[1:]) or _DEFAULT_SIZES.get(min(len(values), 3), ())
    problem = "".join(name + value for name, value in zip(names, values, strict=False))
    return {"problem": problem or None, "auxiliary": "flags:" + ",".join(flags) if flags else None}


def _lapack(routine: str, arguments: list[str]) -> Fields:
    found: Fields = {}
    if "-1" in arguments and "laswp" not in routine:
        found["event"] = "query"
    info = arguments[-1] if arguments else ""
    if _INTEGER.fullmatch(info) and info != "0" and "laswp" not in routine and len(arguments) > 2:
        found["message"] = f"info={info}"
    return found


def _gemm(routine: str, arguments: list[str]) -> Fields:
    first, values = _leading_integers(arguments)
    flags = [argument for argument in arguments[:first] if argument != "ptr"]
    found: Fields = {"auxiliary": "flags:" + ",".join(flags) if flags else None}
    if len(values) < 3:
        return found
    m, n, k = values[:3]
    batch = ""
    if "batch" in routine and _INTEGER.fullmatch(arguments[-1]):
        grouped = "strided" not in routine and arguments[-2:-1] != ["1"]
        batch = "" if grouped else f"b{arguments[-1]}"
    strides = [at for before, at in itertools.pairwise(arguments) if before == "ptr" and _INTEGER.fullmatch(at)]
    if "batch" not in routine and len(strides) >= 3 and "pack" not in routine:
        found["attributes"] = " ".join(
            f"{name}:{value}" for name, value in zip(("lda", "ldb", "ldc"), strides, strict=False)
        )
    return found | {"problem": f"{batch}m{m}n{n}k{k}"}


def _rng(routine: str, arguments: list[str]) -> Fields:
    if "Rng" in routine and len(arguments) > 2 and _INTEGER.fullmatch(arguments[2]):
        return {"problem": f"n{arguments[2]}", "auxiliary": f"method:{arguments[0]}"}
    named = [argument for argument in arguments if argument != "ptr"]
    return {"auxiliary": ",".join(named) or None}


def _sparse(body: str) -> Fields:
    words: dict[str, str] = {}
    for kind, dims, nnz, rows, cols in _MATRIX.findall(body):
        for name, value in (("fmt", kind), ("dims", dims), ("nnz", nnz), ("rows", rows), ("cols", cols)):
            if value:
                words.setdefault(name, value)
    dims = words.get("dims") or "x".join(words[name] for name in ("rows", "cols") if name in words)
    problem = dims + (f"nnz{words['nnz']}" if "nnz" in words else "")
    if "dims" in words and "cols" in words:  # columns of the dense operand
        problem += f"n{words['cols']}"
    return {"problem": problem or None, "auxiliary": f"format:{words['fmt']}" if "fmt" in words else None}


def fft(body: str) -> Fields:
    """Read ``dcfi1024*4:64:33,option:value,…``; strides are left out, for one version prints random numbers there."""
    code, _, options = body.partition(",")
    found = _FFT_CODE.match(code)
    if found is None:
        return {}
    precision, domain, direction, placement, lengths = found.groups()
    words = [f"precision:{_LONG[precision]}", f"domain:{_LONG[domain]}"]
    if direction:
        words.append(f"direction:{_LONG[direction]}")
    words.append("placement:in" if placement == "i" else "placement:out")
    kept = re.sub(r"(?:\w+_strides:\{[^}]*\}|\w+_distance:-?\d+|desc:\w+),?", "", options).strip(",")
    real = {"s": "f32", "d": "f64", "h": "f16"}[precision]
    dt = "c" + real if domain == "c" else real
    return {
        "src_dt": dt,
        "dst_dt": dt,
        "problem": _lengths(lengths),
        "auxiliary": " ".join(words),
        "attributes": kept.replace(",", " ") or None,
    }


def _lengths(text: str) -> str | None:
    sizes, _, batch = text.partition("*")
    dims = [part.partition(":")[0] for part in re.split(r"x(?=\d+(?:[:x*]|$))", sizes)]
    batch = batch.partition(":")[0]
    return ("x".join(dims) + (f"*{batch}" if batch else "")) or None


def fft_descriptor(body: str) -> Fields:
    """Read the form of 2018 and 2019, printed when a descriptor is committed: ``MAIN_DESC | dci1024:1:1 | …``."""
    parts = [part.strip() for part in body.split("|")]
    return fft(parts[1]) if len(parts) > 1 else {}
