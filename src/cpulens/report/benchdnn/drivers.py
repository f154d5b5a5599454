"""The options and the problem of each of benchdnn's drivers, from a problem of oneDNN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from cpulens.report.benchdnn import recurrent
from cpulens.report.benchdnn.layouts import Inexpressible, concrete, tag, tags_or_strides, without_strides
from cpulens.report.benchdnn.problem import Problem
from cpulens.verbose.tensors import Tensor

_CONVOLUTION_ALGORITHMS: Final = {"direct": "DIRECT", "winograd": "WINO", "auto": "AUTO", "": "DIRECT"}
_POOLING_ALGORITHMS: Final = {
    "max": "max",
    "avg": "avg_np",
    "avg_exclude_padding": "avg_np",
    "avg_include_padding": "avg_p",
}
_OUTPUT_FLAGS: Final = (("s8m", "s8s8_comp"), ("zpm", "zp_comp"))


class Driver(NamedTuple):
    """`name` after ``--`` in benchdnn; `options` gives its options; `shapes` the problem, where it is spelled anew."""

    name: str
    options: Callable[[Problem], list[str]]
    shapes: Callable[[Problem], str] = lambda problem: problem.shapes


def _convolution(problem: Problem) -> list[str]:
    return [
        f"--dir={problem.direction}",
        f"--alg={_algorithm(problem, _CONVOLUTION_ALGORITHMS)}",
        *_triple_types(problem),
        *tags_or_strides(_triple(problem), exact=problem.exact),
    ]


def _deconvolution(problem: Problem) -> list[str]:
    without_strides(*_triple(problem).values())
    return _convolution(problem)


def _inner_product(problem: Problem) -> list[str]:
    triple = _triple(problem)
    without_strides(*triple.values())
    return [f"--dir={problem.direction}", *_triple_types(problem), *tags_or_strides(triple, exact=problem.exact)]


def _matmul(problem: Problem) -> list[str]:
    triple = _triple(problem)
    if any(one.kind == "sparse" for one in triple.values()):
        raise Inexpressible("a sparse or grouped tensor: its line does not say how many values, or groups of what size")
    masks = problem.auxiliary.get("runtime_dims_masks")
    options = [f"--runtime_dims_masks={masks}"] if masks else []
    bias = problem.find("bia")
    if bias is not None:
        _, _, mask = bias.flags.partition("_mask")
        options += [f"--bia_mask={mask}"] if mask else []
    return options + _triple_types(problem) + tags_or_strides(triple, exact=problem.exact)


def _triple(problem: Problem) -> dict[str, Tensor]:
    """Source, weights and destination; that of a fused depthwise convolution where there is one."""
    return {"s": problem.need("src"), "w": problem.need("wei"), "d": problem.need("src_fused", "dst")}


def _triple_types(problem: Problem) -> list[str]:
    types = ":".join(one.dt for one in _triple(problem).values())
    bias = problem.find("bia")
    return [f"--dt={types}", *([f"--bia-dt={bias.dt}"] if bias else [])]


def _reorder(problem: Problem) -> list[str]:
    source, target = problem.need("src"), problem.need("dst")
    if source.flags not in ("f0", ""):
        raise Inexpressible(f"the flags {source.flags} of the source: only a destination's can be said")
    flags = _output_flags(target)
    # A destination with compensation has a layout of its own, and the option --oflag beside its tag.
    ends = {"s": source, "d": target._replace(flags="f0")}
    for one in ends.values():
        concrete(one)
    masks = problem.auxiliary.get("runtime-dim-mask")
    return [
        f"--sdt={source.dt}",
        f"--ddt={target.dt}",
        *tags_or_strides(ends, exact=True),
        *([f"--oflag={flags}"] if flags else []),
        *([f"--runtime_dim_mask={masks}"] if masks else []),
    ]


def _output_flags(target: Tensor) -> str:
    """``f8:zpm2`` → ``zp_comp:2``."""
    bits, *masks = target.flags.split(":")
    if bits in ("f0", ""):
        return ""
    found = [
        f"{name}:{one.removeprefix(mark)}" for one in masks for mark, name in _OUTPUT_FLAGS if one.startswith(mark)
    ]
    if len(found) != len(masks) or not found or bits not in ("f1", "f8", "f9"):
        raise Inexpressible(f"the flags {target.flags} of the destination: benchdnn knows two kinds of compensation")
    return "+".join(found)


def _one_layout(problem: Problem) -> list[str]:
    """Drivers that take one data type and one tag for both ends."""
    data = problem.need("data", "src")
    without_strides(data)
    other = problem.find("dst")
    if other is not None and (other.dt, concrete(other)) != (data.dt, concrete(data)):
        raise Inexpressible(f"{data.name} and {other.name} differ in type or layout, and the driver takes one of each")
    return [f"--dir={problem.direction}", f"--dt={data.dt}", f"--tag={concrete(data)}"]


def _eltwise(problem: Problem) -> list[str]:
    name = problem.algorithm.replace("_use_dst_for_bwd", "_dst")
    return [
        *_one_layout(problem),
        f"--alg={name}",
        *(f"--{name}={problem.auxiliary[name]}" for name in ("alpha", "beta") if name in problem.auxiliary),
    ]


def _batch_normalization(problem: Problem) -> list[str]:
    data = problem.need("data", "src")
    if not data.strides:
        return [*_one_layout(problem), *_flags(problem)]
    options = [f"--dir={problem.direction}", f"--dt={data.dt}", f"--strides={data.strides}:{data.strides}"]
    return options + _flags(problem)


def _flags(problem: Problem) -> list[str]:
    flags = problem.auxiliary.get("flags")
    return [f"--flags={flags}"] if flags else []


def _normalization(problem: Problem) -> list[str]:
    """Layer and group normalization: a type and a tag for each end."""
    ends = [problem.need("src", "data"), problem.need("dst", "data")]
    without_strides(*ends)
    options = [
        f"--dir={problem.direction}",
        "--dt=" + ":".join(one.dt for one in ends),
        "--tag=" + ":".join([concrete(ends[0]), tag(ends[1], exact=problem.exact)]),
    ]
    if problem.primitive == "layer_normalization":
        statistics, scale = problem.find("stats"), problem.find("scale", "shift")
        options += [f"--stat_tag={tag(statistics, exact=problem.exact)}"] if statistics else []
        options += [f"--ss_dt={scale.dt}"] if scale else []
    return options + _flags(problem)


def _lrn(problem: Problem) -> list[str]:
    algorithm = _algorithm(problem, {"across_channels": "ACROSS", "within_channel": "WITHIN"})
    return [*_one_layout(problem), f"--alg={algorithm}"]


def _pooling(problem: Problem) -> list[str]:
    source, target = problem.need("src", "data"), problem.need("dst", "data")
    without_strides(source, target)
    if tag(target, exact=False) not in ("any", concrete(source)):
        raise Inexpressible("source and destination differ in layout, and the driver takes one tag")
    return [
        f"--dir={problem.direction}",
        f"--alg={_algorithm(problem, _POOLING_ALGORITHMS)}",
        f"--dt={source.dt}:{target.dt}",
        f"--tag={concrete(source)}",
    ]


def _resampling(problem: Problem) -> list[str]:
    source, target = problem.need("src"), problem.need("dst")
    without_strides(source, target)
    if tag(target, exact=False) not in ("any", concrete(source)):
        raise Inexpressible("source and destination differ in layout, and the driver takes one tag")
    return [
        f"--dir={problem.direction}",
        f"--alg={problem.algorithm}",
        f"--sdt={source.dt}",
        f"--ddt={target.dt}",
        f"--tag={concrete(source)}",
    ]


def _softmax(problem: Problem) -> list[str]:
    source, target = problem.need("src", "data"), problem.need("dst", "data")
    without_strides(source, target)
    algorithm = _algorithm(problem, {"accurate": "SOFTMAX", "log": "LOGSOFTMAX"})
    return [
        f"--dir={problem.direction}",
        f"--alg={algorithm}",
        f"--axis={problem.auxiliary.get('axis', '1')}",
        f"--sdt={source.dt}",
        f"--ddt={target.dt}",
        f"--stag={concrete(source)}",
        f"--dtag={tag(target, exact=problem.exact)}",
    ]


def _shuffle(problem: Problem) -> list[str]:
    axes = [f"--{name}={problem.auxiliary[name]}" for name in ("axis", "group") if name in problem.auxiliary]
    return [*_one_layout(problem), *axes]


def _binary(problem: Problem) -> list[str]:
    sources, target = problem.all("src"), problem.need("dst")
    if len(sources) < 2:
        raise Inexpressible("the line describes fewer than two sources")
    if problem.algorithm == "select":
        raise Inexpressible("the algorithm select: its third source has no option for its type and layout")
    options = [f"--alg={problem.algorithm.upper()}", f"--sdt={sources[0].dt}:{sources[1].dt}", f"--ddt={target.dt}"]
    tensors = [*sources[:2], target]
    if any(one.strides for one in tensors):
        if not all(one.strides or tag(one, exact=problem.exact) == "any" for one in tensors):
            raise Inexpressible("strides for some of the tensors and layouts for others")
        return [*options, "--strides=" + ":".join(one.strides for one in tensors)]
    tags = [tag(one, exact=problem.exact) for one in tensors]
    return [*options, f"--stag={tags[0]}:{tags[1]}", f"--dtag={tags[2]}"]


def _concat(problem: Problem) -> list[str]:
    sources = problem.all("src")
    types = {one.dt for one in sources}
    if len(types) != 1:
        raise Inexpressible("sources of several data types, and the driver takes one")
    if len(sources) != problem.shapes.count(":") + 1:
        raise Inexpressible(f"only {len(sources)} of {problem.shapes.count(':') + 1} sources are described")
    return [
        f"--axis={problem.auxiliary.get('axis', '1')}",
        f"--sdt={sources[0].dt}",
        *_many(problem, sources),
    ]


def _sum(problem: Problem) -> list[str]:
    sources = problem.all("src")
    return ["--sdt=" + ":".join(one.dt for one in sources), *_many(problem, sources)]


def _many(problem: Problem, sources: list[Tensor]) -> list[str]:
    target = problem.need("dst")
    without_strides(*sources, target)
    tags = [concrete(one) for one in sources]
    return [
        f"--ddt={target.dt}",
        "--stag=" + ":".join(tags[:1] if len(set(tags)) == 1 else tags),
        f"--dtag={tag(target, exact=problem.exact)}",
    ]


def _reduction(problem: Problem) -> list[str]:
    source, target = problem.need("src"), problem.need("dst")
    without_strides(source, target)
    options = [
        f"--alg={problem.algorithm}",
        f"--sdt={source.dt}",
        f"--ddt={target.dt}",
        f"--stag={concrete(source)}",
        f"--dtag={tag(target, exact=problem.exact)}",
    ]
    if problem.algorithm.startswith("norm_lp"):
        options += [f"--{name}={problem.auxiliary[name]}" for name in ("p", "eps") if name in problem.auxiliary]
    return options


def _prelu(problem: Problem) -> list[str]:
    data, weights = problem.need("data", "src"), problem.need("wei")
    without_strides(data, weights)
    tags = f"{concrete(data)}:{tag(weights, exact=problem.exact)}"
    return [f"--dir={problem.direction}", f"--sdt={data.dt}:{weights.dt}", f"--stag={tags}"]


def _zero_padding(problem: Problem) -> list[str]:
    if not problem.tensors:
        raise Inexpressible("its line describes no tensor")
    data = problem.tensors[0]
    return [f"--dt={data.dt}", f"--tag={concrete(data)}"]


def _brgemm(problem: Problem) -> list[str]:
    triple = _triple(problem)
    weights = tags_or_strides({"w": triple["w"]}, exact=problem.exact)
    options = [f"--dt={':'.join(one.dt for one in triple.values())}"]
    options += [f"--{name}={problem.auxiliary[name]}" for name in ("bs", "beta") if name in problem.auxiliary]
    spelled = [f"--strides=:{one.removeprefix('--strides=')}:" if "--strides=" in one else one for one in weights]
    leading = [triple[letter].strides.partition("x")[0] for letter in "sd"]
    return options + spelled + ([f"--ld={leading[0]}::{leading[1]}"] if any(leading) else [])


def _attention(problem: Problem) -> list[str]:
    ends = [problem.need("query"), problem.need("key"), problem.need("val"), problem.need("dst")]
    without_strides(*ends)
    mask, scale = problem.auxiliary.get("msk"), problem.auxiliary.get("scl", "").partition(":")[0]
    masked = problem.find("msk")
    options = [f"--dir={problem.direction}", "--dt=" + ":".join(one.dt for one in ends)]
    options += [f"--{letter}tag={concrete(one)}" for letter, one in zip("qkvd", ends, strict=True)]
    options += [f"--mask={mask or 'buffer'}"] if mask or masked else []
    options += [f"--mdt={masked.dt}"] if masked else []
    return options + ([f"--scale={scale}"] if scale else [])


def _algorithm(problem: Problem, names: dict[str, str]) -> str:
    if problem.algorithm not in names:
        raise Inexpressible(f"the algorithm {problem.algorithm or 'is not said'}")
    return names[problem.algorithm]


#: Kind of primitive → driver.
DRIVERS: Final = {
    "batch_normalization": Driver("bnorm", _batch_normalization),
    "binary": Driver("binary", _binary, lambda problem: ":".join(problem.shapes.split(":")[:2])),
    "brgemm": Driver("brgemm", _brgemm),
    "concat": Driver("concat", _concat),
    "convolution": Driver("conv", _convolution),
    "deconvolution": Driver("deconv", _deconvolution),
    "eltwise": Driver("eltwise", _eltwise),
    "group_normalization": Driver("gnorm", _normalization),
    "inner_product": Driver("ip", _inner_product),
    "layer_normalization": Driver("lnorm", _normalization),
    "lrn": Driver("lrn", _lrn),
    "matmul": Driver("matmul", _matmul),
    "pooling": Driver("pool", _pooling),
    "prelu": Driver("prelu", _prelu),
    "reduction": Driver("reduction", _reduction),
    "reorder": Driver("reorder", _reorder),
    "resampling": Driver("resampling", _resampling),
    "rnn": Driver("rnn", recurrent.options),
    "sdpa": Driver("sdpa", _attention),
    "shuffle": Driver("shuffle", _shuffle),
    "softmax": Driver("softmax", _softmax),
    "sum": Driver("sum", _sum),
    "zero_pad": Driver("zeropad", _zero_padding),
}
