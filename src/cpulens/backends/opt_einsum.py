"""The package opt_einsum, with which `torch.einsum` plans the order of its contractions.

`enabled` (on when the package is there) and `strategy` ("auto", "greedy", "optimal"; None without the package) are
read and set as attributes. They are PyTorch's when it is loaded; without it they are kept here, for programs that plan
with opt_einsum themselves.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
import types
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from cpulens.backends import pytorch
from cpulens.errors import UsageError

STRATEGIES: Final = ("auto", "greedy", "optimal")


@lru_cache(maxsize=1)
def _package() -> tuple[Any | None, str]:
    """The module, or why it can't be imported."""
    try:
        return importlib.import_module("opt_einsum"), ""
    except ModuleNotFoundError as error:
        if error.name == "opt_einsum":
            return None, "the package opt_einsum is not installed: pip install opt-einsum"
        return None, f"opt_einsum is installed but can't be imported: {error}"
    except Exception as error:  # a broken package may raise anything
        return None, f"opt_einsum is installed but raises at import: {type(error).__name__}: {error}"


def is_available() -> bool:
    """Return whether PyTorch has the package, when PyTorch is loaded; else whether it can be imported here."""
    if pytorch.loaded() is not None:
        return bool(pytorch.lookup("backends.opt_einsum.is_available")())
    return _package()[0] is not None


def get_opt_einsum() -> Any:
    """Return the module opt_einsum, or None where it can't be used; imports it without PyTorch."""
    if pytorch.loaded() is not None:
        return pytorch.lookup("backends.opt_einsum.get_opt_einsum")()
    return _package()[0]


def version() -> str | None:
    """Return the package's version; None without it."""
    found = getattr(get_opt_einsum(), "__version__", None)
    return None if found is None else str(found)


def why_not() -> str:
    """One sentence: why the package can't be used, or what speaks for it; imports nothing."""
    if pytorch.loaded() is None and not _tried() and importlib.util.find_spec("opt_einsum") is not None:
        return f"opt_einsum {_installed()} is installed but not loaded"
    module, reason = _package()
    if module is None:
        return reason
    if not is_available():
        return "opt_einsum was not there when PyTorch was imported; it looks for it only then"
    return f"opt_einsum {version()} is loaded from {getattr(module, '__file__', 'an unknown place')}"


def _tried() -> bool:
    return _package.cache_info().currsize > 0 or "opt_einsum" in sys.modules


def _installed() -> str:
    try:
        return importlib.metadata.version("opt_einsum")
    except importlib.metadata.PackageNotFoundError:
        return "(version not known)"


def details() -> dict[str, Any]:
    """Return availability, reason, version, and the two switches; imports nothing.

    Without PyTorch, a package that is installed and was not imported yet counts as available.
    """
    reason = why_not()
    if reason.endswith("installed but not loaded"):
        return {"available": True, "reason": reason, "version": _installed(), "enabled": None, "strategy": None}
    switches: Any = sys.modules[__name__]
    return {
        "available": is_available(),
        "reason": reason,
        "version": version(),
        "enabled": switches.enabled,
        "strategy": switches.strategy,
    }


def swap(name: str, value: Any) -> Callable[[], None]:
    """Set "enabled" or "strategy"; returns what puts back the value that was found.

    Raises `UsageError` where the package isn't there, and for a value that it doesn't take.
    """
    if name == "strategy" and value is not None and value not in STRATEGIES:
        raise UsageError(f"{value!r} is no strategy of opt_einsum; it has {', '.join(STRATEGIES)}")
    if value and not is_available():
        raise UsageError(f"opt_einsum has no use for {name}={value!r}: {why_not()}")
    if pytorch.loaded() is None:
        found, own = _own[name], _own
        _own[name] = value
        return lambda: own.update({name: found})
    theirs = pytorch.lookup("backends.opt_einsum")
    found = getattr(theirs, name)
    if name in vars(theirs) or not hasattr(theirs, "m"):
        # A plain assignment by the program put a value in front of the one that PyTorch's functions change.
        setattr(theirs, name, value)
        return lambda: setattr(theirs, name, found)
    theirs.set_flags(**{f"_{name}": value})
    return lambda: setattr(theirs.m, name, found)


#: The switches while PyTorch is not loaded; None: as the package's presence says.
_own: dict[str, Any] = {"enabled": None, "strategy": None}


class _Switches(types.ModuleType):
    """Makes `enabled` and `strategy` attributes that can be set."""

    @property
    def enabled(self) -> bool:
        if pytorch.loaded() is not None:
            return bool(pytorch.lookup("backends.opt_einsum.enabled"))
        return is_available() if _own["enabled"] is None else bool(_own["enabled"])

    @enabled.setter
    def enabled(self, value: bool) -> None:
        swap("enabled", value)

    @property
    def strategy(self) -> str | None:
        if pytorch.loaded() is not None:
            found: str | None = pytorch.lookup("backends.opt_einsum.strategy")
            return found
        return (_own["strategy"] or "auto") if is_available() else None

    @strategy.setter
    def strategy(self, value: str | None) -> None:
        swap("strategy", value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, "enabled", "strategy"})


sys.modules[__name__].__class__ = _Switches
