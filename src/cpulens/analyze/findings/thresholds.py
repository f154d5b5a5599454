"""From when on something is a finding. Each can be set in `[tool.cpulens.findings]`; see `docs/findings.md`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from cpulens.errors import UsageError


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Shares run from 0 to 1; `disable` holds codes of rules that are not asked.

    A finding must also cost `least_ms` in the whole trace, where it has a cost.
    """

    disable: tuple[str, ...] = ()
    least_ms: float = 0.5
    reference_share: float = 0.05
    gemm_share: float = 0.10
    reorder_share: float = 0.10
    weights_share: float = 0.01
    ping_pong_share: float = 0.02
    ping_pong_reach: int = 8
    creation_share: float = 0.02
    creation_calls: int = 10
    cold_share: float = 0.20
    cold_ratio: float = 3.0
    first_call_ms: float = 20.0
    isa_share: float = 0.20
    bf16_share: float = 0.30
    tiny_ms: float = 0.02
    tiny_share: float = 0.25
    tiny_calls: int = 100
    tail_calls: int = 20
    tail_ratio: float = 3.0
    tail_share: float = 0.20
    efficiency: float = 0.30
    efficiency_share: float = 0.20
    outside_share: float = 0.50
    thread_share: float = 0.20
    noise_share: float = 0.50
    noise_lines: int = 1000
    verbose_share: float = 0.05

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Thresholds:
        """Read a table of settings, names with - or _. Raises UsageError for a name or value that is none."""
        known = {one.name: one.type for one in fields(cls)}
        values: dict[str, Any] = {}
        for name, value in settings.items():
            key = name.replace("-", "_")
            if key not in known:
                raise UsageError(f"{name} is no threshold of findings; there are {', '.join(sorted(known))}")
            values[key] = _value(name, value, known[key])
        return replace(cls(), **values)


def _value(name: str, value: Any, kind: Any) -> Any:
    if kind == "tuple[str, ...]":
        if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
            return tuple(value)
        raise UsageError(f"{name} of findings is a list of codes, not {value!r}")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise UsageError(f"{name} of findings is a number of 0 or more, not {value!r}")
    if kind == "int" and value != int(value):
        raise UsageError(f"{name} of findings is a whole number, not {value!r}")
    if name.replace("-", "_").endswith("share") and value > 1:
        raise UsageError(f"{name} of findings is a share from 0 to 1, not {value!r}")
    return int(value) if kind == "int" else float(value)
