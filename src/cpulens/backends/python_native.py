"""Operators that PyTorch takes from Python DSLs (Triton, CuteDSL): which there are, and switching them.

All of it is inside PyTorch (2.13 has it). Where there is none, the lists are empty, and a switch says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from cpulens.backends import pytorch
from cpulens.backends.pytorch import Lacking

#: DSLs that PyTorch knows; a newer one is found by its name when PyTorch is loaded.
DSLS: Final = ("triton", "cutedsl")


class Dsl:
    """One DSL: whether its operators are `enabled` (read and set), and `disabled()`, a scope without them."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _controller(self) -> Any:
        _need()
        known = pytorch.lookup("backends.python_native.all_dsls")
        if self.name not in known:
            raise Lacking(f"PyTorch {pytorch.version()} has no DSL {self.name}; it has {', '.join(known) or 'none'}")
        return pytorch.lookup(f"backends.python_native.{self.name}")

    @property
    def available(self) -> bool:
        """Whether its runtime is here; False without PyTorch."""
        return pytorch.loaded() is not None and bool(self._controller().available)

    @property
    def enabled(self) -> bool:
        """Whether its operators may be used."""
        return bool(self._controller().enabled)

    @enabled.setter
    def enabled(self, value: bool) -> None:
        self._controller().enabled = value

    @contextmanager
    def disabled(self) -> Iterator[None]:
        """Run without its operators; afterwards it is as it was found, also when it was disabled before."""
        controller = self._controller()
        found = controller.enabled
        try:
            controller.disable()
            yield
        finally:
            if found:
                controller.enable()

    def __repr__(self) -> str:
        return f"<DSL {self.name}: {why_not()}>"


triton = Dsl("triton")
cutedsl = Dsl("cutedsl")


def is_available() -> bool:
    """Return whether this process has a PyTorch with python_native."""
    return pytorch.loaded() is not None and hasattr(pytorch.need("python_native").backends, "python_native")


def why_not() -> str:
    """One sentence: why there is no python_native, or which DSLs can be used."""
    if pytorch.loaded() is None:
        return pytorch.absence()
    if not is_available():
        return f"PyTorch {pytorch.version()} has no torch.backends.python_native"
    found = ", ".join(_list("available_dsls"))
    return f"PyTorch {pytorch.version()} finds {found or 'no DSL installed'} (it knows {', '.join(_list('all_dsls'))})"


def details() -> dict[str, Any]:
    """Return availability, reason, and the lists of DSLs."""
    return {
        "available": is_available(),
        "reason": why_not(),
        "all_dsls": _list("all_dsls"),
        "available_dsls": _list("available_dsls"),
    }


def _need() -> None:
    if not is_available():
        raise Lacking(f"python_native can't be used: {why_not()}")


def _list(name: str) -> list[str]:
    return list(pytorch.lookup(f"backends.python_native.{name}")) if is_available() else []


def _call(name: str, *arguments: str) -> Any:
    _need()
    return pytorch.lookup(f"backends.python_native.{name}")(*arguments)


def get_dsl_operations(dsl_name: str) -> list[str]:
    """Return the names of the operators that a DSL brings; [] where there is none."""
    return list(_call("get_dsl_operations", dsl_name)) if is_available() else []


def disable_operations(*op_symbols: str) -> None:
    """Switch operators off by name, in every DSL."""
    _call("disable_operations", *op_symbols)


def enable_operations(*op_symbols: str) -> None:
    """Switch operators on again by name."""
    _call("enable_operations", *op_symbols)


def is_operation_disabled(op_symbol: str) -> bool:
    """Return whether an operator is switched off; False where there is none."""
    return is_available() and bool(_call("is_operation_disabled", op_symbol))


def is_dsl_disabled(dsl_name: str) -> bool:
    """Return whether a DSL is switched off; False where there is none."""
    return is_available() and bool(_call("is_dsl_disabled", dsl_name))


@contextmanager
def operations_disabled(*op_symbols: str) -> Iterator[None]:
    """Run without these operators; those that were off before stay off afterwards."""
    _need()
    on = [name for name in op_symbols if not is_operation_disabled(name)]
    disable_operations(*op_symbols)
    try:
        yield
    finally:
        if on:
            enable_operations(*on)


def __getattr__(name: str) -> Any:
    if name in ("all_dsls", "available_dsls"):
        return _list(name)
    if not name.startswith("_") and is_available():
        if name in _list("all_dsls"):
            return Dsl(name)
        return pytorch.lookup(f"backends.python_native.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), "all_dsls", "available_dsls", *_list("all_dsls")})
