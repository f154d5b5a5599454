"""The same operation in other layouts and data types: what a change of the program would give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from cpulens.measure.replay import onednn_call
from cpulens.measure.replay.mkl_call import MklCall, Product, Transform
from cpulens.measure.replay.onednn_call import OneDnnCall, can_choose_layouts
from cpulens.measure.replay.problem import Problem, Unreplayable
from cpulens.verbose.tensors import Tensor

#: Name → types of source, weights and destination; int8 as quantized models have it.
_TYPES: Final = {
    "f32": ("f32", "f32", "f32"),
    "bf16": ("bf16", "bf16", "bf16"),
    "f16": ("f16", "f16", "f16"),
    "int8": ("u8", "s8", "u8"),
}
_WITH_WEIGHTS: Final = ("matmul", "convolution", "inner_product")
_MKL_TYPES: Final = {"f32": "sgemm", "bf16": "gemm_bf16bf16f32", "f16": "gemm_f16f16f32", "int8": "gemm_s8u8s32"}


class Candidate(NamedTuple):
    """A variant and the call that runs it; `call` is the reason, in words, where there is none."""

    kind: str
    name: str
    call: OneDnnCall | MklCall | str


def of_onednn(problem: Problem, kinds: tuple[str, ...]) -> Iterator[Candidate]:
    """Layouts left to the library, and each data type that the problem does not have."""
    if "layout" in kinds and can_choose_layouts(problem):
        yield Candidate("layout", "any", _made(problem, "any"))
    if "type" not in kinds or problem.kind == "reorder":
        return
    own = problem.tensors["src"].dt
    for name, types in _TYPES.items():
        if own != types[0] and (name != "int8" or problem.kind in _WITH_WEIGHTS) and own not in ("u8", "s8"):
            yield Candidate("type", name, _made(_converted(problem, types), "any"))


def of_mkl(told: Product | Transform, kinds: tuple[str, ...]) -> Iterator[Candidate]:
    """The other routines of the matrix product."""
    if "type" not in kinds or not isinstance(told, Product):
        return
    if told.routine not in _MKL_TYPES.values() or told.options.get("batch", 1) > 1 or told.options["pointers"]:
        return
    for name, routine in _MKL_TYPES.items():
        if routine != told.routine:
            yield Candidate("type", name, _made_mkl(told._replace(routine=routine)))


def _converted(problem: Problem, types: tuple[str, str, str]) -> Problem:
    """In other types. Layouts are left to the library where it may choose, as blocks depend on the type."""
    wanted = dict(zip(("src", "weights", "dst"), types, strict=True))
    tensors = {name: _typed(one, wanted.get(name, one.dt)) for name, one in problem.tensors.items()}
    return replace(problem, tensors=tensors)


def _typed(tensor: Tensor, dt: str) -> Tensor:
    return tensor._replace(dt=dt)


def _made(problem: Problem, layouts: onednn_call.Layouts) -> OneDnnCall | str:
    try:
        return OneDnnCall(problem, layouts)
    except Unreplayable as reason:
        return str(reason)


def _made_mkl(told: Product) -> MklCall | str:
    try:
        return MklCall(told)
    except Unreplayable as reason:
        return str(reason)
