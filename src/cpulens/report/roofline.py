"""A roofline as a person reads it in a terminal, and as JSON for scripts."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from cpulens.report.peaks import remarks
from cpulens.report.text import cell, count, milliseconds, percent, rate, visible

if TYPE_CHECKING:
    from cpulens.analyze.roofline import Kernel, Roofline

_TITLES: Final = ("lost ms", "total ms", "eff %", "GFLOP/s", "of", "GB/s", "limit", "calls")
#: Room that a kernel's name needs beside the figures; with less it goes on a line of its own.
_BESIDE: Final = 34


def roofline_object(result: Roofline) -> dict[str, Any]:
    """`{"schema": 1, "peaks", "total_ms", "perfect_ms", …, "kernels": [{KEY…, "lost_ms", "efficiency", …}]}`."""
    kernels = [
        {
            **dict(zip(result.by, one.key, strict=True)),
            **{field.name: getattr(one, field.name) for field in dataclasses.fields(one) if field.name != "key"},
        }
        for one in result.kernels
    ]
    totals = {name: getattr(result, name) for name in ("total_ms", "known_ms", "perfect_ms", "lost_ms", "efficiency")}
    unknown = [{"primitive": name, "total_ms": spent} for name, spent in result.unknown]
    return {
        "schema": 1,
        "peaks": result.peaks.record(),
        "origin": result.origin,
        **totals,
        "unknown": unknown,
        "kernels": kernels,
    }


def roofline_text(result: Roofline, limit: int | None = None, width: int = 100) -> str:
    """Totals first, then kernels by the time they lost, `limit` at most, then what the figures mean."""
    lines = [*_head(result), "", *_table(result, limit, width), "", *_foot(result, limit)]
    return "\n".join(line if "\n" in line else textwrap.fill(line, width, subsequent_indent="  ") for line in lines)


def _head(result: Roofline) -> Iterator[str]:
    peaks = result.peaks
    products = ", ".join(f"{name} {rate(one.gflops_per_s)}" for name, one in peaks.products.items())
    slowest = min(peaks.streams, key=lambda one: (-one.size_bytes, -one.gbytes_per_s), default=None)
    yield f"peaks      GFLOP/s: {products}" + (f"; memory {rate(slowest.gbytes_per_s)} GB/s" if slowest else "")
    yield visible(f"           {count(peaks.threads, 'thread')}, measured {peaks.measured}; {result.origin}")
    yield f"execution  {milliseconds(result.total_ms)} ms"
    if result.efficiency is None:
        yield "perfect    no kernel has both a cost and a peak"
        return
    yield (
        f"perfect    {milliseconds(result.perfect_ms)} ms would be enough for {milliseconds(result.known_ms)} ms of it "
        f"({percent(result.efficiency)} %)"
    )
    for name, spent in result.unknown[:3]:
        yield visible(f"unknown    {milliseconds(spent)} ms in {name}: no cost, or no peak of its data type")


def _table(result: Roofline, limit: int | None, width: int) -> Iterator[str]:
    kernels = result.kernels[:limit]
    rows = [_TITLES, *map(_figures, kernels)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_TITLES))]
    beside = width - sum(widths) - 2 * len(widths) >= _BESIDE
    names = [" ".join(result.by), *(_name(one) for one in kernels)]
    indent = sum(widths) + 2 * len(widths)
    for name, row in zip(names, rows, strict=True):
        figures = "  ".join(value.rjust(size) for value, size in zip(row, widths, strict=True))
        if beside:
            wrapped = textwrap.wrap(name, max(width - indent, _BESIDE), break_on_hyphens=False) or [""]
            yield figures + "  " + ("\n" + " " * indent).join(wrapped)
        else:
            yield figures + "\n" + textwrap.fill(name, width, initial_indent="  ", subsequent_indent="    ")


def _name(kernel: Kernel) -> str:
    return " ".join(cell(value) for value in kernel.key)


def _figures(kernel: Kernel) -> tuple[str, ...]:
    computes = kernel.attainable_gflops_per_s is not None and kernel.attainable_gflops_per_s > 0
    return (
        milliseconds(kernel.lost_ms),
        milliseconds(kernel.total_ms),
        "–" if kernel.efficiency is None else percent(kernel.efficiency),
        rate(kernel.gflops_per_s) if computes else "–",
        rate(kernel.attainable_gflops_per_s) if computes else "–",
        rate(kernel.gbytes_per_s),
        kernel.bound,
        f"{kernel.calls:,}",
    )


def _foot(result: Roofline, limit: int | None) -> Iterator[str]:
    if limit is not None and len(result.kernels) > limit:
        rest = sum(one.lost_ms for one in result.kernels[limit:])
        more = count(len(result.kernels) - limit, "more row")
        yield f"{more}, {milliseconds(rest)} ms lost there (--limit 0 shows all)"
    yield (
        "eff: achieved by attainable; of: GFLOP/s attainable at the kernel's operations a byte, with its data in the "
        "smallest memory that holds them; limit: what it runs into"
    )
    if any(one.efficiency is not None and one.efficiency > 1.05 for one in result.kernels):
        yield (
            "above 100 %: the peaks were measured beside other programs (cpulens peak --refresh), the data lay in a "
            "faster cache, or the kernel does less work than is counted"
        )
    for note in (*remarks(result.peaks), *result.facts.get("notes", [])):
        yield f"note: {visible(note)}"
