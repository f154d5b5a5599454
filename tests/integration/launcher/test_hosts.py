"""Every host of ../shared/topologies under every kind of request, through the JSON contract."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from run_cpu.cli import main

SHARED = Path(__file__).resolve().parents[4] / "shared"
HOSTS = sorted((SHARED / "topologies").glob("*.json"))

pytestmark = pytest.mark.skipif(not HOSTS, reason="the host descriptions (../shared/topologies) are not here")

REQUESTS = {
    "default": [],
    "latency": ["--latency-mode"],
    "throughput": ["--throughput-mode"],
    "2": ["--ninstances", "2"],
    "3": ["--ninstances", "3"],
    "5": ["--ninstances", "5"],
    "smt": ["--use-logical-core"],
    "smt-2": ["--use-logical-core", "--ninstances", "2"],
    "fill-3": ["--ninstances", "3", "--fill"],
    "cross-3": ["--ninstances", "3", "--allow-cross-node"],
    "8-cores": ["--ncores-per-instance", "8"],
    "e-cores": ["--use-e-cores"],
    "never-cross": ["--ninstances", "2", "--bind-numa-node"],
    "package": ["--package-mode"],
    "caches": ["--l3-mode"],
}


def numbers(text: str | None) -> set[int]:
    found: set[int] = set()
    for part in filter(None, (text or "").split(",")):
        low, _, high = part.partition("-")
        found |= set(range(int(low), int(high or low) + 1))
    return found


class Host:
    """The facts of a description, read without the code under test."""

    def __init__(self, path: Path) -> None:
        data = json.loads(path.read_text())
        self.online = numbers(data.get("online")) or {c["cpu"] for c in data["cpus"]}
        self.allowed = self.online & (numbers(data.get("allowed")) or self.online)
        self.isolated = numbers(data.get("isolated"))
        self.siblings = {c["cpu"]: numbers(c["sib"]) & self.online for c in data["cpus"]}
        self.nodes: dict[int, set[int]] = {}
        for node in data["nodes"]:
            for cpu in numbers(node.get("cpus")) & self.online:
                self.nodes.setdefault(cpu, set()).add(node["id"])
        self.memory = {n["id"] for n in data["nodes"] if n.get("mem_mib") is None or n["mem_mib"] > 0}
        self.numa = bool(data["nodes"])
        self.caches = all(c.get("l3") is not None for c in data["cpus"])
        top = max(c.get("mhz") or 0 for c in data["cpus"])
        self.fast = {c["cpu"] for c in data["cpus"] if (c.get("mhz") or 0) * 1.1 >= top}


def sysroot(path: Path, folder: Path) -> Path:
    spec = importlib.util.spec_from_file_location("sysroot_from_json", SHARED / "tools/sysroot_from_json.py")
    assert spec and spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["tool", str(path), str(folder)])
        tool.main()
    return folder


@pytest.fixture(scope="module", params=HOSTS, ids=[path.stem for path in HOSTS])
def host(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Host, Path, Path]:
    folder = tmp_path_factory.mktemp(request.param.stem)
    return Host(request.param), sysroot(request.param, folder), request.param


def restrict(root: Path, full: Path, cpus: list[int], mems: list[int], quota_cpus: float) -> None:
    """The host of `full` seen from inside a cpuset and a quota."""
    (root / "sys/fs/cgroup").mkdir(parents=True)
    (root / "sys/devices").symlink_to(full / "sys/devices")
    (root / "sys/fs/cgroup/cpu.max").write_text(f"{int(quota_cpus * 100000)} 100000\n")
    (root / "proc/self").mkdir(parents=True)
    lists = [",".join(map(str, numbers)) for numbers in (cpus, mems)]
    (root / "proc/self/status").write_text(f"Cpus_allowed_list:\t{lists[0]}\nMems_allowed_list:\t{lists[1]}\n")


def plan(capsys: pytest.CaptureFixture[str], root: Path, *options: str) -> dict | None:
    code = main(["--sysroot", str(root), "--dry-run", "--json", *options, "--", "prog", "--x", "--"])
    captured = capsys.readouterr()
    if code:
        assert (code, captured.out) == (2, "")
        assert captured.err.startswith("run_cpu: ")
        assert captured.err.count("\n") == 1
        return None
    assert captured.err == ""
    document = json.loads(captured.out)
    assert document["schema"] == 1
    return document


def check(host: Host, document: dict, allowed: set[int], mems: set[int], smt: bool) -> None:
    used = [cpu for i in document["instances"] for cpu in i["cpus"]]
    assert len(used) == len(set(used))
    assert set(used) <= allowed
    core_owner: dict[frozenset[int], int] = {}
    for index, instance in enumerate(document["instances"]):
        assert instance["index"] == index
        assert instance["argv"] == ["prog", "--x", "--"]
        assert instance["threads"] == len(instance["cpus"]) >= 1
        assert instance["environment"]["OMP_NUM_THREADS"] == str(instance["threads"])
        assert set(instance["memory_nodes"]) <= mems & host.memory
        for cpu in instance["cpus"]:
            core = frozenset(host.siblings[cpu])
            assert core_owner.setdefault(core, index) == index
            if smt:
                assert core & allowed <= set(instance["cpus"])
        if not smt:
            assert len({frozenset(host.siblings[cpu]) for cpu in instance["cpus"]}) == len(instance["cpus"])
            assert all(cpu == min(host.siblings[cpu] & allowed) for cpu in instance["cpus"])
        if not host.numa:
            assert (instance["memory_nodes"], instance["memory_policy"]) == ([], "default")
        count = len(instance["memory_nodes"])
        assert count == 0 if instance["memory_policy"] == "default" else count >= 1
        assert (instance["memory_policy"] == "preferred") <= (count == 1)
    busy = {cpu for core in core_owner for cpu in core}
    assert document["idle_cpus"] == sorted(allowed - busy)


@pytest.mark.parametrize("name", REQUESTS)
def test_plan_keeps_the_rules(host: tuple[Host, Path, Path], name: str, capsys: pytest.CaptureFixture[str]) -> None:
    facts, root, _ = host
    document = plan(capsys, root, *REQUESTS[name])
    if document is None:
        fast = facts.fast & facts.allowed - facts.isolated
        cores = len({frozenset(facts.siblings[cpu]) for cpu in fast})
        assert cores < {"8-cores": 8, "5": 5}.get(name, 0) or (name == "caches" and not facts.caches)
        return
    allowed = facts.allowed - facts.isolated
    check(facts, document, allowed, facts.memory, name.startswith("smt"))
    sizes = {len({frozenset(facts.siblings[c]) for c in i["cpus"]}) for i in document["instances"]}
    if "fill" not in name:
        assert len(sizes) == 1
    if name[-1].isdigit():
        assert len(document["instances"]) == int(name[-1])
    if name == "latency":
        assert sizes == {4}
    if name in ("throughput", "never-cross"):
        for instance in document["instances"]:
            assert set.intersection(*(facts.nodes.get(cpu, {-1}) for cpu in instance["cpus"]))


@pytest.mark.parametrize("name", ["default", "latency", "throughput", "2", "smt"])
def test_restricted_cpuset(
    host: tuple[Host, Path, Path], name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    facts, full, _ = host
    some = sorted(facts.allowed - facts.isolated)[1::2] or sorted(facts.allowed)
    mems = [min(facts.memory)] if facts.memory else [0]
    restrict(tmp_path, full, some, mems, quota_cpus=3.5)
    document = plan(capsys, tmp_path, *REQUESTS[name])
    if document is None:
        assert name == "latency"
        assert len({frozenset(facts.siblings[cpu]) for cpu in some}) < 4
        return
    for instance in document["instances"]:
        assert instance["threads"] == min(len(instance["cpus"]), max(1, 3 // len(document["instances"])))
        instance["threads"] = len(instance["cpus"])
        instance["environment"]["OMP_NUM_THREADS"] = str(len(instance["cpus"]))
    check(facts, document, set(some), set(mems), name == "smt")
