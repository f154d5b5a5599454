"""What the doctor concludes, from facts written by hand: each trap with its sentence, and silence without one."""

from __future__ import annotations

from typing import Any

import pytest

from cpulens.backends.findings import findings, usable_cpus

GNU = {"family": "GNU", "path": "/a/libgomp.so.1", "threads": 4, "proc_bind": "false", "places": 0}
INTEL = {**GNU, "family": "Intel", "path": "/b/libiomp5.so"}


def facts(**changes: Any) -> dict[str, Any]:
    """A quiet host: two nodes of four CPUs, everything allowed, nothing set but a request for huge pages."""
    quiet: dict[str, Any] = {
        "imports": [],
        "cpus_allowed_before_imports": None,
        "machine": {
            "cpus_allowed": "0-7",
            "cpus_online": "0-7",
            "quota_cpus": None,
            "cpus_isolated": "",
            "nodes": [
                {"node": 0, "cpus": "0-3", "has_memory": True, "memory_bytes": 1 << 30},
                {"node": 1, "cpus": "4-7", "has_memory": True, "memory_bytes": 1 << 30},
            ],
            "groups": [],
            "notes": [],
        },
        "processor": {"notes": [], "amx": "granted", "amx_reason": "granted"},
        "tuning": {
            "governors": {"performance": "0-7"},
            "turbo": True,
            "transparent_huge_pages": "always",
            "numa_balancing": False,
        },
        "runtimes": [],
        "runtime_conflict": "",
        "allocators": {"loaded": [], "preloaded": [], "preload_failed": []},
        "variables": [],
    }
    for name, value in changes.items():
        quiet[name] = {**quiet[name], **value} if isinstance(value, dict) else value
    return quiet


def variables(**values: str) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def test_a_quiet_host_gets_no_word() -> None:
    assert findings(facts()) == []
    assert findings(facts(runtimes=[GNU], variables=variables(OMP_NUM_THREADS="8", OMP_PROC_BIND="false"))) == []


