"""Logs → a Trace: every way in, and the words for what can't be read."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from cpulens.errors import LogError
from cpulens.trace import run_file
from cpulens.verbose import source
from cpulens.verbose.events import PLAIN_ROWS, Events
from cpulens.verbose.kernel_plain import feed as feed_plain
from cpulens.verbose.keys import MAX_TEXTS
from cpulens.verbose.parts import Log, Part
from cpulens.verbose.reading import Reading, Tally
from cpulens.verbose.sequence import MARK, SPARSE_END, Order, Role, Span, Walk
from cpulens.verbose.texts import Texts
from cpulens.verbose.visible import visible

if TYPE_CHECKING:
    from cpulens.trace import Trace

Progress = Callable[[int, int | None], None]
LogSource = str | os.PathLike[str] | bytes | IO[bytes]

#: From this size on numpy pays for its import, and from that one on a second process for its start.
_NUMPY_BYTES: Final = 3 << 20
_WORKERS_BYTES: Final = 64 << 20


class _Way(NamedTuple):
    """How to read: the options of `load` that one log needs."""

    follow: bool | float
    workers: int | None
    preamble: bytes
    own: int
    progress: Progress | None


def load(
    *logs: LogSource,
    facts: dict[str, Any] | None = None,
    follow: bool | float = False,
    strict: bool = False,
    workers: int | None = None,
    preamble: bytes = b"",
    own: int = 0,
    progress: Progress | None = None,
) -> Trace:
    """Read logs and run files into one Trace.

    `logs`: paths of raw logs (plain, gzip, zstd, xz, UTF-16) or run files, told apart by content; "-" for standard
    input; bytes; or file objects of bytes. With several, each is an instance under its file's name.
    `facts`: merged into the trace's facts; its notes come first. `follow`: keep reading while the file grows, until
    interrupted (True) or until it has not grown for so many seconds. `strict`: raise LogError at the first piece that
    was not understood. `workers`: processes that read one file of over 64 MB; default one per usable CPU, at most 8.
    `preamble`: lines printed before these, such as a header or open regions: they count for nothing but are known.
    `own`: pieces of the program's own text that were parted from the log before. `progress`: called with the bytes
    read so far and the size where it is known.

    Raises LogError, with what was seen and what to do, for a missing, empty or binary file, a folder, and a log
    without any verbose record; TraceFileError for a run file that can't be read.
    """
    if not logs:
        raise LogError("No log was named. Give the path of a log or a run file, or - for standard input.")
    traces = [_load(log, _Way(follow, workers, preamble, own, progress)) for log in logs]
    trace = traces[0] if len(traces) == 1 else _merged(_names(logs), traces)
    if strict:
        _strict(trace)
    if facts:
        notes = [*facts.get("notes", []), *trace.facts.get("notes", [])]
        trace.facts = {**trace.facts, **facts, "notes": notes}
    return trace


def _load(log: LogSource, way: _Way) -> Trace:
    if isinstance(log, bytes | bytearray | memoryview):
        return _read(source.from_bytes(bytes(log)), None, way)
    if not isinstance(log, str | os.PathLike):
        return _read(source.from_file(log, str(getattr(log, "name", "the given file"))), None, way)
    if log == "-":
        return _read(source.standard_input(), None, way)
    path = Path(log)
    if path.exists() and not path.is_file() and not path.is_dir():
        return _read(source.from_pipe(path), None, way)
    if run_file.recognise(source.start_of(path)):
        from cpulens.trace import Trace

        return Trace.open(path)
    try:
        stream = source.opened(path)
    except LogError as error:
        raise LogError(f"{path}: {error}") if str(path) not in str(error) else error from error
    wait = None
    if way.follow is not False:
        from cpulens.verbose.follow import Follower

        wait = Follower(path, stream.file, None if way.follow is True else float(way.follow))
    return _read(stream, wait, way)


def _read(stream: source.Stream, wait: Callable[[], bool] | None, way: _Way) -> Trace:
    backing, texts = None, Texts()
    with closing(stream), _no_collection():
        size = stream.size_bytes or 0
        several = way.workers is None or way.workers > 1
        if wait is None and stream.path is not None and several and size >= (1 if way.workers else _WORKERS_BYTES):
            from cpulens.verbose import workers

            wanted = workers.count(way.workers)
            parts, backing = workers.read(stream.path, size, wanted, texts.prepare, way.progress)
        else:
            parts = [_part(stream, wait, way.progress)]
    log = Log(parts)
    try:
        with _no_collection():
            return _trace(stream, log, texts, way)
    finally:
        log.close()
        if backing is not None:
            backing.close()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Stop looking for cycles of garbage: many small objects are made and kept, none of them in a cycle."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _part(stream: source.Stream, wait: Callable[[], bool] | None, progress: Progress | None) -> Part:
    """Read all of a stream in this process, from some size on with numpy."""
    reading = Reading()
    feed: Callable[[bytes], None] = partial(feed_plain, reading)
    read_bytes = 0
    for block in source.blocks(stream.file, wait=wait):
        if feed.__class__ is partial and (stream.size_bytes or read_bytes) >= _NUMPY_BYTES:
            from cpulens.verbose.kernel_numpy import Kernel

            feed = Kernel(reading).feed
        feed(block.data)
        reading.tally.cut += block.cut
        read_bytes += len(block.data)
        if progress is not None:
            progress(read_bytes, stream.size_bytes)
    return Part.of(reading)


def _trace(stream: source.Stream, log: Log, texts: Texts, way: _Way) -> Trace:
    from cpulens.trace import Trace

    tally = log.tally()
    tally.own += way.own
    roles = [texts.role(entry) for entry in log.entries()]
    order = _order(log, roles, texts, way.preamble)
    if tally.records == 0 or all(role.role == MARK for role in roles):
        damage = f" Also, {stream.damage}." if stream.damage else ""
        raise LogError(nothing(stream.name, tally, markers=bool(roles)) + damage)
    paired = {row: texts.pair(*pair) for row, pair in order.paired.items()}
    events, backing = Events(log, roles, order, paired).table()
    facts = _facts(log, tally, order, roles, texts.beyond)
    if stream.damage:
        facts["notes"].append(f"Only the beginning was read: {stream.damage}.")
    return Trace(texts.frame(), events, facts, backing=backing)


def _order(log: Log, roles: list[Role], texts: Texts, preamble: bytes) -> Order:
    """Walk over the records whose order tells something; the preamble goes first, and counts for nothing."""
    before = Reading()
    if preamble:
        feed_plain(before, preamble)
    own_roles = [texts.role(entry) for entry in before.keys.entries]
    walk = Walk([*roles, *own_roles], log.some_rows)
    for code in before.columns.codes:
        if MARK <= own_roles[code].role <= SPARSE_END:
            walk.step(0, code + len(roles))
    special = [MARK <= role.role <= SPARSE_END for role in roles]
    for row, code in _special_rows(log, special):
        walk.step(row, code)
    return walk.finish(log.rows)


def _special_rows(log: Log, special: list[bool]) -> Iterator[tuple[int, int]]:
    """Give number and code of the records that tell something by their order."""
    if not any(special):
        return
    if log.rows > PLAIN_ROWS:
        from cpulens.verbose.events_numpy import rows_of

        yield from rows_of(log, special)
        return
    for row, code_start, _, (codes, *_) in log.chunks():
        for at, code in enumerate(codes, row):
            if special[code + code_start]:
                yield at, code + code_start


def _facts(log: Log, tally: Tally, order: Order, roles: list[Role], beyond: int) -> dict[str, Any]:
    notes = list(order.notes)
    beyond += sum(part.beyond for part in log.parts)
    if beyond:
        notes.append(
            f"At least {beyond:,} records have texts beyond the limit of {MAX_TEXTS:,} distinct ones: "
            "they are counted and timed by primitive and implementation, without their problem."
        )
    if tally.cut:
        notes.append(
            f"{tally.cut:,} lines are longer than {source.MAX_LINE_BYTES:,} bytes; only so much of each was read."
        )
    notes += [f"oneMKL reported an error in line {line + 1}: {visible(text)}" for line, text in tally.errors]
    facts: dict[str, Any] = {
        "libraries": order.headers.libraries,
        "lines": {"read": tally.read, "records": tally.records, "own": tally.own, "unknown": tally.unknown},
        "notes": notes,
    }
    if tally.cut:
        facts["lines_cut"] = tally.cut
    if tally.first_unknown:
        facts["first_unknown"] = {"line": tally.first_unknown[0] + 1, "text": tally.first_unknown[1]}
    if order.ambiguous:
        facts["regions_ambiguous"] = _ambiguous(log, roles, order.ambiguous)
    if order.layers_ambiguous:
        facts["layers_ambiguous"] = _ambiguous(log, roles, order.layers_ambiguous)
    return facts


def _ambiguous(log: Log, roles: list[Role], spans: list[Span]) -> int:
    count = 0
    for first, last, instance, _ in spans:
        rows = log.some_rows(first, last)
        count += sum(1 for row in rows if roles[row.code].instance == instance and roles[row.code].role != MARK)
    return count


def nothing(name: str, tally: Tally, *, markers: bool) -> str:
    """Say why a log came to nothing, and what to try."""
    if tally.read == 0:
        return (
            f"{name} is empty: nothing was printed into it. "
            "Was verbose mode on (ONEDNN_VERBOSE=1, MKL_VERBOSE=1), and stdout redirected?"
        )
    if tally.first_unknown is not None:
        line, text = tally.first_unknown
        return (
            f"{name} has {tally.unknown:,} pieces that begin like verbose lines, and none is whole; the first is in "
            f"line {line + 1}: {visible(text[:100])}. Was the log wrapped or cut by a terminal or a mail?"
        )
    if markers:
        return (
            f"{name} has markers, but no line of oneDNN or oneMKL between them. "
            "Did the code between them call either, with verbose mode on?"
        )
    return (
        f"{name} has no verbose line of oneDNN or oneMKL: {tally.own:,} lines were read, all of them other text. "
        "Set ONEDNN_VERBOSE=1 or MKL_VERBOSE=1 for the program; if it was set, another library did the work."
    )


def _strict(trace: Trace) -> None:
    unknown = trace.facts["lines"]["unknown"]
    if unknown:
        first = trace.facts["first_unknown"]
        raise LogError(
            f"{unknown:,} pieces were not understood; the first is in line {first['line']}: {first['text'][:200]}"
        )


def _names(logs: Iterable[LogSource]) -> list[str]:
    """Name each log, by its file; the same names get numbers."""
    names: list[str] = []
    for at, log in enumerate(logs):
        if isinstance(log, str | os.PathLike):
            name = "stdin" if log == "-" else Path(log).name
        else:
            name = str(getattr(log, "name", at))
        taken = sum(1 for other in names if other == name or other.rpartition("#")[0] == name)
        names.append(f"{name}#{taken + 1}" if taken else name)
    return names


def _merged(names: list[str], traces: list[Trace]) -> Trace:
    from cpulens.trace import Trace
    from cpulens.trace.tables import merge

    texts, events, backings = merge(list(zip(names, traces, strict=True)))
    facts: dict[str, Any] = {"libraries": [], "lines": {"read": 0, "records": 0, "own": 0, "unknown": 0}, "notes": []}
    for name, trace in zip(names, traces, strict=True):
        for library in trace.facts.get("libraries", []):
            inside = library.get("instance")
            facts["libraries"].append({**library, "instance": f"{name}/{inside}" if inside else name})
        for kind, count in trace.facts.get("lines", {}).items():
            facts["lines"][kind] = facts["lines"].get(kind, 0) + count
        facts["notes"] += [f"{name}: {note}" for note in trace.facts.get("notes", [])]
        if "first_unknown" in trace.facts:
            facts.setdefault("first_unknown", trace.facts["first_unknown"])
        for count in ("regions_ambiguous", "layers_ambiguous", "lines_cut"):
            if count in trace.facts:
                facts[count] = facts.get(count, 0) + trace.facts[count]
    facts["instances"] = {name: _own_facts(trace.facts) for name, trace in zip(names, traces, strict=True)}
    return Trace(texts, events, facts, parts=backings)


def _own_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Give what is told of one log alone, such as a recording's command and wall time."""
    return {name: value for name, value in facts.items() if name not in ("libraries", "notes", "instances")}
