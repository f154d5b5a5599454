"""Plans worked out by hand, rule by rule, through the JSON contract."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cpulens.errors import PlacementError, UsageError
from launcher_hosts import MadeCore, MadeHost, limits_of, regular, topology_of, write_root
from run_cpu.cli import parse
from run_cpu.launch import plan_job
from run_cpu.plan_file import to_document
from run_cpu.request import build_request

TWO_SOCKETS = regular(2, 1, 28, threads=2)  # siblings i and i+56
SNC4 = regular(2, 4, 12, threads=2)
Plan = Callable[..., dict[str, Any]]


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """The plan document for a host and options; a host is written to disk only where the free memory counts."""

    def make(host: MadeHost, *options: str, quota_cpus: float | None = None) -> dict[str, Any]:
        args = parse([*options, "--", "prog"])
        root = write_root(host, tmp_path / "root") if "--membind" in options else tmp_path
        request = build_request(args, os.environ)
        job, _ = plan_job(args, request, topology_of(host), limits_of(host, quota_cpus), str(root))
        return to_document(job)

    return make


@pytest.fixture
def refusal(plan: Plan) -> Callable[..., str]:
    def make(host: MadeHost, *options: str) -> str:
        with pytest.raises((PlacementError, UsageError)) as caught:
            plan(host, *options)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    return make


def cpus(document: dict[str, Any]) -> list[list[int]]:
    return [instance["cpus"] for instance in document["instances"]]


def span(*bounds: int) -> list[int]:
    """span(0, 3, 8, 9) → 0, 1, 2, 3, 8, 9."""
    return [n for low, high in zip(bounds[::2], bounds[1::2], strict=True) for n in range(low, high + 1)]


def memory(document: dict[str, Any]) -> list[tuple[str, list[int]]]:
    return [(i["memory_policy"], i["memory_nodes"]) for i in document["instances"]]


def note(document: dict[str, Any], *words: str) -> bool:
    return any(all(word in text for word in words) for text in document["notes"])


def test_no_option_is_one_instance_on_everything(plan: Plan) -> None:
    document = plan(TWO_SOCKETS)
    assert cpus(document) == [span(0, 55)]
    assert memory(document) == [("interleave", [0, 1])]
    assert note(document, "spans NUMA nodes 0-1", "interleaved", "--throughput-mode")
    assert document["idle_cpus"] == []


def test_several_instances_stay_inside_nodes(plan: Plan) -> None:
    document = plan(TWO_SOCKETS, "--ninstances", "3")
    assert cpus(document) == [span(0, 13), span(14, 27), span(28, 41)]
    assert memory(document) == [("preferred", [0]), ("preferred", [0]), ("preferred", [1])]
    assert document["idle_cpus"] == span(42, 55, 98, 111)
    assert note(
        document, "14 of 56 cores stay idle (CPUs 42-55)", "--fill", "--allow-cross-node gives 18 cores to each"
    )


def test_fill_and_allow_cross_node_use_the_rest(plan: Plan) -> None:
    assert cpus(plan(TWO_SOCKETS, "--ninstances", "3", "--fill")) == [span(0, 13), span(14, 27), span(28, 55)]
    crossing = plan(TWO_SOCKETS, "--ninstances", "3", "--allow-cross-node")
    assert cpus(crossing) == [span(0, 17), span(18, 35), span(36, 53)]
    assert memory(crossing)[1] == ("preferred-many", [0, 1])
    assert note(crossing, "instance 1 spans several NUMA nodes (0-1)")
    both = plan(TWO_SOCKETS, "--ninstances", "3", "--fill", "--allow-cross-node")
    assert cpus(both) == [span(0, 18), span(19, 37), span(38, 55)]


def test_fewer_instances_than_nodes_get_whole_nodes_of_a_package(plan: Plan) -> None:
    two = plan(SNC4, "--ninstances", "2")
    assert cpus(two) == [span(0, 47), span(48, 95)]
    assert memory(two) == [("preferred-many", [0, 1, 2, 3]), ("preferred-many", [4, 5, 6, 7])]
    # Three: two whole nodes each, two of one package and one of the other.
    three = plan(SNC4, "--ninstances", "3")
    assert cpus(three) == [span(0, 23), span(24, 47), span(48, 71)]
    # Two on three packages: one whole package each, no package is shared.
    packages = plan(regular(3, 2, 4), "--ninstances", "2")
    assert cpus(packages) == [span(0, 7), span(8, 15)]
    # Two on four packages: two whole packages each.
    assert cpus(plan(regular(4, 2, 4), "--ninstances", "2")) == [span(0, 15), span(16, 31)]


def test_whole_nodes_of_unequal_size_are_combined_as_evenly_as_they_can_be(plan: Plan) -> None:
    # 16, 8 and 8 cores: {16} and {8, 8}.
    assert cpus(plan(regular(1, 3, [16, 8, 8]), "--ninstances", "2")) == [span(0, 15), span(16, 31)]
    # Two service cores in nodes of their own do not make the others small.
    assert cpus(plan(regular(1, 6, [1, 1, 12, 12, 12, 12]), "--ninstances", "2")) == [span(2, 25), span(26, 49)]
    assert [len(c) for c in cpus(plan(regular(1, 6, [1, 1, 12, 12, 12, 12]), "--ninstances", "5"))] == [6] * 5


def test_no_sliver_of_another_node_for_the_sake_of_size(plan: Plan) -> None:
    # 18, 18, 16 and 16 cores, three instances: 16 inside nodes, not 18 of which the last takes two from a fourth node.
    assert cpus(plan(regular(1, 4, [18, 18, 16, 16]), "--ninstances", "3")) == [span(0, 15), span(18, 33), span(36, 51)]
    # One core less of a node of 43 is no sliver.
    assert [len(c) for c in cpus(plan(regular(2, 2, [43, 43, 42, 42]), "--ninstances", "2"))] == [84, 84]


def test_a_small_share_of_a_node_does_not_make_instances_small(plan: Plan) -> None:
    """A cpuset with a whole node and one CPU of the other."""
    host = TWO_SOCKETS._replace(allowed=tuple(span(0, 28)))
    assert cpus(plan(host, "--ninstances", "2")) == [span(0, 13), span(14, 27)]


def test_uneven_nodes_in_throughput_mode(plan: Plan) -> None:
    host = regular(1, 3, [43, 43, 42])
    document = plan(host, "--throughput-mode")
    assert cpus(document) == [span(0, 41), span(43, 84), span(86, 127)]
    assert document["idle_cpus"] == [42, 85]
    assert cpus(plan(host, "--throughput-mode", "--fill")) == [span(0, 42), span(43, 85), span(86, 127)]


def test_one_for_each_package_and_each_l3(plan: Plan, refusal: Callable[..., str]) -> None:
    host = regular(2, 1, 16, threads=2, l3=4)
    assert cpus(plan(host, "--package-mode")) == [span(0, 15), span(16, 31)]
    assert cpus(plan(host, "--l3-mode")) == [span(low, low + 3) for low in range(0, 32, 4)]
    assert "does not say" in refusal(TWO_SOCKETS, "--l3-mode")


def test_instances_share_no_l3_where_that_costs_nothing(plan: Plan) -> None:
    host = regular(1, 1, 16, l3=8)
    assert cpus(plan(host, "--ninstances", "2", "--ncores-per-instance", "6")) == [span(0, 5), span(8, 13)]
    # Three of five can't avoid it.
    assert cpus(plan(host, "--ninstances", "3", "--ncores-per-instance", "5")) == [span(0, 4), span(5, 9), span(10, 14)]


def test_a_fixed_size_without_a_count(plan: Plan) -> None:
    document = plan(TWO_SOCKETS, "--ncores-per-instance", "8")
    assert cpus(document) == [span(low, low + 7) for low in (0, 8, 16, 28, 36, 44)]
    assert note(document, "8 of 56 cores stay idle", "--allow-cross-node makes 7", "--ninstances 6 alone gives 9 cores")
    assert len(plan(TWO_SOCKETS, "--ncores-per-instance", "8", "--allow-cross-node")["instances"]) == 7


def test_a_fixed_size_and_a_count(plan: Plan, refusal: Callable[..., str]) -> None:
    size = ("--ncores-per-instance", "8")
    six = plan(TWO_SOCKETS, "--ninstances", "6", *size)
    assert cpus(six) == [span(low, low + 7) for low in (0, 8, 16, 28, 36, 44)]
    # The seventh finds no node with room: it takes what both have left, and says so.
    seven = plan(TWO_SOCKETS, "--ninstances", "7", *size)
    assert cpus(seven)[3] == [24, 25, 26, 27, 52, 53, 54, 55]
    assert note(seven, "instance 3 spans several NUMA nodes (0-1)")
    assert "only 6 fit" in refusal(TWO_SOCKETS, "--ninstances", "7", *size, "--skip-cross-node-cores")
    assert "only 7 fit" in refusal(TWO_SOCKETS, "--ninstances", "8", *size)
    assert "none fits" in refusal(TWO_SOCKETS, "--ncores-per-instance", "57")
    assert "none fits" in refusal(TWO_SOCKETS, "--ncores-per-instance", "29", "--bind-numa-node")


def test_scatter_and_close(plan: Plan) -> None:
    four = ("--ninstances", "2", "--ncores-per-instance", "4")
    assert cpus(plan(TWO_SOCKETS, *four)) == [span(0, 3), span(28, 31)]
    assert cpus(plan(TWO_SOCKETS, *four, "--strategy", "close")) == [span(0, 3), span(4, 7)]
    # Over packages first, then over their nodes.
    assert cpus(plan(SNC4, *four)) == [span(0, 3), span(48, 51)]
    ten = plan(TWO_SOCKETS, "--ninstances", "10", "--ncores-per-instance", "4")
    assert len(ten["instances"]) == 10


def test_latency_mode_needs_four_cores(plan: Plan, refusal: Callable[..., str]) -> None:
    assert len(plan(TWO_SOCKETS, "--latency-mode")["instances"]) == 14
    assert cpus(plan(TWO_SOCKETS, "--latency-mode", "--node-id", "1"))[0] == span(28, 31)
    assert "none fits" in refusal(regular(1, 1, 2), "--latency-mode")
    # Nodes of two cores: no node holds an instance, so it crosses.
    small = plan(regular(1, 4, 2), "--latency-mode")
    assert cpus(small) == [span(0, 3), span(4, 7)]
    assert note(small, "span several NUMA nodes")


@pytest.mark.parametrize("numbering", ["halves", "adjacent", "robin"])
def test_one_thread_a_core_however_cpus_are_numbered(numbering: str, plan: Plan) -> None:
    host = regular(2, 1, 4, threads=2, numbering=numbering)
    for node, used in enumerate(cpus(plan(host, "--throughput-mode"))):
        assert used == sorted(core.cpus[0] for core in host.cores if core.node == node)
    for node, used in enumerate(cpus(plan(host, "--throughput-mode", "--use-logical-core"))):
        assert used == host.node_cpus(node)


def test_siblings_stay_together(plan: Plan) -> None:
    two = plan(TWO_SOCKETS, "--use-logical-core", "--ninstances", "2")
    assert cpus(two) == [span(0, 27, 56, 83), span(28, 55, 84, 111)]
    assert [i["threads"] for i in two["instances"]] == [56, 56]
    # With SMT a size counts CPUs, as it does for torch: 8 of them are 4 cores.
    eight = plan(TWO_SOCKETS, "--use-logical-core", "--ncores-per-instance", "8")
    assert cpus(eight)[:2] == [span(0, 3, 56, 59), span(4, 7, 60, 63)]
    assert len(eight["instances"]) == 14
    # An odd one leaves a thread idle, and nobody else gets it.
    three = plan(regular(1, 1, 4, threads=2), "--use-logical-core", "--ncores-per-instance", "3")
    assert cpus(three) == [[0, 1, 4], [2, 3, 6]]
    assert three["idle_cpus"] == []


def test_only_one_sibling_allowed(plan: Plan) -> None:
    host = regular(1, 1, 4, threads=2)._replace(allowed=(4, 1, 6))
    assert cpus(plan(host)) == [[1, 4, 6]]
    assert cpus(plan(host, "--use-logical-core")) == [[1, 4, 6]]


def test_fast_cores_only_by_default(plan: Plan, refusal: Callable[..., str]) -> None:
    fast = [MadeCore((2 * i, 2 * i + 1)) for i in range(4)]
    slow = [MadeCore((8 + i,), slow=True) for i in range(8)]
    host = MadeHost((*fast, *slow), {0: 1000})
    document = plan(host)
    assert cpus(document) == [[0, 2, 4, 6]]
    assert document["idle_cpus"] == span(8, 15)
    assert note(document, "8 slower cores stay idle", "--use-e-cores")
    assert cpus(plan(host, "--use-e-cores")) == [[0, 2, 4, 6, *span(8, 15)]]
    assert cpus(plan(host._replace(allowed=tuple(span(8, 11))))) == [span(8, 11)]
    assert "--use-e-cores" in refusal(host, "--ninstances", "5")
    # With both kinds, every instance has its share of each.
    assert cpus(plan(host, "--use-e-cores", "--ninstances", "2")) == [[0, 2, *span(8, 11)], [4, 6, *span(12, 15)]]
    # Four fast cores can't be shared by three alike: then at least no instance mixes kinds.
    latency = plan(host, "--use-e-cores", "--latency-mode")
    assert cpus(latency) == [[0, 2, 4, 6], span(8, 11), span(12, 15)]


def test_isolated_cpus_are_left_alone_unless_named(plan: Plan) -> None:
    host = regular(1, 1, 8)._replace(isolated=(2, 3))
    document = plan(host)
    assert cpus(document) == [[0, 1, 4, 5, 6, 7]]
    assert document["idle_cpus"] == []
    assert note(document, "isolated CPUs 2-3")
    assert cpus(plan(host, "--core-list", "1-3")) == [[1, 2, 3]]
    # Whoever starts us on isolated CPUs alone means them.
    assert cpus(plan(host._replace(allowed=(2, 3)))) == [[2, 3]]


def test_core_lists(plan: Plan, refusal: Callable[..., str]) -> None:
    assert cpus(plan(TWO_SOCKETS, "--core-list", "0-3,28-31", "--ninstances", "2")) == [span(0, 3), span(28, 31)]
    assert cpus(plan(TWO_SOCKETS, "--core-list", "0, 1, 2, 3", "--ncores-per-instance", "2")) == [[0, 1], [2, 3]]
    one = plan(TWO_SOCKETS, "--core-list", "0,1,2,3", "--ninstances", "1", "--ncores-per-instance", "2")
    assert cpus(one) == [[0, 1]]
    assert "only 2 fit" in refusal(
        TWO_SOCKETS, "--core-list", "0,1,2,3", "--ninstances", "4", "--ncores-per-instance", "2"
    )
    # An order that is not ascending is meant.
    ordered = plan(TWO_SOCKETS, "--core-list", "56,57,0,1", "--ncores-per-instance", "2")
    assert cpus(ordered) == [[56, 57], [0, 1]]
    assert note(ordered, "instances 0 and 1 share a core", "--core-list")
    # An ascending one is a set: siblings go together.
    assert cpus(plan(TWO_SOCKETS, "--core-list", "0-1,56-57", "--ninstances", "2")) == [[0, 56], [1, 57]]
    assert cpus(plan(TWO_SOCKETS._replace(allowed=tuple(span(10, 20))), "--core-list", "+0-1,3")) == [[10, 11, 13]]
    assert "CPUs 112, which are not online" in refusal(TWO_SOCKETS, "--core-list", "0,112")
    assert "not in the affinity" in refusal(TWO_SOCKETS._replace(allowed=(0, 1)), "--core-list", "0-2")
    assert "counts beyond the 112 CPUs" in refusal(TWO_SOCKETS, "--core-list", "+112")


def test_nodes(plan: Plan, refusal: Callable[..., str]) -> None:
    assert cpus(plan(SNC4, "--nodes-list", "2,5", "--throughput-mode")) == [span(24, 35), span(60, 71)]
    assert cpus(plan(SNC4._replace(allowed=tuple(span(24, 47))), "--node-id", "+1")) == [span(36, 47)]
    assert "nodes 8, which do not exist here; usable nodes: 0-7" in refusal(SNC4, "--node-id", "8")
    assert "no CPU that may be used" in refusal(SNC4._replace(allowed=(0,)), "--node-id", "1")


def test_more_than_ten_sparse_nodes(plan: Plan) -> None:
    """Ids with gaps and of several digits, as boards with many packages have them."""
    host = MadeHost(
        tuple(MadeCore((100 * i + j,), i, 7 * i) for i in range(12) for j in range(4)), {7 * i: 10 for i in range(12)}
    )
    document = plan(host, "--throughput-mode")
    assert [nodes for _, nodes in memory(document)] == [[7 * i] for i in range(12)]
    assert cpus(plan(host, "--node-id", "77")) == [span(1100, 1103)]


def test_selected_instances(plan: Plan, refusal: Callable[..., str]) -> None:
    document = plan(TWO_SOCKETS, "--ninstances", "4", "--instance-idx", "1,3")
    assert [i["index"] for i in document["instances"]] == [1, 3]
    assert cpus(document) == [span(14, 27), span(42, 55)]
    assert document["idle_cpus"] == []
    assert len(plan(TWO_SOCKETS, "--ninstances", "4", "--instance-idx", "-1")["instances"]) == 4
    assert "instance 5 was asked for" in refusal(TWO_SOCKETS, "--ninstances", "2", "--rank", "5")


def test_memory_of_nodes_that_have_none(plan: Plan) -> None:
    """Threadripper in NPS4: nodes 0 and 3 have CPUs and no memory."""
    host = regular(1, 4, 6, threads=2)._replace(memory={0: 0, 1: 1000, 2: 1000, 3: 0})
    assert memory(plan(host, "--throughput-mode")) == [("preferred", [n]) for n in (1, 1, 2, 2)]
    # Distances decide where there are some: node 0 is nearer to node 2.
    far = {0: [10, 32, 16, 32], 1: [32, 10, 32, 16], 2: [16, 32, 10, 32], 3: [32, 16, 32, 10]}
    near = plan(host._replace(distances=far), "--throughput-mode")
    assert memory(near) == [("preferred", [n]) for n in (2, 1, 2, 1)]


def test_memory_outside_the_cpuset(plan: Plan) -> None:
    host = TWO_SOCKETS._replace(mems=(1,))
    assert memory(plan(host, "--throughput-mode")) == [("preferred", [1]), ("preferred", [1])]
    assert memory(plan(host)) == [("preferred", [1])]


def test_memory_options(plan: Plan) -> None:
    assert memory(plan(TWO_SOCKETS, "--membind")) == [("bind", [0, 1])]
    assert note(
        plan(TWO_SOCKETS, "--membind", "--throughput-mode"), "NUMA nodes 1 is killed when it needs more than 1.0 GiB"
    )
    assert memory(plan(SNC4, "--ninstances", "2", "--interleave"))[0] == ("interleave", [0, 1, 2, 3])
    assert memory(plan(TWO_SOCKETS, "--disable-numactl")) == [("default", [])]
    assert memory(plan(TWO_SOCKETS, "--multi-task-manager", "taskset")) == [("default", [])]
    unbound = plan(TWO_SOCKETS, "--disable-numactl", "--disable-taskset")
    assert unbound["bind_cpus"] is False
    assert "KMP_AFFINITY" not in unbound["instances"][0]["environment"]


def test_strict_memory_is_refused_where_nothing_is_free(refusal: Callable[..., str]) -> None:
    host = TWO_SOCKETS._replace(memory={0: 1000, 1: 60})
    assert "have 60 MiB free" in refusal(host, "--membind", "--throughput-mode")


def test_high_bandwidth_memory(plan: Plan, refusal: Callable[..., str]) -> None:
    """Xeon Max, flat: each CPU node has a smaller node without CPUs beside it."""
    distances = {
        n: [10 if n == m else 13 if abs(n - m) == 2 else 21 if n % 2 == m % 2 else 23 for m in range(4)]
        for n in range(4)
    }
    host = regular(2, 1, 8)._replace(memory={0: 64000, 1: 64000, 2: 16000, 3: 16000}, distances=distances)
    assert memory(plan(host, "--throughput-mode")) == [("preferred", [0]), ("preferred", [1])]
    assert memory(plan(host, "--throughput-mode", "--hbm")) == [("preferred", [2]), ("preferred", [3])]
    assert memory(plan(host, "--throughput-mode", "--hbm", "--membind")) == [("bind", [2]), ("bind", [3])]
    # Persistent memory is the larger kind, and not fast.
    slow = host._replace(memory={0: 32000, 1: 32000, 2: 128000, 3: 128000})
    assert "no high-bandwidth memory" in refusal(slow, "--hbm")


def test_cpus_without_a_node(plan: Plan) -> None:
    """A package whose node is offline: its cores work, and have no memory of their own."""
    host = MadeHost(tuple(MadeCore((i,), i % 2, 1 if i % 2 else None) for i in range(16)), {1: 1000})
    assert cpus(plan(host)) == [list(range(16))]
    one = plan(host, "--throughput-mode")
    assert cpus(one) == [list(range(1, 16, 2))]
    assert one["idle_cpus"] == list(range(0, 16, 2))
    assert note(one, "8 of 16 cores stay idle", "--ninstances 2 also uses those that belong to no node")
    two = plan(host, "--ninstances", "2")
    assert cpus(two) == [list(range(1, 16, 2)), list(range(0, 16, 2))]
    assert memory(two) == [("preferred", [1]), ("default", [])]


def test_a_host_without_numa(plan: Plan) -> None:
    host = MadeHost(tuple(MadeCore((i, i + 8), i // 4, None) for i in range(8)), {})
    assert memory(plan(host)) == [("default", [])]
    assert cpus(plan(host, "--throughput-mode")) == [span(0, 7)]
    assert cpus(plan(host, "--ninstances", "2")) == [span(0, 3), span(4, 7)]


def test_a_quota_limits_threads_not_cpus(plan: Plan) -> None:
    document = plan(TWO_SOCKETS, quota_cpus=6.5)
    assert (len(cpus(document)[0]), document["instances"][0]["threads"]) == (56, 6)
    assert document["instances"][0]["environment"]["OMP_NUM_THREADS"] == "6"
    assert note(document, "6.5 CPUs of time", "6 threads")
    shared = plan(TWO_SOCKETS, "--ninstances", "4", quota_cpus=6.5)
    assert [i["threads"] for i in shared["instances"]] == [1, 1, 1, 1]
    assert plan(TWO_SOCKETS, quota_cpus=0.5)["instances"][0]["threads"] == 1


def test_more_than_1024_cpus(plan: Plan) -> None:
    host = regular(8, 1, 144, threads=2)
    document = plan(host, "--throughput-mode", "--use-logical-core")
    assert cpus(document)[7] == host.node_cpus(7)
    assert max(cpus(document)[7]) == 2303


def test_nothing_allowed_is_online(refusal: Callable[..., str]) -> None:
    assert "none of the CPUs allowed here (99) is online" in refusal(regular(1, 1, 4)._replace(allowed=(99,)))


def test_exactly_as_many_as_asked_for_or_none(plan: Plan, refusal: Callable[..., str]) -> None:
    assert len(plan(TWO_SOCKETS, "--ninstances", "56")["instances"]) == 56
    assert "57 instances need a core each, and 56 can be used" in refusal(TWO_SOCKETS, "--ninstances", "57")


RANKS = [
    ({"LOCAL_RANK": "{}", "LOCAL_WORLD_SIZE": "2"}),
    ({"OMPI_COMM_WORLD_LOCAL_RANK": "{}", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}),
    ({"MPI_LOCALRANKID": "{}", "MPI_LOCALNRANKS": "2"}),
    ({"SLURM_LOCALID": "{}", "SLURM_STEP_TASKS_PER_NODE": "4,2(x3)", "SLURM_NODEID": "2"}),
]


@pytest.mark.parametrize("variables", RANKS, ids=lambda variables: next(iter(variables)))
def test_local_ranks_share_cpus_and_threads(
    variables: dict[str, str], plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    shares = []
    for rank in (0, 1):
        for name, value in variables.items():
            monkeypatch.setenv(name, value.format(rank))
        document = plan(TWO_SOCKETS)
        shares.append(cpus(document)[0])
        assert document["instances"][0]["threads"] == 28
        assert document["instances"][0]["environment"]["OMP_NUM_THREADS"] == "28"
        assert memory(document) == [("preferred", [rank])]
        assert document["idle_cpus"] == []
    assert shares == [span(0, 27), span(28, 55)]


def test_torchruns_one_thread_is_nobodys_wish(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}.items():
        monkeypatch.setenv(name, value)
    assert "OMP_NUM_THREADS" not in plan(TWO_SOCKETS)["instances"][0]["environment"]
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    # As torch's launcher does: each of two instances is divided.
    document = plan(TWO_SOCKETS, "--ninstances", "2")
    assert cpus(document) == [span(14, 27), span(42, 55)]
    assert document["instances"][0]["environment"]["OMP_NUM_THREADS"] == "14"


def test_more_ranks_than_cores(refusal: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    assert "8 local ranks share an instance of 4 cores" in refusal(regular(1, 1, 4))
    monkeypatch.setenv("LOCAL_RANK", "8")
    assert "LOCAL_RANK=8 and LOCAL_WORLD_SIZE=8 can't be right" in refusal(regular(1, 1, 4))


def test_a_batch_scripts_variables_are_no_ranks(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_LOCALID", "0")
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", "4")
    monkeypatch.setenv("ENVIRONMENT", "BATCH")
    assert cpus(plan(TWO_SOCKETS)) == [span(0, 55)]
    # What srun starts from that script has a step, and may inherit the rest.
    monkeypatch.setenv("SLURM_STEP_ID", "0")
    monkeypatch.setenv("SLURM_LOCALID", "3")
    assert cpus(plan(TWO_SOCKETS)) == [span(42, 55)]
