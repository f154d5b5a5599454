"""Convolution, deconvolution, pooling: windows over an image.

Source: oneDNN's developer guide, "Convolution" (also for deconvolution: a convolution with source and destination
exchanged) and "Pooling"; taps outside the image do no work, as benchdnn counts (see `cpulens.cost.windows`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from cpulens.cost.attributes import finish, with_operand
from cpulens.cost.problem import AXES, Problem
from cpulens.cost.tally import UNKNOWN, Cost, product, total
from cpulens.cost.tensors import ELEMENT_BYTES, Tensor
from cpulens.cost.windows import Window

_FUSED: Final = re.compile(r"dw[:_]k(\d{1,9})s(\d{1,9})p(\d{1,9})(?::(\w+))?")


def convolution(problem: Problem) -> Cost:
    """2 × mb × oc × ic / g × (pairs of output and tap inside the image), and an addition an output for the bias.

    Forward and both gradients do the same multiplications. The forward one reads of its source only what a window
    touches. Winograd's algorithm does fewer operations than are counted here.
    """
    sizes, windows = problem.sizes, _windows(problem)
    if not {"mb", "ic", "oc"} <= sizes.keys():
        return UNKNOWN
    groups = max(sizes.get("g", 1), 1)
    transposed = problem.primitive == "deconvolution"
    counted = _count([_exchanged(one) for one in windows] if transposed else windows)
    if counted is None or sizes["ic"] % groups or sizes["oc"] % groups:
        return UNKNOWN
    taps, touched = counted
    whole = transposed or problem.prop_kind == "backward_data"
    src = [sizes["mb"], sizes["ic"], *([one.size for one in windows] if whole else touched)]
    dst = [sizes["mb"], sizes["oc"], *(one.outputs for one in windows)]
    weights = _weights(problem, groups, [one.kernel for one in windows])
    bias = problem.tensor("bia", "bias")
    flops = 2 * sizes["mb"] * sizes["oc"] * (sizes["ic"] // groups) * taps
    if bias and problem.prop_kind != "backward_data":
        flops += product(dst)
    moved = [(problem.tensor("src"), src), (problem.tensor("wei"), weights), *with_operand(bias, dst[1:2])]
    fused = _FUSED.search(problem.settings.get("post-ops", ""))
    if fused:
        return _with_fused(problem, Cost(flops, problem.moved(moved)), fused, dst)
    main = Cost(flops, problem.moved([*moved, (problem.destination, dst)]))
    return finish(problem, main, dst, {"src0": src, "wei": weights, "dst": dst})


def _windows(problem: Problem) -> list[Window]:
    """The window of each axis; none at all when the sizes of one are missing."""
    found = [_window(problem, axis) for axis in AXES if "i" + axis in problem.sizes]
    return [one for one in found if one] if None not in found else []


def _count(windows: Sequence[Window]) -> tuple[int, list[int]] | None:
    """Taps inside the image over all axes, and what each axis touches; None without windows, or beyond all measure."""
    taps, touched = 1, []
    for one in windows:
        counts = one.counts()
        if counts is None:
            return None
        taps *= counts[0]
        touched.append(counts[1])
    return (taps, touched) if touched else None


def _window(problem: Problem, axis: str) -> Window | None:
    sizes = problem.sizes
    if not {letter + axis for letter in "iok"} <= sizes.keys():
        return None
    size, outputs, kernel = (sizes[letter + axis] for letter in "iok")
    return Window(size, outputs, kernel, *(sizes.get(letter + axis, low) for letter, low in zip("sdp", (1, 0, 0))))  # noqa: B905


def _exchanged(window: Window) -> Window:
    return window._replace(size=window.outputs, outputs=window.size)


def _weights(problem: Problem, groups: int, kernel: Sequence[int]) -> list[int]:
    """Dimensions of the weights: (groups,) oc, ic, kernel; with the groups where their layout has them."""
    sizes, tensor = problem.sizes, problem.tensor("wei")
    dims = [sizes["oc"] // groups, sizes["ic"] // groups, *kernel]
    named = tensor.ndims if tensor else None
    while named is not None and len(kernel) > 1 and named < len(dims) + (groups > 1) and kernel[0] == 1:
        kernel = kernel[1:]
        dims = [*dims[:2], *kernel]
    return [groups, *dims] if groups > 1 or named == len(dims) + 1 else dims


def _with_fused(problem: Problem, main: Cost, fused: re.Match[str], middle: Sequence[int]) -> Cost:
    """A depthwise convolution of the result, in one go: the tensor between is not moved."""
    kernel, stride, padding = (int(fused[at]) for at in (1, 2, 3))
    outputs = [(size + 2 * padding - kernel) // max(stride, 1) + 1 for size in middle[2:]]
    counted = _count(
        [Window(size, out, kernel, stride, 0, padding) for size, out in zip(middle[2:], outputs, strict=True)]
    )
    if counted is None or min(outputs) < 1:
        return UNKNOWN
    dst = [*middle[:2], *outputs]
    flops = 2 * product(middle[:2]) * counted[0]
    bias = problem.tensor("bia_fused")
    weights, dt = problem.tensor("wei_fused") or problem.tensor("wei"), fused[4] or None
    element = ELEMENT_BYTES.get(weights.dt) if weights else None
    out = Tensor(dt, "", "", "", "") if dt in ELEMENT_BYTES and dt else problem.destination
    moved = total(
        main.bytes,
        None if element is None else element * middle[1] * kernel ** len(outputs),
        problem.moved([(out, dst), *with_operand(bias, middle[1:2])]),
    )
    flops += product(dst) if bias else 0
    # Post-operations before and after the fused one work on different sizes: count them on their own side.
    before, _, after = problem.settings.get("post-ops", "").partition(fused[0])
    whole = Cost(total(main.flops, flops), moved)
    for chain, dims in ((before, middle), (after, dst)):
        whole = finish(replace(problem, settings={"post-ops": chain.strip("+")}), whole, dims, {})
    return whole


def pooling(problem: Problem) -> Cost:
    """One comparison or addition a tap inside the image, and a division an output for the average."""
    sizes, windows = problem.sizes, _windows(problem)
    counted = _count(windows)
    if counted is None or not {"mb", "ic"} <= sizes.keys():
        return UNKNOWN
    taps, touched = counted
    channels = [sizes["mb"], sizes["ic"]]
    src = [*channels, *(touched if problem.forward else (one.size for one in windows))]
    dst = [*channels, *(one.outputs for one in windows)]
    flops = product(channels) * taps
    flops += product(dst) if problem.algorithm.startswith("avg") else 0
    workspace = with_operand(problem.tensor("ws"), dst)
    main = Cost(flops, problem.moved([(problem.source, src), (problem.destination, dst), *workspace]))
    return finish(problem, main, dst, {"src0": src, "dst": dst})
