"""A run without names, paths and addresses: the same kernels and figures, other words around them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from cpulens.report.bundle.anonymize import Anonymizer
from cpulens.report.bundle.identity import Identity, users_in
from cpulens.report.bundle.patterns import SECRET_NAME
from cpulens.trace import Trace
from cpulens.trace.schema import EVENT_COLUMNS, TEXT_COLUMNS

if TYPE_CHECKING:
    import polars as pl

#: Columns in which people's words stand, and those that hold a library's own words for a kernel.
_FREE: Final = ("message", "source", "region", "layer")
_KERNEL: Final = tuple(
    name for name, (kind, _) in TEXT_COLUMNS.items() if kind == "String" and name not in (*_FREE, "raw")
)
_FREE_EVENTS: Final = ("instance", "region", "layer")
_OWN_KEY: Final = re.compile(r"[a-z][a-z0-9_]*")
#: Facts whose keys are no words of ours: names of instances, of variables.
_BY_INSTANCE: Final = ("instances", "iterations")
_BY_NAME: Final = ("environment", "variables")
#: Facts that look like an address and are none.
_VERSIONS: Final = ("version", "build", "product", "commit")


def anonymized(trace: Trace, identity: Identity) -> tuple[Trace, Anonymizer]:
    """Give a run in which placeholders stand for what `identity` and the forms of `patterns` tell, and what did it."""
    labels = _distinct(trace, "instance")
    own = users_in(texts_of(trace))
    anonymizer = Anonymizer(identity.with_users(own), [*labels, *_instances(trace.facts)])
    changed = Trace(
        _text_table(trace.texts, anonymizer),
        _event_table(trace, anonymizer),
        _facts(trace.facts, anonymizer, ""),
        parts=[trace.backing, *trace.parts],
    )
    return changed, anonymizer


def texts_of(trace: Trace) -> Iterator[str]:
    """Every text of a run once, those of the facts included."""
    yield from _strings(trace.facts)
    for name in (*_KERNEL, "message", "source", "raw"):
        yield from trace.texts[name].drop_nulls().unique()
    for name in _FREE_EVENTS:
        yield from _distinct(trace, name)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)


def _distinct(trace: Trace, column: str) -> list[str]:
    import polars as pl

    found = trace.events.select(pl.col(column).drop_nulls().unique(maintain_order=True)).collect(engine="streaming")
    return [str(value) for value in found[column]]


def _instances(facts: dict[str, Any]) -> Iterable[str]:
    yield from facts.get("instances", {})
    if _by_instance("iterations", facts.get("iterations")):
        yield from facts["iterations"]
    yield from (one["instance"] for one in facts.get("libraries", []) if one.get("instance"))


def _text_table(texts: pl.DataFrame, anonymizer: Anonymizer) -> pl.DataFrame:
    """Messages are people's words; a line that has none is a kernel's description."""
    import polars as pl

    described = [
        message is None and library != "cpulens" and event != "unknown"
        for message, library, event in texts.select("message", "library", "event").iter_rows()
    ]
    raws = [
        None if raw is None else (anonymizer.kernel if kernel else anonymizer.text)(raw)
        for raw, kernel in zip(texts["raw"], described, strict=True)
    ]
    columns = [_column(texts[name], anonymizer.kernel) for name in _KERNEL]
    columns += [_column(texts[name], anonymizer.text) for name in ("message", "source")]
    return texts.with_columns(*columns, pl.Series("raw", raws, dtype=pl.String))


def _column(values: pl.Series, change: Callable[[str], str]) -> pl.Series:
    import polars as pl

    known = {value: change(value) for value in values.drop_nulls().unique(maintain_order=True)}
    return pl.Series(values.name, [known.get(value) for value in values], dtype=pl.String)


def _event_table(trace: Trace, anonymizer: Anonymizer) -> pl.LazyFrame:
    import polars as pl

    events = trace.events
    for name in _FREE_EVENTS:
        change = anonymizer.instance if name == "instance" else anonymizer.text
        known = {value: change(value) for value in _distinct(trace, name)}
        old = [value for value, new in known.items() if new != value]
        if old:
            events = events.with_columns(pl.col(name).replace(old, [known[value] for value in old]))
    return events.select(list(EVENT_COLUMNS))


def _facts(value: Any, anonymizer: Anonymizer, key: str) -> Any:
    """The same facts with changed texts. Numbers, and the names of our own fields, stay."""
    if isinstance(value, dict):
        return {
            _key(name, key, value, anonymizer): _facts(inner, anonymizer, str(name)) for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        if key == "command" and all(isinstance(word, str) for word in value):
            return anonymizer.command(value)
        return [_facts(inner, anonymizer, key) for inner in value]
    if not isinstance(value, str):
        return value
    if key == "instance":
        return anonymizer.instance(value)
    if SECRET_NAME.search(key):
        return anonymizer.text(f"{key}={value}").partition("=")[2]
    if key in _VERSIONS and not {"/", "\\", "@"} & set(value):
        return value
    return anonymizer.text(value)


def _key(name: Any, parent: str, siblings: dict[str, Any], anonymizer: Anonymizer) -> Any:
    if not isinstance(name, str):
        return name
    if _by_instance(parent, siblings):
        return anonymizer.instance(name)
    if parent in _BY_NAME or not _OWN_KEY.fullmatch(name):
        return anonymizer.text(name)
    return name


def _by_instance(parent: str, value: Any) -> bool:
    return parent in _BY_INSTANCE and isinstance(value, dict) and all(isinstance(one, dict) for one in value.values())
