"""Options of benchdnn's rnn driver, which names data types by configurations of its own."""

from __future__ import annotations

from typing import Final

from cpulens.report.benchdnn.layouts import Inexpressible, tag
from cpulens.report.benchdnn.problem import Problem

_DIRECTIONS: Final = {
    "unidirectional_left2right": "left2right",
    "unidirectional_right2left": "right2left",
    "bidirectional_sum": "sum",
    "bidirectional_concat": "concat",
    "unidirectional": "left2right",
}
_PROPAGATION: Final = {"FWD_D": "FWD_D", "FWD_I": "FWD_I", "BWD_DW": "BWD_DW"}
_ACTIVATIONS: Final = {"eltwise_relu": "RELU", "eltwise_logistic": "LOGISTIC", "eltwise_tanh": "TANH"}
_CELLS: Final = ("vanilla_rnn", "vanilla_lstm", "vanilla_gru", "lbr_gru", "vanilla_augru", "lbr_augru")
#: Types of (src_layer, src_iter, dst_iter, dst_layer) → configuration; a state that is not there is not asked.
_QUANTIZED: Final = {
    ("u8", "u8", "u8", "u8"): "u8u8u8u8",
    ("u8", "u8", "u8", "f32"): "u8u8u8f32",
    ("u8", "f32", "f32", "u8"): "f32u8f32u8",
    ("u8", "f32", "f32", "f32"): "f32u8f32f32",
}


def options(problem: Problem) -> list[str]:
    """Propagation, configuration, layouts, cell, direction, activation, extensions."""
    cell, activation = problem.auxiliary.get("alg", ""), problem.auxiliary.get("activation", "undef")
    direction = problem.auxiliary.get("direction", "")
    if cell not in _CELLS or direction not in _DIRECTIONS:
        raise Inexpressible(f"the cell {cell or 'is not said'}, or its direction {direction or 'is not said'}")
    if problem.direction not in _PROPAGATION:
        raise Inexpressible(f"the propagation kind {problem.prop_kind}")
    found = [
        f"--prop={problem.direction}",
        f"--cfg={_configuration(problem)}",
        f"--tag={_tags(problem)}",
        f"--alg={cell.upper()}",
        f"--direction={_DIRECTIONS[direction]}",
    ]
    if activation in _ACTIVATIONS:
        found.append(f"--activation={_ACTIVATIONS[activation]}")
    found += [f"--flags={problem.auxiliary['flags']}"] if problem.auxiliary.get("flags") else []
    strided = any(one.strides for one in problem.tensors if one.name in ("src_layer", "src_iter"))
    found.append(f"--trivial-strides={'false' if strided else 'true'}")
    found += ["--with-peephole=true"] if problem.find("wei_peephole") else []
    return found + (["--with-projection=true"] if problem.find("wei_proj") else [])


def _tags(problem: Problem) -> str:
    """Of the gradients where there are any: those of the forward tensors are always left to the library."""
    names = ("src_layer", "wei_layer", "dst_layer")
    prefix = "diff_" if any(one.name.startswith("diff_") for one in problem.tensors) else ""
    return ":".join(tag(problem.need(prefix + name), exact=problem.exact) for name in names)


def _configuration(problem: Problem) -> str:
    types = [problem.find(name) for name in ("src_layer", "src_iter", "dst_iter", "dst_layer")]
    said = [one.dt if one else None for one in types]
    bias = problem.find("bias")
    distinct = {dt for dt in said if dt}
    if distinct in ({"f32"}, {"f16"}):
        return distinct.pop()
    if distinct == {"bf16"}:
        return "bf16f32" if bias is not None and bias.dt == "f32" else "bf16"
    for wanted, name in _QUANTIZED.items():
        if all(have in (None, want) for have, want in zip(said, wanted, strict=True)):
            return name
    raise Inexpressible(f"the data types {' '.join(dt or '-' for dt in said)}: benchdnn has no configuration of them")
