"""The variables of an instance, each with its reason. What the user has set stays as it is, and is said."""

from __future__ import annotations

from typing import NamedTuple

from run_cpu.preload import binding_variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from run_cpu.placement import Instance
    from run_cpu.preload import Preloads

#: Thread counts of OpenMP, oneMKL, OpenBLAS and NumExpr.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")

#: Pins each thread, one a core first. `reset` gives the main thread its whole mask back after each parallel region;
#: without it, whatever the program starts later (DataLoader workers) inherits one CPU.
KMP_AFFINITY = "reset,granularity=fine,compact,1,0"

#: Torch's settings of jemalloc, and ipexrun's for benchmarks, which never give memory back to the kernel.
MALLOC_CONF = "oversize_threshold:1,background_thread:true,metadata_thp:auto"
MALLOC_CONF_BENCHMARK = (
    "oversize_threshold:1,background_thread:false,metadata_thp:always,dirty_decay_ms:-1,muzzy_decay_ms:-1"
)


class Variable(NamedTuple):
    """A variable to set, or the user's own that stays (`value` None)."""

    name: str
    value: str | None
    reason: str


def variables_of(
    instance: Instance,
    preloads: Preloads,
    environ: Mapping[str, str],
    bound: bool,
    smt: bool = False,
    benchmark: bool = False,
) -> list[Variable]:
    """Return the variables of one instance.

    `bound`: it is bound to its CPUs; `smt`: to all threads of its cores, where OpenMP threads are better left free, as
    torch's launcher leaves them; `benchmark`: jemalloc keeps what it has got.
    """
    found = [
        *_threads(instance, environ),
        *_preload(preloads, environ),
        *_intel_openmp(instance, preloads, environ, bound and not smt),
    ]
    if preloads.allocator == "jemalloc":
        conf = MALLOC_CONF_BENCHMARK if benchmark else MALLOC_CONF
        found += _unless_set("MALLOC_CONF", conf, "jemalloc: large blocks in arenas of their own, huge pages", environ)
    if bound and environ.get("MPI_LOCALNRANKS"):
        found += _unless_set("I_MPI_PIN", "0", "Intel MPI must not pin what is bound already", environ)
    return found


def _unless_set(name: str, value: str, reason: str, environ: Mapping[str, str]) -> list[Variable]:
    if environ.get(name):
        return [Variable(name, None, f"kept as you have set it ({environ[name]})")]
    return [Variable(name, value, reason)]


def _threads(instance: Instance, environ: Mapping[str, str]) -> list[Variable]:
    found: list[Variable] = []
    for name in THREADS:
        value, reason = str(instance.threads), "one thread for each CPU of the instance"
        if instance.threads < len(instance.cpus):
            reason = "no more threads than the CPU time that the cgroup grants"
        if _is_torchruns(name, environ):
            found.append(Variable(name, value, f"{reason}, instead of the 1 that torchrun sets by itself"))
        else:
            found += _unless_set(name, value, reason, environ)
    return found


def _is_torchruns(name: str, environ: Mapping[str, str]) -> bool:
    """Torchrun sets OMP_NUM_THREADS=1 for several local ranks when it is not set: nobody's wish."""
    return name == "OMP_NUM_THREADS" and environ.get(name) == "1" and bool(environ.get("TORCHELASTIC_RUN_ID"))


def _preload(preloads: Preloads, environ: Mapping[str, str]) -> list[Variable]:
    kept = [Variable("LD_PRELOAD", None, reason) for reason in preloads.reasons]
    if not preloads.paths:
        return kept
    own = environ.get("LD_PRELOAD", "")
    reason = "preloaded as torch's launcher would; tried in a child process before"
    return [*kept, Variable("LD_PRELOAD", ":".join([*preloads.paths, *([own] if own else [])]), reason)]


def _intel_openmp(instance: Instance, preloads: Preloads, environ: Mapping[str, str], pin: bool) -> Iterable[Variable]:
    if preloads.openmp != "iomp5":
        return
    yield from _unless_set("KMP_BLOCKTIME", "1", "threads sleep 1 ms after a parallel region, not 200", environ)
    if pin and len(instance.cpus) == instance.threads and not binding_variables(environ):
        reason = "one thread a core; reset gives the main thread its CPUs back, so that its children have them"
        yield from _unless_set("KMP_AFFINITY", KMP_AFFINITY, reason, environ)


def kept_notes(variables: Iterable[Variable], instance: Instance, environ: Mapping[str, str]) -> list[str]:
    """Return a note for each of the user's variables that changes what the plan would have done."""
    notes = []
    for variable in variables:
        own = environ.get(variable.name, "")
        if variable.value is not None or variable.name == "LD_PRELOAD":
            continue
        note = f"{variable.name}={own} is yours and stays"
        if variable.name in THREADS:
            if own == str(instance.threads):
                continue
            note += ", more than it has CPUs" if own.isdecimal() and int(own) > len(instance.cpus) else ""
            note += f"; the plan has {instance.threads} threads for instance {instance.number}"
        elif variable.name == "KMP_AFFINITY" and "reset" not in own and own != "disabled":
            note += "; without reset in it, what the program starts later inherits the one CPU of its main thread"
        notes.append(note)
    for setting in binding_variables(environ):
        notes.append(
            f"{setting} is yours and stays; libgomp then binds the main thread to one place as soon as it is loaded, "
            "and what the program starts later stays there (OMP_PROC_BIND=false avoids that)"
        )
    return notes
