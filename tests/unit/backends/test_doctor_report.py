"""The doctor's page: pictures of hosts written as facts, nothing wider than asked, nothing that a terminal obeys."""

from __future__ import annotations

from typing import Any

import pytest

from cpulens.backends import doctor
from cpulens.machine import cpulist
from cpulens.report.doctor import doctor_lines
from cpulens.report.machine_picture import picture

GIB = 1 << 30


def machine(groups: list[dict[str, Any]], nodes: list[dict[str, Any]], allowed: str | None) -> dict[str, Any]:
    cpus = [int(cpu) for group in groups for core in group["cores"] for cpu in core.split("+")]
    return {
        "packages": len({group["package"] for group in groups}),
        "cores": sum(len(group["cores"]) for group in groups),
        "threads_per_core": max(len(core.split("+")) for group in groups for core in group["cores"]),
        "cpus_online": cpulist.form(cpus),
        "cpus_allowed": allowed,
        "memory_nodes_allowed": "0",
        "quota_cpus": 2.5,
        "nodes": nodes,
        "groups": groups,
        "notes": [],
    }


def group(package: int, node: int | None, l3: int, cores: list[str], efficient: tuple[int, ...] = ()) -> dict[str, Any]:
    return {"package": package, "node": node, "l3": l3, "cores": cores, "efficient": list(efficient)}


def node(number: int, cpus: str, gib: int) -> dict[str, Any]:
    return {"node": number, "cpus": cpus, "memory_bytes": gib * GIB, "has_memory": gib > 0}


def test_packages_nodes_caches_and_siblings() -> None:
    """Two caches in the first node, half of a core allowed, the second package not at all, memory of its own."""
    host = machine(
        [
            group(0, 0, 0, ["0+8", "1+9"]),
            group(0, 0, 2, ["2+10", "3+11"]),
            group(1, 1, 4, ["4+12", "5+13", "6+14", "7+15"]),
        ],
        [node(0, "0-3,8-11", 64), node(1, "4-7,12-15", 64), node(2, "", 128)],
        "0-2,8-10,3",
    )
    assert list(picture(host, 80)) == [
        "  package 0 node 0 64 GiB  ## #+",
        "  package 1 node 1 64 GiB  ....",
        "  memory without CPUs: node 2 128 GiB",
        "  one sign a core: # usable, + in part, . not by this process",
    ]


def test_hybrid_host_without_numa() -> None:
    host = machine([group(0, None, 0, ["0+1", "2+3", "4", "5"], (4, 5))], [], None)
    assert list(picture(host, 80)) == [
        "  package 0                ##ee",
        "  one sign a core: # usable, e usable, of a slower kind",
    ]


@pytest.mark.parametrize("width", [60, 80, 132])
def test_a_large_host_is_folded(width: int) -> None:
    caches = [group(0, 0, start, [str(cpu) for cpu in range(start, start + 8)]) for start in range(0, 128, 8)]
    lines = list(picture(machine(caches, [node(0, "0-127", 768)], "0-127"), width))
    assert all(len(line) <= width for line in lines)
    assert sum(line.count("########") for line in lines) == 16


def page(facts: dict[str, Any], width: int) -> list[str]:
    return [line.text for line in doctor_lines(facts, width, {"ENV": "/opt/env"})]


@pytest.fixture
def facts() -> dict[str, Any]:
    """What this host gives, with a foreign and hostile part in each place where text comes from outside."""
    found = doctor.gather()
    found["variables"] = [
        {"name": "LD_PRELOAD", "value": "\x1b[31m/opt/env/x.so\u202e" + "y" * 200, "used_by": "all", "origin": "bash"}
    ]
    found["imports"] = [{"module": "bad\x07", "version": None, "error": "RuntimeError: \x1b]0;title\x07"}]
    found["failures"] = {"BLAS": "OSError: \x9b31m"}
    found["machine"] = machine([group(0, 0, 0, ["0", "1"])], [node(0, "0-1", 1)], "0-1")
    return found


@pytest.mark.parametrize("width", [60, 80, 100])
def test_width_and_control_characters(facts: dict[str, Any], width: int) -> None:
    lines = page(facts, width)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert not any((ord(sign) < 32 and sign != "\n") or 127 <= ord(sign) < 160 or sign == "\u202e" for sign in text)
    assert "\\x1b[31mENV/x.so" in text.replace("\n", "").replace(" ", "")
    assert lines[0] == "ENV is /opt/env"


def test_order_of_the_page(facts: dict[str, Any]) -> None:
    titles = [line.text for line in doctor_lines(facts, 80, {}) if line.style == "bold"]
    assert titles[:6] == ["loaded first", "machine", "processor", "backends", "in this process", "variables"]
    assert titles[-1] == "could not be looked at"


def test_an_unknown_processor_and_machine() -> None:
    empty = {**doctor.gather(), "machine": doctor._EMPTY_MACHINE, "processor": doctor._EMPTY_PROCESSOR}
    empty["tuning"], empty["failures"] = doctor._EMPTY_TUNING, {"processor": "OSError: gone"}
    lines = page(empty, 80)
    assert "  this process  CPUs not known, no quota" in lines
    assert any("OSError: gone" in line for line in lines)
