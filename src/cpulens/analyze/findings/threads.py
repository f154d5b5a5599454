"""Threads against the CPUs that they may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from cpulens.analyze.findings.finding import ADVICE, WARNING, Evidence, Finding, ms, percent, share_of
from cpulens.analyze.findings.ledger import Ledger

if TYPE_CHECKING:
    from cpulens.analyze.findings.thresholds import Thresholds

_TITLES: Final = {"onednn": "oneDNN", "mkl": "oneMKL"}
_VARIABLES: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_THREAD_LIMIT", "KMP_HW_SUBSET", "MKL_THREADING_LAYER")


def too_many(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """More threads than CPUs allowed, or than the CPU time granted."""
    for instance, facts in ledger.instances.items():
        allowed, quota = _allowed(facts), _quota(facts)
        most = min((limit for limit in (allowed, quota) if limit is not None), default=None)
        counts = {name: _threads(ledger, name, instance) for name in _TITLES}
        worst = {name: count for name, count in counts.items() if count and most is not None and count > most + 0.5}
        if not worst or most is None:
            continue
        by_quota = quota is not None and (allowed is None or quota < allowed)
        said = f"a quota of {quota:g} CPUs" if by_quota else f"{allowed} allowed CPUs"
        words = " and ".join(f"{_TITLES[name]} runs {count} threads" for name, count in worst.items())
        yield Finding(
            code="too-many-threads",
            severity=WARNING,
            title=f"{words} on {said}" + (f" ({instance})" if instance else ""),
            evidence=(Evidence(f"{words}; the process has {said}"), *_settings(facts)),
            cost_ms=None,
            next_step=(
                f"Set OMP_NUM_THREADS={max(int(most), 1)} (in PyTorch torch.set_num_threads), or start it with "
                "run_cpu, which plans threads and CPUs together; or allow it more CPUs."
            ),
            numbers={"threads": max(worst.values()), "cpus": most},
        )


def siblings(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """Two threads on the two halves of one core."""
    for instance, facts in ledger.instances.items():
        machine = facts.get("machine") or {}
        cores, allowed = machine.get("cores_allowed"), _allowed(facts)
        threads = max((_threads(ledger, name, instance) or 0 for name in _TITLES), default=0)
        if not isinstance(cores, int) or allowed is None or not cores < threads <= allowed:
            continue
        yield Finding(
            code="smt-siblings",
            severity=ADVICE,
            title=f"{threads} threads share {cores} cores" + (f" ({instance})" if instance else ""),
            evidence=(Evidence(f"{allowed} CPUs are allowed, on {cores} physical cores"), *_settings(facts)),
            cost_ms=None,
            next_step=(
                f"Compute kernels fill a core with one thread: try OMP_NUM_THREADS={cores} with OMP_PLACES=cores, or "
                "start it with run_cpu, which leaves siblings out."
            ),
            numbers={"threads": threads, "cores": cores},
        )


def one(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """A library computes on one thread where more CPUs are allowed."""
    import polars as pl

    for instance, facts in ledger.instances.items():
        allowed, quota = _allowed(facts), _quota(facts)
        most = min((limit for limit in (allowed, quota) if limit is not None), default=1.0)
        if most < 2 or len(ledger.instances) > 1:
            continue  # several processes share the CPUs, each may rightly have one
        for name, title in _TITLES.items():
            spent = float(ledger.kernels.filter(pl.col("library") == name)["counted_ms"].sum())
            share = share_of(spent, ledger.execution_ms)
            if _threads(ledger, name, instance) != 1 or share < thresholds.thread_share or _callers(ledger) > 1:
                continue
            yield Finding(
                code="one-thread",
                severity=WARNING,
                title=f"{title} computes on 1 thread, and {most:g} CPUs are allowed",
                evidence=(
                    Evidence(f"{ms(spent)} in {title}, {percent(share)} of the execution time, on 1 thread"),
                    *_settings(facts),
                ),
                cost_ms=spent * (1 - 1 / most),
                next_step=(
                    "Unless other work fills the CPUs: raise OMP_NUM_THREADS (MKL_NUM_THREADS for oneMKL alone; in "
                    "PyTorch torch.set_num_threads), or start several instances with run_cpu --ninstances."
                ),
                numbers={"threads": 1, "cpus": most, "share": share},
            )


def two_runtimes(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """Two OpenMP runtimes in one process: two pools of threads for the same CPUs."""
    for instance, facts in ledger.instances.items():
        paths = facts.get("openmp") or []
        if len(paths) < 2:
            continue
        names = [os.path.basename(path) for path in paths]
        yield Finding(
            code="two-openmp-runtimes",
            severity=WARNING,
            title=f"{len(paths)} OpenMP runtimes are loaded in one process: {', '.join(names)}"
            + (f" ({instance})" if instance else ""),
            evidence=tuple(Evidence(path) for path in paths),
            cost_ms=None,
            next_step=(
                "Each has its own threads, and the threads of one spin while the other computes. Let all use one: "
                "MKL_THREADING_LAYER=GNU beside a program on GNU's OpenMP, one LD_PRELOAD for all, or packages built "
                "on the same one; until then OMP_WAIT_POLICY=PASSIVE softens it."
            ),
            numbers={"runtimes": len(paths)},
        )


def _allowed(facts: dict[str, Any]) -> int | None:
    cpus = (facts.get("machine") or {}).get("cpus_allowed")
    return len(cpus) if cpus else None


def _quota(facts: dict[str, Any]) -> float | None:
    quota = (facts.get("machine") or {}).get("quota_cpus")
    return float(quota) if isinstance(quota, int | float) else None


def _threads(ledger: Ledger, library: str, instance: str | None) -> int | None:
    """Threads of a library: of oneDNN as its header says, of oneMKL the most that a call may use; None: not known."""
    import polars as pl

    if library == "mkl":
        calls = ledger.kernels.filter(pl.col("library") == "mkl", pl.col("threads").is_not_null())
        most = calls["threads"].max()
        return int(most) if isinstance(most, int) else None
    headers = ledger.libraries(library)
    mine = [one for one in headers if instance is None or _belongs(one.get("instance"), instance)]
    counts = [one["threads"] for one in mine if isinstance(one.get("threads"), int)]
    return max(counts) if counts else None


def _belongs(inner: str | None, instance: str) -> bool:
    return inner is not None and (inner == instance or inner.startswith(f"{instance}/"))


def _callers(ledger: Ledger) -> int:
    """From how many threads of the program oneMKL was called: they may fill the CPUs by themselves."""
    import polars as pl

    mkl = ledger.kernels.filter(pl.col("library") == "mkl").select("text").lazy()
    found = (
        ledger.trace.events.select("text", "thread")
        .join(mkl, on="text", how="semi")
        .select(pl.col("thread").n_unique())
    )
    return int(found.collect().item())


def _settings(facts: dict[str, Any]) -> list[Evidence]:
    environment = facts.get("environment") or {}
    told = [f"{name}={environment[name]}" for name in _VARIABLES if name in environment]
    return [Evidence("set: " + ", ".join(told))] if told else []
