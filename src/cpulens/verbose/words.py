"""Plain words for what stands in a line: operations, families, instruction sets, layouts, post-operations."""

from __future__ import annotations

import re
from typing import Final

EVENTS: Final = {
    "exec": "it ran",
    "create": "the primitive was created (code generated, memory laid out); the search for it is not in this time",
    "create_nested": "a primitive was created inside the creation of another one",
    "compile": "a graph partition was compiled",
    "dispatch": "an implementation was considered and refused; the next creation for the problem tells which was taken",
    "check": "an argument was refused, or is not used",
    "error": "an error",
    "warn": "a warning",
    "info": "the library says something of itself",
    "external": "a kernel of another library, called by oneDNN; its time lies inside an execution",
    "query": "a call that only asks for the size of the workspace (lwork = -1)",
    "begin": "a call or region begins",
    "end": "a region ends",
    "iteration": "an iteration begins",
    "unknown": "it begins like a verbose line, but is not a whole one of any version",
}
CACHE: Final = {
    "hit": "taken from the cache",
    "miss": "not in the cache: made anew",
    "from_cache_blob": "made from a cache blob",
    "persistent_hit": "taken from the persistent cache",
    "kernel_hit": "its kernels were taken from the cache",
    "nested_hit": "a nested primitive was taken from the cache",
}
FAMILIES: Final = {
    "brgemm": "batch-reduce GEMM kernels, generated at run time",
    "jit": "kernels generated at run time",
    "gemm": "built on a matrix multiplication",
    "ref": "reference code: plain loops, most often very slow",
    "simple": "plain C++ code without generated kernels",
    "acl": "Arm Compute Library",
    "reorder": "a copy into another layout",
    "graph": "a partition of oneDNN's graph API",
    "zen": "AMD ZenDNN",
    "vendor": "a library of the hardware's maker",
    "ocl": "OpenCL kernels for a GPU",
    "blas": "BLAS",
    "lapack": "LAPACK",
    "fft": "Fourier transforms",
    "rng": "random numbers",
    "sparse": "sparse matrices",
}
PROPAGATION: Final = {
    "forward_inference": "forward, for inference only",
    "forward_training": "forward, keeping what the backward pass needs",
    "forward_scoring": "forward, for inference only (old name)",
    "backward_data": "gradient of the source",
    "backward_weights": "gradient of the weights",
    "backward_bias": "gradient of the bias",
    "backward": "gradient of source and weights",
    "undef": "not told apart by direction",
}
TYPES: Final = {
    "f32": "32-bit float",
    "f64": "64-bit float",
    "f16": "16-bit float",
    "bf16": "bfloat16",
    "s8": "signed 8-bit integer",
    "u8": "unsigned 8-bit integer",
    "s32": "signed 32-bit integer",
    "s4": "signed 4-bit integer",
    "u4": "unsigned 4-bit integer",
    "cf32": "complex of 32-bit floats",
    "cf64": "complex of 64-bit floats",
    "f8_e5m2": "8-bit float, 5 bits of exponent",
    "f8_e4m3": "8-bit float, 4 bits of exponent",
    "undef": "absent",
}
ATTRIBUTES: Final = {
    "attr-scratchpad": "scratch memory is given by the caller (user) or the library",
    "attr-scales": "scales, as argument:mask[:type[:groups]] (mask: along which dimensions they vary)",
    "attr-oscale": "scale of the output, as mask[:value] (versions up to 2.x)",
    "attr-zero-points": "zero points, as argument:mask[:type]",
    "attr-post-ops": "done to the result before it is stored",
    "attr-fpmath": "f32 may be computed in this type",
    "attr-acc-mode": "type of the accumulation",
    "attr-rounding-mode": "how results are rounded",
    "attr-deterministic": "the same input gives the same bits",
    "attr-dropout": "dropout",
    "attr-precomputed-reductions": "sums over the source were computed before",
    "fpm": "f32 may be computed in this mode",
    "scratchpad": "bytes of scratch memory",
    "lda": "leading dimension of the first matrix",
    "ldb": "leading dimension of the second matrix",
    "ldc": "leading dimension of the result",
}
DIMENSIONS: Final = {
    "mb": "batch", "g": "groups", "ic": "input channels", "oc": "output channels",
    "m": "rows of the result", "n": "columns of the result", "k": "length of the sums", "batch": "batch", "b": "batch",
    "l": "layers", "t": "time steps", "sic": "channels of the state", "slc": "channels of the layer's input",
    "dhc": "channels of the hidden state", "dic": "channels of the output", "ls": "local size", "beta": "beta",
    "nrhs": "right-hand sides", "nnz": "entries that are not zero", "kl": "diagonals below", "ku": "diagonals above",
}  # fmt: skip
_AXES: Final = {"d": "depth", "h": "height", "w": "width"}
_SIDES: Final = {"i": "input", "o": "output", "k": "kernel", "s": "stride", "d": "dilation", "p": "padding before"}
_PROPERTIES: Final = {
    "a": "the layout was chosen by the library",
    "p": "padded",
    "o": "with padded offsets",
    "0": "with an offset",
}
_BLOCK: Final = re.compile(r"(\d+)([a-z])")


def dimension(name: str) -> str:
    """Say what a number of a problem is: ``kh`` is the kernel's height."""
    if name in DIMENSIONS:
        return DIMENSIONS[name]
    if len(name) == 2 and name[0] in _SIDES and name[1] in _AXES:
        return f"{_SIDES[name[0]]} {_AXES[name[1]]}"
    if name.startswith("elements"):
        return "elements" + (f" of tensor {name[8:]}" if name[8:] else "")
    return f"size of dimension {name[1:]}" if name[:1] == "d" and name[1:].isdigit() else name


def layout(kind: str, tag: str) -> str:
    """Say how a tensor lies in memory: from its format kind and tag."""
    if kind == "any":
        return "layout left to the library"
    if kind in ("wino", "rnn_packed", "opaque", "sparse") or kind != "blocked":
        return f"{kind} layout"
    order = _BLOCK.sub("", tag).lower()
    names = ", ".join(str(ord(letter) - ord("a")) for letter in order)
    plain = order == "".join(sorted(order))
    shown = "dimensions in order" if plain else f"dimensions in the order {names}"
    blocks = " x ".join(f"{size} of dimension {ord(dim) - ord('a')}" for size, dim in _BLOCK.findall(tag))
    return f"{shown}, in blocks of {blocks}" if blocks else shown


def properties(letters: str) -> str:
    """Say what the letters of a descriptor mean."""
    words = {
        "a": "the layout was chosen by the library",
        "p": "padded",
        "o": "with padded offsets",
        "0": "with an offset",
    }
    return ", ".join(words[letter] for letter in letters if letter in words)


def post_operation(text: str) -> str:
    """Say what one post-operation does."""
    name, _, rest = text.partition(":")
    parts = rest.split(":") if rest else []
    if name == "sum":
        return "add the earlier destination" + (f", times {parts[0]}" if parts else "")
    if name.startswith("eltwise_"):
        named = ", ".join(f"{label} {value}" for label, value in zip(("alpha", "beta", "scale"), parts, strict=False))
        return name.removeprefix("eltwise_") + (f" ({named})" if named else "")
    if name.startswith("binary_"):
        return f"{name.removeprefix('binary_')} with another tensor" + (f" of {parts[0]}" if parts else "")
    if name == "prelu":
        return "PReLU"
    if name == "dw":
        return f"a depthwise convolution {parts[0] if parts else ''}".strip()
    return text
