"""What a text of oneMKL says, as columns of `texts`. Called once per distinct text."""

from __future__ import annotations

import re
from typing import Final

from cpulens.verbose import mkl_arguments
from cpulens.verbose.mkl_framing import HEADER

_CALL: Final = re.compile(r"MKL_VERBOSE (?:(BEGIN|END) )?([A-Za-z_][\w:]*?)\s?(\(|: )(.*)", re.DOTALL)
_TAIL: Final = re.compile(r"\)?((?: +(?:CNR|Dyn|FastMM|NThr|WDiv):\S+| +GPU\d+)*)\s*$")
_THREADS: Final = re.compile(r"NThr:(\d{1,9})")
_GPU: Final = re.compile(r"GPU(\d+)")
_BLAS_ROOTS: Final = (
    "asum|axpy|axpby|axpyi|copy|dot|dotc|dotu|doti|dotci|dotui|nrm2|rotg?|rotmg?|scal|swap|amax|amin|cabs1|sdot|sdsdot|"
    "gbmv|gemv|gemvt?|gerc?|geru|hbmv|hemv|her2?k?|hpmv|hpr2?|sbmv|spmv|spr2?|symv|syr2?k?|tbmv|tbsv|tpmv|tpsv|trmv|trsv|"
    "gemm|gemmt|gemm3m|hemm|symm|trmm|trsm|gthrz?|sctr|roti|dgmm|[io]matcopy2?|omatadd"
)
_BLAS: Final = re.compile(rf"(?:i?(?:sc|dz|cs|zd|ds|[sdczh])?)(?:{_BLAS_ROOTS})(?:_.*)?$")
_PRECISIONS: Final = {"s": "f32", "d": "f64", "c": "cf32", "z": "cf64", "h": "f16"}
_MIXED: Final = {
    "s8u8s32": ("s8", "u8", "s32"),
    "s16s16s32": ("s16", "s16", "s32"),
    "bf16bf16f32": ("bf16", "bf16", "f32"),
    "f16f16f32": ("f16", "f16", "f32"),
}

Fields = dict[str, str | int | None]


def understand(text: bytes) -> Fields:
    """Give the columns of one text (without pointers, time and TID); columns it does not say are left out."""
    decoded = text.decode("utf-8", "replace")
    call = _CALL.fullmatch(decoded)
    if HEADER.match(text) or decoded.startswith(("MKL_VERBOSE Detected", "MKL_VERBOSE WARNING", "MKL_VERBOSE ERROR")):
        event = {"W": "warn", "E": "error"}.get(decoded[12], "info")
        return {"component": "common", "event": event, "message": decoded[12:]}
    if call is None:
        return {"event": "unknown", "message": decoded}
    phase, printed, opened, after = call.groups()
    tail = _TAIL.search(after)
    settings = tail[1] if tail else ""
    body = after[: tail.start()] if tail else after
    gpu, threads = _GPU.search(settings), _THREADS.search(settings)
    component, routine = _routine(printed)
    fields: Fields = {
        "component": component,
        "event": "begin" if phase == "BEGIN" else "exec",
        "engine": f"gpu:{gpu[1]}" if gpu else "cpu",
        "primitive": routine,
        "family": component,
        "threads": int(threads[1]) if threads else None,
    }
    fields |= _types(component, routine)
    if opened != "(":
        return fields | {"event": "create"} | mkl_arguments.fft_descriptor(body)
    return fields | mkl_arguments.understand(component, routine, body)


def _routine(printed: str) -> tuple[str, str]:
    """Give the component and the routine's name: BLAS and LAPACK in lower case, the rest as printed."""
    if printed == "FFT":
        return "fft", "fft"
    if "::" in printed:
        *path, routine = printed.split("::")
        domain = path[-1] if path else ""
        return {"dft": "fft", "vm": "vm"}.get(domain, domain or "blas"), routine
    if printed.startswith("mkl_sparse_"):
        return "sparse", printed
    if printed.startswith("vsl") or re.match(r"v[sdi]Rng", printed):
        return "rng", printed
    lower = printed.lower()
    return ("blas" if _BLAS.fullmatch(lower) else "lapack"), lower


def _types(component: str, routine: str) -> Fields:
    for name, (src, wei, dst) in _MIXED.items():
        if name in routine:
            return {"src_dt": src, "wei_dt": wei, "dst_dt": dst}
    if component not in ("blas", "lapack"):
        return {}
    bare = routine.removeprefix("i") if _BLAS.fullmatch(routine) and routine.startswith("i") else routine
    bare = bare.removeprefix("p") if component == "lapack" and routine[:1] == "p" else bare
    dt = _PRECISIONS.get(bare[:1])
    if dt is None:
        return {}
    weights = {"wei_dt": dt} if re.search(r"gemm|symm|hemm|trmm", routine) else {}
    return {"src_dt": dt, "dst_dt": dt, **weights}
