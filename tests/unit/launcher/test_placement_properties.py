"""Rules that every plan keeps, on every host that can be made up."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cpulens.errors import PlacementError
from launcher_hosts import MadeCore, MadeHost, limits_of, topology_of
from run_cpu.placement import Instance, Plan, place
from run_cpu.placement.plan import POLICIES
from run_cpu.request import Numbers, Request


@st.composite
def hosts(draw: st.DrawFn) -> MadeHost:
    """Packages of nodes of cores of threads; uneven, with gaps, with every kind of trouble."""
    threads = draw(st.sampled_from([1, 1, 2, 4]))
    numa = draw(st.booleans() | st.just(True))
    ids = draw(st.lists(st.integers(0, 40), min_size=12, max_size=12, unique=True))
    homes = [
        (package, ids.pop(), size, draw(st.sampled_from([None, 1, 2, 4, 8])))
        for package in range(draw(st.integers(1, 3)))
        for size in draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    ]
    places = [(p, node, place, l3) for p, node, size, l3 in homes for place in range(size)]
    if draw(st.booleans()):
        places = draw(st.permutations(places))
    numbers = iter(draw(st.permutations(range(len(places) * threads + 5))))
    cores = []
    for package, node, place_in_node, l3 in places:
        cpus = tuple(sorted(next(numbers) for _ in range(draw(st.integers(1, threads)))))
        home = node if numa and draw(st.integers(0, 9)) else None
        cache = None if l3 is None else node * 100 + place_in_node // l3
        cores.append(MadeCore(cpus, package, home, cache, draw(st.integers(0, 4)) == 0))
    memory = {}
    if numa:
        memory = {node: draw(st.sampled_from([1000, 1000, 0])) for _, node, _, _ in homes}
        memory |= {node: draw(st.sampled_from([0, 500])) for node in ids[: draw(st.integers(0, 2))]}
    online = sorted({cpu for core in cores for cpu in core.cpus})
    some = st.lists(st.sampled_from(online), min_size=1).map(tuple)
    return MadeHost(
        tuple(cores),
        memory,
        None,
        draw(st.just(()) | some),
        draw(st.none() | some),
        draw(st.none() | st.lists(st.sampled_from(sorted(memory)), min_size=1).map(tuple)) if memory else None,
    )


@st.composite
def requests(draw: st.DrawFn) -> Request:
    mode = draw(st.sampled_from(["", "", "", "latency", "throughput", "l3", "package"]))
    counts = st.none() | st.integers(1, 9)
    size = draw(st.integers(1, 3))
    return Request(
        mode=mode,
        ninstances=None if mode else draw(counts),
        ncores=None if mode else draw(counts),
        smt=draw(st.booleans()),
        efficient=draw(st.booleans()),
        cross=draw(st.sampled_from(["avoid", "never", "allow"])),
        fill=draw(st.booleans()),
        close=draw(st.booleans()),
        memory=draw(st.sampled_from(["prefer", "bind", "interleave", "kernel"])),
        local_size=size,
        local_rank=draw(st.integers(0, size - 1)),
    )


def planned(host: MadeHost, request: Request, quota_cpus: float | None = None) -> Plan | None:
    try:
        return place(topology_of(host), limits_of(host, quota_cpus), request)
    except PlacementError as reason:
        assert str(reason).count("\n") == 0
        assert str(reason)
        return None


@settings(max_examples=150, deadline=None)
@given(hosts(), requests(), st.none() | st.floats(0.1, 20))
def test_rules_of_every_plan(host: MadeHost, request: Request, quota_cpus: float | None) -> None:
    ranks = [planned(host, request._replace(local_rank=rank), quota_cpus) for rank in range(request.local_size)]
    if ranks[0] is None:
        assert ranks == [None] * request.local_size
        return
    plans = [plan for plan in ranks if plan]
    instances = [instance for plan in plans for instance in plan.instances]
    each_cpu_once_and_siblings_together(host, request, instances)
    exactly_what_was_asked_for(host, request, plans)
    nodes_are_not_crossed(host, request, instances)
    memory_where_there_is_some(host, instances)
    threads_within_the_quota(instances, quota_cpus)
    busy = {cpu for instance in instances for used in instance.cpus for cpu in host.core_of(used).cpus}
    assert all(set(plan.idle_cpus) == host.usable - busy for plan in plans)


def each_cpu_once_and_siblings_together(host: MadeHost, request: Request, instances: list[Instance]) -> None:
    used = [cpu for instance in instances for cpu in instance.cpus]
    assert len(used) == len(set(used))
    assert set(used) <= host.usable
    owners = [(host.core_of(cpu), number) for number, instance in enumerate(instances) for cpu in instance.cpus]
    assert len(set(owners)) == len({core for core, _ in owners})
    if not request.smt:
        assert len(owners) == len({core for core, _ in owners})
        assert all(cpu == min(host.usable & set(host.core_of(cpu).cpus)) for cpu in used)


def exactly_what_was_asked_for(host: MadeHost, request: Request, plans: list[Plan]) -> None:
    for plan in plans:
        assert [instance.number for instance in plan.instances] == list(range(len(plan.instances)))
        assert len(plan.instances) == request.ninstances or (request.ninstances is None and plan.instances)
    if request.local_size > 1:
        return
    (plan,) = plans
    cores = {len({host.core_of(cpu) for cpu in instance.cpus}) for instance in plan.instances}
    if request.ncores:
        assert {len(instance.cpus) for instance in plan.instances} == {request.ncores}
    elif request.mode == "latency":
        assert cores == {4}
    elif not request.fill:
        assert len(cores) == 1


def nodes_are_not_crossed(host: MadeHost, request: Request, instances: list[Instance]) -> None:
    for instance in instances:
        homes = {host.core_of(cpu).node for cpu in instance.cpus}
        if request.mode == "throughput":
            assert len(homes - {None}) <= 1
        if request.cross == "never" and request.mode in ("", "latency"):
            assert len(homes) == 1


def memory_where_there_is_some(host: MadeHost, instances: list[Instance]) -> None:
    fair = {node for node, size in host.memory.items() if size and (host.mems is None or node in host.mems)}
    for instance in instances:
        assert set(instance.memory_nodes) <= fair
        assert instance.memory_policy in POLICIES
        assert (instance.memory_policy == "default") == (not instance.memory_nodes)
        assert (instance.memory_policy != "preferred") or len(instance.memory_nodes) == 1


def threads_within_the_quota(instances: list[Instance], quota_cpus: float | None) -> None:
    assert all(1 <= instance.threads <= len(instance.cpus) for instance in instances)
    if quota_cpus is None:
        assert all(instance.threads == len(instance.cpus) for instance in instances)
    else:
        assert sum(instance.threads for instance in instances) <= max(quota_cpus, len(instances))


@settings(max_examples=60, deadline=None)
@given(hosts(), st.data())
def test_named_cpus_are_used_in_their_order(host: MadeHost, data: st.DataObject) -> None:
    allowed = sorted(host.online & set(host.online if host.allowed is None else host.allowed))
    if not allowed:
        return
    named = data.draw(st.lists(st.sampled_from(allowed), min_size=1, unique=True))
    size = data.draw(st.integers(1, len(named)))
    plan = planned(host, Request(cpus=Numbers(tuple(named)), ncores=size))
    if named != sorted(named):
        assert plan is not None
        expected = [tuple(named[start : start + size]) for start in range(0, len(named) - size + 1, size)]
        assert [instance.cpus for instance in plan.instances] == expected
    elif plan:
        assert {cpu for instance in plan.instances for cpu in instance.cpus} <= set(named)


@settings(max_examples=60, deadline=None)
@given(hosts(), st.integers(1, 8))
def test_a_plan_exists_whenever_there_are_cores_enough(host: MadeHost, count: int) -> None:
    usable = host.usable
    fast = {core for core in host.cores if set(core.cpus) & usable and not core.slow}
    cores = fast or {core for core in host.cores if set(core.cpus) & usable}
    assert (planned(host, Request(ninstances=count)) is not None) == (0 < count <= len(cores))


@settings(max_examples=60, deadline=None)
@given(hosts(), st.integers(1, 8))
def test_no_smaller_than_a_split_of_every_node_would_give(host: MadeHost, count: int) -> None:
    """The size is at least the best that equal pieces inside single nodes can have."""
    plan = planned(host, Request(ninstances=count))
    if plan is None:
        return
    usable = host.usable
    fast = [core for core in host.cores if set(core.cpus) & usable and not core.slow]
    homes: dict[object, int] = {}
    for core in fast or [core for core in host.cores if set(core.cpus) & usable]:
        home = core.node if core.node is not None else ("package", core.package)
        homes[home] = homes.get(home, 0) + 1
    best = max(size for size in range(1, 100) if size == 1 or sum(n // size for n in homes.values()) >= count)
    assert len(plan.instances[0].cpus) >= best
