"""What of this host we may use: affinity and cpuset, memory nodes, CPU time.

The kernel keeps a task's affinity inside its cpuset, so one mask says both. CPU time is limited by every cgroup above
us; the smallest limit counts (``Documentation/admin-guide/cgroup-v2.rst``, ``cpu.max``;
``Documentation/scheduler/sched-bwc.rst`` for v1).
"""

from __future__ import annotations

import os
from typing import NamedTuple

from cpulens.machine import cpulist
from cpulens.machine.sysfs import read_text


class Limits(NamedTuple):
    """What may be used; None: the host does not say, all of it."""

    cpus: frozenset[int] | None
    memory_nodes: frozenset[int] | None
    quota_cpus: float | None  #: CPU time a second, in CPUs


def read_limits(root: str = "/") -> Limits:
    """Return the limits of this process, or those recorded below a root in ``proc/self`` and ``sys/fs/cgroup``."""
    status = status_lists(os.path.join(root, "proc/self/status"))
    cpus = status.get("Cpus_allowed_list")
    if root == "/":
        cpus = frozenset(os.sched_getaffinity(0))
    return Limits(cpus, status.get("Mems_allowed_list"), read_quota(root))


def status_lists(path: str) -> dict[str, frozenset[int]]:
    """Return the ``*_allowed_list`` fields of a ``/proc/<pid>/status``."""
    lists = {}
    for line in read_text(path).splitlines():
        name, _, value = line.partition(":")
        if name in ("Cpus_allowed_list", "Mems_allowed_list"):
            try:
                lists[name] = frozenset(cpulist.parse(value.strip()))
            except ValueError:
                continue
    return lists


def memory_policy(pid: int | str = "self") -> str:
    """Return the memory policy of a process as ``default``, ``preferred:0``, ``preferred-many:0-1``, ``bind:0``, …

    "" where it can't be read. ``Documentation/filesystems/proc.rst`` describes ``numa_maps``.
    """
    try:
        with open(f"/proc/{pid}/numa_maps", encoding="ascii", errors="replace") as file:
            line = file.readline()
    except OSError:
        return ""
    # 55d0c0a00000 prefer (many):0-1 file=/usr/bin/python3 …
    _, _, rest = line.strip().partition(" ")
    policy = rest.replace("prefer (many)", "preferred-many").split(" ")[0]
    return "preferred" + policy.removeprefix("prefer") if policy.startswith("prefer:") else policy


def read_quota(root: str = "/") -> float | None:
    """Return the smallest CPU quota of our cgroup and all its ancestors, in CPUs; None: unlimited."""
    mount = os.path.join(root, "sys/fs/cgroup")
    path_v1 = path_v2 = "/"
    for line in read_text(os.path.join(root, "proc/self/cgroup")).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            path_v2 = path
        elif "cpu" in controllers.split(","):
            path_v1 = path
    quotas = [_quota_v2(folder) for base in (mount, f"{mount}/unified") for folder in _ancestors(base, path_v2)]
    for name in ("cpu,cpuacct", "cpuacct,cpu", "cpu"):
        quotas += [_quota_v1(folder) for folder in _ancestors(f"{mount}/{name}", path_v1)]
    known = [quota for quota in quotas if quota is not None]
    return min(known) if known else None


def _ancestors(base: str, path: str) -> list[str]:
    """Folders from the cgroup up to the mount; a container sees its own cgroup at the mount, whatever `path` says."""
    parts = [part for part in path.split("/") if part and part != ".."]
    return [os.path.join(base, *parts[:count]) for count in range(len(parts), -1, -1)]


def _quota_v2(folder: str) -> float | None:
    words = read_text(f"{folder}/cpu.max").split()
    if len(words) == 2 and words[0].isdecimal() and words[1].isdecimal() and int(words[1]) > 0:
        return int(words[0]) / int(words[1])
    return None


def _quota_v1(folder: str) -> float | None:
    quota = read_text(f"{folder}/cpu.cfs_quota_us").strip()
    period = read_text(f"{folder}/cpu.cfs_period_us").strip()
    if quota.isdecimal() and period.isdecimal() and int(period) > 0:
        return int(quota) / int(period)
    return None
