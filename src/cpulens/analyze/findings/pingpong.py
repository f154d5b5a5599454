"""Tensors that go into another layout or data type and come straight back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from cpulens.analyze.findings.finding import WARNING, Evidence, Finding, ms, percent, share_of, times
from cpulens.analyze.findings.layouts import Move, move
from cpulens.analyze.findings.ledger import Ledger, named
from cpulens.analyze.findings.weights import of_weights

if TYPE_CHECKING:
    from cpulens.analyze.findings.thresholds import Thresholds

_SHOWN: Final = 3


def ping_pong(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """Pairs of reorders A → B → A of the same dimensions, few executions apart; a finding each for layout and type."""
    moves = _two_way_moves(ledger)
    if not moves:
        return
    pairs = _pairs(ledger, moves, thresholds.ping_pong_reach)
    for code, noun in (("layout-ping-pong", "layout"), ("type-ping-pong", "data type")):
        mine = [pair for pair in pairs if _changes_type(moves[pair["there"]]) == (noun == "data type")]
        spent = sum(pair["duration_ms"] for pair in mine)
        share = share_of(spent, ledger.execution_ms)
        if mine and share >= thresholds.ping_pong_share:
            yield _finding(ledger, code, noun, mine, moves, spent, share)


def _two_way_moves(ledger: Ledger) -> dict[int, Move]:
    """Texts of reorders, weights aside, whose way back is in the trace too."""
    import polars as pl

    for_weights = set(of_weights(ledger))
    rows = ledger.primitives.filter(pl.col("primitive") == "reorder").iter_rows(named=True)
    moves = {row["text"]: step for row in rows if row["text"] not in for_weights and (step := move(row))}
    there = set(moves.values())
    return {
        text: step
        for text, step in moves.items()
        if step.source != step.destination and Move(step.problem, step.destination, step.source) in there
    }


def _pairs(ledger: Ledger, moves: dict[int, Move], reach: int) -> list[dict[str, Any]]:
    """Reorders that undo the one before of the same tensor shape, at most `reach` executions later; none twice."""
    import polars as pl

    ways: dict[tuple[Any, ...], int] = {}
    keys = {text: ways.setdefault((step.problem, *sorted(step[1:])), len(ways)) for text, step in moves.items()}
    numbers = pl.DataFrame(
        {"text": list(keys), "way": list(keys.values())}, schema={"text": pl.UInt32, "way": pl.UInt32}
    )
    runs = ledger.executions.select("text", "line", "duration_ms", "instance").with_row_index("place")
    mine = runs.join(numbers, on="text", how="inner", maintain_order="left").sort("way", maintain_order=True)
    found: list[dict[str, Any]] = []
    before: tuple[Any, ...] | None = None
    for row in mine.select("way", "text", "place", "line", "duration_ms", "instance").iter_rows():
        way, text, place, line, time, instance = row
        if (
            before is not None
            and before[0] == way
            and before[1] != text
            and moves[before[1]].source == moves[text].destination
            and place - before[2] <= reach
            and before[5] == instance
        ):
            spent = (time or 0.0) + (before[4] or 0.0)
            found.append(
                {"there": before[1], "place": before[2], "end": place, "lines": (before[3], line), "duration_ms": spent}
            )
            before = None
        else:
            before = row
    return found


def _changes_type(step: Move) -> bool:
    return step.source.dt != step.destination.dt


def _finding(
    ledger: Ledger,
    code: str,
    noun: str,
    pairs: list[dict[str, Any]],
    moves: dict[int, Move],
    spent: float,
    share: float,
) -> Finding:
    by_move: dict[int, list[dict[str, Any]]] = {}
    for pair in pairs:
        by_move.setdefault(pair["there"], []).append(pair)
    worst = sorted(by_move.items(), key=lambda item: -sum(pair["duration_ms"] for pair in item[1]))
    evidence = []
    for text, mine in worst[:_SHOWN]:
        step = moves[text]
        evidence.append(
            Evidence(
                f"{step.problem}: {step.source} → {step.destination} → {step.source}, "
                f"{times(len(mine), 'time')}, {ms(sum(pair['duration_ms'] for pair in mine))}; between: "
                f"{_between(ledger, mine[0])}",
                mine[0]["lines"],
            )
        )
    step_for = {
        "layout": "Let the operation between take the layout of its neighbours: in PyTorch, channels_last for model "
        "and input, or an operation that oneDNN runs in a blocked layout; move it before or after the block of "
        "convolutions, or let it be fused (torch.compile, freezing).",
        "data type": "Let the operation between run in the same data type: widen the autocast region, or keep float32 "
        "there and around it, so that the tensor is converted once.",
    }
    return Finding(
        code=code,
        severity=WARNING,
        title=f"Tensors change their {noun} and change it back {times(len(pairs), 'time')}: {percent(share)} of the "
        "execution time",
        evidence=tuple(evidence),
        cost_ms=spent,
        next_step=step_for[noun],
        numbers={"share": share, "pairs": len(pairs)},
    )


def _between(ledger: Ledger, pair: dict[str, Any]) -> str:
    """What ran between there and back: whoever forces it."""
    import polars as pl

    inside = ledger.executions.slice(pair["place"] + 1, pair["end"] - pair["place"] - 1)["text"]
    rows = ledger.records.filter(pl.col("text").is_in(inside.implode()), pl.col("primitive") != "reorder")
    kernels = [named(row) for row in rows.head(2).iter_rows(named=True)]
    return " and ".join(kernels) if kernels else "no kernel of oneDNN or oneMKL; the framework's own operation"
