"""Everything that decides how inference runs here, gathered as plain values: for `cpulens doctor` and for traces."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from cpulens.backends import allocators, blas, cpu, environment_trial, frameworks, openmp, pytorch, variables
from cpulens.backends import host as host_values
from cpulens.backends.findings import findings
from cpulens.backends.microarchitecture import microarchitecture
from cpulens.machine import cpulist

#: Backends that are asked for themselves, in the order of the report.
BACKENDS: Final = ("mkldnn", "mkl", "openmp", "nnpack", "kleidiai", "opt_einsum", "python_native")
#: Devices that are absent on a host for inference on processors: a line in all.
DEVICES: Final = ("cuda", "cudnn", "cusparselt", "miopen", "mps")


def snapshot(environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return what a trace keeps: machine, processor, tuning, and this process's OpenMP runtimes and allocators.

    `environ`: the environment of another process that is to be described instead, on this host; its runtimes and
    allocators are not known then, and left out. Standard library only; starts no child, loads nothing, and asks no
    runtime that would bind the calling thread (3 ms on 2 CPUs).
    """
    values: dict[str, Any] = {
        "machine": host_values.machine(),
        "processor": cpu.details(),
        "tuning": host_values.tuning(),
    }
    if environ is not None:
        return {**values, "variables": variables.relevant(environ)}
    found = openmp.runtimes()
    return {
        **values,
        "variables": variables.relevant(os.environ),
        "runtimes": [runtime._asdict() for runtime in found],
        "runtime_conflict": openmp.conflict(found),
        "allocators": allocators.allocators(os.environ),
        "pytorch": pytorch.version() if pytorch.loaded() is not None else None,
    }


def gather(imports: Sequence[str] = ()) -> dict[str, Any]:
    """Return all that the doctor reports, and its findings; for a process of its own.

    `imports`: modules to load first. Libraries that are not loaded are tried in children, and every OpenMP runtime is
    asked for its threads. A part that fails is told in `failures` and left out; nothing is raised.
    """
    before = _affinity()
    loaded = [load(name) for name in imports]
    failures: dict[str, str] = {}
    parts = _Parts(failures)
    libraries = ("onednn", "mkl", "openmp") if pytorch.loaded() is None else ()
    parts.take(lambda: environment_trial.prepare(libraries), None, "trial of libraries")
    facts: dict[str, Any] = {
        "imports": loaded,
        "cpus_allowed_before_imports": before if imports else None,
        "machine": parts.take(host_values.machine, _EMPTY_MACHINE, "machine"),
        "processor": parts.take(_processor, _EMPTY_PROCESSOR, "processor"),
        "tuning": parts.take(host_values.tuning, _EMPTY_TUNING, "tuning"),
        "runtimes": parts.take(lambda: [one._asdict() for one in openmp.runtimes(ask=True)], [], "OpenMP"),
        "runtime_conflict": parts.take(lambda: openmp.conflict(openmp.runtimes(ask=False)), "", "OpenMP"),
        "blas": parts.take(lambda: [one._asdict() for one in blas.libraries()], [], "BLAS"),
        "allocators": parts.take(lambda: allocators.allocators(os.environ), _EMPTY_ALLOCATORS, "allocators"),
        "variables": parts.take(lambda: variables.as_values(variables.variables()), [], "variables"),
        "preload_file": parts.take(variables.preload_file, "", "preload file"),
        "pytorch": {"version": pytorch.version(), "loaded": pytorch.loaded() is not None},
        "backends": {name: parts.take(_details_of(name), _NO_DETAILS, name) for name in BACKENDS},
        "devices": {name: parts.take(_details_of(name), _NO_DETAILS, name) for name in DEVICES},
        "frameworks": parts.take(frameworks.as_values, [], "frameworks"),
        "failures": failures,
    }
    facts["findings"] = [finding._asdict() for finding in findings(facts)]
    return facts


_EMPTY_MACHINE: Final[dict[str, Any]] = {
    **dict.fromkeys(("cpus_allowed", "memory_nodes_allowed", "cpus_online", "quota_cpus", "cpus_isolated")),
    "nodes": [],
    "groups": [],
    "notes": [],
}
_EMPTY_PROCESSOR: Final[dict[str, Any]] = {"notes": [], "amx": "absent", "amx_reason": "", "usable": [], "unusable": {}}
_EMPTY_TUNING: Final = dict.fromkeys(("governors", "turbo", "transparent_huge_pages", "numa_balancing", "smt", "swap"))
_EMPTY_ALLOCATORS: Final[dict[str, Any]] = {"loaded": [], "preloaded": [], "preload_failed": []}
_NO_DETAILS: Final = {"available": False, "reason": "it could not be looked at"}


class _Parts:
    """Takes parts one by one, so that one that fails doesn't take the others with it."""

    def __init__(self, failures: dict[str, str]) -> None:
        self.failures = failures

    def take(self, ask: Callable[[], Any], otherwise: Any, name: str) -> Any:
        try:
            return ask()
        except Exception as error:  # a hostile host may make any of them fail in its own way
            self.failures[name] = f"{type(error).__name__}: {error}"
            return otherwise


def _processor() -> dict[str, Any]:
    return {**cpu.details(), "microarchitecture": microarchitecture()._asdict()}


def _details_of(name: str) -> Callable[[], Any]:
    return lambda: importlib.import_module(f"cpulens.backends.{name}").details()


def _affinity() -> str | None:
    try:
        return cpulist.form(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return None


#: What makes a framework load the part that holds its kernels, where an import alone does not.
_WAKE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "openvino": lambda module: module.Core().get_property("CPU", "FULL_DEVICE_NAME"),
}


def load(name: str) -> dict[str, Any]:
    """Import a module, and make it load its kernels; returns its version, or the error that it raised."""
    with _stdout_to_stderr():
        try:
            module = importlib.import_module(name)
            if name in _WAKE:
                _WAKE[name](module)
        except (Exception, SystemExit) as error:  # a module may raise anything at import
            text = " ".join(str(error).split()) or "no message"
            return {"module": name, "version": None, "error": f"{type(error).__name__}: {text}"}
    version = getattr(module, "__version__", None)
    return {"module": name, "version": None if version is None else str(version), "error": None}


@contextlib.contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """What a module prints at import must not get into our own output."""
    try:
        kept = os.dup(1)
    except OSError:
        yield
        return
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
