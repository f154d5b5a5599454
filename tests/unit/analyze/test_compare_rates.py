"""How often a comparison is wrong: false alarms on the same program, misses on a planted slowdown."""

from __future__ import annotations

import numpy as np
import polars as pl

from comparison_support import log, matmul, of_events, quantised, sampled
from cpulens.analyze.compare import compare

TRIES = 200
#: Median times of the kernels of a run, from a few steps of the clock to milliseconds.
MEDIANS_MS = (0.001, 0.004, 0.02, 0.02, 0.1, 0.4, 0.4, 1.0, 3.0, 0.0005)


def _long_run(rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    """Times with a long tail: one call in fifty is disturbed."""
    times = {}
    for number, median in enumerate(MEDIANS_MS):
        values = median * rng.lognormal(0, 0.1, count)
        values[rng.random(count) < 0.02] *= 4
        times[f"{number + 1}x64:64x64"] = quantised(values)
    return times


def test_two_halves_of_one_run_are_the_same() -> None:
    rng = np.random.default_rng(11)
    trace = sampled(_long_run(rng, 400), rng)
    events = trace.events.select("text", "duration_ms").collect()
    alarms = 0
    for _ in range(TRIES):
        half = rng.permutation(len(events)) < len(events) // 2
        sides = [events.filter(pl.Series(chosen)) for chosen in (half, ~half)]
        found = compare(*(of_events(trace, side["text"].to_numpy(), side["duration_ms"].to_numpy()) for side in sides))
        alarms += found.total.significant or any(kernel.effect.significant for kernel in found.kernels)
    assert alarms <= 0.02 * TRIES


def test_halves_of_a_run_whose_iterations_are_unlike_are_the_same() -> None:
    # Calls of one iteration share its speed, as they do on a machine with neighbours.
    rng = np.random.default_rng(12)
    iterations, calls, alarms = 200, 12, 0
    template = log([(matmul(), 1.0)])
    text = np.full(iterations * calls, template.texts.filter(pl.col("event") == "exec")["text"].item())
    speed = rng.lognormal(0, 0.2, iterations).repeat(calls)
    times = quantised(0.5 * speed * rng.lognormal(0, 0.03, iterations * calls))
    number = np.arange(iterations).repeat(calls)
    for _ in range(TRIES):
        chosen = np.isin(number, rng.permutation(iterations)[: iterations // 2])
        sides = [of_events(template, text[part], times[part], number[part]) for part in (chosen, ~chosen)]
        found = compare(*sides)
        assert found.basis.per == "iteration"
        alarms += found.total.significant or any(kernel.effect.significant for kernel in found.kernels)
    assert alarms <= 0.02 * TRIES


def test_a_slowdown_of_one_kernel_is_found() -> None:
    rng = np.random.default_rng(13)
    found = failed = others = 0
    planted = "8x64:64x64"
    for _ in range(TRIES):
        base = {
            f"{n + 1}x64:64x64": quantised(median * rng.normal(1, 0.08, 201)) for n, median in enumerate(MEDIANS_MS)
        }
        new = {f"{n + 1}x64:64x64": quantised(median * rng.normal(1, 0.08, 201)) for n, median in enumerate(MEDIANS_MS)}
        new[planted] = quantised(1.0 * 1.05 * rng.normal(1, 0.08, 201))
        result = compare(sampled(base, rng), sampled(new, rng))
        slower = [kernel.identity["problem"] for kernel in result.kernels if kernel.effect.slower]
        found += planted in slower
        others += any(problem != planted for problem in slower)
        regressed = [one.kernel.identity["problem"] for one in result.regressions(0.05) if one.kernel]
        failed += planted in regressed
    assert found >= 0.95 * TRIES
    assert failed >= 0.95 * TRIES
    assert others <= 0.02 * TRIES
