"""The rows of `texts`: entries of all workers, merged by what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cpulens.cost import cost_of
from cpulens.trace.schema import TEXT_COLUMNS
from cpulens.trace.tables import texts_frame
from cpulens.verbose import framing, sequence
from cpulens.verbose.keys import MAX_TEXTS, Entry
from cpulens.verbose.sequence import Role
from cpulens.verbose.understanding import Fields, understand

if TYPE_CHECKING:
    import polars as pl

COLUMNS: Final = tuple(TEXT_COLUMNS)


class Texts:
    """Distinct texts in the order of their first appearance, understood once each."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        self._ids: dict[tuple[int, bytes, bool], int] = {}
        #: Texts of which only the coarse part is kept, because the parts of a log together have too many.
        self.beyond = 0
        self._roles: dict[tuple[int, bytes, bool], tuple[int, str]] = {}
        self._prepared: dict[tuple[int, bytes, bool], Fields] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def prepare(self, entries: list[Entry]) -> None:
        """Understand entries that will be asked for; their numbers are given when they are."""
        for entry in entries:
            key = (entry.kind, entry.text, entry.whole)
            if key not in self._ids and key not in self._prepared and len(self._prepared) < MAX_TEXTS:
                self._prepared[key] = _understood(entry)

    def role(self, entry: Entry) -> Role:
        """Understand an entry, and say what it means for the order of the log."""
        key = (entry.kind, entry.text, entry.whole)
        number = self._ids.get(key)
        if number is None and entry.whole and len(self._ids) >= MAX_TEXTS:
            self.beyond += 1
            return self.role(entry._replace(text=framing.coarse(entry.kind, entry.text), whole=False))
        if number is None:
            fields = self._prepared.pop(key, None) or _understood(entry)
            number = self._ids[key] = self._append(fields)
            self._roles[key] = _role(entry.kind, fields)
        role, name = self._roles[key]
        event, raw = self.columns["event"][number], self.columns["raw"][number] or ""
        return Role(role, entry.instance, entry.thread, event, name, raw, number)

    def pair(self, begin: int, end: int) -> int:
        """Give the text of a sparse call: what its BEGIN says of the problem with what its END says."""
        raw_begin, raw_end = self.columns["raw"][begin], self.columns["raw"][end]
        raw = f"{raw_end} | {raw_begin}"
        key = (framing.MKL, raw.encode(), True)
        number = self._ids.get(key)
        if number is None:
            fields: Fields = {name: self.columns[name][end] for name in COLUMNS if name != "text"}
            for name in ("problem", "auxiliary", "attributes"):
                fields[name] = self.columns[name][begin]
            number = self._ids[key] = self._append(fields | {"raw": raw})
        return number

    def frame(self) -> pl.DataFrame:
        """Give the table of texts."""
        return texts_frame(self.columns)

    def _append(self, fields: Fields) -> int:
        number = len(self._ids)
        for name, column in self.columns.items():
            column.append(fields.get(name))
        self.columns["text"][number] = number
        return number


def _understood(entry: Entry) -> Fields:
    fields = understand(entry.kind, entry.text, whole=entry.whole)
    return {**fields, **cost_of(fields)._asdict()}


def _role(kind: int, fields: Fields) -> tuple[int, str]:
    event, component = fields["event"], fields.get("component")
    message = str(fields.get("message") or "")
    if kind == framing.MARKER:
        return sequence.MARK, message
    if event == "info":
        return sequence.HEADER, message
    if kind == framing.MKL:
        if component == "sparse" and event in ("begin", "exec"):
            role = sequence.SPARSE_BEGIN if event == "begin" else sequence.SPARSE_END
            return role, str(fields.get("primitive"))
        return sequence.STOP, ""
    if event == "exec":
        return (sequence.GRAPH_EXEC if component == "graph" else sequence.PRIMITIVE_EXEC), ""
    if event == "compile":
        return sequence.STOP, ""
    return sequence.ORDINARY, ""
