"""What failed: crashes, refused arguments and errors, LAPACK's info."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from cpulens.analyze.findings.finding import ERROR, WARNING, Evidence, Finding, times
from cpulens.analyze.findings.ledger import Ledger, named

if TYPE_CHECKING:
    from cpulens.analyze.findings.thresholds import Thresholds

_CRASHES: Final = {"SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGSEGV", "SIGSYS"}
#: PyTorch hands every argument to every primitive; oneDNN remarks on those that one doesn't use.
_HARMLESS: Final = "unused primitive execution argument"
_INFO: Final = re.compile(r",\s*(-?\d+)\)?(?:\s+CNR:|\s*$)")
_SHOWN: Final = 3


def crash(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """The process died by a signal: the last kernel that finished, and what is known of the next."""
    for instance, facts in ledger.instances.items():
        name = _signal(facts.get("exit_code"))
        if name is None:
            continue
        begun = [note for note in facts.get("notes", []) if note.startswith("oneMKL calls that began")]
        last = _last(ledger, instance)
        evidence = [Evidence(f"the process ended by {name} (exit code {facts['exit_code']})")]
        if last is not None:
            evidence.append(Evidence(f"the last kernel that finished: {named(last)}", (last["line"],)))
        evidence += [Evidence(note) for note in begun]
        yield Finding(
            code="crash",
            severity=ERROR,
            title=f"The process was ended by {name}" + (f" ({instance})" if instance else ""),
            evidence=tuple(evidence),
            cost_ms=None,
            next_step=_after_a_crash(name, bool(begun)),
        )


def _signal(exit_code: Any) -> str | None:
    if not isinstance(exit_code, int) or exit_code <= 128:
        return None
    try:
        name = signal.Signals(exit_code - 128).name
    except ValueError:
        return None
    return name if name in _CRASHES else None


def _last(ledger: Ledger, instance: str | None) -> dict[str, Any] | None:
    import polars as pl

    runs = ledger.executions
    if instance is not None:
        runs = runs.filter((pl.col("instance") == instance) | pl.col("instance").str.starts_with(f"{instance}/"))
    if not len(runs):
        return None
    row = runs.sort("seq").row(-1, named=True)
    text = ledger.records.filter(pl.col("text") == row["text"]).row(0, named=True)
    return {**text, "line": row["line"]}


def _after_a_crash(name: str, begun: bool) -> str:
    if name == "SIGKILL":
        return (
            "Something killed it from outside, most often the kernel when memory ran out (dmesg shows it) or a job "
            "scheduler: look at its memory before looking at kernels."
        )
    if begun:
        return "The call that began and did not end is the suspect: run it alone with the same sizes."
    return (
        "A line is printed when a kernel ends, so the suspect is what came next. Record again with "
        "--onednn ON_CREATION: a creation without an execution after it names the problem. For SIGILL try "
        "ONEDNN_MAX_CPU_ISA=AVX2."
    )


def failed_calls(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """Errors, and arguments that a library refused."""
    import polars as pl

    message = pl.col("message").fill_null("")
    bad = ledger.records.filter(
        (pl.col("event") == "error") | ((pl.col("event") == "check") & ~message.str.contains(_HARMLESS, literal=True))
    )
    evidence = [Evidence(_failure(row), (row["line"],)) for row in bad.sort("line").head(_SHOWN).iter_rows(named=True)]
    errors = [note for note in ledger.facts.get("notes", []) if "oneMKL reported an error" in note]
    evidence += [Evidence(note, tuple(map(int, re.findall(r"line (\d+)", note)[:1]))) for note in errors[:_SHOWN]]
    if not evidence:
        return
    count = int(bad["calls"].sum()) + len(errors)
    yield Finding(
        code="failed-call",
        severity=ERROR,
        title=f"{times(count, 'call')} into the libraries failed",
        evidence=tuple(evidence),
        cost_ms=None,
        next_step=(
            "The line says what was refused: correct the shapes, types or layouts that the framework was given. "
            "A program that goes on after it computes on something else than it asked for."
        ),
        numbers={"calls": count},
    )


def _failure(row: dict[str, Any]) -> str:
    where = f" ({row['source']})" if row["source"] else ""
    what = f"{row['primitive']}: " if row["primitive"] else ""
    often = f", {row['calls']:,} times" if row["calls"] > 1 else ""
    return f"{what}{row['message']}{where}{often}"


def lapack(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """LAPACK calls that came back with info ≠ 0, their last argument."""
    import polars as pl

    calls = ledger.records.filter((pl.col("component") == "lapack") & (pl.col("event") == "exec"))
    found = []
    for row in calls.iter_rows(named=True):
        info = _INFO.search(row["raw"] or "")
        if info and int(info[1]) != 0:
            found.append((row, int(info[1])))
    if not found:
        return
    found.sort(key=lambda one: one[0]["line"])
    worst = min(info for _, info in found)
    yield Finding(
        code="lapack-info",
        severity=ERROR if worst < 0 else WARNING,
        title=f"{times(sum(row['calls'] for row, _ in found), 'LAPACK call')} did not succeed (info ≠ 0)",
        evidence=tuple(
            Evidence(f"{named(row)}: info = {info}, {_meaning(row['primitive'], info)}", (row["line"],))
            for row, info in found[:_SHOWN]
        ),
        cost_ms=None,
        next_step=(
            "An argument has a value that the routine refuses: check sizes and leading dimensions."
            if worst < 0
            else "The result is not what was asked for: check info in the program; the matrix may be singular, not "
            "positive definite, or the iteration may not converge."
        ),
        numbers={"calls": sum(row["calls"] for row, _ in found)},
    )


def _meaning(routine: str, info: int) -> str:
    if info < 0:
        return f"argument {-info} is wrong"
    if re.search(r"getr[fs]|gesv", routine or ""):
        return f"the factor has a zero at place {info} of its diagonal: the matrix is singular"
    if re.search(r"po(trf|sv|trs)", routine or ""):
        return f"the leading minor of order {info} is not positive definite"
    return "the computation failed or did not converge"
