"""The one way to PyTorch: it is used when the program has imported it, and never imported here."""

from __future__ import annotations

import importlib.metadata
import sys
from functools import lru_cache
from typing import Any

from cpulens.errors import BackendUnavailable


class Lacking(BackendUnavailable, AttributeError):
    """Something that this PyTorch, or a process without it, doesn't have; an AttributeError for `hasattr`."""


def loaded() -> Any | None:
    """The module `torch`, once its import is complete; None while the program has not imported it."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and hasattr(torch, "backends") and hasattr(torch, "_C") else None


def version() -> str | None:
    """The version of the PyTorch that is loaded, else of the one installed here; None without any."""
    torch = sys.modules.get("torch")
    found = getattr(torch, "__version__", None)
    return str(found) if found is not None else installed_version()


@lru_cache(maxsize=1)
def installed_version() -> str | None:
    """The version of the PyTorch that is installed in this environment; None when there is none."""
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None


def numbers(text: str | None) -> tuple[int, int] | None:
    """Major and minor number of a version; None where it has none."""
    parts = (text or "").split(".")
    try:
        return (int(parts[0]), int(parts[1]))
    except (ValueError, IndexError):
        return None


def absence() -> str:
    """Why PyTorch can't be asked, in the words that every answer without it uses."""
    if "torch" in sys.modules:
        return "PyTorch is being imported, and not complete yet"
    found = installed_version()
    return f"PyTorch {found} is installed but not loaded: import torch first" if found else "PyTorch is not installed"


def need(what: str) -> Any:
    """The module `torch`. Raises `Lacking`, naming `what` it is needed for, when it is not loaded."""
    torch = loaded()
    if torch is None:
        raise Lacking(f"{what} is a setting inside PyTorch, and there is none to ask: {absence()}")
    return torch


def lookup(path: str, name: str = "") -> Any:
    """An object below `torch`, such as "backends.mha.get_fastpath_enabled"; `name` is what people call it.

    Raises `Lacking` when PyTorch is not loaded, or when this version has no such thing.
    """
    called = name or path.removeprefix("backends.")
    found = need(called)
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise Lacking(f"PyTorch {version()} has no torch.backends.{called}") from None
    return found


def built_with(flag: str) -> bool | None:
    """One of torch._C's build flags ("has_mkl"); None when PyTorch is not loaded or doesn't have the flag."""
    found = getattr(getattr(loaded(), "_C", None), flag, None)
    return None if found is None else bool(found)
