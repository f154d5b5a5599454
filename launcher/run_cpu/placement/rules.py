"""The rules that turn a request and a pool into pieces, one for each instance. Pure."""

from __future__ import annotations

from cpulens.errors import PlacementError
from run_cpu.placement import partition
from run_cpu.placement.partition import group, inside, l3_of, node_of, package_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from run_cpu.placement.partition import Chunk, Domain
    from run_cpu.placement.pool import Pool, Slot
    from run_cpu.request import Request

#: Cores of an instance in latency mode, torch's number.
LATENCY_CORES = 4


def divide(pool: Pool, request: Request) -> list[Chunk]:
    """Return the slots of every instance, in the order of the pool.

    Raises PlacementError when the host can't hold exactly what was asked for.
    """
    slots = list(pool.slots)
    if request.mode in ("throughput", "l3", "package"):
        return one_each(slots, request)
    size = LATENCY_CORES if request.mode == "latency" else request.ncores
    by_cpu = request.mode != "latency" and any(len(slot.cpus) > 1 for slot in slots)
    if size is None:
        count = request.ninstances or 1
        if count > len(slots):
            raise PlacementError(
                f"{count} instances need a core each, and {len(slots)} can be used; ask for fewer{_more(pool)}"
            )
        return equal(slots, count, request, keep_order=pool.ordered)
    run_on = request.cross == "allow" or pool.ordered
    if run_on:
        chunks = partition.cut(slots, size, by_cpu)[: request.ninstances]
    else:
        chunks = fixed(slots, request.ninstances, size, by_cpu, request)
    if not chunks or len(chunks) < (request.ninstances or 1):
        raise _too_few(pool, request, size, by_cpu, len(chunks))
    return chunks if run_on else _in_order(chunks, slots)


def one_each(slots: list[Slot], request: Request) -> list[Chunk]:
    """Return one piece for each node, L3 cache or package, of equal size unless the rest is to be filled in."""
    if request.mode == "l3":
        if any(slot.core.l3 is None for slot in slots):
            raise PlacementError(
                "--l3-mode needs to know which CPUs share an L3 cache, and this host does not say; give a count"
            )
        domains = group(slots, l3_of)
    elif request.mode == "package":
        domains = group(slots, package_of)
    else:
        # Without NUMA the whole host counts as one node; otherwise CPUs without a node have no memory of their own.
        placed = [slot for slot in slots if slot.core.node is not None]
        domains = group(placed, node_of) if placed else [slots]
    if request.fill:
        return domains
    size = min(map(len, domains))
    return [domain[:size] for domain in domains]


def equal(slots: list[Slot], count: int, request: Request, keep_order: bool = False) -> list[Chunk]:
    """Return `count` pieces, as large as they can be while all are equal and none cuts up a node needlessly.

    There must be at least `count` slots.
    """
    if request.cross == "allow" or keep_order or (count == 1 and request.cross != "never"):
        if request.fill:
            return partition.split_evenly(slots, count)
        return partition.cut(slots, len(slots) // count)[:count]
    domains = group(slots, node_of)
    chunks = _largest(domains, count, request)
    return _fill(domains, chunks) if request.fill else _in_order(chunks, slots)


def _largest(domains: list[Domain], count: int, request: Request) -> list[Chunk]:
    """Pieces inside nodes; fewer than nodes also of whole nodes of a package, or of whole packages: the largest."""
    best = partition.largest_inside([len(domain) for domain in domains], count)
    chunks = inside(domains, count, best, False, request.close)
    if request.cross == "never" or count >= len(domains):
        return chunks
    packages = group([domain[0] for domain in domains], package_of)
    by_package = [[d for d in domains if package_of(d[0]) == package_of(p[0])] for p in packages]
    levels: list[list[list[Domain]]] = [by_package]
    if count < len(by_package):
        levels.append([[[slot for domain in nodes for slot in domain] for nodes in by_package]])
    for groups in levels:
        size = partition.largest_run(groups, count, above=best)
        if size:
            best = size
            found = [partition.runs(nodes, size) for nodes in groups]
            counts = partition.share([len(f) for f in found], count, range(len(found)), request.close)
            chosen = [run for f, number in zip(found, counts, strict=True) for run in f[:number]]
            chunks = [[slot for domain in run for slot in domain][:size] for run in chosen]
    return chunks


def fixed(slots: list[Slot], count: int | None, size: int, by_cpu: bool, request: Request) -> list[Chunk]:
    """Return `count` pieces of a given size (None: as many as fit): in nodes first, then in packages, then anywhere.

    Fewer come back when there is no room. Without a count, pieces cross nodes only where no node can hold one.
    """
    chunks: list[Chunk] = []
    left = slots
    for key in (node_of, package_of, lambda _: None) if request.cross != "never" else (node_of,):
        missing = None if count is None else count - len(chunks)
        chunks += inside(group(left, key), missing, size, by_cpu, request.close)
        if chunks and (count is None or len(chunks) == count):
            break
        used = {slot.core for chunk in chunks for slot in chunk}
        left = [slot for slot in slots if slot.core not in used]
    return chunks


def _fill(domains: Sequence[Domain], chunks: list[Chunk]) -> list[Chunk]:
    """Hand the unused slots of each domain to the instances that lie in it."""
    result: list[Chunk] = []
    homes = [sorted({place for place, d in enumerate(domains) if not set(d).isdisjoint(chunk)}) for chunk in chunks]
    for place, domain in enumerate(domains):
        tenants = [chunk for chunk, home in zip(chunks, homes, strict=True) if home == [place]]
        if tenants:
            result += partition.split_evenly(domain, len(tenants))
    result += [[slot for place in home for slot in domains[place]] for home in homes if len(home) > 1]
    return _in_order(result, [slot for domain in domains for slot in domain])


def _in_order(chunks: list[Chunk], slots: Sequence[Slot]) -> list[Chunk]:
    place = {slot.core: index for index, slot in enumerate(slots)}
    return sorted(chunks, key=lambda chunk: place[chunk[0].core])


def _too_few(pool: Pool, request: Request, size: int, by_cpu: bool, found: int) -> PlacementError:
    unit = "CPUs" if by_cpu and (request.smt or request.cpus) else "cores"
    have = sum(len(slot.cpus) for slot in pool.slots) if by_cpu else len(pool.slots)
    asked = f"{request.ninstances} instances" if request.ninstances else "an instance"
    room = f"only {found} fit" if found else "none fits"
    inside_nodes = " inside single NUMA nodes (--skip-cross-node-cores)" if request.cross == "never" else ""
    return PlacementError(
        f"{asked} of {size} {unit} can't be placed{inside_nodes}: {have} {unit} can be used, {room}; "
        f"ask for fewer or smaller instances{_more(pool)}"
    )


def _more(pool: Pool) -> str:
    return f", or add the {pool.slower} slower cores with --use-e-cores" if pool.slower else ""
