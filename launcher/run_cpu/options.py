"""Every option of the launcher, in groups, as rows: names, what argparse is told, and the help.

Torch's ``run_cpu`` and ``ipexrun`` spell the same thing in several ways; all of them are names of one option here, and
each name with hyphens also exists with underscores.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    Row = tuple[tuple[str, ...], dict[str, Any]]


def _flag(*names: str, help: str) -> Row:
    return names, {"action": "store_true", "help": help}


def _count(*names: str, help: str, metavar: str = "N") -> Row:
    """A whole number; -1 (torch's default) and 0 (ipexrun's) mean: not given."""
    return names, {"type": int, "default": -1, "metavar": metavar, "help": help}


def _text(*names: str, help: str, metavar: str, default: str | None = None) -> Row:
    return names, {"default": default, "metavar": metavar, "help": help}


def _choice(*names: str, choices: tuple[str, ...], help: str, default: str | None = None) -> Row:
    return names, {"choices": choices, "default": default, "help": help}


_PROGRAM: list[Row] = [
    _flag("-m", "--module", help="PROGRAM is the name of a Python module, as after python -m"),
    _flag("--no-python", help="start an executable PROGRAM itself, even when its name ends in .py"),
]

_INSTANCES: list[Row] = [
    _count("--ninstances", help="exactly N instances of equal size"),
    _count("--ncores-per-instance", help="N cores each (N CPUs with --use-logical-core); as many instances as fit"),
    _flag("--latency-mode", help="as many instances as fit, 4 cores each"),
    _flag("--throughput-mode", help="one instance on each NUMA node"),
    _flag("--multi-instance", help="the same as --throughput-mode, unless a count is given"),
    _flag("--l3-mode", help="one instance on each group of cores that share an L3 cache (a CCX on AMD)"),
    _flag("--package-mode", "--socket-mode", help="one instance on each package (socket)"),
    _count("--rank", metavar="R", help="plan all instances, start only instance R"),
    _text("--instance-idx", metavar="LIST", help="plan all instances, start only these, such as 0-3,8; -1: all"),
]

_CORES: list[Row] = [
    _text(
        "--core-list",
        "--cores-list",
        metavar="LIST",
        help="use exactly these CPUs, in this order: 0-3,8; +0-3 counts among the CPUs allowed",
    ),
    _text(
        "--node-id", "--nodes-list", metavar="LIST", help="use these NUMA nodes only; +0,1 counts among those allowed"
    ),
    _flag(
        "--use-logical-core",
        "--use-logical-cores",
        help="use all hardware threads of a core (SMT); they stay in one instance. Default: one CPU a core",
    ),
    _flag("--use-e-cores", help="on hybrid processors, use the slower cores as well. Default: the fast ones only"),
    _flag(
        "--skip-cross-node-cores",
        "--bind-numa-node",
        help="never let an instance cross NUMA nodes; refuse the plan instead",
    ),
    _flag("--allow-cross-node", help="cut all cores into equal runs, across nodes where it comes so"),
    _flag("--fill", help="hand leftover cores of a node to its instances; they may differ in size then"),
    _choice(
        "--strategy",
        choices=("scatter", "close"),
        default="scatter",
        help="instances that need not all nodes: spread over them (scatter, the default), or fill the first (close)",
    ),
]

_BINDING: list[Row] = [
    _flag(
        "--membind", help="allow memory of the instance's nodes only; what does not fit is killed. Default: prefer it"
    ),
    _flag("--interleave", help="spread memory over the instance's nodes, page by page"),
    _flag("--hbm", help="prefer the high-bandwidth memory node nearest to the instance"),
    _flag("--disable-numactl", help="leave memory placement to the kernel; CPUs are bound"),
    _flag("--disable-taskset", help="with --disable-numactl: bind nothing, only plan and set variables"),
    _choice(
        "--multi-task-manager",
        choices=("auto", "none", "numactl", "taskset"),
        help="ipexrun's name for the same: auto and numactl bind CPUs and memory, taskset CPUs, none nothing",
    ),
]

_LIBRARIES: list[Row] = [
    _choice(
        "--memory-allocator",
        choices=("auto", "default", "tcmalloc", "jemalloc", "mimalloc"),
        help="allocator to preload; auto (the default): tcmalloc, else jemalloc, where installed; default: none",
    ),
    _flag("--enable-tcmalloc", help="the same as --memory-allocator tcmalloc"),
    _flag("--enable-jemalloc", help="the same as --memory-allocator jemalloc"),
    _flag("--use-default-allocator", help="the same as --memory-allocator default"),
    _choice(
        "--omp-runtime",
        choices=("auto", "default", "intel"),
        help="OpenMP runtime to preload; auto (the default): libiomp5 where installed; default: none",
    ),
    _flag("--disable-iomp", help="the same as --omp-runtime default"),
    _flag("--benchmark", help="settings of jemalloc that never give memory back, for steady measurements"),
]

_RUNNING: list[Row] = [
    _text(
        "--log-path",
        "--log-dir",
        metavar="DIR",
        default="",
        help="one log for each instance, plan.json and result.json there",
    ),
    _text(
        "--log-file-prefix", metavar="NAME", default="run", help="logs are called NAME_instance_0.log, … (default: run)"
    ),
    _choice(
        "--on-failure",
        choices=("kill", "wait"),
        default="kill",
        help="when an instance fails: stop the others (kill, the default) or let them end (wait)",
    ),
    _text("--grace", metavar="SECONDS", help="time between SIGTERM and SIGKILL (default: 5)"),
]

_PLAN: list[Row] = [
    _flag("--dry-run", help="show the plan, start nothing"),
    _flag("--json", help="with --dry-run: the plan as one JSON object"),
    _text("--plan-from", metavar="FILE", help="run a plan saved by --dry-run --json or --log-path"),
    _text("--sysroot", metavar="DIR", help="with --dry-run: plan for the host whose /sys and /proc are copied to DIR"),
]

GROUPS: list[tuple[str, str, list[Row]]] = [
    (
        "program",
        "A .py file runs under this Python, unbuffered; all else is started as it is.",
        _PROGRAM,
    ),
    ("instances", "Without any of these: one instance over all cores that may be used.", _INSTANCES),
    ("cores", "Which cores, and how instances may lie on them.", _CORES),
    ("binding", "Memory comes from the instance's own nodes, as long as they have some.", _BINDING),
    ("libraries", "What is preloaded. Variables and libraries that you set yourself are kept.", _LIBRARIES),
    ("running", "Standing by the instances until they end.", _RUNNING),
    ("plan", "Looking at the plan, saving it, running it elsewhere.", _PLAN),
]


def spellings(names: tuple[str, ...]) -> list[str]:
    """Return the names, each also with underscores in place of inner hyphens."""
    return list(dict.fromkeys(s for name in names for s in (name, "--" + name[2:].replace("-", "_")) if s != "--"))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add every group, PROGRAM and its arguments to `parser`."""
    for title, description, rows in GROUPS:
        group = parser.add_argument_group(title, description)
        for names, settings in rows:
            group.add_argument(*spellings(names), **settings)
    parser.add_argument("program", nargs="?", metavar="PROGRAM", help="file, command or module to start")
    parser.add_argument("program_args", nargs="...", metavar="ARGS", help="everything after it, passed on untouched")


def takes_value() -> dict[str, bool]:
    """Every spelling → whether a value follows it."""
    return {
        spelling: settings.get("action") != "store_true"
        for _, _, rows in GROUPS
        for names, settings in rows
        for spelling in spellings(names)
    }
