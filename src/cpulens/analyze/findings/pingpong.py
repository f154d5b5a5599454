"""Tensors that go into another layout or data type and come straight back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from cpulens.analyze.findings.finding import WARNING, Evidence, Finding, ms, percent, share_of, times
from cpulens.analyze.findings.layouts import Move, move
from cpulens.analyze.findings.ledger import Ledger, named
from cpulens.analyze.findings.weights import of_weights

if TYPE_CHECKING:
    import polars as pl

    from cpulens.analyze.findings.thresholds import Thresholds

_SHOWN: Final = 3


def ping_pong(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """Pairs of reorders A → B → A of the same dimensions, few executions apart; a finding each for layout and type."""
    import polars as pl

    moves = _two_way_moves(ledger)
    if not moves:
        return
    pairs = _pairs(ledger, moves, thresholds.ping_pong_reach)
    for code, noun in (("layout-ping-pong", "layout"), ("type-ping-pong", "data type")):
        texts = [text for text, step in moves.items() if _changes_type(step) == (noun == "data type")]
        mine = pairs.filter(pl.col("there").is_in(texts))
        spent = float(mine["duration_ms"].sum())
        share = share_of(spent, ledger.execution_ms)
        if len(mine) and share >= thresholds.ping_pong_share:
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


def _pairs(ledger: Ledger, moves: dict[int, Move], reach: int) -> pl.DataFrame:
    """Reorders that undo the one before of the same tensor shape, at most `reach` executions later; none twice.

    One row each: `there` (text of the first), `place` and `end` among the executions, `line`, `line_back`,
    `duration_ms` of both.
    """
    import polars as pl

    ways: dict[tuple[Any, ...], int] = {}
    rows = [
        (text, ways.setdefault((step.problem, *sorted(step[1:])), len(ways)), step.source < step.destination)
        for text, step in moves.items()
    ]
    schema = {"text": pl.UInt32, "way": pl.UInt32, "forth": pl.Boolean}
    ran = ledger.executions.select("text", "line", "duration_ms", "instance").with_row_index("place")
    mine = ran.join(pl.DataFrame(rows, schema=schema, orient="row"), on="text", how="inner", maintain_order="left")
    mine = mine.sort("way", "place").with_columns(pl.col("duration_ms").fill_null(0.0)).with_row_index("at")
    before = {name: pl.col(name).shift(1) for name in ("way", "forth", "place", "instance")}
    undoes = (
        (pl.col("way") == before["way"])
        & (pl.col("forth") != before["forth"])
        & (pl.col("place") - before["place"] <= reach)
        & pl.col("instance").eq_missing(before["instance"])
    ).fill_null(False)
    # In a chain A → B → A → B → A the second and the fourth undo; each reorder counts in one pair.
    since = pl.col("at") - pl.when(~pl.col("undoes")).then(pl.col("at")).forward_fill()
    return (
        mine.with_columns(undoes=undoes)
        .with_columns(chosen=pl.col("undoes") & (since % 2 == 1))
        .select(
            "chosen",
            there=pl.col("text").shift(1),
            place=pl.col("place").shift(1),
            end="place",
            line=pl.col("line").shift(1),
            line_back="line",
            duration_ms=pl.col("duration_ms") + pl.col("duration_ms").shift(1),
        )
        .filter("chosen")
    )


def _changes_type(step: Move) -> bool:
    return step.source.dt != step.destination.dt


def _finding(
    ledger: Ledger,
    code: str,
    noun: str,
    pairs: pl.DataFrame,
    moves: dict[int, Move],
    spent: float,
    share: float,
) -> Finding:
    import polars as pl

    worst = (
        pairs.group_by("there", maintain_order=True)
        .agg(pl.len(), pl.col("duration_ms").sum(), pl.col("place", "end", "line", "line_back").first())
        .sort("duration_ms", descending=True)
    )
    evidence = []
    for row in worst.head(_SHOWN).iter_rows(named=True):
        step = moves[row["there"]]
        evidence.append(
            Evidence(
                f"{step.problem}: {step.source} → {step.destination} → {step.source}, "
                f"{times(row['len'], 'time')}, {ms(row['duration_ms'])}; between: {_between(ledger, row)}",
                (row["line"], row["line_back"]),
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
