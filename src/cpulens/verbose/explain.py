"""One log line in plain words, field by field."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from cpulens.verbose import framing, prefixes, tensors, words
from cpulens.verbose.dimensions import dimensions
from cpulens.verbose.pieces import split
from cpulens.verbose.understanding import understand

_GRAIN: Final = "oneDNN's clock counts in steps of 0.000244 ms"
_LIBRARIES: Final = {"onednn": "oneDNN", "mkl": "oneMKL", "cpulens": "a cpulens marker"}
#: Stamps below this are no time of day: they count from the machine's start (Windows).
_EPOCH_FROM_NS: Final = 10**18


class Field(NamedTuple):
    """One field: its name, what is printed there, what it means."""

    name: str
    value: str
    meaning: str


class Explanation(NamedTuple):
    """One piece of a line: a sentence, its fields, and the columns it has in a trace."""

    sentence: str
    fields: list[Field]
    columns: dict[str, Any]


def explain(line: bytes) -> list[Explanation]:
    """Explain every piece of a physical line; text of the program itself is explained as such."""
    stripped = prefixes.strip(line.rstrip(b"\r\n"))
    found = [_piece(piece.text) if piece.verbose else _own(piece.text) for piece in split(stripped.text)]
    if stripped.instance is not None:
        found[0].fields.insert(0, Field("instance", stripped.instance, "told by what a launcher put before the line"))
    return found


def _own(text: bytes) -> Explanation:
    shown = text.decode("utf-8", "replace")
    return Explanation("This is text of the program itself, no verbose line.", [Field("text", shown, "")], {})


def _piece(text: bytes) -> Explanation:
    frame = framing.frame(text)
    columns: dict[str, Any] = {
        name: value for name, value in understand(frame.kind, frame.text).items() if value is not None
    }
    columns["duration_ms"], columns["start_ns"], columns["thread"] = frame.duration_ms, frame.start_ns, frame.thread
    fields = [Field("library", _LIBRARIES[columns["library"]], _version(frame))]
    if frame.start_ns is not None:
        fields.append(_start(frame.start_ns))
    fields += _fields(columns)
    if frame.duration_ms is not None:
        fields.append(_time(frame))
    return Explanation(_sentence(columns), fields, columns)


def _version(frame: framing.Frame) -> str:
    if frame.kind != framing.ONEDNN:
        return ""
    marker = frame.text.split(b",", 2)
    name = marker[0].decode()
    if len(marker) > 1 and marker[1][:1] == b"v" and marker[1][1:].isdigit():
        return f"{name}, format {marker[1].decode()}: 3.6 or later"
    ages = {"mkldnn_verbose": "MKL-DNN 0.13 to 1.0", "dnnl_verbose": "DNNL or oneDNN 1.1 to 2.4"}
    return f"{name}: {ages.get(name, 'oneDNN 2.5 to 3.5')}"


def _start(start_ns: int) -> Field:
    shown = f"{start_ns // 10**6}.{start_ns % 10**6:06d} ms"
    if start_ns < _EPOCH_FROM_NS:
        return Field("start", shown, "since the machine started")
    at = datetime.fromtimestamp(start_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return Field("start", shown, f"{at}.{start_ns % 10**9 // 1000:06d} UTC, the beginning of the operation")


def _time(frame: framing.Frame) -> Field:
    assert frame.duration_ms is not None
    shown = f"{frame.duration_ms:.9g} ms"
    micro = f"{frame.duration_ms * 1000:.6g} microseconds"
    grain = f"; {_GRAIN}" if frame.kind == framing.ONEDNN and frame.duration_ms < 0.1 else ""
    return Field("time", shown, micro + grain)


def _sentence(columns: dict[str, Any]) -> str:
    library, event = _LIBRARIES[columns["library"]], columns["event"]
    what = columns.get("primitive") or columns.get("implementation") or columns.get("component") or "something"
    where = f" on {columns['engine']}" if columns.get("engine") else ""
    if event == "exec":
        time = columns["duration_ms"]
        return f"{library} ran {what}{where}" + (f" in {time:.6g} ms." if time is not None else ", without a time.")
    if event in ("create", "create_nested", "compile"):
        cache = words.CACHE.get(columns.get("cache", ""), "")
        done = "compiled" if event == "compile" else "created"
        return f"{library} {done} {what}{where}" + (f": {cache}." if cache else ".")
    if event == "dispatch":
        refused = columns.get("implementation", "an implementation")
        return f"{library} refused {refused} for {what}: {columns.get('message', '')}."
    if event == "unknown":
        return f"This begins like a line of {library}, but is not a whole one of any version: torn, wrapped or unknown."
    if columns["library"] == "cpulens":
        return f"A marker: {event} {columns.get('message', '')}."
    return f"{library} says: {columns.get('message') or what}."


def _fields(columns: dict[str, Any]) -> list[Field]:
    found = [Field("event", columns["event"], words.EVENTS[columns["event"]])]
    if "cache" in columns:
        found.append(Field("cache", columns["cache"], words.CACHE.get(columns["cache"], "")))
    plain: tuple[tuple[str, dict[str, str]], ...] = (
        ("component", {}),
        ("engine", {}),
        ("primitive", {}),
        ("implementation", {}),
        ("family", words.FAMILIES),
        ("isa", {}),
        ("prop_kind", words.PROPAGATION),
    )
    for name, meanings in plain:
        if name in columns:
            found.append(Field(name, columns[name], meanings.get(columns[name], "")))
    for name in ("src_dt", "wei_dt", "dst_dt"):
        if name in columns and "tensors" not in columns:
            found.append(Field(name, columns[name], words.TYPES.get(columns[name], "")))
    found += _tensors(columns)
    found += _attributes(columns.get("attributes"))
    if "auxiliary" in columns:
        found.append(Field("auxiliary", columns["auxiliary"], ""))
    found += _problem(columns)
    if "threads" in columns:
        found.append(Field("threads", str(columns["threads"]), "the library may use for this call"))
    if columns["thread"] is not None:
        found.append(Field("thread", str(columns["thread"]), "that made the call"))
    found += [Field(name, columns[name], "") for name in ("message", "source") if columns.get(name)]
    return found


def _tensors(columns: dict[str, Any]) -> list[Field]:
    spelled = columns.get("tensors", "")
    found = []
    for tensor in tensors.parse(spelled) if columns.get("component") != "graph" else []:
        if tensor.dt == "undef":
            found.append(Field(tensor.name, str(tensor), "absent"))
            continue
        parts = [words.TYPES.get(tensor.dt, tensor.dt), words.layout(tensor.kind, tensor.tag)]
        if tensor.strides:
            parts.append(f"strides {tensor.strides}")
        if tensor.properties:
            parts.append(words.properties(tensor.properties))
        found.append(Field(tensor.name, str(tensor), ", ".join(part for part in parts if part)))
    if spelled and not found:
        found = [Field("tensor", word, "") for word in spelled.split(" ")]
    return found


def _attributes(text: str | None) -> list[Field]:
    found = []
    for word in (text or "").split():
        name, _, value = word.partition(":")
        meaning = words.ATTRIBUTES.get(name, "")
        if name == "attr-post-ops":
            meaning += ": " + ", then ".join(words.post_operation(part) for part in value.split("+"))
        found.append(Field("attribute", word, meaning))
    return found


def _problem(columns: dict[str, Any]) -> list[Field]:
    problem = columns.get("problem")
    if not problem:
        return []
    named = dimensions(columns.get("primitive"), problem)
    sizes = {name: "known at run time" if size is None else size for name, size in named.items()}
    meaning = ", ".join(f"{words.dimension(name)} {size}" for name, size in sizes.items())
    return [Field("problem", problem, re.sub(r"size of dimension (\d+) ", r"d\1 = ", meaning))]
