"""How near a replay comes to the run: kernels of the demo model, recorded and run again in turn.

    OMP_WAIT_POLICY=passive python benchmarks/replay.py [ROUNDS]

records 30 inferences of examples/demo.py, replays all of its kernels, and does so ROUNDS times (default 5), because the
clock of a host changes from minute to minute. For each kernel the ratio of its median in the run to its median here is
the middle one of all rounds. A kernel is explained when the ratio lies within 25 % in one of three conditions: data in
the caches, another program's data there, results in new pages too; which of these the run had, its lines do not say.
"""

from __future__ import annotations

import contextlib
import io
import os
import statistics
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

import cpulens
from cpulens.measure.replay import replay
from cpulens.native import mkl

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
INFERENCES = 30
CONDITIONS = ("hot", "caches", "pages")


def recorded(infer: object, sound: np.ndarray) -> cpulens.Trace:
    """A warm recording of some inferences."""
    assert callable(infer)
    infer(sound)
    with cpulens.record(onednn="ON", mkl="ON") as recording, contextlib.redirect_stdout(io.StringIO()):
        for _ in range(INFERENCES):
            infer(sound)
    return recording.trace


def main() -> None:
    """Measure and print."""
    mkl.set_threading_layer("gnu")
    import demo

    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    sound = demo.rng.standard_normal((4, demo.SAMPLES)).astype(np.float32)
    ratios: dict[tuple[str, ...], list[tuple[float, ...]]] = defaultdict(list)
    medians: dict[tuple[str, ...], list[float]] = defaultdict(list)
    names = []
    for _ in range(rounds):
        for one in replay(recorded(demo.infer, sound), top=None, kinds=(), budget_s=0.15).replayed:
            key = (one.primitive, one.problem, one.columns["raw"])
            here = (one.hot_ms, one.median_ms, one.new_pages_ms or one.median_ms)
            if one.run_median_ms and all(here):
                ratios[key].append(tuple(one.run_median_ms / median for median in here))
                medians[key].append(one.run_median_ms)
            names.append(one.implementation == one.run_implementation)
    print(f"{rounds} rounds, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs; same implementation: {all(names)}")
    print(f"{'run ms':>8} {'run/hot':>8} {'run/here':>8} {'run/new':>8}")
    explained = 0
    for key, found in sorted(ratios.items(), key=lambda item: -statistics.median(medians[item[0]])):
        middle = [statistics.median(one[at] for one in found) for at in range(len(CONDITIONS))]
        near = [name for name, ratio in zip(CONDITIONS, middle, strict=True) if 1 / 1.25 <= ratio <= 1.25]
        explained += bool(near)
        figures = " ".join(f"{ratio:8.2f}" for ratio in middle)
        print(f"{statistics.median(medians[key]):8.4f} {figures}  {key[0]} {key[1][:44]}: {', '.join(near) or 'none'}")
    print(f"within 25 % in one condition: {explained} of {len(ratios)} kernels")


if __name__ == "__main__":
    main()
