"""Which options contradict each other."""

from __future__ import annotations

from cpulens.errors import UsageError

#: Groups of which only one may be given.
ONE_OF = (
    ("latency_mode", "throughput_mode", "l3_mode", "package_mode", "ninstances"),
    ("latency_mode", "throughput_mode", "l3_mode", "package_mode", "ncores_per_instance"),
    ("rank", "instance_idx"),
    ("core_list", "node_id"),
    ("skip_cross_node_cores", "allow_cross_node"),
    ("interleave", "hbm", "disable_numactl"),
    ("interleave", "membind", "disable_numactl"),
    ("multi_task_manager", "disable_numactl"),
    ("multi_task_manager", "disable_taskset"),
    ("memory_allocator", "enable_tcmalloc", "enable_jemalloc", "use_default_allocator"),
    ("omp_runtime", "disable_iomp"),
    ("module", "no_python"),
)

#: Pairs that leave nothing to do for one of the two.
PAIRS = (
    ("multi_instance", "l3_mode"),
    ("multi_instance", "package_mode"),
    ("throughput_mode", "allow_cross_node"),
    ("l3_mode", "allow_cross_node"),
    ("package_mode", "allow_cross_node"),
    ("package_mode", "skip_cross_node_cores"),
    ("fill", "ncores_per_instance"),
    ("fill", "latency_mode"),
)

#: A saved plan says all of this already.
DECIDED_BY_A_PLAN = (
    *("ninstances", "ncores_per_instance", "latency_mode", "throughput_mode", "multi_instance", "l3_mode"),
    *("package_mode", "core_list", "node_id", "use_logical_core", "use_e_cores", "skip_cross_node_cores"),
    *("allow_cross_node", "fill", "membind", "interleave", "hbm", "disable_numactl", "disable_taskset"),
    *("multi_task_manager", "memory_allocator", "enable_tcmalloc", "enable_jemalloc", "use_default_allocator"),
    *("omp_runtime", "disable_iomp", "benchmark"),
)


def refuse_conflicts(given: set[str]) -> None:
    """Raise UsageError, naming both, when two of the options given can't go together.

    `given` holds their argparse names. A value that asks for the same thing twice is a contradiction as well: which
    of the two would count is nowhere said.
    """
    pairs = [(one, other) for group in ONE_OF for i, one in enumerate(group) for other in group[i + 1 :]]
    for one, other in [*pairs, *PAIRS]:
        if one in given and other in given:
            raise UsageError(f"{spelled(one)} and {spelled(other)} can't go together; give one of them")
    decided = [name for name in DECIDED_BY_A_PLAN if name in given]
    if "plan_from" in given and decided:
        raise UsageError(f"--plan-from and {spelled(decided[0])} can't go together: the saved plan says that already")
    for needed in ("json", "sysroot"):
        if needed in given and "dry_run" not in given:
            raise UsageError(f"--{needed} only goes with --dry-run; add it, or leave --{needed} out")


def spelled(name: str) -> str:
    """Return the option as the user writes it."""
    return "-m" if name == "module" else "--" + name.replace("_", "-")
