"""Two packages of two cores, a node each (CPUs 0-1 and 2-3): how runs end, and ``run_cpu`` as process 1."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from . import as_init
from .check import Launch, check, nothing_is_left, placed, processes, wait_for


def _ended_by(number: int, words: str = "stay", options: tuple[str, ...] = (), expected: int | None = None) -> None:
    launch = Launch("--throughput-mode", *options, words=words)
    launch.reports(2)
    launch.process.send_signal(number)
    launch.ended(128 + (expected or number))


@check
def sigterm_to_the_launcher_ends_the_instances() -> None:
    _ended_by(signal.SIGTERM)


@check
def sigint_to_the_launcher_ends_the_instances() -> None:
    _ended_by(signal.SIGINT)


@check
def sighup_to_the_launcher_ends_the_instances() -> None:
    _ended_by(signal.SIGHUP)


@check
def instances_that_ignore_sigterm_are_killed_after_the_grace() -> None:
    _ended_by(signal.SIGTERM, "stay deaf", ("--grace", "1"), expected=signal.SIGKILL)


@check
def nothing_survives_when_the_launcher_is_killed() -> None:
    launch = Launch("--throughput-mode", words="stay child")
    launch.reports(2)
    launch.process.kill()
    launch.ended(128 + signal.SIGKILL)
    wait_for(lambda: not processes(), "the end of all instances after SIGKILL of the launcher", 20)


@check
def nothing_survives_when_the_launcher_is_killed_and_the_instances_are_deaf() -> None:
    launch = Launch(words="stay deaf child")
    launch.reports(1)
    launch.process.kill()
    launch.ended(128 + signal.SIGKILL)
    wait_for(lambda: not processes(), "the end of a deaf instance after SIGKILL of the launcher", 20)


@check
def a_child_that_leaves_its_session_is_ended_with_its_instance() -> None:
    launch = Launch("--node-id", "0", words="child")
    launch.finished(1)
    nothing_is_left()


@check
def the_exit_code_is_that_of_the_instance() -> None:
    Launch("--node-id", "0", words="exit=3").ended(3)


@check
def a_failure_stops_the_other_instances() -> None:
    launch = Launch("--throughput-mode", words="stay")
    _, second = launch.reports(2)
    os.kill(second["pid"], signal.SIGUSR1)  # which ends a program that does not care for it
    launch.ended(128 + signal.SIGUSR1)


# As a child of process 1, and as process 1


@check
def the_instances_end_with_a_launcher_that_is_a_child_of_process_1() -> None:
    launch = Launch("--node-id", "0", words="stay")
    (one,) = launch.reports(1)
    assert os.getpid() == 1 and _parent(launch.process.pid) == 1
    os.kill(one["pid"], signal.SIGKILL)
    launch.ended(128 + signal.SIGKILL)


IN_A_CONTAINER = ("unshare", "--pid", "--mount", "--fork", "sh", "-c", 'mount -t proc proc /proc; exec "$@"', "sh")


@check
def as_process_1_of_a_container_it_places_and_reaps() -> None:
    launch = Launch("--throughput-mode", words="child", before=IN_A_CONTAINER)
    first, second = launch.finished(2)
    placed(first, {0, 1}, "prefer:0", {0})
    placed(second, {2, 3}, "prefer:1", {1})


@check
def as_process_1_of_a_container_it_ends_at_sigterm() -> None:
    launch = Launch("--throughput-mode", words="stay", before=IN_A_CONTAINER)
    launch.reports(2)
    (launcher,) = [pid for pid, line in processes().items() if "run_cpu" in line and _is_process_1_inside(pid)]
    os.kill(launcher, signal.SIGTERM)
    launch.ended(128 + signal.SIGTERM)


def _parent(pid: int) -> int:
    return int(Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[1])


def _is_process_1_inside(pid: int) -> bool:
    status = Path("/proc", str(pid), "status").read_text()
    inside = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[1:]
    return len(inside) == 2 and inside[1] == "1"


@check
def a_log_folder_holds_the_plan_and_one_log_for_each_instance() -> None:
    launch = Launch("--throughput-mode", "--log-path", "/tmp/check-logs")
    reports = launch.finished(2)
    said = "".join(path.read_text() for path in Path("/tmp/check-logs").rglob("*instance*"))
    for report in reports:
        assert f"probe {report['pid']} has reported" in said
    assert {"plan.json", "result.json"} <= {path.name for path in Path("/tmp/check-logs").iterdir()}


@check
def as_init_it_places_and_reports() -> None:
    """The last one: process 1 becomes the launcher, and its instance reports to the host."""
    as_init.become_the_launcher("as_init_it_places_and_reports")


AS_INIT = as_init_it_places_and_reports
