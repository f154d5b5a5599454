"""The plan as people read it."""

from __future__ import annotations

import subprocess

import pytest

from cpulens.machine.topology import Topology
from launcher_hosts import MadeCore, MadeHost, limits_of, regular, topology_of
from run_cpu.environment import Variable
from run_cpu.explain import explain, instances, picture, shell_line, variable_lines
from run_cpu.job import Job, Process
from run_cpu.placement import Instance, place
from run_cpu.request import Request


def job_for(host: MadeHost, request: Request) -> tuple[Job, Topology]:
    topology = topology_of(host)
    plan = place(topology, limits_of(host), request)
    return Job(tuple(Process(i, {}, ["prog"]) for i in plan.instances), plan.idle_cpus, plan.notes), topology


def test_the_picture_of_a_host() -> None:
    host = regular(2, 1, 6, threads=2, l3=4)._replace(isolated=(11, 23))
    host = host._replace(memory={0: 1000, 1: 1000, 5: 500})
    assert picture(*job_for(host, Request(ninstances=2, ncores=3))) == [
        "package 0",
        "  node 0   AAA. ..",
        "package 1",
        "  node 1   BBB. .x",
        "memory without CPUs: node 5",
        "one sign a core: a letter its instance, . idle, x not allowed; blanks part L3 caches",
    ]


def test_the_picture_of_cores_without_a_node() -> None:
    host = MadeHost((MadeCore((0,), 0, None), MadeCore((1,), 0, None)), {})
    assert picture(*job_for(host, Request(ninstances=2)))[:2] == ["package 0", "  no node  AB"]


def test_a_large_host_fits_a_terminal() -> None:
    job, topology = job_for(regular(2, 1, 160, l3=8), Request(mode="l3"))
    lines = picture(job, topology)
    assert max(map(len, lines[:-1])) <= 80
    assert sum(line.count("A") for line in lines[:-1]) == 8


def test_the_table() -> None:
    job, _ = job_for(regular(1, 2, 4), Request(ninstances=2))
    assert instances(job) == [
        "   instance  CPUs  threads  memory",
        "A  0         0-3   4        preferred 0",
        "B  1         4-7   4        preferred 1",
    ]
    assert instances(job._replace(bind_cpus=False))[-1] == "the CPUs are planned, not bound"


def test_variables_stand_under_their_reasons() -> None:
    one = [Variable("A", "1", "why"), Variable("B", None, "kept"), Variable("C", "x", "why")]
    two = [Variable("A", "2", "why"), Variable("B", None, "kept"), Variable("C", "x", "why")]
    assert variable_lines([one, two]) == [
        "variables:",
        "  why:",
        "    A=1,2 (by instance)",
        "    C=x",
        "  kept: B",
    ]


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("default", "taskset -c 0-1 prog"),
        ("preferred", "numactl --preferred=3 --physcpubind=0-1 prog"),
        ("preferred-many", "numactl --preferred-many=3 --physcpubind=0-1 prog"),
        ("bind", "numactl --membind=3 --physcpubind=0-1 prog"),
        ("interleave", "numactl --interleave=3 --physcpubind=0-1 prog"),
    ],
)
def test_the_line_to_paste(policy: str, words: str) -> None:
    instance = Instance(0, (0, 1), 2, (3,), policy)
    assert shell_line(Process(instance, {}, ["prog"]), True) == words
    assert shell_line(Process(instance, {"A": "b c"}, ["prog"]), True) == f"env 'A=b c' {words}"


def test_any_argument_survives_the_shell() -> None:
    words = ["a b", "$HOME", "'", "\\", "\n", "\x1b[31m", "ü", "\udcff'\\", ""]
    line = shell_line(Process(Instance(0, (0,), 1), {}, ["printf", r"%s\0", *words]), False)
    assert line.isprintable()
    shell = subprocess.run(["bash", "-c", line], capture_output=True, timeout=60)
    assert shell.stdout == b"".join(word.encode(errors="surrogateescape") + b"\0" for word in words)


def test_nothing_of_a_plan_acts_on_the_terminal() -> None:
    instance = Instance(0, (0,), 1)
    job = Job((Process(instance, {"A": "\x1b[2J"}, ["prog\x07"]),), (), ("note \x1b]0;title\x07",))
    text = explain(job, topology_of(regular(1, 1, 1)), [[Variable("A", "\x1b[2J", "why")]])
    assert all(line.isprintable() for line in text.split("\n"))
