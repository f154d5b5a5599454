"""What of the facts a doctor has gathered is a problem, and what to do: pure, values in, sentences out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from cpulens.machine import cpulist


class Finding(NamedTuple):
    """`severity`: "problem" (it costs time or crashes) or "advice". `code` is stable, for scripts."""

    severity: str
    code: str
    sentence: str
    remedy: str


#: Values of OMP_PROC_BIND that bind threads.
_BINDS: Final = frozenset({"true", "close", "spread", "primary", "master"})
_KMP_FAMILIES: Final = frozenset({"Intel", "LLVM"})


def findings(facts: Mapping[str, Any]) -> list[Finding]:
    """Return what is to be said about gathered facts (`doctor.gather`), problems first."""
    found = [finding for check in _CHECKS for finding in check(facts)]
    return sorted(found, key=lambda finding: finding.severity != "problem")


def usable_cpus(machine: Mapping[str, Any]) -> int | None:
    """Return how many threads can run at once: the allowed CPUs, and no more than the quota; at least 1."""
    allowed = machine.get("cpus_allowed") or machine.get("cpus_online")
    count = len(cpulist.parse(allowed)) if allowed else None
    quota: float | None = machine.get("quota_cpus")
    if quota is None:
        return count
    most = max(1, math.floor(quota))
    return most if count is None else min(count, most)


def _environment(facts: Mapping[str, Any]) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in facts["variables"]}


def _runtimes(facts: Mapping[str, Any]) -> Iterator[Finding]:
    runtimes = facts["runtimes"]
    if facts["runtime_conflict"]:
        yield _several(facts)
    # A runtime that has bound the main thread still has the CPUs of before for its own threads.
    before = facts.get("cpus_allowed_before_imports")
    limit = usable_cpus({**facts["machine"], **({"cpus_allowed": before} if before else {})})
    for runtime in runtimes:
        threads = runtime["threads"]
        if threads and limit and threads > limit:
            sentence = f"{runtime['family']}'s OpenMP would run {threads} threads where {limit} can run at once"
            yield Finding("problem", "oversubscription", sentence, f"OMP_NUM_THREADS={limit}")


def _several(facts: Mapping[str, Any]) -> Finding:
    families = {runtime["family"] for runtime in facts["runtimes"]}
    if len(families) > 1 and _kmp_preloaded(_environment(facts)):
        return Finding(
            "advice",
            "openmp-preloaded",
            "the preloaded OpenMP runtime serves the callers of GNU's too; GNU's stays loaded without work, and still "
            "binds the main thread when OMP_PROC_BIND, OMP_PLACES or GOMP_CPU_AFFINITY is set",
            "leave those variables unset",
        )
    remedy = "take the packages from one distributor, or let one runtime serve all: run_cpu preloads it"
    return Finding("problem" if len(families) > 1 else "advice", "openmp-conflict", facts["runtime_conflict"], remedy)


def _kmp_preloaded(environ: Mapping[str, str]) -> bool:
    return any(name in environ.get("LD_PRELOAD", "") for name in ("libiomp5", "libomp"))


def _thread_variables(facts: Mapping[str, Any]) -> Iterator[Finding]:
    environ, limit = _environment(facts), usable_cpus(facts["machine"])
    counts = {}
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        first = environ.get(name, "").partition(",")[0].strip()
        if first.isdecimal():
            counts[name] = int(first)
        elif name in environ:
            yield Finding("problem", "bad-value", f"{name}={environ[name]} is not a number of threads", f"unset {name}")
    for name, count in counts.items():
        if limit and count > limit and not facts["runtimes"]:
            sentence = f"{name}={count} asks for more threads than can run at once here ({limit})"
            yield Finding("problem", "oversubscription", sentence, f"{name}={limit}")
    quota, allowed = facts["machine"].get("quota_cpus"), facts["machine"].get("cpus_allowed")
    if quota and allowed and quota < len(cpulist.parse(allowed)) and "OMP_NUM_THREADS" not in environ:
        sentence = (
            f"a quota of {quota:g} CPUs holds over {len(cpulist.parse(allowed))} allowed CPUs, and OpenMP and TBB "
            "count the CPUs, not the quota"
        )
        yield Finding("problem", "quota", sentence, f"OMP_NUM_THREADS={max(1, math.floor(quota))}, or run_cpu")


def _binding(facts: Mapping[str, Any]) -> Iterator[Finding]:
    environ = _environment(facts)
    families = {runtime["family"] for runtime in facts["runtimes"]}
    binds = [n for n in ("OMP_PLACES", "GOMP_CPU_AFFINITY") if environ.get(n)]
    if environ.get("OMP_PROC_BIND", "").partition(",")[0].strip().lower() in _BINDS:
        binds.insert(0, "OMP_PROC_BIND")
    kmp_preloaded = _kmp_preloaded(environ)
    if binds and (len(families) > 1 or kmp_preloaded):
        yield Finding(
            "problem",
            "bind-two-runtimes",
            f"{binds[0]}={environ[binds[0]]} makes GNU's OpenMP bind the main thread to one place when it is loaded; "
            "the other runtime then sees one CPU and runs one thread, or all of them on it",
            f"unset {' '.join(binds)}; bind the process instead (run_cpu, taskset)",
        )
    elif binds:
        yield Finding(
            "advice",
            "bind-main-thread",
            f"{binds[0]}={environ[binds[0]]} binds the main thread to one place, and child processes inherit that: "
            "data loaders share one core",
            f"unset {' '.join(binds)}; bind the process instead (run_cpu, taskset)",
        )
    affinity = environ.get("KMP_AFFINITY", "").lower()
    if affinity and "reset" not in affinity and not affinity.startswith(("none", "disabled")):
        severity = "problem" if families & _KMP_FAMILIES or kmp_preloaded else "advice"
        yield Finding(
            severity,
            "kmp-affinity",
            f"KMP_AFFINITY={environ['KMP_AFFINITY']} leaves the main thread on one CPU after its first parallel "
            "region, and child processes inherit that",
            f"KMP_AFFINITY=reset,{environ['KMP_AFFINITY']}",
        )


def _affinity(facts: Mapping[str, Any]) -> Iterator[Finding]:
    machine = facts["machine"]
    allowed, online = machine.get("cpus_allowed"), machine.get("cpus_online")
    before = facts.get("cpus_allowed_before_imports")
    if before and allowed != before:
        yield Finding(
            "problem",
            "affinity-changed",
            f"loading {', '.join(one['module'] for one in facts['imports'])} changed the CPUs of this process from "
            f"{before} to {allowed}: a binding variable acts when the OpenMP runtime is loaded",
            "unset OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY and KMP_AFFINITY",
        )
    elif allowed and online and len(cpulist.parse(allowed)) == 1 < len(cpulist.parse(online)):
        yield Finding(
            "problem",
            "one-cpu",
            f"this process may use one CPU ({allowed}) of {len(cpulist.parse(online))}",
            "look for a binding that it inherited: taskset -p, numactl --show, KMP_AFFINITY, OMP_PROC_BIND",
        )
    isolated = set(cpulist.parse(machine.get("cpus_isolated") or ""))
    if allowed and isolated & set(cpulist.parse(allowed)):
        both = cpulist.form(isolated & set(cpulist.parse(allowed)))
        yield Finding(
            "advice",
            "isolated",
            f"CPUs {both} are isolated from the scheduler: threads on them are not moved, and pile up",
            "leave them out, or bind each thread",
        )


def _memory(facts: Mapping[str, Any]) -> Iterator[Finding]:
    machine, tuning = facts["machine"], facts["tuning"]
    allowed = set(cpulist.parse(machine.get("cpus_allowed") or ""))
    used = [node for node in machine["nodes"] if allowed & set(cpulist.parse(node["cpus"]))]
    for node in used:
        if not node["has_memory"]:
            sentence = f"node {node['node']} has CPUs but no memory: all of theirs is remote"
            yield Finding("advice", "no-memory", sentence, "prefer CPUs of a node with memory")
    if tuning["transparent_huge_pages"] == "never":
        yield Finding(
            "advice",
            "huge-pages",
            "transparent huge pages are off: large weights take longer to fill and to read",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        )
    elif tuning["transparent_huge_pages"] == "madvise" and not _asks_for_huge_pages(_environment(facts)):
        yield Finding(
            "advice",
            "huge-pages",
            "huge pages go only to programs that ask for them, and none of the variables that ask is set",
            "THP_MEM_ALLOC_ENABLE=1 (PyTorch), GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
        )
    if tuning["numa_balancing"] and len(used) > 1:
        yield Finding(
            "advice",
            "numa-balancing",
            f"NUMA balancing is on, and this process spans {len(used)} nodes: pages move while it runs",
            "one instance for each node (run_cpu --throughput-mode), or sysctl kernel.numa_balancing=0",
        )
    for problem in facts["allocators"]["preload_failed"]:
        yield Finding(
            "problem",
            "preload",
            f"LD_PRELOAD names {problem}, which is not loaded: the dynamic linker leaves out what it can't load",
            "give the full path of a library for this processor",
        )
    names = list(dict.fromkeys(entry.rpartition("/")[2] for entry in facts["allocators"]["preloaded"]))
    if len(names) > 1:
        sentence = f"several allocators are preloaded ({', '.join(names)}): only the first one serves"
        yield Finding("problem", "two-allocators", sentence, "preload one")


def _asks_for_huge_pages(environ: Mapping[str, str]) -> bool:
    return (
        environ.get("THP_MEM_ALLOC_ENABLE", "0") not in ("", "0")
        or "hugetlb" in environ.get("GLIBC_TUNABLES", "")
        or "thp:always" in environ.get("MALLOC_CONF", "")
    )


def _frequency(facts: Mapping[str, Any]) -> Iterator[Finding]:
    for governor, cpus in (facts["tuning"]["governors"] or {}).items():
        if governor not in ("performance", "schedutil"):
            yield Finding(
                "advice",
                "governor",
                f"CPUs {cpus} run under the frequency governor {governor}: times vary, and short ones most",
                "cpupower frequency-set -g performance",
            )
    if facts["tuning"]["turbo"] is False:
        sentence = "turbo is off: times are steady, and longer than they could be"
        yield Finding("advice", "turbo", sentence, "switch it on where speed counts more than evenness")


def _kernels(facts: Mapping[str, Any]) -> Iterator[Finding]:
    processor = facts["processor"]
    for note in processor["notes"]:
        severity = "problem" if "crash" in note or "ignores" in note else "advice"
        yield Finding(severity, "instruction-set", note, "")
    if processor["amx"] == "refused":
        yield Finding("problem", "amx", processor["amx_reason"], "a newer kernel, or a sandbox that lets AMX through")
    environ = _environment(facts)
    for name in ("ONEDNN_VERBOSE", "DNNL_VERBOSE"):
        if environ.get(name, "").strip().lower() in ("off", "false", "no"):
            sentence = f"{name}={environ[name]} is no level: oneDNN knows none and 0, and prints with its default"
            yield Finding("problem", "bad-value", sentence, f"{name}=none, or unset it")
    if environ.get("ONEDNN_PRIMITIVE_CACHE_CAPACITY", environ.get("DNNL_PRIMITIVE_CACHE_CAPACITY")) == "0":
        sentence = "oneDNN's primitive cache is off: every kernel is built anew at each creation"
        yield Finding("problem", "primitive-cache", sentence, "unset ONEDNN_PRIMITIVE_CACHE_CAPACITY")


_CHECKS: Final = (_affinity, _runtimes, _thread_variables, _binding, _kernels, _memory, _frequency)
