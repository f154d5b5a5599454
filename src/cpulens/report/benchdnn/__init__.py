"""Command lines of benchdnn, oneDNN's own benchmark, that run the problems of a trace again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cpulens.report.benchdnn import attributes, grammar
from cpulens.report.benchdnn.drivers import DRIVERS
from cpulens.report.benchdnn.layouts import Inexpressible
from cpulens.report.benchdnn.problem import Problem

__all__ = ["Command", "command", "grammar"]

#: What lines do not say, and benchdnn's defaults stand for.
_UNSAID: Final = {
    "lrn": "alpha and k",
    "bnorm": "epsilon",
    "gnorm": "epsilon",
    "lnorm": "epsilon",
    "sum": "the factors of the sources",
    "rnn": "scales",
}


class Command(NamedTuple):
    """One run of one driver. `unsaid`: what the line did not say, so that benchdnn's own choice stands; or ""."""

    driver: str
    arguments: tuple[str, ...]
    unsaid: str


def command(columns: Mapping[str, Any], *, exact: bool = False) -> Command | str:
    """The command line for a text's columns, or the reason why there is none, as a sentence without a full stop.

    By default a layout that the program left to the library is left to it again (``any``); `exact` says the one that
    ran. What is given is right by oneDNN's documented grammar.
    """
    why_not = _outside(columns)
    if why_not:
        return why_not
    problem, driver = Problem.of(columns, exact=exact), DRIVERS[columns["primitive"]]
    try:
        options = [*_engine(columns.get("engine") or "cpu"), *driver.options(problem)]
        options += attributes.options(columns.get("attributes") or "")
        arguments = [f"--{driver.name}", *options, _known(driver.shapes(problem))]
        grammar.parse(arguments)
    except (Inexpressible, ValueError) as reason:
        return str(reason)
    return Command(driver.name, tuple(arguments), _unsaid(driver.name, columns))


def _outside(columns: Mapping[str, Any]) -> str:
    """Why benchdnn can't know this kind of record at all; "" where it may."""
    primitive = columns.get("primitive") or "a record without a primitive"
    if columns.get("library") == "mkl":
        return "a call of oneMKL; benchdnn runs oneDNN"
    if columns.get("component") == "graph":
        return (
            "a graph partition; benchdnn --graph takes the graph itself, which ONEDNN_GRAPH_DUMP=subgraph writes "
            "while the program runs"
        )
    if primitive == "gemm_api":
        return "a direct call of dnnl_gemm, which makes no primitive; benchdnn has no driver for it"
    return "" if primitive in DRIVERS else f"benchdnn has no driver for {primitive}"


def _engine(name: str) -> list[str]:
    if name in ("cpu2gpu", "gpu2cpu"):
        return ["--engine=gpu", f"--cross-engine={name}"]
    return [f"--engine={name}"]


def _known(shapes: str) -> str:
    if "*" in shapes:
        raise Inexpressible(f"the sizes {shapes} are given at run time, and the line does not say them")
    if not shapes:
        raise Inexpressible("the line does not say the sizes")
    return shapes


def _unsaid(driver: str, columns: Mapping[str, Any]) -> str:
    found = [_UNSAID[driver]] if driver in _UNSAID else []
    quantized = columns.get("attributes") or ""
    if "attr-scales" in quantized or "attr-zero-points" in quantized:
        found.append("values of scales and zero points")
    return ", ".join(found)
