"""A row of a run made ready to run again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cpulens.analyze.summary import Row
from cpulens.measure.replay import mkl_call, onednn_call, problem
from cpulens.measure.replay.mkl_call import MklCall
from cpulens.measure.replay.onednn_call import OneDnnCall
from cpulens.measure.replay.problem import Unreplayable
from cpulens.measure.replay.timing import Times
from cpulens.measure.stream import available_bytes
from cpulens.native import mkl, onednn

#: Tensors, what fills them, and reordered copies.
_COPIES: Final = 3


@dataclass
class Item:
    """A problem on its way: its row of the run, what was read of it, the call, and its times."""

    row: Row
    columns: dict[str, Any]
    told: Any
    call: OneDnnCall | MklCall
    threads: int
    times: Times | None = None
    hot: Times | None = None
    untouched: Times | None = None


def prepare(columns: Mapping[str, Any]) -> tuple[Any, OneDnnCall | MklCall]:
    """What the columns say, and the call that runs it; raises `Unreplayable` or `BackendUnavailable`."""
    try:
        return _prepared(columns)
    except (ArithmeticError, LookupError, MemoryError, ValueError) as error:
        # A log is untrusted: what stands where a number belongs may be none, or one that nothing can hold.
        raise Unreplayable(f"its numbers are none that can be run ({error or type(error).__name__})") from None


def _prepared(columns: Mapping[str, Any]) -> tuple[Any, OneDnnCall | MklCall]:
    if columns["library"] == "mkl":
        told = mkl_call.read(columns)
        _check_memory(told.size_bytes)
        mkl.library()
        return told, MklCall(told)
    if columns["library"] != "onednn":
        raise Unreplayable(f"a record of {columns['library']}")
    read = problem.read(columns)
    _check_memory(read.size_bytes)
    onednn.library()
    return read, onednn_call.prepare(read, columns["implementation"])


def _check_memory(size_bytes: int) -> None:
    available = available_bytes()
    if available is not None and size_bytes * _COPIES > available:
        raise Unreplayable(f"its data take {size_bytes >> 20:,} MiB; {available >> 20:,} MiB are free")
