"""What watching costs a call of a PyTorch module: nothing watched, watched and idle, watched and recording.

    python benchmarks/watch.py

Processor time of the calling thread, so that a busy machine does not count; the modules do nothing themselves.
"""

from __future__ import annotations

import statistics
import time

import torch

import cpulens

MODULES, CALLS, ROUNDS = 100, 100, 15
LIMIT_US = 10.0


class Nothing(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def microseconds(model: torch.nn.Module) -> float:
    """Processor time of one module call."""
    began = time.thread_time()
    for _ in range(CALLS):
        model(None)
    return (time.thread_time() - began) / CALLS / (MODULES + 1) * 1e6


def main() -> None:
    model = torch.nn.Sequential(*(Nothing() for _ in range(MODULES)))
    plain, idle, recording = [], [], []
    for _ in range(ROUNDS):
        plain.append(microseconds(model))
        with cpulens.watch(model):
            idle.append(microseconds(model))
            with cpulens.record():
                recording.append(microseconds(model))
    added = [b - a for a, b in zip(plain, recording, strict=True)]
    print(f"a module call: {statistics.median(plain):.2f} µs")
    print(f"watched, nothing records: +{statistics.median(b - a for a, b in zip(plain, idle, strict=True)):.2f} µs")
    print(f"watched and recorded: +{statistics.median(added):.2f} µs (limit {LIMIT_US:g})")


if __name__ == "__main__":
    main()
