"""Why faster implementations were refused: oneDNN's dispatch lines, in plain words beside their own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cpulens.analyze.findings.ledger import Ledger

#: What oneDNN's messages say, by what stands in them; the first that fits.
_WORDS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), words)
    for pattern, words in (
        (r"unsupported isa", "its instruction set is missing here, or shut off by ONEDNN_MAX_CPU_ISA"),
        (r"data ?type.*(configuration|combination).*isa", "no kernel for these data types on this instruction set"),
        (r"inconsistent data ?types|mismatched? data ?type", "the data types of its tensors don't go together"),
        (r"data ?type|unsupported.*\bdt\b", "it doesn't compute in these data types"),
        (r"post-?op", "it can't fuse these post-operations"),
        (r"zero.?point", "it doesn't apply these zero points"),
        (r"scale", "it doesn't apply these scales"),
        (r"attribute", "it doesn't know one of the attributes"),
        (r"non-grouped convolution in depthwise", "it is made for depthwise convolutions only"),
        (r"padding", "it can't pad like this"),
        (r"non-unit kernel|kernel size", "it is made for another kernel size"),
        (r"stride", "it needs tensors or windows with other strides"),
        (r"format tag|layout|memory format", "it doesn't take tensors in these layouts"),
        (r"number of dimensions|ndims", "it is made for tensors of another number of dimensions"),
        (r"small (shape|size|problem)", "the problem is too small for it to pay"),
        (r"tail", "a size is not a multiple of its block, and it has no code for the rest"),
        (r"runtime dim|run-time dim", "it must know all sizes when it is created"),
        (r"scratchpad|memory limit", "its work space would exceed the limit"),
        (r"sparse", "it doesn't take this kind of sparse tensor"),
        (r"no elements|zero dim|empty", "a tensor is empty"),
        (r"heuristic|dispatching to (another|other)|fall ?back", "its own estimate prefers another implementation"),
        (r"propagation|prop_kind", "it doesn't compute in this direction"),
        (r"algorithm", "it doesn't know this algorithm"),
        (r"bias", "it doesn't take this bias"),
        (r"engine|runtime", "it needs another engine or threading runtime"),
        (r"flags", "it doesn't know one of the flags"),
        (r"shape|dimension|param", "it isn't made for these sizes"),
    )
)
_LOOKED_BACK: Final = 128


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refusal: who refused, why in plain words (None: only the library's own are known), and where it stands."""

    implementation: str
    reason: str | None
    message: str
    source: str | None
    line: int

    def __str__(self) -> str:
        own = f'"{self.message}", {self.source}' if self.source else f'"{self.message}"'
        return f"{self.implementation}: {self.reason} ({own})" if self.reason else f"{self.implementation}: {own}"


def in_plain_words(message: str) -> str | None:
    """What a dispatch message means; None for one that isn't known."""
    return next((words for pattern, words in _WORDS if pattern.search(message)), None)


def before(ledger: Ledger, kernel: dict[str, Any]) -> list[Refusal]:
    """The refusals printed right before a kernel was first created, or first ran where creations aren't printed."""
    import polars as pl

    same = [pl.col(name).eq_missing(pl.lit(kernel[name])) for name in ("primitive", "implementation", "problem")]
    creations = ledger.records.filter(pl.col("event") == "create", *same)["first_seq"]
    first = min(creations.to_list(), default=kernel["first_seq"])
    events = ledger.trace.events.filter(pl.col("seq").is_between(int(first) - _LOOKED_BACK, int(first) - 1))
    columns = ["event", "primitive", "implementation", "message", "source"]
    texts = ledger.trace.texts.lazy().select("text", *columns)
    rows = events.select("seq", "line", "text").join(texts, on="text", how="left").sort("seq", descending=True)
    found: dict[tuple[str, str], Refusal] = {}
    for row in rows.collect().iter_rows(named=True):
        if row["event"] != "dispatch":
            break
        who = row["implementation"] or row["primitive"] or "an implementation"
        message = row["message"] or ""
        found.setdefault((who, message), Refusal(who, in_plain_words(message), message, row["source"], row["line"]))
    return list(reversed(found.values()))
