"""Which libraries are preloaded into the instances: torch's choice, except where it is known to break."""

from __future__ import annotations

import os
from typing import NamedTuple

from run_cpu import libraries

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

#: Each of these makes libgomp bind the main thread when it is loaded; libiomp5 beside it then sees one CPU.
BINDS_THREADS = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY")


class Preloads(NamedTuple):
    """What is put in front of LD_PRELOAD, and what was left out."""

    paths: tuple[str, ...] = ()  #: in the order of LD_PRELOAD: OpenMP, then the allocator
    allocator: str = ""  #: family in force, ours or the user's; "": the program's own
    openmp: str = ""  #: "iomp5" when libiomp5 is preloaded, by us or by the user
    reasons: tuple[str, ...] = ()  #: why something was or was not taken
    warnings: tuple[str, ...] = ()  #: what was asked for and can't be had


def choose_preloads(args: argparse.Namespace, environ: Mapping[str, str], root: str = "/") -> Preloads:
    """Return what to preload on the host at `root`; each library is first tried in a child process on this host."""
    reasons: list[str] = []
    warnings: list[str] = []
    openmp = _openmp(args, environ, root, reasons, warnings)
    allocator = _allocator(args, environ, root, reasons, warnings)
    paths = tuple(path for _, path in (openmp, allocator) if path)
    return Preloads(paths, allocator[0], openmp[0], tuple(reasons), tuple(warnings))


def binding_variables(environ: Mapping[str, str]) -> list[str]:
    """Return the user's variables that bind OpenMP threads, as ``NAME=value``."""
    return [f"{name}={environ[name]}" for name in BINDS_THREADS if environ.get(name, "false").lower() != "false"]


def _openmp(
    args: argparse.Namespace, environ: Mapping[str, str], root: str, reasons: list[str], warnings: list[str]
) -> tuple[str, str]:
    """(``iomp5`` or nothing, path to preload or nothing)."""
    own = [
        path for path in libraries.preloaded(environ) if os.path.basename(path).startswith(libraries.OPENMP_RUNTIMES)
    ]
    if own:
        reasons.append(f"no OpenMP runtime is added: yours, {own[0]}, is preloaded already")
        return ("iomp5" if "iomp5" in own[0] else ""), ""
    if args.disable_iomp or args.omp_runtime == "default":
        return "", ""
    asked = args.omp_runtime == "intel"
    binding = binding_variables(environ)
    if binding:
        text = f"libiomp5 is not preloaded: with {binding[0]} set all its threads would end up on one CPU"
        (warnings if asked else reasons).append(text)
        return "", ""
    path = _usable("iomp5", environ, root, reasons)
    if path is None and asked:
        warnings.append("libiomp5 was asked for and is not installed (pip install intel-openmp, on x86-64)")
    return ("iomp5", path) if path else ("", "")


def _allocator(
    args: argparse.Namespace, environ: Mapping[str, str], root: str, reasons: list[str], warnings: list[str]
) -> tuple[str, str]:
    """(family or nothing, path to preload or nothing)."""
    for own in libraries.preloaded(environ):
        name = os.path.basename(own)
        if name.startswith(libraries.ALLOCATORS):
            asked = wished_allocator(args) in libraries.NAMES and wished_allocator(args) not in name
            (warnings if asked else reasons).append(f"no allocator is added: yours, {own}, is preloaded already")
            return next((family for family in libraries.NAMES if family in name), "another"), ""
    wish = wished_allocator(args)
    if wish == "default":
        return "", ""
    families = ("tcmalloc", "jemalloc") if wish == "auto" else (wish,)
    for family in families:
        path = _usable(family, environ, root, reasons)
        if path:
            return family, path
    text = f"{' and '.join(families)} can't be preloaded or are not installed: the program's own allocator stays"
    if wish == "auto":
        reasons.append(text)
    else:
        warnings.append(
            f"{wish} was asked for and is not installed, or does not load: the program's own allocator stays"
        )
    return "", ""


def wished_allocator(args: argparse.Namespace) -> str:
    """Return the allocator that the options name: ``auto``, ``default`` or a family."""
    if args.memory_allocator:
        return str(args.memory_allocator)
    flags = {"tcmalloc": args.enable_tcmalloc, "jemalloc": args.enable_jemalloc, "default": args.use_default_allocator}
    return next((name for name, given in flags.items() if given), "auto")


def _usable(family: str, environ: Mapping[str, str], root: str, reasons: list[str]) -> str | None:
    """Return the first library of a family that loads; those of another host can't be tried here."""
    for path in libraries.find(family, environ, root):
        problem = libraries.unloadable([path]) if root == "/" else ""
        if ":" in path or " " in path:
            problem = f"{path} can't stand in LD_PRELOAD, where colons and blanks separate"
        if not problem:
            return path
        reasons.append(f"not preloaded: {problem}")
    return None
