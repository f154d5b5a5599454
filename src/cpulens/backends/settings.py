"""Every switch of torch.backends under its dotted name: read all, set several for a while, compare.

::

    before = settings.read()
    with settings({"mkldnn.enabled": False, "openmp.num_threads": 4}):
        ...                                   # as it was found afterwards, also after an exception
    settings.diff(before, settings.read())    # {}

Values go through PyTorch when it is loaded. Without it the verbose levels, OpenMP's threads and opt_einsum's switches
work; the others say why they don't.
"""

from __future__ import annotations

import contextlib
import difflib
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from cpulens.backends import pytorch
from cpulens.backends.scope import Scope
from cpulens.backends.switch_kinds import Switch
from cpulens.backends.switches import TABLE
from cpulens.errors import BackendUnavailable, CpulensError, UsageError

__all__ = ["ABSENT", "TABLE", "diff", "names", "read", "unavailable"]


class _Absent:
    """What `diff` shows where one side has no such switch."""

    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = _Absent()
_BY_NAME: Final = {switch.name: switch for switch in TABLE}


def names() -> tuple[str, ...]:
    """Return the dotted names of all switches."""
    return tuple(_BY_NAME)


def read(*wanted: str) -> dict[str, Any]:
    """Return the values of the switches named, or of all that can be read here.

    Raises `UsageError` for an unknown name, `BackendUnavailable` for a named one that can't be read.
    """
    if wanted:
        return {name: _read(_switch(name)) for name in wanted}
    values = {}
    for switch in TABLE:
        with contextlib.suppress(BackendUnavailable):
            values[switch.name] = _read(switch)
    return values


def unavailable() -> dict[str, str]:
    """Return the switches that can't be read here → why not, in one sentence."""
    reasons = {}
    for switch in TABLE:
        try:
            _read(switch)
        except BackendUnavailable as error:
            reasons[switch.name] = str(error)
    return reasons


def diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the names whose values differ → (value before, value after); ABSENT where a side lacks the name."""
    every = dict.fromkeys([*before, *after])
    pairs = {name: (before.get(name, ABSENT), after.get(name, ABSENT)) for name in every}
    return {name: pair for name, pair in pairs.items() if pair[0] is not pair[1] and pair[0] != pair[1]}


class Settings(Scope):
    """A scope, or decorator, in which several switches have other values.

    They are set in the order given, and put back in the opposite order, to what each entering found. When one can't
    be set, those before it are put back, and nothing has changed. Raises `UsageError` for an unknown or read-only name
    and for a value that a switch doesn't take, `BackendUnavailable` for a switch that isn't there.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__()
        for name in values:
            switch = _switch(name)
            if switch.change is None:
                raise UsageError(f"{name} can only be read: {switch.refusal}")
        self.values = dict(values)

    def _enter(self) -> list[Callable[[], None]]:
        undo: list[Callable[[], None]] = []
        try:
            with _mutation():
                for name, value in self.values.items():
                    undo.append(_change(_switch(name), value))
        except BaseException:
            self._leave(undo)
            raise
        return undo

    def _leave(self, token: list[Callable[[], None]]) -> None:
        with _mutation(), contextlib.ExitStack() as stack:
            for put_back in token:
                stack.callback(put_back)


def _switch(name: str) -> Switch:
    if name not in _BY_NAME:
        near = difflib.get_close_matches(name, _BY_NAME, n=1)
        hint = f"; did you mean {near[0]}?" if near else "; settings.names() lists them"
        raise UsageError(f"there is no switch {name!r}{hint}")
    return _BY_NAME[name]


def _read(switch: Switch) -> Any:
    try:
        return switch.read()
    except CpulensError:
        raise
    except Exception as error:  # PyTorch's own, of any type
        raise BackendUnavailable(f"{switch.name} can't be read: {_words(error)}") from None


def _change(switch: Switch, value: Any) -> Callable[[], None]:
    assert switch.change is not None
    if switch.kind is not None and (not isinstance(value, switch.kind) or (switch.kind is int and value is True)):
        raise UsageError(f"{switch.name} takes a {switch.kind.__name__}, not {value!r}")
    try:
        return switch.change(value)
    except CpulensError:
        raise
    except (AttributeError, AssertionError, NotImplementedError) as error:  # how a build without its device puts it
        raise BackendUnavailable(f"{switch.name} can't be set: {_words(error)}") from None
    except Exception as error:  # PyTorch's own, of any type
        raise UsageError(f"{switch.name} can't be set to {value!r}: {_words(error)}") from None


def _words(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


@contextlib.contextmanager
def _mutation() -> Iterator[None]:
    """A scope puts back what it changes, so PyTorch's guard against plain assignments lets it through."""
    allow = getattr(getattr(pytorch.loaded(), "backends", None), "__allow_nonbracketed_mutation", None)
    with contextlib.nullcontext() if allow is None else allow():
        yield


class _Callable(types.ModuleType):
    """Makes the module itself the scope: `with settings({...}):`."""

    def __call__(self, values: Mapping[str, Any]) -> Settings:
        return Settings(values)


sys.modules[__name__].__class__ = _Callable
