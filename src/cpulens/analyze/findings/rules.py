"""All rules. Each takes the ledger and the thresholds, and gives what it found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from cpulens.analyze.findings import (
    cold,
    creation,
    efficiency,
    failures,
    instructions,
    noise,
    outside,
    pingpong,
    reference,
    reorders,
    small,
    tails,
    threads,
    weights,
)
from cpulens.analyze.findings.finding import Finding
from cpulens.analyze.findings.ledger import Ledger
from cpulens.analyze.findings.thresholds import Thresholds

Rule = Callable[[Ledger, Thresholds], Iterator[Finding]]

RULES: Final[tuple[Rule, ...]] = (
    failures.crash,
    failures.failed_calls,
    failures.lapack,
    threads.two_runtimes,
    threads.too_many,
    threads.one,
    threads.siblings,
    reference.reference,
    reference.gemm,
    weights.reordered,
    pingpong.ping_pong,
    reorders.share,
    creation.misses,
    creation.new_shapes,
    cold.cold_start,
    cold.first_mkl_call,
    instructions.limited,
    instructions.unused,
    instructions.bf16,
    small.tiny,
    tails.heavy_tail,
    efficiency.low,
    outside.outside_both,
    outside.mkl_only,
    noise.noise,
    noise.cost,
)
