"""Primitives created again and again: the cache is too small or off, or new shapes keep coming."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from cpulens.analyze.findings.finding import WARNING, Evidence, Finding, ms, percent, share_of, times
from cpulens.analyze.findings.ledger import Ledger, named

if TYPE_CHECKING:
    import polars as pl

    from cpulens.analyze.findings.thresholds import Thresholds

#: oneDNN's own default since 1.5 (200 before).
_CAPACITY: Final = 1024
_OLD_CAPACITY: Final = 200
_VARIABLES: Final = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "DNNL_PRIMITIVE_CACHE_CAPACITY")
_SHOWN: Final = 3


def misses(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """Primitives that were created before and missed the cache again."""
    import polars as pl

    created = _missed(ledger)
    again = created.filter(pl.col("calls") > 1)
    count = int((again["calls"] - 1).sum()) if len(again) else 0
    wasted = float((again["total_ms"] * (again["calls"] - 1) / again["calls"]).sum()) if len(again) else 0.0
    share = share_of(wasted, ledger.spent_ms)
    if count < thresholds.creation_calls or share < thresholds.creation_share:
        return
    capacity, said = _capacity(ledger)
    distinct = ledger.records.filter(pl.col("event") == "create").height
    if capacity == 0:
        cause, step = "the cache is off", f"Take {said} out of the environment."
    elif distinct > capacity:
        cause = f"{distinct:,} distinct problems pass through a cache of {capacity:,}"
        step = (
            f"Use fewer distinct shapes: pad or bucket lengths and sizes to a few values; or raise the cache with "
            f"ONEDNN_PRIMITIVE_CACHE_CAPACITY={_next_power(distinct)} (each entry holds code and work space)."
        )
    else:
        cause = f"{distinct:,} distinct problems would fit the cache of {capacity:,}"
        step = "The program may clear the cache, or run several copies of oneDNN or several engines: look there."
    yield Finding(
        code="cache-misses",
        severity=WARNING,
        title=f"Primitives are created again {times(count, 'time')}: {percent(share)} of execution and creation",
        evidence=(
            Evidence(f"{cause} ({said})"),
            Evidence(f"{times(int(created['calls'].sum()), 'miss', 'misses')}, {times(_hits(ledger), 'hit')}"),
            *_shown(again),
        ),
        cost_ms=wasted,
        next_step=step,
        numbers={"share": share, "misses_again": count, "distinct": distinct, "capacity": capacity},
    )


def new_shapes(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """Primitives created for the first time in the later half of the run: its shapes never settle."""
    import polars as pl

    runs = ledger.executions["seq"]
    if not len(runs):
        return
    half = int(runs.sort()[len(runs) // 2])
    late = _missed(ledger).filter(pl.col("first_seq") > half)
    spent = float((late["total_ms"] / late["calls"]).sum()) if len(late) else 0.0
    share = share_of(spent, ledger.spent_ms)
    if len(late) < thresholds.creation_calls or share < thresholds.creation_share:
        return
    yield Finding(
        code="new-shapes",
        severity=WARNING,
        title=f"New problems keep coming: {len(late):,} primitives are created in the later half of the run, "
        f"{percent(share)} of execution and creation",
        evidence=tuple(_shown(late)),
        cost_ms=spent,
        next_step=(
            "Use fewer distinct shapes: pad or bucket lengths and sizes to a few values, and run each once before it "
            "counts."
        ),
        numbers={"share": share, "primitives": len(late)},
    )


def _missed(ledger: Ledger) -> pl.DataFrame:
    """Creations that made a new primitive; versions without a cache say nothing of it, and are left out."""
    import polars as pl

    return ledger.records.filter((pl.col("event") == "create") & (pl.col("cache") == "miss"))


def _hits(ledger: Ledger) -> int:
    import polars as pl

    return int(ledger.records.filter((pl.col("event") == "create") & (pl.col("cache") == "hit"))["calls"].sum())


def _capacity(ledger: Ledger) -> tuple[int, str]:
    """The cache's capacity, and where it is known from."""
    for facts in ledger.instances.values():
        environment: dict[str, Any] = facts.get("environment") or {}
        for name in _VARIABLES:
            if str(environment.get(name, "")).isdecimal():
                return int(environment[name]), f"{name}={environment[name]}"
    versions = [one.get("version") or "" for one in ledger.libraries("onednn")]
    if versions and all(version.startswith(("1.2", "1.3", "1.4")) for version in versions):
        return _OLD_CAPACITY, "oneDNN's default of that version"
    return _CAPACITY, "oneDNN's default, if the environment didn't change it"


def _next_power(number: int) -> int:
    return int(1 << number.bit_length())


def _shown(created: pl.DataFrame) -> list[Evidence]:
    return [
        Evidence(f"{named(row)}: created {times(row['calls'], 'time')}, {ms(row['total_ms'])}", (row["line"],))
        for row in created.sort("total_ms", descending=True, nulls_last=True).head(_SHOWN).iter_rows(named=True)
    ]
