"""watch(): let each kernel say which layer of a PyTorch model issued it.

By PyTorch's global forward hooks, filtered by module: hooks on the modules themselves switch off fast paths (that of
`TransformerEncoder`) and so change the kernels that are to be seen. One pair of hooks serves every watched model.

A kernel belongs to the innermost watched module in whose call it ran; so do the reorders of that call. Modules behind
`torch.compile` or `torch.jit` run as one piece: a compiled or scripted module is a layer without layers inside.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, Self

from cpulens.capture.tap import RECORDED_FROM_OUTSIDE, open_tap, tap
from cpulens.errors import UsageError
from cpulens.recording import schedule

_lock: Final = threading.Lock()
_watches: Final[list[Watch]] = []
#: id of a watched module → its path: all that the hooks look at.
_paths: Final[dict[int, bytes]] = {}
#: Native thread id → the modules it is in, outermost first.
_stacks: Final[dict[int, list[tuple[int, bytes]]]] = {}
_handles: Final[list[Any]] = []
_is_compiling: Callable[[], bool] = bool
_recorded_from_outside = False
_calls = 0


class Watch:
    """The watch on one model: ends at `remove()`, or at the end of its `with` block.

    `notes`: sentences on what can't be told apart inside the model.
    """

    def __init__(self, model: Any) -> None:
        self._model = _checked(model)
        self.notes: list[str] = []
        self._layers: list[tuple[Any, str]] = []  # the modules are kept alive, so that their ids stay theirs
        self._walk(model, "", set())

    def start(self) -> Self:
        """Begin to watch; a second time does nothing."""
        with _lock:
            if self not in _watches:
                _watches.append(self)
                _settle()
        return self

    def remove(self) -> None:
        """Stop watching; a second time does nothing."""
        with _lock:
            if self in _watches:
                _watches.remove(self)
                _settle()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.remove()

    def paths(self) -> Iterator[tuple[int, bytes]]:
        """The id and the path of each module that is told apart."""
        for module, path in self._layers:
            yield id(module), path.encode("utf-8", "surrogateescape")

    def _walk(self, module: Any, path: str, seen: set[int]) -> None:
        name = path or f"({type(getattr(module, '_orig_mod', module)).__name__})"
        if id(module) in seen:
            first = next((known for other, known in self._layers if other is module), None)
            self.notes.append(f"watch: {name} is the same module as {first}, and its kernels are charged to that")
            return
        seen.add(id(module))
        if getattr(module, "_compiled_call_impl", None) is not None:
            self.notes.append(
                f"watch: {name} was compiled in place (Module.compile): its kernels are charged to the layer around it"
            )
            return
        self._layers.append((module, name))
        if reason := _opaque(module):
            self.notes.append(f"watch: {name} is {reason}: its kernels are charged to it as a whole")
            return
        for child_name, child in module._modules.items():
            if child is not None:
                self._walk(child, f"{path}.{child_name}" if path else child_name, seen)


def watch(model: Any) -> Watch:
    """Watch a PyTorch model: its kernels carry the path of their module in the column `layer`.

    ::

        cpulens.watch(model)          # one line in a script that runs under `cpulens record -- python script.py`
        with cpulens.watch(model): …  # or only for a while

    Paths are those of `model.named_modules()`; kernels that the model itself issues carry its class in parentheses.
    Watching lasts until `remove()` of what is returned. A call of a watched module costs a few µs while something
    records. Raises UsageError for what is no `torch.nn.Module`.
    """
    return Watch(model).start()


def open_layers() -> bytes:
    """Layer markers of the threads that are inside watched modules now: what a recording that starts now must know."""
    return b"".join(_line(thread, stack[-1][1]) for thread, stack in list(_stacks.items()) if stack)


def calls() -> int:
    """How often watched modules were called in this process."""
    return _calls


def any_watched() -> bool:
    """Whether a model is watched now."""
    return bool(_watches)


def _checked(model: Any) -> Any:
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(model, torch.nn.Module):
        raise UsageError(f"watch takes a torch.nn.Module, and {type(model).__name__} is none")
    return model


def _opaque(module: Any) -> str | None:
    """Why nothing can be told apart inside a module; None where it can."""
    if isinstance(module, sys.modules["torch"].jit.ScriptModule):
        return "scripted (torch.jit)"
    if hasattr(module, "_orig_mod") and type(module).__name__ == "OptimizedModule":
        return "compiled (torch.compile)"
    return None


def _settle() -> None:
    """Make the hooks and what they look at fit the watches."""
    global _is_compiling, _recorded_from_outside
    _paths.clear()
    for one in _watches:
        _paths.update(one.paths())
    if _watches and not _handles:
        torch: Any = sys.modules["torch"]
        _is_compiling = torch.compiler.is_compiling
        _recorded_from_outside = RECORDED_FROM_OUTSIDE in os.environ
        hooks = torch.nn.modules.module
        _handles.append(hooks.register_module_forward_pre_hook(_enter))
        _handles.append(hooks.register_module_forward_hook(_leave, always_call=True))
    elif not _watches:
        while _handles:
            _handles.pop().remove()
        _stacks.clear()


def _enter(module: Any, inputs: Any) -> None:
    global _calls
    if _is_compiling():  # a compiler reads this hook: the compiled code must be as it is without it
        return
    key = id(module)
    path = _paths.get(key)
    if path is None:
        return
    thread = threading.get_native_id()
    stack = _stacks.setdefault(thread, [])
    if stack and stack[0][0] == key:
        stack.clear()  # a call before was interrupted (Ctrl-C), and its modules were never left
    stack.append((key, path))
    _calls += 1
    _print(thread, path)


def _leave(module: Any, inputs: Any, output: Any) -> None:
    if _is_compiling():
        return
    key = id(module)
    thread = threading.get_native_id()
    stack = _stacks.get(thread)
    if key not in _paths or not stack:
        return
    while stack and stack.pop()[0] != key:
        pass
    _print(thread, stack[-1][1] if stack else b"")


def _print(thread: int, path: bytes) -> None:
    current = open_tap()
    if current is None:
        if not _recorded_from_outside or (schedule.outside is not None and not schedule.outside.is_active):
            return
        current = tap()
    current.write_mark(_line(thread, path))


def _line(thread: int, path: bytes) -> bytes:
    milliseconds, nanoseconds = divmod(time.time_ns(), 1_000_000)
    return b"cpulens,v1,layer,%d@%d.%06d,%b\n" % (thread, milliseconds, nanoseconds, path)