CASES: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "two runtimes": (
        {"runtimes": [GNU, INTEL], "runtime_conflict": "2 OpenMP runtimes are loaded"},
        *("problem", "openmp-conflict", "2 OpenMP runtimes"),
    ),
    "two copies of one": (
        {"runtimes": [GNU, {**GNU, "path": "/c"}], "runtime_conflict": "2 copies of one OpenMP runtime are loaded"},
        *("advice", "openmp-conflict", "2 copies"),
    ),
    "a preloaded runtime beside GNU's": (
        {
            "runtimes": [INTEL, GNU],
            "runtime_conflict": "2 OpenMP runtimes are loaded",
            "variables": variables(LD_PRELOAD="/b/libiomp5.so"),
        },
        *("advice", "openmp-preloaded", "serves the callers of GNU's too"),
    ),
    "threads above the allowed CPUs": (
        {"runtimes": [{**GNU, "threads": 9}]},
        *("problem", "oversubscription", "9 threads where 8 can run at once"),
    ),
    "threads above the quota": (
        {"runtimes": [GNU], "machine": {"quota_cpus": 2.5}, "variables": variables(OMP_NUM_THREADS="4")},
        *("problem", "oversubscription", "4 threads where 2 can run at once"),
    ),
    "a count above the CPUs, nothing loaded": (
        {"variables": variables(MKL_NUM_THREADS="64")},
        *("problem", "oversubscription", "MKL_NUM_THREADS=64 asks for more threads than can run at once here (8)"),
    ),
    "a count that is none": (
        {"variables": variables(OMP_NUM_THREADS="all")},
        *("problem", "bad-value", "OMP_NUM_THREADS=all is not a number of threads"),
    ),
    "a quota, no count": (
        {"machine": {"quota_cpus": 2.0}},
        *("problem", "quota", "a quota of 2 CPUs holds over 8 allowed CPUs"),
    ),
    "binding with two runtimes": (
        {"runtimes": [GNU, INTEL], "variables": variables(OMP_PROC_BIND="close")},
        *("problem", "bind-two-runtimes", "OMP_PROC_BIND=close makes GNU's OpenMP bind the main thread"),
    ),
    "binding with a preloaded runtime": (
        {"variables": variables(OMP_PLACES="cores", LD_PRELOAD="/x/libiomp5.so")},
        *("problem", "bind-two-runtimes", "OMP_PLACES=cores"),
    ),
    "binding with one runtime": (
        {"variables": variables(GOMP_CPU_AFFINITY="0-3")},
        *("advice", "bind-main-thread", "child processes inherit that"),
    ),
    "KMP_AFFINITY with its runtime": (
        {"runtimes": [INTEL], "variables": variables(KMP_AFFINITY="granularity=fine,compact,1,0")},
        *("problem", "kmp-affinity", "leaves the main thread on one CPU"),
    ),
    "KMP_AFFINITY without it": (
        {"variables": variables(KMP_AFFINITY="compact")},
        *("advice", "kmp-affinity", "KMP_AFFINITY=compact"),
    ),
    "one CPU": ({"machine": {"cpus_allowed": "3"}}, "problem", "one-cpu", "may use one CPU (3) of 8"),
    "CPUs lost while loading": (
        {
            "machine": {"cpus_allowed": "0"},
            "cpus_allowed_before_imports": "0-7",
            "imports": [{"module": "torch", "error": None}],
        },
        *("problem", "affinity-changed", "loading torch changed the CPUs of this process from 0-7 to 0"),
    ),
    "isolated CPUs": ({"machine": {"cpus_isolated": "6-9"}}, "advice", "isolated", "CPUs 6-7 are isolated"),
    "a node without memory": (
        {
            "machine": {
                "nodes": [
                    {"node": 0, "cpus": "0-3", "has_memory": True, "memory_bytes": 1},
                    {"node": 1, "cpus": "4-7", "has_memory": False, "memory_bytes": 0},
                ]
            }
        },
        *("advice", "no-memory", "node 1 has CPUs but no memory"),
    ),
    "huge pages off": ({"tuning": {"transparent_huge_pages": "never"}}, "advice", "huge-pages", "are off"),
    "huge pages not asked for": (
        {"tuning": {"transparent_huge_pages": "madvise"}, "variables": variables(THP_MEM_ALLOC_ENABLE="0")},
        *("advice", "huge-pages", "only to programs that ask"),
    ),
    "NUMA balancing over two nodes": (
        {"tuning": {"numa_balancing": True}},
        *("advice", "numa-balancing", "spans 2 nodes"),
    ),
    "a preload that failed": (
        {"allocators": {"loaded": [], "preloaded": [], "preload_failed": ["/x/libtcmalloc.so"]}},
        *("problem", "preload", "LD_PRELOAD names /x/libtcmalloc.so, which is not loaded"),
    ),
    "two allocators": (
        {
            "allocators": {
                "loaded": [],
                "preloaded": ["/x/libtcmalloc.so.4", "/y/libjemalloc.so.2"],
                "preload_failed": [],
            }
        },
        *("problem", "two-allocators", "libtcmalloc.so.4, libjemalloc.so.2"),
    ),
    "a governor": (
        {"tuning": {"governors": {"performance": "0-3", "powersave": "4-7"}}},
        *("advice", "governor", "CPUs 4-7 run under the frequency governor powersave"),
    ),
    "no turbo": ({"tuning": {"turbo": False}}, "advice", "turbo", "turbo is off"),
    "AMX refused": (
        {"processor": {"amx": "refused", "amx_reason": "the kernel has not granted AMX: because", "notes": []}},
        *("problem", "amx", "the kernel has not granted AMX: because"),
    ),
    "a capability that crashes": (
        {"processor": {"notes": ["ATEN_CPU_CAPABILITY=avx512 asks for more: its kernels will crash"], "amx": "absent"}},
        *("problem", "instruction-set", "its kernels will crash"),
    ),
    "a word that is no level": (
        {"variables": variables(ONEDNN_VERBOSE="OFF")},
        *("problem", "bad-value", "ONEDNN_VERBOSE=OFF is no level"),
    ),
    "no primitive cache": (
        {"variables": variables(ONEDNN_PRIMITIVE_CACHE_CAPACITY="0")},
        *("problem", "primitive-cache", "primitive cache is off"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_trap_has_its_word(case: str) -> None:
    changes, severity, code, words = CASES[case]
    found = {finding.code: finding for finding in findings(facts(**changes))}
    assert code in found, found
    assert found[code].severity == severity
    assert words in found[code].sentence


SILENT: dict[str, dict[str, Any]] = {
    "a governor that a virtual machine doesn't show": {"tuning": {"governors": None, "turbo": None}},
    "affinity that is reset": {"runtimes": [INTEL], "variables": variables(KMP_AFFINITY="reset,compact,1,0")},
    "affinity that is off": {"runtimes": [INTEL], "variables": variables(KMP_AFFINITY="disabled")},
    "NUMA balancing on one node": {"tuning": {"numa_balancing": True}, "machine": {"cpus_allowed": "0-3"}},
    "one CPU of one": {"machine": {"cpus_allowed": "0", "cpus_online": "0"}},
    "huge pages asked of glibc": {
        "tuning": {"transparent_huge_pages": "madvise"},
        "variables": variables(GLIBC_TUNABLES="glibc.malloc.hugetlb=1"),
    },
    "a list of counts": {"variables": variables(OMP_NUM_THREADS="4,2")},
    "a host that says nothing": {
        "machine": {"cpus_allowed": None, "cpus_online": None, "nodes": [], "cpus_isolated": None},
        "tuning": dict.fromkeys(("governors", "turbo", "transparent_huge_pages", "numa_balancing")),
    },
}


@pytest.mark.parametrize("case", SILENT)
def test_what_is_in_order_gets_no_word(case: str) -> None:
    assert findings(facts(**SILENT[case])) == []


def test_problems_come_first() -> None:
    found = findings(facts(tuning={"turbo": False}, machine={"cpus_allowed": "3"}))
    assert [finding.severity for finding in found] == ["problem", "advice"]


@pytest.mark.parametrize(
    ("allowed", "quota", "expected"),
    [("0-7", None, 8), ("0-7", 2.5, 2), ("0-1", 8.0, 2), ("0-7", 0.5, 1), (None, 3.0, 3), (None, None, None)],
)
def test_usable_cpus(allowed: str | None, quota: float | None, expected: int | None) -> None:
    assert usable_cpus({"cpus_allowed": allowed, "quota_cpus": quota}) == expected


def test_threads_of_a_runtime_that_bound_the_main_thread_are_not_too_many() -> None:
    changed = facts(
        machine={"cpus_allowed": "0"},
        cpus_allowed_before_imports="0-7",
        imports=[{"module": "torch", "error": None}],
        runtimes=[{**GNU, "threads": 8}],
    )
    assert [finding.code for finding in findings(changed)] == ["affinity-changed"]
