"""What a text of oneDNN says, as columns of `texts`. Called once per distinct text."""

from __future__ import annotations

from typing import Final

from cpulens.verbose import attributes, implementations, problems, tensors
from cpulens.verbose.onednn_framing import COMPONENTS, ENGINE, HEAD, is_graph, profile

#: State of a creation or a compilation as printed → as the column `cache` says it.
CACHE: Final = {
    "cache_hit": "hit",
    "cache_miss": "miss",
    "from_cache_blob": "from_cache_blob",
    "persistent_cache_hit": "persistent_hit",
    "kernel_cache_hit": "kernel_hit",
    "nested_primitive_cache_hit": "nested_hit",
    "compiled_partition_cache_hit": "hit",
}
_RENAMED: Final = {
    "pooling_v2": "pooling",
    "softmax_v2": "softmax",
    "logsoftmax": "softmax",
    "layer_normalization_v2": "layer_normalization",
}

Fields = dict[str, str | int | None]


def understand(text: bytes) -> Fields:
    """Give the columns of one text (without stamp and time); columns it does not say are left out."""
    head = HEAD.match(text)
    if head is None:
        return {"event": "unknown"}
    body = text[head.end() :]
    fields = body.split(b",")
    component = fields.pop(0).decode() if fields[0] in COMPONENTS else ""
    if b"_graph_" in head[1]:
        component = "graph"
    word, _, state = _text(fields[0]).partition(":")
    if word == "info":
        return {"component": component or "common", "event": "info", "message": _join(fields[1:])}
    if state in ("dispatch", "check"):
        return _refusal(component, word, state, fields)
    if word in ("error", "warn", "warning", "debuginfo"):
        return _message(component, word, fields)
    if word in ("cpu", "gpu") and len(fields) > 2:
        event = "dispatch" if fields[1] == b"acl" else "info"
        return {"component": component or "primitive", "event": event, "engine": word, "message": _join(fields[1:])}
    if component == "graph" or is_graph(fields):
        from cpulens.verbose import graph

        return {"component": "graph", "event": word, "cache": CACHE.get(state)} | graph.understand(fields)
    names = profile(head[1], fields)
    if names is None:
        return {"component": component or None, "event": "unknown", "message": _text(body)}
    values = {name: _text(field) for name, field in zip(names, fields, strict=True)}
    if state == "external":
        return {"component": component or "primitive", "event": "external", "implementation": values["implementation"]}
    return {
        "component": component or "primitive",
        "event": word,
        "cache": CACHE.get(state, state or None),
        **_problem("0" if "engine" not in names else "1", values),
    }


def _problem(era: str, values: dict[str, str]) -> Fields:
    printed = values["primitive"]
    primitive = _RENAMED.get(printed, printed)
    implementation = values.get("implementation", "")
    prop_kind = values.get("prop_kind", "")
    spelled = tensors.newest(values.get("tensors", ""), era, prop_kind.startswith("forward"))
    src_dt, wei_dt, dst_dt = tensors.types(spelled)
    return {
        "engine": values.get("engine"),
        "primitive": primitive,
        "implementation": implementation or None,
        "family": implementations.family(implementation),
        "isa": implementations.isa(implementation),
        "prop_kind": prop_kind or None,
        "src_dt": src_dt,
        "wei_dt": wei_dt,
        "dst_dt": dst_dt,
        "tensors": spelled or None,
        "attributes": attributes.newest(values.get("attributes", "")) or None,
        "auxiliary": attributes.auxiliary(primitive, printed, values.get("auxiliary", "")) or None,
        "problem": problems.newest(primitive, values.get("problem", ""), _spatial_dims(spelled)) or None,
    }


def _spatial_dims(spelled: str) -> int | None:
    tag = spelled.split(" ", 1)[0].split(":")[4:5]
    if not tag or not tag[0] or tag[0] == "any":
        return None
    return len({letter for letter in tag[0].lower() if letter.isalpha()}) - 2


def _refusal(component: str, word: str, state: str, fields: list[bytes]) -> Fields:
    """Read a dispatch or check line: full with all fields of the problem, or short."""
    found: Fields = {"component": component or "primitive", "event": state}
    if fields[1] == b"pattern_matcher":
        return found | {"component": "graph", "message": _join(fields[1:])}
    found |= {"message": _join(fields[2:-1]), "source": _text(fields[-1]).strip()}
    if word == "create":
        found["primitive"] = _text(fields[1])
    if len(fields) >= 12 and ENGINE.fullmatch(fields[2]):
        names = ("engine", "primitive", "implementation", "prop_kind", "tensors", "attributes", "auxiliary", "problem")
        values = {name: _text(field) for name, field in zip(names, fields[2:10], strict=True)}
        found |= _problem("1", values) | {"message": _join(fields[10:-1])}
    return found


def _message(component: str, word: str, fields: list[bytes]) -> Fields:
    event = {"error": "error", "debuginfo": "info"}.get(word, "warn")
    name, _, line = _text(fields[-1]).rpartition(":")
    located = len(fields) > 2 and bool(name) and line.strip().isdigit()
    return {
        "component": component or "common",
        "event": event,
        "message": _join(fields[1:-1] if located else fields[1:]),
        "source": _text(fields[-1]).strip() if located else None,
    }


def _text(field: bytes) -> str:
    return field.decode("utf-8", "replace")


def _join(fields: list[bytes]) -> str:
    return _text(b",".join(fields))
