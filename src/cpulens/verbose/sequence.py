"""What only the order of the records tells: regions, layers, iterations, what a graph partition holds, headers, pairs.

All of it hangs on a few records (markers, graph executions, sparse BEGIN and END, header lines), so only those are
looked at, and the answers are spans and single rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cpulens.verbose.columns import NO_START
from cpulens.verbose.header import Headers

ORDINARY: Final = 0
MARK: Final = 1
GRAPH_EXEC: Final = 2
HEADER: Final = 3
SPARSE_BEGIN: Final = 4
SPARSE_END: Final = 5
#: Not special themselves, but looked at when a graph execution follows.
PRIMITIVE_EXEC: Final = 8
STOP: Final = 9

#: Stamps are rounded to 2**-12 ms; a start may seem to lie that much before the graph's own.
_GRAIN_NS: Final = 500
_LOOK_BACK: Final = 4096


class Role(NamedTuple):
    """What a code means for the order: its role, and what that role needs to know."""

    role: int
    instance: str | None
    thread: int | None
    event: str
    name: str
    raw: str
    text: int


class Row(NamedTuple):
    """The columns of one record that a graph execution looks back at."""

    code: int
    duration_ms: float
    start_ns: int


class Span(NamedTuple):
    """Rows `first` to before `last` of one instance have this value."""

    first: int
    last: int
    instance: str | None
    value: str | int


@dataclass
class Order:
    """All that the order told."""

    regions: list[Span] = field(default_factory=list)
    layers: list[Span] = field(default_factory=list)
    iterations: list[Span] = field(default_factory=list)
    inner: set[int] = field(default_factory=set)
    paired: dict[int, tuple[int, int]] = field(default_factory=dict)
    ambiguous: list[Span] = field(default_factory=list)
    layers_ambiguous: list[Span] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    headers: Headers = field(default_factory=Headers)


@dataclass
class _State:
    stacks: dict[int | None, list[str]] = field(default_factory=dict)
    since: int = 0
    path: str | None = None
    ambiguous: bool = False
    layers: dict[int | None, str] = field(default_factory=dict)
    layer_since: int = 0
    iteration: int | None = None
    iteration_since: int = 0
    begun: list[tuple[str, int]] = field(default_factory=list)


class Walk:
    """Walk over the special records of one log in their order."""

    def __init__(self, roles: list[Role], rows: Callable[[int, int], Iterable[Row]]) -> None:
        self.order = Order()
        self._roles = roles
        self._rows = rows
        self._states: dict[str | None, _State] = {}

    def step(self, row: int, code: int) -> None:
        """Take one special record."""
        role = self._roles[code]
        state = self._states.setdefault(role.instance, _State())
        if role.role == HEADER:
            self.order.headers.add(role.raw, role.name, role.instance)
        elif role.role == GRAPH_EXEC:
            self._graph(row, role)
        elif role.role == SPARSE_BEGIN:
            state.begun.append((role.name, role.text))
        elif role.role == SPARSE_END:
            self._pair(row, role, state)
        elif role.event == "iteration":
            self._iteration(row, role.instance, state)
        elif role.event == "layer":
            self._layer(row, role, state)
        else:
            self._region(row, role, state)

    def finish(self, rows: int) -> Order:
        """Close what is still open at the end."""
        for instance, state in self._states.items():
            self._close_region(rows, instance, state)
            self._close_layer(rows, instance, state)
            if state.iteration is not None:
                self.order.iterations.append(Span(state.iteration_since, rows, instance, state.iteration))
            left = [name for stack in state.stacks.values() for name in stack]
            if left:
                self.order.notes.append(f"Regions still open at the end of the log: {', '.join(left)}.")
            if state.begun:
                names = ", ".join(name for name, _ in state.begun)
                self.order.notes.append(f"oneMKL calls that began and did not end, as in a crash inside: {names}.")
        return self.order

    def _iteration(self, row: int, instance: str | None, state: _State) -> None:
        if state.iteration is not None:
            self.order.iterations.append(Span(state.iteration_since, row, instance, state.iteration))
        state.iteration = 0 if state.iteration is None else state.iteration + 1
        state.iteration_since = row

    def _region(self, row: int, role: Role, state: _State) -> None:
        stack = state.stacks.setdefault(role.thread, [])
        if role.event == "begin":
            self._close_region(row, role.instance, state)
            stack.append(role.name)
        else:
            self._close_region(row + 1, role.instance, state)
            name = role.name or (stack[-1] if stack else "")  # beyond the limit of texts a marker has no name
            if name in stack:
                while stack.pop() != name:
                    pass
            else:
                self.order.notes.append(f"A region ends that did not begin: {role.name}.")
        if not stack:
            del state.stacks[role.thread]
        open_stacks = list(state.stacks.values())
        state.ambiguous = len(open_stacks) > 1
        state.path = "/".join(open_stacks[0]) if len(open_stacks) == 1 else None

    def _close_region(self, row: int, instance: str | None, state: _State) -> None:
        if row > state.since:
            if state.path is not None:
                self.order.regions.append(Span(state.since, row, instance, state.path))
            elif state.ambiguous:
                self.order.ambiguous.append(Span(state.since, row, instance, 0))
        state.since = row

    def _layer(self, row: int, role: Role, state: _State) -> None:
        """From here on what this thread runs belongs to the layer; an empty name: to none."""
        self._close_layer(row, role.instance, state)
        if role.name:
            state.layers[role.thread] = role.name
        else:
            state.layers.pop(role.thread, None)

    def _close_layer(self, row: int, instance: str | None, state: _State) -> None:
        if row > state.layer_since and state.layers:
            paths = list(state.layers.values())
            spans = self.order.layers if len(paths) == 1 else self.order.layers_ambiguous
            spans.append(Span(state.layer_since, row, instance, paths[0]))
        state.layer_since = row

    def _pair(self, row: int, role: Role, state: _State) -> None:
        """Join a sparse END, which has the time, to its BEGIN, which has the arguments."""
        for at in range(len(state.begun) - 1, -1, -1):
            if state.begun[at][0] == role.name:
                self.order.paired[row] = (state.begun.pop(at)[1], role.text)
                return

    def _graph(self, row: int, role: Role) -> None:
        """Find the primitives that a graph partition ran: they are printed right before it."""
        first = max(0, row - 64)
        wanted: list[int] | None = None
        while wanted is None:
            wanted = self._inside(row, first, role.instance, complete=first == 0 or row - first >= _LOOK_BACK)
            first = max(0, row - 4 * (row - first))
        self.order.inner.update(wanted)

    def _inside(self, row: int, first: int, instance: str | None, *, complete: bool) -> list[int] | None:
        """Give the rows inside; None when the look back ended before it could be said."""
        rows = list(self._rows(first, row + 1))
        graph = rows.pop()
        left_ms = graph.duration_ms
        found: list[int] = []
        for back, (code, duration_ms, start_ns) in enumerate(reversed(rows), 1):
            role = self._roles[code]
            if role.instance != instance:
                continue
            if role.role in (STOP, GRAPH_EXEC, MARK):
                return found
            if role.role != PRIMITIVE_EXEC:
                continue
            if graph.start_ns != NO_START and start_ns != NO_START:
                if start_ns >= graph.start_ns - _GRAIN_NS:
                    found.append(row - back)
                elif start_ns + duration_ms * 1e6 < graph.start_ns:
                    return found
            else:
                left_ms -= duration_ms
                if left_ms < 0:
                    return found
                found.append(row - back)
        return found if complete else None
