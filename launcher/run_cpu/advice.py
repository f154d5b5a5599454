"""What of the host's settings speaks against even measurements. Only read, never changed."""

from __future__ import annotations

from cpulens.machine import cpulist
from cpulens.machine.sysfs import Sysfs, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from run_cpu.job import Job


def advice(job: Job, root: str = "/") -> list[str]:
    """Return a sentence on the frequency governor, huge pages and NUMA balancing, where they matter."""
    sysfs = Sysfs(root)
    cpus = sorted({cpu for process in job.processes for cpu in process.instance.cpus})
    found = []
    slow: dict[str, list[int]] = {}
    for cpu in cpus:
        governor = sysfs.text(f"devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")
        if governor and governor != "performance":
            slow.setdefault(governor, []).append(cpu)
    for governor, members in slow.items():
        found.append(
            f"frequency governor {governor} on CPUs {cpulist.form(members)}: times vary; performance is steadier"
        )
    pages = sysfs.text("kernel/mm/transparent_hugepage/enabled")
    if "[madvise]" in pages:
        found.append(
            "transparent huge pages are given to programs that ask: THP_MEM_ALLOC_ENABLE=1 makes torch ask, "
            "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 glibc, MALLOC_CONF=thp:always jemalloc"
        )
    elif "[never]" in pages:
        found.append("transparent huge pages are off; large models take longer to fill and to read")
    across = any(len(process.instance.memory_nodes) > 1 for process in job.processes)
    if across and read_text(f"{root.rstrip('/')}/proc/sys/kernel/numa_balancing").strip() not in ("", "0"):
        found.append("automatic NUMA balancing is on and may move pages of an instance that spans nodes while it runs")
    return found
