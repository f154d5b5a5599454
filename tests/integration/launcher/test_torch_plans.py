"""Where the plans of torch's launcher are right, ours have the same CPUs, threads and memory nodes.

../shared/design/torch-run-cpu-plans.txt holds worked cases of it, with the shape of their hosts.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from run_cpu.cli import main

PLANS = Path(__file__).resolve().parents[4] / "shared/design/torch-run-cpu-plans.txt"

pytestmark = pytest.mark.skipif(not PLANS.exists(), reason="torch's worked plans (../shared/design) are not here")

#: Cases in which torch's plan stays inside nodes and is not what was asked for all the same.
WRONG = {
    "--core-list 0,1,2,3 --ninstances 1 --ncores-per-instance 2": "two instances instead of one",
    "--core-list 0,1,2,3 --ninstances 4 --ncores-per-instance 2": "two instances instead of four",
    "--latency-mode --node-id 1": "the node is ignored",
    "--use-logical-core --ncores-per-instance 8 --skip-cross-node-cores": "siblings in different instances",
    "--core-list 56,57,0,1 --ncores-per-instance 2": "the order is not kept",
}


class Case(NamedTuple):
    topology: str
    options: str
    command: list[str]
    threads: int
    instances: list[tuple[list[int], list[int]]]  # CPUs, memory nodes


def numbers(text: str) -> list[int]:
    found = []
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        found += range(int(low), int(high or low) + 1)
    return found


def cases() -> list[Case]:
    found = []
    for block in PLANS.read_text().split("\n### ") if PLANS.exists() else []:
        head, *lines = block.splitlines()
        match = re.match(r"(?:### )?\[torch\] topo=(\S+)  argv: (.*?)(   \{.*\})?$", head)
        if not match or "'env'" in head or "numactl_ok" in head:
            continue
        topology, argv, _ = match.groups()
        threads = re.search(r"OMP_NUM_THREADS=(\d+)", block)
        bound = [re.search(r"(?:numactl -C|taskset -c) (\S+)(?: -m (\S+))?", line) for line in lines if "CMD" in line]
        plan = [(numbers(b[1]), numbers(b[2] or "")) for b in bound if b]
        inside = all(len(nodes) < 2 for _, nodes in plan) or len(plan) == 1
        options = argv.partition("s.py")[0].strip()
        if plan and threads and inside and topology in HOSTS and options not in WRONG and "s.py" in argv:
            found.append(Case(topology, options, shlex.split(argv), int(threads[1]), plan))
    return found


#: Shape → (cores of each node, threads a core); CPUs are numbered core by core, second siblings after all cores.
HOSTS = {
    "2x28x2": ([28, 28], 2),
    "2x56x2:n4": ([28] * 4, 2),
    "1x128x1:n3": ([43, 43, 42], 1),
    "1x8x1": ([8], 1),
    "1x6x1": ([6], 1),
}


def write_host(root: Path, sizes: list[int], threads: int, packages: int) -> Path:
    total = sum(sizes)

    def put(name: str, text: object) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")

    every = f"0-{total * threads - 1}"
    put("sys/devices/system/cpu/online", every)
    put("sys/devices/system/node/online", f"0-{len(sizes) - 1}" if len(sizes) > 1 else "0")
    put("proc/self/status", f"Cpus_allowed_list:\t{every}\nMems_allowed_list:\t0-{len(sizes) - 1}")
    first = 0
    for node, size in enumerate(sizes):
        cores = range(first, first + size)
        first += size
        cpus = [core + total * thread for core in cores for thread in range(threads)]
        put(f"sys/devices/system/node/node{node}/cpulist", ",".join(map(str, cpus)))
        put(f"sys/devices/system/node/node{node}/meminfo", f"Node {node} MemTotal:  1000 kB")
        for cpu in cpus:
            topology = f"sys/devices/system/cpu/cpu{cpu}/topology"
            siblings = [cpu % total + total * thread for thread in range(threads)]
            put(f"{topology}/core_cpus_list", ",".join(map(str, siblings)))
            put(f"{topology}/physical_package_id", node * packages // len(sizes))
    return root


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.topology} {case.options}")
def test_same_as_torch(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes, threads = HOSTS[case.topology]
    root = write_host(tmp_path, sizes, threads, int(case.topology[0]))
    assert main(["--sysroot", str(root), "--dry-run", "--json", *case.command]) == 0
    instances = json.loads(capsys.readouterr().out)["instances"]
    assert [(sorted(i["cpus"]), i["memory_nodes"]) for i in instances] == case.instances
    assert {i["threads"] for i in instances} == {case.threads}


def test_enough_cases_are_compared() -> None:
    assert len(cases()) >= 20
