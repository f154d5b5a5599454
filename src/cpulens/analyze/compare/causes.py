"""The difference of the totals as a sum of causes: every kernel's part is in exactly one or two of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from cpulens.analyze.compare.result import TOO_FEW, Cause, Kernel

#: Causes that say that nothing is known to have changed: they go last.
UNDECIDED: Final = ("no significant change", TOO_FEW)


class _Part(NamedTuple):
    kind: str
    subject: str
    detail: str
    delta_ms: float
    kernel: Kernel


def causes(kernels: Iterable[Kernel]) -> tuple[Cause, ...]:
    """Put alike parts together, by descending size; what is not known to have changed goes last.

    Their sum is that of the kernels' `delta_ms`.
    """
    groups: dict[tuple[str, str, str], list[_Part]] = {}
    for kernel in kernels:
        if not kernel.inner:
            for part in _parts(kernel):
                groups.setdefault((part.kind, part.subject, part.detail), []).append(part)
    found = [
        Cause(kind, _text(kind, subject, detail, parts), math.fsum(part.delta_ms for part in parts), len(parts))
        for (kind, subject, detail), parts in groups.items()
    ]
    return tuple(sorted(found, key=lambda cause: (cause.kind in UNDECIDED, -abs(cause.delta_ms))))


def _parts(kernel: Kernel) -> Iterator[_Part]:
    subject = kernel.primitive or kernel.label
    if kernel.kind != "matched":
        yield _Part(kernel.kind, subject, "", kernel.delta_ms, kernel)
        return
    if kernel.count_ms:
        yield _Part("calls", subject, "", kernel.count_ms, kernel)
    if kernel.changes:
        yield _Part("changed", subject, _detail(kernel), kernel.time_ms, kernel)
    elif kernel.effect.significant:
        yield _Part("slower" if kernel.effect.slower else "faster", subject, "", kernel.time_ms, kernel)
    else:
        kind = TOO_FEW if kernel.effect.reason == TOO_FEW else UNDECIDED[0]
        yield _Part(kind, "", "", kernel.time_ms, kernel)


def _detail(kernel: Kernel) -> str:
    """The first change with its values, the others by name: layouts follow from implementations, and vary by shape."""
    first, *others = kernel.changes
    return ", ".join([f"{first.what} {first.base or '–'} → {first.new or '–'}", *(change.what for change in others)])


def _text(kind: str, subject: str, detail: str, parts: list[_Part]) -> str:
    kernels = f"{len(parts):,} kernel{'' if len(parts) == 1 else 's'}"
    before = math.fsum(part.kernel.base.calls for part in parts if part.kernel.base)
    after = math.fsum(part.kernel.new.calls for part in parts if part.kernel.new)
    moved = f"{_number(before)} → {_calls(after)}"
    if kind in UNDECIDED:
        return f"{kind}{' to judge' if kind == TOO_FEW else ''}: {kernels}"
    words = {
        "changed": f"{detail}, {kernels}",
        "slower": f"slower, {kernels}",
        "faster": f"faster, {kernels}",
        "calls": f"{_more(after - before)} of the same, {moved}",
        "other work": f"other problems or layouts, {moved}",
        "added": f"only in new, {_calls(after)}",
        "removed": f"only in base, {_calls(before)}",
    }
    return f"{subject}: {words[kind]}"


def _more(calls: float) -> str:
    words = "more" if calls >= 0 else "fewer"
    return _calls(abs(calls)).replace(" ", f" {words} ")


def _calls(calls: float) -> str:
    number = _number(calls)
    return f"{number} call{'' if number == '1' else 's'}"


def _number(calls: float) -> str:
    """Calls per unit: whole where they are."""
    return f"{round(calls):,}" if abs(calls - round(calls)) < 1e-6 * max(1.0, calls) else f"{calls:,.3g}"
