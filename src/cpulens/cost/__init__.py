"""What one execution costs: arithmetic operations, and bytes that must move. Pure arithmetic on the columns of a text.

The conventions, the same for all problems (each formula's source stands in the docstring of its function):

- An operation is one addition, subtraction, multiplication, division, comparison or maximum, or one call of an
  elementary function (exp, tanh, erf, …); a fused multiply-add is two. BLAS and LAPACK count as their own literature
  does: multiplications and additions only.
- Operations are those of the mathematical problem: no zeros that pad, neither around an image nor inside a blocked
  layout; Winograd's and Strassen's shortcuts are not taken off.
- Bytes are the least that must move: every element that is needed is read once, every result written once, in its data
  type and as its layout stores it (padded blocks included). A cache line that a store fetches first is not counted,
  as in the STREAM benchmark.

What a line does not say is unknown: None, never 0. A 0 is known: a copy does no arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cpulens.cost import onednn
from cpulens.cost.mkl import call
from cpulens.cost.tally import UNKNOWN, Cost

__all__ = ["UNKNOWN", "Cost", "cost_of"]


def cost_of(text: Mapping[str, Any]) -> Cost:
    """Give the cost of one execution of a text: a mapping of the columns that the trace calls `texts`.

    Columns that are missing are not known. Only executions (`event` exec) have a cost. Never raises on what a log may
    hold: sizes beyond all measure give UNKNOWN.
    """
    if text.get("event") != "exec":
        return UNKNOWN
    library, component = text.get("library"), text.get("component")
    try:
        if library == "onednn" and component == "primitive":
            return onednn.primitive(text).finite()
        if library == "onednn" and component == "graph":
            return onednn.partition(text).finite()
        if library == "mkl":
            return call(text).finite()
    except OverflowError:
        pass
    return UNKNOWN
