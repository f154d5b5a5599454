"""Cutting ordered slots into instances: how large, how many in each domain, which slots. Pure.

A *domain* is a run of slots that an instance should not leave: the slots of a NUMA node, of a package, of an L3 cache.
"""

from __future__ import annotations

import itertools

from run_cpu.placement.pool import Slot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    Domain = list[Slot]
    Chunk = list[Slot]


def group(slots: Sequence[Slot], key: Callable[[Slot], Hashable]) -> list[Domain]:
    """Return the slots that share a key together, in order of first appearance."""
    groups: dict[Hashable, Domain] = {}
    for slot in slots:
        groups.setdefault(key(slot), []).append(slot)
    return list(groups.values())


def node_of(slot: Slot) -> Hashable:
    """Domain of a slot by NUMA node; CPUs without a node belong together by package."""
    core = slot.core
    return core.node if core.node is not None else ("package", core.package)


def package_of(slot: Slot) -> Hashable:
    """Domain of a slot by package."""
    return slot.core.package


def l3_of(slot: Slot) -> Hashable:
    """Domain of a slot by L3 cache; None where the host does not say."""
    return slot.core.l3


def largest_inside(sizes: Sequence[int], count: int) -> int:
    """Return the largest size at which `count` equal pieces can be cut from domains of those sizes; 0: none."""
    low, high = 0, max(sizes, default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(size // middle for size in sizes) >= count:
            low = middle
        else:
            high = middle - 1
    return low


def runs(domains: Sequence[Domain], size: int) -> list[list[Domain]]:
    """Return runs of neighbouring domains, each enough for `size` slots, as many as there are.

    A run is as short as can be. One of several domains uses all of them: at least half of its last one is needed.
    """
    found: list[list[Domain]] = []
    run: list[Domain] = []
    length = 0
    for domain in domains:
        run.append(domain)
        length += len(domain)
        while length - len(run[0]) >= size:
            length -= len(run.pop(0))
        if length >= size:
            if len(run) == 1 or 2 * (length - size) <= len(domain):
                found.append(run)
                run, length = [], 0
            else:
                length -= len(run.pop(0))
    return found


def largest_run(groups: Sequence[Sequence[Domain]], count: int, above: int) -> int:
    """Return the largest size over `above` at which runs, each inside one group, make `count` pieces; 0: none.

    Only the lengths of runs can be such sizes.
    """
    lengths: set[int] = set()
    for domains in groups:
        for start in range(len(domains)):
            lengths.update(itertools.accumulate(map(len, domains[start:])))
    most = sum(len(domain) for domains in groups for domain in domains) // count
    for size in sorted((length for length in lengths if above < length <= most), reverse=True):
        if sum(len(runs(domains, size)) for domains in groups) >= count:
            return size
    return 0


def share(capacities: Sequence[int], count: int, order: Sequence[int], close: bool) -> list[int]:
    """Return how many of `count` go to each place: filling one after the other (`close`), or evenly, in `order`."""
    counts = [0] * len(capacities)
    while count > 0 and counts != list(capacities):
        for place in order:
            step = min(count, capacities[place] - counts[place], count if close else 1)
            counts[place] += step
            count -= step
    return counts


def scatter_order(domains: Sequence[Domain]) -> list[int]:
    """Return the order in which domains get instances: one of each package in turn."""
    seen: dict[Hashable, int] = {}
    keys = []
    for place, domain in enumerate(domains):
        package = package_of(domain[0])
        turn = seen[package] = seen.get(package, -1) + 1
        keys.append((turn, place))
    return [place for _, place in sorted(keys)]


def cut(slots: Sequence[Slot], size: int, by_cpu: bool = False) -> list[Chunk]:
    """Cut slots into pieces of `size` cores, or of `size` CPUs (then the last core of a piece may give only some).

    What is left at the end is left out.
    """
    if not by_cpu:
        return [list(slots[start : start + size]) for start in range(0, len(slots) - size + 1, size)]
    chunks: list[Chunk] = []
    chunk: Chunk = []
    missing = size
    for slot in slots:
        taken = slot._replace(cpus=slot.cpus[:missing])
        chunk.append(taken)
        missing -= len(taken.cpus)
        if missing == 0:
            chunks.append(chunk)
            chunk, missing = [], size
    return chunks


def inside(domains: Sequence[Domain], count: int | None, size: int, by_cpu: bool, close: bool) -> list[Chunk]:
    """Return up to `count` pieces (None: all there are), each inside one domain, and one L3 if that costs none."""
    capacities = [len(cut(domain, size, by_cpu)) for domain in domains]
    if count is None:
        count = sum(capacities)
    counts = share(capacities, min(count, sum(capacities)), scatter_order(domains), close)
    chunks: list[Chunk] = []
    for domain, number in zip(domains, counts, strict=True):
        mixed = deal_kinds(domain, number, size) if not by_cpu else []
        if mixed:
            chunks += mixed
            continue
        caches = group(domain, l3_of)
        rooms = [len(cut(cache, size, by_cpu)) for cache in caches]
        if len(caches) > 1 and sum(rooms) >= number:
            for cache, part in zip(caches, share(rooms, number, range(len(rooms)), close), strict=True):
                chunks += cut(cache, size, by_cpu)[:part]
        else:
            chunks += cut(domain, size, by_cpu)[:number]
    return chunks


def deal_kinds(domain: Domain, count: int, size: int) -> list[Chunk]:
    """Return `count` pieces with the same share of fast and slow cores each; none where that can't be."""
    slow = [slot for slot in domain if slot.core.efficient]
    fast = [slot for slot in domain if not slot.core.efficient]
    if not slow or not fast or not count:
        return []
    fast_each = min(len(fast) // count, size)
    slow_each = size - fast_each
    if slow_each * count > len(slow):
        return []
    return [fast[n * fast_each : (n + 1) * fast_each] + slow[n * slow_each : (n + 1) * slow_each] for n in range(count)]


def split_evenly(slots: Sequence[Slot], count: int) -> list[Chunk]:
    """Cut all slots into `count` neighbouring pieces whose sizes differ by one at most, the larger ones first."""
    small, larger = divmod(len(slots), count)
    chunks: list[Chunk] = []
    start = 0
    for index in range(count):
        end = start + small + (index < larger)
        chunks.append(list(slots[start:end]))
        start = end
    return chunks
