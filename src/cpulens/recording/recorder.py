"""record(): what oneDNN and oneMKL ran inside a block, as a trace."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from cpulens.backends import verbosity
from cpulens.backends.levels import parse_level
from cpulens.backends.scope import Scope
from cpulens.capture.tap import Session, tap
from cpulens.errors import CaptureError, UsageError
from cpulens.native import loaded
from cpulens.recording import facts as known
from cpulens.recording.diagnosis import why_nothing
from cpulens.recording.layers import Watch, calls, open_layers
from cpulens.recording.limit import watch_size
from cpulens.recording.markers import open_regions
from cpulens.recording.schedule import ACTIVE, WAIT, Schedule, listen, stop_listening
from cpulens.recording.slices import Slice, joined, last_whole_line, write_raw
from cpulens.recording.stamps import Stamps
from cpulens.shown import Shown

if TYPE_CHECKING:
    from cpulens.analyze.summary import Summary
    from cpulens.trace import Trace

DEFAULT_MAX_BYTES: Final = 1 << 30


class Recording(Scope, Shown):
    """A block whose oneDNN and oneMKL lines are caught; see `record`, which makes one.

    While the block is open, and after it, the results are there: `trace` (the two tables), `summary()`, `raw()` (the
    captured bytes), `notes` (what could not be done), `save()`; printing it shows the table. A recording may be
    entered again: the later lines are added.
    """

    def __init__(
        self,
        onednn: int | str | None,
        mkl: int | str | None,
        capture: str,
        max_bytes: int,
        schedule: Schedule | None = None,
    ) -> None:
        super().__init__()
        self.levels = {
            "onednn": None if onednn is None else parse_level("onednn", onednn),
            "mkl": None if mkl is None else parse_level("mkl", mkl),
        }
        if max_bytes <= 0:
            raise UsageError(f"max_bytes={max_bytes} leaves no room for a line; it is a size in bytes, above 0")
        self.capture, self.max_bytes = capture, max_bytes
        self.notes: list[str] = []
        self._lock = threading.RLock()
        self._depth = 0
        self._slices: list[Slice] = []
        self._walls_ms: list[float] = []
        self._scopes_ns: list[tuple[int, int]] = []
        self._began_ns = 0
        self.schedule = schedule
        self._phase, self._iteration, self._active = WAIT, -1, list[int]()
        self._stopped = False
        self._watches: list[Watch] = []
        self._calls_before = 0
        self._open: tuple[Session, int, bytes, verbosity.Request, Stamps, float] | None = None
        self._trace: Trace | None = None

    def _enter(self) -> None:
        with self._lock:
            self._depth += 1
            if self._depth > 1:
                return
            if self.schedule is None:
                self._begin()
            else:
                self._iteration, self._stopped = -1, False
                listen(self._step)
            self._calls_before = calls()
            for watch in self._watches:
                watch.start()

    def _leave(self, token: None) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth > 0:
                return
            stop_listening(self._step)
            self._end(keep=self.schedule is None or self._phase == ACTIVE)
            self._phase = WAIT
            for watch in self._watches:
                watch.remove()
            if self._watches and calls() == self._calls_before:
                self._note("watch: no module of the watched model was called in the block")

    def _step(self) -> None:
        """An iteration begins: do what the schedule says of it."""
        assert self.schedule is not None
        with self._lock:
            self._iteration += 1
            phase = self.schedule.phase(self._iteration)
            if phase != self._phase:
                self._end(keep=self._phase == ACTIVE)
                if phase != WAIT and not self._stopped:
                    self._begin()
                self._phase = phase
            if phase == ACTIVE and not self._stopped:
                self._active.append(self._iteration)

    def watch(self, model: Any) -> Watch:
        """Let kernels carry the path of the module that issued them, in the column `layer`, while the block is open.

        `model`: a `torch.nn.Module`; see `cpulens.watch`. Raises UsageError for anything else.
        """
        watch = Watch(model)
        with self._lock:
            self._watches.append(watch)
            for note in watch.notes:
                self._note(note)
            if self._depth > 0:
                watch.start()
        return watch

    def _note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)

    def _begin(self) -> None:
        self._trace = None
        stamps = Stamps()
        try:
            session, start = tap().open(self.capture)
        except BaseException:
            self._depth = 0
            stamps.put_back()
            raise
        request = verbosity.acquire(**self.levels)
        preamble = b"".join(line + b"\n" for line in tap().headers) + open_regions() + open_layers()
        self._began_ns = time.time_ns()
        self._open = (session, start, preamble, request, stamps, time.perf_counter())
        watch_size(self)

    def _end(self, keep: bool = True) -> None:
        if self._open is None:  # stopped by the size limit before, or a schedule waits
            return
        session, start, preamble, request, stamps, began = self._open
        self._open = None
        wall_ms = (time.perf_counter() - began) * 1e3
        late = verbosity.refresh()
        verbosity.release(request)
        end = tap().close(session)
        stamps.put_back()
        if os.getpid() != session.pid:
            return  # a forked child leaves its parent's block: the slice is the parent's
        if not keep:
            return
        self._walls_ms.append(wall_ms)
        self._scopes_ns.append((self._began_ns, self._began_ns + round(wall_ms * 1e6)))
        self._slices.append(Slice(session.spill, start, end, preamble))
        self._note_what_is_missing(session, late)

    def _note_what_is_missing(self, session: Session, late: list[verbosity.Copy]) -> None:
        asked = tuple(library for library, level in self.levels.items() if level is not None)
        sentences = verbosity.notes(asked)
        sentences += [
            f"{copy.library} in {os.path.basename(copy.path)} was loaded inside the block and switched on only at its "
            "end: load it before, or mark a region or iteration after loading"
            for copy in late
            if copy.library in asked and not copy.environment.level
        ]
        if session.incomplete:
            sentences.append("the spill could not take all lines (is the disk full?): some are lost")
        for sentence in sentences:
            self._note(sentence)

    def stop_for_size(self) -> None:
        """End the recording because its slice has reached `max_bytes`; the block itself goes on unrecorded."""
        with self._lock:
            if self._open is None:
                return
            self._stopped = True
            self._end(keep=self.schedule is None or self._phase == ACTIVE)
            if not self._slices:
                return
            last = self._slices[-1]
            end = min(last.end, last.start + self.max_bytes)
            self._slices[-1] = last._replace(end=last_whole_line(last.spill, last.start, end))
            self.notes.append(
                f"recording stopped at its limit of {self.max_bytes:,} bytes (max_bytes): what ran later is missing"
            )

    @property
    def is_open(self) -> bool:
        """Whether the block is open and being recorded."""
        return self._open is not None

    def size_bytes(self) -> int:
        """Bytes captured so far by the block that is open; 0 when none is."""
        current = self._open
        return current[0].spill.size() - current[1] if current else 0

    def _so_far(self) -> list[Slice]:
        with self._lock:
            if self._open is None:
                return list(self._slices)
            session, start, preamble, *_ = self._open
            tap().flush()
            return [*self._slices, Slice(session.spill, start, session.spill.size(), preamble)]

    def raw(self) -> bytes:
        """The captured bytes: the libraries' lines, markers, and the program's own C text between them."""
        return b"".join(part.spill.read(part.start, part.end) for part in self._so_far())

    @property
    def spill_path(self) -> str | None:
        """The file that holds the captured text now; it outlives the process only if that dies. None: never entered."""
        slices = self._so_far()
        return slices[-1].spill.path if slices else None

    @property
    def facts(self) -> dict[str, Any]:
        """Command, machine, variables, levels, wall time in milliseconds, notes; the trace carries them too."""
        with self._lock:
            walls_ms, scopes_ns = list(self._walls_ms), list(self._scopes_ns)
            if self._open is not None:
                walls_ms.append((time.perf_counter() - self._open[-1]) * 1e3)
                scopes_ns.append((self._began_ns, self._began_ns + round(walls_ms[-1] * 1e6)))
        schedule = {"schedule": {**self.schedule.as_facts(), "iterations": list(self._active)}} if self.schedule else {}
        return {
            **known.common([sys.executable, *sys.argv], dict(os.environ)),
            "levels": self.levels,
            "wall_ms": sum(walls_ms),
            "scopes_ms": walls_ms,
            "scopes_ns": scopes_ns,
            "openmp": known.openmp_runtimes(obj.path for obj in loaded.objects()),
            **schedule,
            "notes": list(self.notes),
        }

    @property
    def trace(self) -> Trace:
        """The recorded kernels as a Trace. Raises LogError, which says why, when there are none."""
        if self._trace is not None and self._open is None:
            return self._trace
        if not self._so_far():
            raise CaptureError(self._why_not_entered())
        trace = self._read()
        if self._open is None:
            self._trace = trace
        return trace

    def _why_not_entered(self) -> str:
        if self.schedule is None or self._iteration < 0:
            rest = "" if self.schedule is None else ", or no cpulens.iteration() was called in it"
            return f"nothing was recorded yet: the recording's block was never entered{rest}"
        return (
            f"nothing was recorded: {self._iteration + 1} iterations began in the block, and the schedule "
            f"{self.schedule} makes none of them active"
        )

    def _read(self) -> Trace:
        from cpulens.errors import LogError
        from cpulens.verbose import load

        slices = self._so_far()
        try:
            with joined(slices) as log:
                return load(log, facts=self.facts, preamble=slices[0].preamble)
        except LogError as error:
            paths = [obj.path for obj in loaded.objects()]
            reasons = [*why_nothing(paths, self.levels), *self.notes]
            raise LogError("; ".join(["nothing was recorded", *reasons])) from error

    def summary(self, by: str | tuple[str, ...] | list[str] = ("library", "primitive", "implementation")) -> Summary:
        """Time by the columns `by` of the trace, over executions; over all records when `event` is among them."""
        from cpulens.report.summary import PrintableSummary

        return PrintableSummary.of(self.trace, by)

    def save(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write the run file; a path that ends in .log or .txt gets the raw text instead (standard library only).

        Raises TraceFileError when the file exists, unless `force`.
        """
        if os.fspath(path).endswith((".log", ".txt")):
            write_raw(path, self.raw(), force)
        else:
            self.trace.save(os.fspath(path), force=force)

    def __str__(self) -> str:
        """The table, as `cpulens top` prints it."""
        return str(self.summary())

    def __repr__(self) -> str:
        state = "open" if self._open is not None else f"{len(self.raw()):,} bytes" if self._slices else "not entered"
        return f"<Recording onednn={self.levels['onednn']} mkl={self.levels['mkl']}: {state}>"


