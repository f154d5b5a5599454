"""The variables of an instance, each with its reason."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from run_cpu.placement import Instance


class Variable(NamedTuple):
    """A variable to set, or one that stays as the user has it (`value` None)."""

    name: str
    value: str | None
    reason: str


#: Thread counts of the runtimes that inference on CPUs uses.
THREADS = {
    "OMP_NUM_THREADS": "OpenMP",
    "MKL_NUM_THREADS": "oneMKL",
    "OPENBLAS_NUM_THREADS": "OpenBLAS",
    "NUMEXPR_NUM_THREADS": "NumExpr",
}


def thread_variables(instance: Instance, environ: Mapping[str, str]) -> list[Variable]:
    """Return the thread counts: the instance's threads, unless the user set a count."""
    found = []
    for name, library in THREADS.items():
        if environ.get(name) and not _is_torchruns(name, environ):
            found.append(Variable(name, None, f"yours, {environ[name]}, is kept"))
        else:
            found.append(Variable(name, str(instance.threads), f"{library}: one thread on each CPU of the instance"))
    return found


def _is_torchruns(name: str, environ: Mapping[str, str]) -> bool:
    """Torchrun sets OMP_NUM_THREADS=1 by itself for several local ranks: nobody's wish."""
    return name == "OMP_NUM_THREADS" and environ[name] == "1" and "TORCHELASTIC_RUN_ID" in environ
