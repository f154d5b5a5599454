"""Instruction sets that the machine has and the kernels don't use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from cpulens.analyze.findings import refusals
from cpulens.analyze.findings.finding import ADVICE, WARNING, Evidence, Finding, ms, percent, share_of, times
from cpulens.analyze.findings.ledger import Ledger, named

if TYPE_CHECKING:
    import polars as pl

    from cpulens.analyze.findings.thresholds import Thresholds

_SHOWN: Final = 3
#: Kinds whose time is arithmetic, so that the instruction set decides.
_HEAVY: Final = ("convolution", "deconvolution", "inner_product", "matmul", "rnn", "gemm_api", "sdpa")
_INT8: Final = ("s8", "u8")
_MAX_ISA: Final = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
#: What oneDNN's header says of a feature; the machine's own names for the same.
_HEADER: Final = {
    "amx": r"AMX",
    "bf16": r"bfloat16 support|AMX with bfloat16|AVX ?10|\bbf16\b",
    "vnni": r"DL Boost|VNNI|AVX ?10|AMX",
    "avx512": r"AVX-?512|AVX ?10",
    "sve": r"SVE",
}
_MACHINE: Final = {
    "amx": ("amx_bf16", "amx_int8"),
    "bf16": ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16", "svebf16"),
    "vnni": ("avx512_vnni", "avx_vnni", "avx512vnni"),
    "avx512": ("avx512_core", "avx512f", "avx512bw"),
    "sve": ("sve",),
}
_TITLES: Final = {"amx": "AMX", "bf16": "bfloat16", "vnni": "VNNI", "avx512": "AVX-512", "sve": "SVE"}


def _onednn_has(ledger: Ledger) -> set[str]:
    """What oneDNN's own header says that it uses, in any copy; empty without a header."""
    words = " ".join(one.get("isa") or "" for one in ledger.libraries("onednn"))
    return {name for name, pattern in _HEADER.items() if re.search(pattern, words)}


def _machine_has(ledger: Ledger) -> set[str]:
    """What the machine's own facts say; empty where they weren't recorded."""
    flags = {flag for facts in ledger.instances.values() for flag in (facts.get("machine") or {}).get("isa") or ()}
    return {name for name, known in _MACHINE.items() if flags.intersection(known)}


