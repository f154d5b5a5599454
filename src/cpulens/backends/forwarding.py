"""Modules whose names are PyTorch's own: each use goes to `torch.backends` when PyTorch is loaded.

A name that this PyTorch lacks, or that needs a device which it was built without, is said in one sentence (`Lacking`).
"""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from cpulens.backends import pytorch
from cpulens.backends.pytorch import Lacking

REQUIRED: Final = inspect.Parameter.empty
_NO_ANSWER: Final = object()
#: What PyTorch raises where a build lacks a device, besides saying so in an answer.
_BUILD_ERRORS: Final = (AttributeError, AssertionError, NotImplementedError, RuntimeError)


class Function(NamedTuple):
    """A function of `torch.backends.<module>`: parameters and defaults, and its answer where PyTorch gives none."""

    name: str
    summary: str
    parameters: Mapping[str, Any] = types.MappingProxyType({})
    otherwise: Any = _NO_ANSWER  #: a value, or a function of the same parameters


class Attribute(NamedTuple):
    """A value of `torch.backends.<module>` that is read and set."""

    name: str
    summary: str


class Space(NamedTuple):
    """An object of `torch.backends.<module>` with attributes of its own, or a class."""

    name: str
    summary: str
    attributes: tuple[str, ...] = ()


class Forwarding(types.ModuleType):
    """A module that hands on what its table names; set up by `install`."""

    _rows: dict[str, Function | Attribute | Space]
    _built: Callable[[], bool]

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(self.__dict__.get("_rows", {}).get(name), Attribute):
            setattr(pytorch.lookup(self.path), name, value)
        else:
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self._rows})

    @property
    def path(self) -> str:
        """Where PyTorch keeps its counterpart, below `torch`."""
        return "backends." + self.__name__.rpartition(".")[2]

    def read(self, name: str) -> Any:
        """Return what `name` is: our function or proxy, PyTorch's value. Raises AttributeError for a stranger."""
        row = self._rows.get(name)
        if isinstance(row, Space):
            return pytorch.lookup(f"{self.path}.{name}") if not row.attributes else Proxy(f"{self.path}.{name}", row)
        if row is not None or (pytorch.loaded() is not None and not name.startswith("__")):
            return pytorch.lookup(f"{self.path}.{name}")
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


class Proxy:
    """An object of PyTorch's, such as `cuda.matmul`, reached anew at each use."""

    def __init__(self, path: str, row: Space) -> None:
        object.__setattr__(self, "_path", path)
        object.__setattr__(self, "_row", row)

    def __getattr__(self, name: str) -> Any:
        target = pytorch.lookup(self._path)
        return _answer(f"{self._path}.{name}", lambda: getattr(target, name), False)

    def __setattr__(self, name: str, value: Any) -> None:
        target = pytorch.lookup(self._path)
        _answer(f"{self._path}.{name}", lambda: setattr(target, name, value), False)

    def __getitem__(self, index: Any) -> Any:
        return pytorch.lookup(self._path)[index]

    def __dir__(self) -> list[str]:
        return sorted(self._row.attributes)

    def __repr__(self) -> str:
        return f"<torch.{self._path}: {self._row.summary}>"


def install(name: str, rows: tuple[Function | Attribute | Space, ...], built: Callable[[], bool]) -> None:
    """Make the module `name` one that forwards these rows; `built` tells whether this PyTorch has its device."""
    module: Any = sys.modules[name]
    module.__class__ = Forwarding
    module.__dict__["_rows"] = {row.name: row for row in rows}
    for row in rows:
        if isinstance(row, Function):
            module.__dict__[row.name] = _function(module, row, built)


def _function(module: Forwarding, row: Function, built: Callable[[], bool]) -> Callable[..., Any]:
    signature = inspect.Signature(
        [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
            for name, default in row.parameters.items()
        ]
    )
    path = f"{module.path}.{row.name}"

    def forward(*args: Any, **kwargs: Any) -> Any:
        signature.bind(*args, **kwargs)
        if pytorch.loaded() is None or (row.otherwise is not _NO_ANSWER and callable(row.otherwise) and not built()):
            return _otherwise(row, args, kwargs)
        target = pytorch.lookup(path)
        return _answer(path, lambda: target(*args, **kwargs), built())

    forward.__name__ = forward.__qualname__ = row.name
    forward.__module__ = module.__name__
    forward.__doc__ = f"{row.summary}\n\nAnswered by torch.{path} when PyTorch is loaded."
    forward.__signature__ = signature  # type: ignore[attr-defined]
    return forward


def _otherwise(row: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if row.otherwise is _NO_ANSWER:
        raise Lacking(f"{row.name} is answered inside PyTorch, and there is none to ask: {pytorch.absence()}")
    return row.otherwise(*args, **kwargs) if callable(row.otherwise) else row.otherwise


def _answer(path: str, ask: Callable[[], Any], built: bool) -> Any:
    """The answer; where the build lacks the device, PyTorch's words in a sentence of ours."""
    try:
        return ask()
    except _BUILD_ERRORS as error:
        if built:
            raise
        words = str(error).strip().partition("\n")[0] or type(error).__name__
        raise Lacking(f"PyTorch {pytorch.version()} can't answer torch.{path}: {words}") from None
