"""A primitive: made once from memory descriptors, given its memories, executed as often as wanted."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_char_p, c_void_p
from functools import cached_property
from typing import Any

from cpulens.errors import NativeError, UsageError
from cpulens.native.handles import Owned
from cpulens.native.onednn.api import ExecArg, library
from cpulens.native.onednn.attributes import Attributes, BinaryPostOp
from cpulens.native.onednn.descriptors import MemoryDescriptor
from cpulens.native.onednn.memory import Memory
from cpulens.native.onednn.types import ARGUMENTS, Query, argument_index


class Primitive(Owned):
    """A primitive of one problem.

    `describe()` gives the layout that it wants for each argument: where its maker said "any", the library's choice.
    `bind(src=…, weights=…, dst=…)` names the memories, `execute()` runs it on them and waits.
    Making one that the library has no implementation for raises `NativeError` with status "unimplemented".
    """

    kind = ""

    def __init__(self, create: Callable[..., object], *arguments: Any, attributes: Attributes, problem: str) -> None:
        self._lib = library()
        self.attributes, self.problem = attributes, problem
        self._recipe = (create, arguments)
        self._description = self._new_description()
        raw = c_void_p()
        self._lib.dnnl_primitive_create(ctypes.byref(raw), self._description)
        super().__init__(raw, self._lib.dnnl_primitive_destroy)
        self._memories: dict[str, Memory] = {}
        self._arguments: Any = None

    def _new_description(self) -> Owned:
        create, arguments = self._recipe
        raw = c_void_p()
        with self.attributes.as_c() as attributes:
            try:
                create(ctypes.byref(raw), *arguments, attributes)
            except NativeError as error:
                raise _explained(error, f"{self.kind} {self.problem}") from None
        return Owned(raw, self._lib.dnnl_primitive_desc_destroy)

    def close(self) -> None:
        """Destroy the primitive; its memories stay."""
        super().close()
        self._description.close()

    @cached_property
    def implementation(self) -> str:
        """Name of the implementation that the library chose, as verbose lines print it."""
        return _implementation(self._description)

    def implementations(self) -> list[str]:
        """Names of every implementation that takes this problem, best first (the first is the one that runs)."""
        names = [self.implementation]
        with self._new_description() as description:
            try:
                while True:
                    self._lib.dnnl_primitive_desc_next_impl(description)
                    names.append(_implementation(description))
            except NativeError as error:
                if error.status != "last_impl_reached":
                    raise
        return names

    def describe(self, argument: str) -> MemoryDescriptor | None:
        """The descriptor of an argument ("src", "weights", "bias", "dst", "scratchpad"); None where it has none."""
        place = argument.removeprefix("post_op_")
        if place != argument and place.isdecimal() and int(place) < len(self.attributes.post_ops):
            post_op = self.attributes.post_ops[int(place)]
            return post_op.source if isinstance(post_op, BinaryPostOp) else None
        if argument not in ARGUMENTS:
            return None
        raw = c_void_p()
        index = argument_index(argument)
        self._lib.dnnl_primitive_desc_query(self._description, Query.exec_arg_md, index, ctypes.byref(raw))
        if not raw.value:
            return None
        found = MemoryDescriptor.copy_of(raw)
        return found if found.ndims else None

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """Names of all that an execution needs."""
        attributes = self.attributes
        names = [name for name in ARGUMENTS if self.describe(name) is not None]
        names += [f"scales_{name}" for name in attributes.scales]
        names += [f"zero_points_{name}" for name in attributes.zero_points]
        names += [f"post_op_{at}" for at, one in enumerate(attributes.post_ops) if isinstance(one, BinaryPostOp)]
        return tuple(names)

    def bind(self, **memories: Memory) -> None:
        """Name the memories of the next executions; those named earlier stay unless named again.

        Raises `UsageError` for an argument that the primitive does not have, or a memory whose layout is not the one
        that it wants (a reorder is then needed).
        """
        for name, memory in memories.items():
            if name not in self.arguments:
                raise UsageError(f"{self.kind} takes no argument {name!r}; it takes {', '.join(self.arguments)}")
            wanted = self.describe(name)
            if wanted is not None and wanted != memory.descriptor:
                raise UsageError(
                    f"{self.kind} wants its {name} as {wanted!r}, not {memory.descriptor!r}: reorder it first"
                )
        self._memories.update(memories)
        self._arguments = None

    def allocate(self) -> dict[str, Memory]:
        """Bind memory of the library's own to every argument still without one, and return the memories by name.

        Its contents are undefined: fill what is read before results are looked at. Scales and zero points can't be
        allocated, as their count is not known here.
        """
        for name in self.arguments:
            wanted = self.describe(name)
            if name not in self._memories and wanted is not None:
                self._memories[name] = Memory(wanted)
                self._arguments = None
        return dict(self._memories)

    def execute(self) -> None:
        """Run on the bound memories and wait for the end. Raises `UsageError` while one is missing."""
        if self._arguments is None or any(memory.closed for memory in self._memories.values()):
            self._arguments = self._prepared()
        lib, stream = self._lib, self._lib.stream
        lib.dnnl_primitive_execute(self.handle, stream, len(self._arguments), self._arguments)
        lib.dnnl_stream_wait(stream)

    def _prepared(self) -> Any:
        missing = [name for name in self.arguments if name not in self._memories]
        if missing:
            raise UsageError(f"{self.kind} can't run yet: bind {', '.join(missing)}")
        pairs = [ExecArg(argument_index(name), self._memories[name].handle) for name in self.arguments]
        return (ExecArg * len(pairs))(*pairs)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.problem}>"


def _implementation(description: Owned) -> str:
    name = c_char_p()
    library().dnnl_primitive_desc_query(description, Query.impl_info_str, 0, ctypes.byref(name))
    return (name.value or b"").decode("utf-8", "replace")


def _explained(error: NativeError, what: str) -> NativeError:
    version = library().version_text
    if error.status == "unimplemented":
        text = (
            f"oneDNN {version} has no implementation of {what} on this CPU; "
            "ONEDNN_VERBOSE=dispatch (3.2 and later) prints why each one was refused"
        )
    elif error.status in ("invalid_arguments", "invalid_shape", "invalid_data_type"):
        text = f"oneDNN {version} refuses {what}: its shapes, types, layouts or attributes do not go together"
    else:
        text = f"oneDNN {version} could not make {what}"
    return NativeError(f"{text} ({error.status} from {error.call})", call=error.call, status=error.status)