def limited(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """OneDNN itself sees less than the machine has: shut off by a variable, or too old a version."""
    import polars as pl

    ours = _onednn_has(ledger)
    headers = [one for one in ledger.libraries("onednn") if one.get("isa")]
    missing = _machine_has(ledger) - ours
    if not headers or not missing:
        return
    heavy = ledger.primitives.filter(pl.col("primitive").is_in(_HEAVY))
    spent = float(heavy["total_ms"].sum())
    if share_of(spent, ledger.execution_ms) < thresholds.isa_share:
        return
    words = ", ".join(_TITLES[name] for name in _TITLES if name in missing)
    said = _limit(ledger)
    yield Finding(
        code="isa-limited",
        severity=WARNING,
        title=f"oneDNN doesn't use what the machine has: {words}",
        evidence=(
            Evidence(f"oneDNN {headers[0].get('version')} says: {headers[0]['isa']}"),
            Evidence(said or "no variable that limits it was recorded"),
            Evidence(f"{ms(spent)} in {', '.join(sorted(set(heavy['primitive'])))}"),
        ),
        cost_ms=None,
        next_step=f"Take {said} out of the environment."
        if said
        else "Take a newer oneDNN, or a framework built on one.",
        numbers={"heavy_ms": spent},
    )


def _limit(ledger: Ledger) -> str | None:
    for facts in ledger.instances.values():
        environment: dict[str, Any] = facts.get("environment") or {}
        for name in _MAX_ISA:
            if name in environment:
                return f"{name}={environment[name]}"
    return None


def unused(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """Kernels in a type that a unit of the machine computes, by implementations that don't use it."""
    import polars as pl

    has = _onednn_has(ledger)
    heavy = ledger.primitives.filter(pl.col("primitive").is_in(_HEAVY), ~pl.col("family").is_in(["ref"]))
    low = pl.col("src_dt").is_in([*_INT8, "bf16", "f16"])
    on_amx = pl.col("isa").fill_null("").str.contains("amx")
    on_vnni = on_amx | pl.col("isa").fill_null("").str.contains("vnni|bf16|fp16|avx10")
    if "amx" in has:
        slow = heavy.filter(low & ~on_amx & pl.col("isa").is_not_null())
        yield from _unused(ledger, thresholds, "amx-unused", "AMX", slow)
    elif "vnni" in has:
        slow = heavy.filter(pl.col("src_dt").is_in(_INT8) & ~on_vnni & pl.col("isa").is_not_null())
        yield from _unused(ledger, thresholds, "vnni-unused", "VNNI", slow)


def _unused(ledger: Ledger, thresholds: Thresholds, code: str, unit: str, slow: pl.DataFrame) -> Iterator[Finding]:
    spent = float(slow["total_ms"].sum())
    share = share_of(spent, ledger.execution_ms)
    if share < thresholds.isa_share:
        return
    evidence = []
    for row in slow.head(_SHOWN).iter_rows(named=True):
        evidence.append(
            Evidence(
                f"{named(row)} in {row['src_dt']}/{row['wei_dt'] or '–'}: {ms(row['total_ms'])} in "
                f"{times(row['calls'], 'call')}",
                (row["line"],),
            )
        )
        reasons = [reason for reason in refusals.before(ledger, row) if unit.lower() in reason.implementation]
        evidence += [Evidence(f"refused: {reason}", (reason.line,)) for reason in reasons[:_SHOWN]]
    yield Finding(
        code=code,
        severity=WARNING,
        title=f"The machine has {unit}, and {percent(share)} of the execution time, in types it computes, goes by it",
        evidence=tuple(evidence),
        cost_ms=None,
        next_step=(
            "Record with --onednn ON_CREATION,dispatch to see why those implementations were refused; most often the "
            "sizes are small or odd (pad channels to a multiple of 64), or a layout is given instead of left open."
        ),
        numbers={"share": share, "total_ms": spent},
    )


def bf16(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """The machine computes in bfloat16, and products and convolutions run in float32."""
    import polars as pl

    if "bf16" not in _onednn_has(ledger) | _machine_has(ledger):
        return
    products = pl.col("primitive").str.contains(r"gemm") & (pl.col("library") == "mkl")
    heavy = ledger.kernels.filter((pl.col("primitive").is_in(_HEAVY) | products) & (pl.col("src_dt") == "f32"))
    heavy = heavy.filter(~pl.col("attributes").fill_null("").str.contains("fpmath:(?:bf16|any)"))
    spent = float(heavy["counted_ms"].sum())
    share = share_of(spent, ledger.execution_ms)
    if share < thresholds.bf16_share:
        return
    units = "AMX" if "amx" in _onednn_has(ledger) | _machine_has(ledger) else "its vector units"
    yield Finding(
        code="bf16-unused",
        severity=ADVICE,
        title=f"{percent(share)} of the execution time is float32 arithmetic that {units} could do in bfloat16",
        evidence=tuple(
            Evidence(f"{named(row)}: {ms(row['counted_ms'])} in {times(row['calls'], 'call')}", (row["line"],))
            for row in heavy.head(_SHOWN).iter_rows(named=True)
        ),
        # bfloat16 halves the bytes and doubles at least the operations a cycle, so half is what either limit leaves.
        cost_ms=spent / 2,
        next_step=(
            "If 8 bits of mantissa are enough: torch.autocast('cpu', torch.bfloat16) around the model, or "
            "model.bfloat16(); to keep float32 tensors, torch.set_float32_matmul_precision('medium'), or "
            "ONEDNN_DEFAULT_FPMATH_MODE=BF16. Compare the results."
        ),
        numbers={"share": share, "total_ms": spent},
    )
