"""Which of the processes on this host we are, when torchrun, mpirun or srun started several of them."""

from __future__ import annotations

import os
from typing import NamedTuple

from cpulens.errors import UsageError
from cpulens.machine.limits import status_lists

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Starter → (variable of the local rank, variable of the number of local ranks), innermost starter first.
VARIABLES = {
    "torchrun": ("LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    "Open MPI": ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    "Intel MPI or MPICH": ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    "MVAPICH": ("MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"),
    "PALS": ("PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"),
}


class LocalRank(NamedTuple):
    """A process among those that one starter started on this host."""

    rank: int
    size: int
    starter: str
    variable: str


def local_rank(environ: Mapping[str, str]) -> LocalRank | None:
    """Return our local rank, or None when nobody says that there are several.

    Only variables that exist in pairs count: a rank without a size says nothing about a share. Raises UsageError when
    they contradict each other.
    """
    for starter, (rank_name, size_name) in VARIABLES.items():
        if environ.get(rank_name) and environ.get(size_name):
            return _checked(environ[rank_name], environ[size_name], starter, rank_name, size_name)
    tasks = _slurm_tasks_variable(environ)
    if environ.get("SLURM_LOCALID") and tasks:
        size = _slurm_tasks(environ[tasks], environ.get("SLURM_NODEID", "0"))
        return _checked(environ["SLURM_LOCALID"], size, "srun", "SLURM_LOCALID", tasks)
    return None


def _slurm_tasks_variable(environ: Mapping[str, str]) -> str | None:
    """Return the variable that says how many tasks srun started here.

    A batch script's one process has SLURM_LOCALID and the job's counts as well, but is no step.
    """
    names = ["SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"]
    if environ.get("ENVIRONMENT") == "BATCH" and not environ.get("SLURM_STEP_ID"):
        names = names[:1]
    return next((name for name in names if environ.get(name)), None)


def _checked(rank: str, size: str, starter: str, rank_name: str, size_name: str) -> LocalRank | None:
    if not (rank.isdecimal() and size.isdecimal() and int(rank) < int(size)):
        raise UsageError(
            f"{rank_name}={rank} and {size_name}={size} can't be right: a rank is a number below the size; "
            f"unset them when {starter} did not start this process"
        )
    return LocalRank(int(rank), int(size), starter, rank_name) if int(size) > 1 else None


def _slurm_tasks(text: str, node: str) -> str:
    """Tasks on the node of that number, from Slurm's run lengths such as ``2(x3),1``."""
    counts: list[str] = []
    for part in text.split(","):
        count, _, repeat = part.partition("(x")
        times = repeat.rstrip(")") or "1"
        counts += [count] * (int(times) if times.isdecimal() else 1)
    return counts[int(node)] if node.isdecimal() and int(node) < len(counts) else counts[0]


def is_bound_by_starter(rank: LocalRank, cpus: frozenset[int], pid: int | None = None) -> bool:
    """Whether the starter gave this rank its own CPUs already, so that nothing is left to divide.

    The starter is the nearest ancestor without the rank's variable: it has more CPUs than we have if, and only if, it
    bound us. (srun and mpirun bind, torchrun does not.)
    """
    marker = rank.variable.encode() + b"="
    ancestor = os.getppid() if pid is None else pid
    while ancestor > 1:
        try:
            with open(f"/proc/{ancestor}/environ", "rb") as file:
                inside = any(item.startswith(marker) for item in file.read().split(b"\0"))
        except OSError:
            inside = False  # another user's: the starter's daemon
        if not inside:
            return status_lists(f"/proc/{ancestor}/status").get("Cpus_allowed_list", cpus) > cpus
        ancestor = _parent(ancestor)
    return False


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
