"""What launching costs: start of a trivial program, help, planning on a large host, lines of many instances.

    python benchmarks/launcher.py

Every figure stands beside its peer from the same run: the machine may be noisy, the ratio is what counts.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 11


def first_line_s(command: list[str]) -> float:
    """Seconds from starting a command to the first line on its stdout."""
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        seconds = time.perf_counter() - started
        process.stdout.read()
    if not line or process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return seconds


def in_turn(commands: dict[str, list[str]], rounds: int) -> dict[str, list[float]]:
    """Measure the commands in turn, so that all see the same noise."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(first_line_s(command))
    return times


def show(name: str, seconds: list[float], peer: list[float], relation: str) -> None:
    ratio = statistics.median(b / a for a, b in zip(seconds, peer, strict=True))
    print(
        f"{name:48}{statistics.median(seconds) * 1e3:9.1f} ms  {ratio if ratio >= 1 else 1 / ratio:6.1f} × {relation}"
    )


def starting(rounds: int) -> None:
    """First line of a trivial program, and help, against torch's launcher and the bare interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "trivial.py")
        Path(script).write_text("print('x')\n")
        ours = [sys.executable, "-m", "run_cpu"]
        commands = {"python": [sys.executable, script], "ours": [*ours, script], "help": [*ours, "--help"]}
        if importlib.util.find_spec("torch") is not None:
            commands["torch"] = [sys.executable, "-m", "torch.backends.xeon.run_cpu", script]
        for command in commands.values():
            first_line_s(command)
        times = in_turn(commands, rounds)
    print(f"{'python trivial.py':48}{statistics.median(times['python']) * 1e3:9.1f} ms")
    if "torch" in times:
        show("run_cpu trivial.py, first line", times["ours"], times["torch"], "faster than torch's run_cpu")
    show("run_cpu trivial.py, first line", times["ours"], times["python"], "the bare interpreter")
    show("run_cpu --help", times["help"], times["python"], "the bare interpreter")


def planning() -> None:
    """Reading and placing on a host of 2 packages × 4 nodes × 32 cores × 2 threads."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests"))
    from cpulens.machine.limits import Limits
    from cpulens.machine.topology import read_topology
    from launcher_hosts import regular, write_root
    from run_cpu.placement import place
    from run_cpu.request import Request

    with tempfile.TemporaryDirectory() as folder:
        root = str(write_root(regular(2, 4, 32, threads=2, l3=8), Path(folder)))
        read = [timed(lambda: read_topology(root)) for _ in range(20)]
        topology = read_topology(root)
    placed = [timed(lambda: place(topology, Limits(None, None, None), Request(ninstances=64))) for _ in range(20)]
    print(f"{'reading /sys of 512 CPUs':48}{statistics.median(read) * 1e3:9.1f} ms  (aim: 100)")
    print(f"{'placing 64 instances on 512 CPUs':48}{statistics.median(placed) * 1e3:9.1f} ms  (aim: 50)")


def timed(function: object) -> float:
    """Seconds that a call takes."""
    started = time.perf_counter()
    function()  # type: ignore[operator]
    return time.perf_counter() - started


def relaying() -> None:
    """Lines of all CPUs' instances through the launcher, against the same programs writing to a pipe by themselves."""
    lines = 500_000
    count = len(os.sched_getaffinity(0))
    writer = ["awk", f'BEGIN {{ for (i = 0; i < {lines}; i++) print "a line of some forty characters, number", i }}']
    alone = timed(
        lambda: subprocess.run(["sh", "-c", f"{shell(writer)} | wc -l"], stdout=subprocess.DEVNULL, check=True)
    )
    ours = [sys.executable, "-m", "run_cpu", "--ninstances", str(count), *writer]
    both = timed(lambda: subprocess.run(["sh", "-c", f"{shell(ours)} | wc -l"], stdout=subprocess.DEVNULL, check=True))
    print(f"{'lines relayed a second, ' + str(count) + ' instances':48}{count * lines / both / 1e6:9.2f} million")
    print(f"{'one such program into a pipe':48}{lines / alone / 1e6:9.2f} million")


def shell(words: list[str]) -> str:
    """The words as a shell would take them."""
    import shlex

    return " ".join(map(shlex.quote, words))


def main() -> None:
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of the starts (default: %(default)s)")
    args = parser.parse_args()
    starting(args.rounds)
    planning()
    relaying()


if __name__ == "__main__":
    main()