def record(
    onednn: int | str | None = "ON",
    mkl: int | str | None = "ON",
    *,
    capture: str = "auto",
    max_bytes: int = DEFAULT_MAX_BYTES,
    schedule: Schedule | None = None,
) -> Recording:
    """Record the oneDNN and oneMKL kernels of a `with` block or a decorated function.

    ::

        with cpulens.record() as recording:
            model(inputs)
        print(recording)
        recording.save("run.cpulens")

    `onednn`: "OFF", "ON" (executions) or "ON_CREATION" (creations too), or 0, 1, 2; `mkl`: "OFF" or "ON"; None leaves
    that library's level alone. `capture`: "stdout" points the C library's stdout at a spill file, so that only native
    text is caught and Python's `print` and descriptor 1 are not touched (glibc); "descriptor" takes descriptor 1, and
    with it the output of Python and of child processes until the end of the block; "auto" is the first where it
    works. `max_bytes`: where a recording stops, with a note (default 1 GiB). `schedule`: record only some of the
    iterations that `cpulens.iteration()` counts, such as `Schedule(wait=1, active=3)` (default: the whole block).
    Recordings nest and overlap; each gets what was printed between its own begin and end. Native text of the program
    itself is handed on at the end. For its header oneMKL measures the processor's clock when it prints its first line
    (0.3 to 0.9 s, seen with 2024 and 2026): the wall time of a process's first recording holds that; a schedule with
    `warmup=1` leaves it out.

    Raises UsageError for a level that isn't one, CaptureError where nothing can be caught.
    """
    return Recording(onednn, mkl, capture, max_bytes, schedule)
