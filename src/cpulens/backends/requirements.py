"""Whether this host has what a script requires: backends and extensions of the processor by name."""

from __future__ import annotations

import difflib
import importlib
from typing import Any, Final, NamedTuple

from cpulens.backends import accelerators, cpu, mkldnn
from cpulens.backends.doctor import BACKENDS, DEVICES
from cpulens.errors import UsageError
from cpulens.machine.isa_table import FEATURES


class Requirement(NamedTuple):
    """One name that was asked for: whether it is `met`, and the evidence."""

    name: str
    met: bool
    reason: str


_EXTENSIONS: Final = frozenset(feature.name for features in FEATURES.values() for feature in features) | {"amx"}
NAMES: Final = tuple(sorted({*BACKENDS, *DEVICES, *_EXTENSIONS, "acl"}))


def refuse_unknown(names: list[str]) -> None:
    """Raise `UsageError` for a name that nothing here has."""
    for name in names:
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(NAMES)}"
            raise UsageError(f"nothing is known by the name {name!r}; {hint}")


def check(names: list[str]) -> list[Requirement]:
    """Return each requirement with its evidence. Raises `UsageError` for a name that nothing here has."""
    refuse_unknown(names)
    return [_check(name) for name in names]


def _check(name: str) -> Requirement:
    if name in _EXTENSIONS:
        reason = cpu.why_not(name)
        return Requirement(name, not reason, reason or "the processor has it, and it can be used")
    if name == "acl":
        return Requirement(name, mkldnn.is_acl_available(), mkldnn.why_not_acl())
    if name in DEVICES:
        return Requirement(name, accelerators.built(name), accelerators.why_not(name))
    backend: Any = importlib.import_module(f"cpulens.backends.{name}")
    return Requirement(name, backend.is_available(), backend.why_not())
