"""A comparison as JSON: the contract for scripts."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from cpulens.report.comparison import verdict

if TYPE_CHECKING:
    from cpulens.analyze.compare import Comparison, Effect, Kernel


def comparison_object(comparison: Comparison, fail_over: float | None = None) -> dict[str, Any]:
    """`{"schema": 1, "basis", "differences", "total", "causes", "kernels", "regressions", …}`.

    `regressions`: null when no limit was asked for; else the total and kernels that are over it, by their place in
    `kernels` (null: the total).
    """
    places = {id(kernel): place for place, kernel in enumerate(comparison.kernels)}
    over = None
    if fail_over is not None:
        over = [
            {"kernel": places[id(one.kernel)] if one.kernel else None, **_effect(one.effect)}
            for one in comparison.regressions(fail_over)
        ]
    pairs = ("first_ms", "creation_ms", "creations", "cache_misses", "compilation_ms", "runs")
    return {
        "schema": 1,
        "alpha": comparison.alpha,
        "min_effect": comparison.min_effect,
        "basis": dataclasses.asdict(comparison.basis),
        "differences": [dataclasses.asdict(one) for one in comparison.differences],
        "notes": list(comparison.notes),
        "total": {
            "base_ms": comparison.total_ms.base,
            "new_ms": comparison.total_ms.new,
            "delta_ms": comparison.total_ms.new - comparison.total_ms.base,
            **_effect(comparison.total),
        },
        **{name: dataclasses.asdict(getattr(comparison, name)) for name in pairs},
        "causes": [dataclasses.asdict(cause) for cause in comparison.causes],
        "kernels": [_kernel(kernel) for kernel in comparison.kernels],
        "fail_over": fail_over,
        "regressions": over,
    }


def _effect(effect: Effect) -> dict[str, Any]:
    finite = {name: value if value is None or value < float("inf") else None for name, value in _numbers(effect)}
    return {**finite, "significant": effect.significant, "verdict": verdict(effect)}


def _numbers(effect: Effect) -> list[tuple[str, float | None]]:
    return [("ratio", effect.ratio), ("low", effect.low), ("high", effect.high), ("p_value", effect.p_value)]


def _kernel(kernel: Kernel) -> dict[str, Any]:
    word = verdict(kernel.effect) if kernel.kind == "matched" else kernel.kind
    return {
        "kind": kernel.kind,
        **kernel.identity,
        "inner": kernel.inner,
        "matters": kernel.matters,
        "delta_ms": kernel.delta_ms,
        "count_ms": kernel.count_ms,
        "time_ms": kernel.time_ms,
        **_effect(kernel.effect),
        "verdict": word,
        "changes": [dataclasses.asdict(change) for change in kernel.changes],
        "base": dataclasses.asdict(kernel.base) if kernel.base else None,
        "new": dataclasses.asdict(kernel.new) if kernel.new else None,
    }
