"""The shape of every scope: a context manager that nests and overlaps with itself, and a decorator."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Self, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Scope:
    """Base of context managers that are decorators too, for plain functions, generators and coroutines.

    A subclass has `_enter()`, which returns what `_leave(token)` needs to put back. One object may be entered several
    times, nested or by several threads: each leaving puts back one entering.
    """

    def __init__(self) -> None:
        self._tokens: list[Any] = []

    def _enter(self) -> Any:
        raise NotImplementedError

    def _leave(self, token: Any) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._tokens.append(self._enter())
        return self

    def __exit__(self, *exc: object) -> None:
        self._leave(self._tokens.pop())

    def __call__(self, function: F) -> F:
        """Decorate: every call runs inside the scope; of a coroutine or generator its whole run."""
        wrapped: Any
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapped(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)
        elif inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return (yield from function(*args, **kwargs))
        else:

            @functools.wraps(function)
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return function(*args, **kwargs)

        return wrapped  # type: ignore[no-any-return]
