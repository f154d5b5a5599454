"""The grammar of benchdnn's command lines that oneDNN documents: options of each driver, and the form of its problem.

Source: ``tests/benchdnn/doc`` of oneDNN 3.13 (``driver_*.md``, ``knobs_*.md``), with two things read in the program
itself: directions are taken by all drivers from the one list of ``knobs_dir.md``, and ``deconv`` has no ``--strides``.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_DT = r"(?:f32|bf16|f16|s8|u8|s4|u4|s32|f8_e5m2|f8_e4m3|e8m0|f4_e2m1|f4_e3m0|f64)"
_TAG = r"(?:any|undef|[a-lA-L]+(?:\d+[a-l])*)"
_INT, _DIMS = r"\d+", r"\d+(?:x\d+)*"
_FLOAT = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
_BOOL = r"(?:true|false)"


def _list(one: str, least: int = 1, most: int | None = None) -> str:
    """One or more of the same, joined by colons."""
    return rf"{one}(?::{one}){{{least - 1},{'' if most is None else most - 1}}}"


def _joined(one: str) -> str:
    return rf"{one}(?:\+{one})*"


_MASK = r"(?:\d+|common|host_scalar|mx|dynamic_fp|per_oc|per_ocic|per_tensor|per_dim_(?:0|1|01|2|3))"
_ARGUMENT = r"(?:src[01]?|wei|dst|msrc\d+)"
_GROUPS = r"\d+x\d+"


def _quantization(value: str) -> str:
    single = rf"{_ARGUMENT}:(?:0|common|host_scalar):{value}(?::{_DT}(?::{_GROUPS})?)?"
    several = rf"{_ARGUMENT}:(?!(?:0|common|host_scalar)(?:[:+]|$)){_MASK}(?::{_DT}(?::{_GROUPS})?)?"
    return _joined(f"(?:{single}|{several})")


_ELTWISE = (
    r"(?:abs|exp|exp_dst|gelu_erf|gelu_tanh|log|logistic|logistic_dst|mish|round|sqrt|sqrt_dst|square|tanh|tanh_dst|"
    r"elu|elu_dst|relu|relu_dst|soft_relu|swish|clip|clip_v2|clip_v2_dst|hardsigmoid|hardswish|linear|pow)"
)
_BINARY = r"(?:add|div|eq|ge|gt|le|lt|max|min|mul|ne|sub)"
_POST_OPERATION = (
    rf"(?:sum(?::{_FLOAT}(?::-?\d+(?::{_DT})?)?)?|{_ELTWISE}(?::{_FLOAT}){{0,3}}|dw:k\d+s\d+p\d+(?::{_DT})?|"
    rf"{_BINARY}:{_DT}(?::{_MASK}(?::{_TAG}(?::{_DIMS})?)?)?|prelu(?::{_MASK})?)"
)
_ATTRIBUTES: Final = {
    "attr-scratchpad": r"(?:library|user)",
    "attr-fpmath": rf"(?:strict|bf16|f16|tf32|any)(?::{_BOOL})?",
    "attr-acc-mode": r"(?:strict|relaxed|any|f32|s32|f16)",
    "attr-rounding-mode": _joined(r"(?:dst|diff_src|diff_weights):(?:environment|stochastic)"),
    "attr-deterministic": _BOOL,
    "attr-dropout": rf"{_FLOAT}(?::\d+(?::{_TAG}(?::\d+(?::(?:1|0|{_BOOL}))?)?)?)?",
    "attr-scales": _quantization(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?"),
    "attr-zero-points": _quantization(r"-?\d+"),
    "attr-precomputed-reductions": _joined(rf"(?:src|wei):{_MASK}:{_DT}(?::{_GROUPS})?"),
    "attr-post-ops": _joined(_POST_OPERATION),
}
_COMMON: Final = {"engine": r"(?:cpu|gpu)(?::\d+)?", "mode": r"[CPFSBRILcpfsbril]", "allow-enum-tags-only": r"[01]"}
_DIR = r"(?:FWD_B|FWD_D|FWD_I|BWD_D|BWD_W|BWD_WB|BWD_DW)"
_STRIDES = rf"(?:{_DIMS})?:(?:{_DIMS})?(?::(?:{_DIMS})?)?"
_TRIPLE_TAGS = {"stag": _TAG, "wtag": _TAG, "dtag": _TAG}
_ENDS = {"sdt": _DT, "ddt": _DT, "stag": _TAG, "dtag": _TAG}
_ONE = {"dir": _DIR, "dt": _DT, "tag": _TAG}
_AXIS = {"axis": _INT}
_CONVOLUTION = {
    "dir": _DIR,
    "dt": _list(_DT, 1, 3),
    "bia-dt": _DT,
    "alg": r"(?:DIRECT|WINO|AUTO)",
    **_TRIPLE_TAGS,
}
_OPTIONS: Final[dict[str, dict[str, str]]] = {
    "binary": {
        "sdt": _list(_DT, 2, 2),
        "ddt": _DT,
        "stag": _list(_TAG, 2, 2),
        "dtag": _TAG,
        "strides": _STRIDES,
        "alg": r"(?:ADD|DIV|EQ|GE|GT|LE|LT|MAX|MIN|MUL|NE|SUB)",
    },
    "bnorm": {**_ONE, "strides": _STRIDES, "flags": r"[GCHRA]+"},
    "brgemm": {
        "dt": _list(_DT, 1, 3),
        "bia_dt": _DT,
        "wtag": _TAG,
        "strides": _STRIDES,
        "bs": _INT,
        "ld": r"\d*:\d*:\d*",
        "alpha": _FLOAT,
        "beta": _FLOAT,
    },
    "concat": {"sdt": _DT, "ddt": _DT, "stag": _list(_TAG), "dtag": _TAG, **_AXIS},
    "conv": {**_CONVOLUTION, "strides": _STRIDES},
    "deconv": _CONVOLUTION,
    "eltwise": {**_ONE, "alg": _ELTWISE, "alpha": _FLOAT, "beta": _FLOAT},
    "gnorm": {"dir": _DIR, "dt": _list(_DT, 1, 2), "tag": _list(_TAG, 1, 2), "flags": r"[GCH]+"},
    "ip": {"dir": _DIR, "dt": _list(_DT, 1, 3), "bia-dt": _DT, **_TRIPLE_TAGS},
    "lnorm": {
        "dir": _DIR,
        "dt": _list(_DT, 1, 2),
        "tag": _list(_TAG, 1, 2),
        "flags": r"[GCHM]+",
        "stat_tag": _TAG,
        "ss_dt": _DT,
    },
    "lrn": {**_ONE, "alg": r"(?:ACROSS|WITHIN)"},
    "matmul": {
        "dt": _list(_DT, 1, 3),
        "bia-dt": _DT,
        "bia_mask": _INT,
        "strides": _STRIDES,
        "runtime_dims_masks": r"\d*(?::\d*)?",
        **_TRIPLE_TAGS,
    },
    "pool": {**_ONE, "dt": _list(_DT, 1, 2), "alg": r"(?:max|avg_np|avg_p)"},
    "prelu": {"dir": _DIR, "sdt": _list(_DT, 2, 2), "stag": _list(_TAG, 2, 2)},
    "reduction": {
        **_ENDS,
        "alg": r"(?:max|min|sum|mul|mean|norm_lp_(?:power_p_)?(?:max|sum))",
        "p": _FLOAT,
        "eps": _FLOAT,
    },
    "reorder": {
        **_ENDS,
        "strides": _STRIDES,
        "oflag": _joined(r"(?:s8s8_comp|zp_comp):\d+"),
        "runtime_dim_mask": _INT,
        "cross-engine": r"(?:none|cpu2gpu|gpu2cpu)",
    },
    "resampling": {"dir": _DIR, "sdt": _DT, "ddt": _DT, "tag": _TAG, "alg": r"(?:nearest|linear)"},
    "rnn": {
        "prop": r"(?:FWD_I|FWD_D|BWD_DW)",
        "cfg": r"(?:f32|bf16|bf16f32|u8u8u8u8|u8u8u8f32|f32u8f32u8|f32u8f32f32|f16)",
        "tag": _list(_TAG, 3, 3),
        "alg": r"(?:VANILLA_(?:RNN|LSTM|GRU|AUGRU)|LBR_(?:GRU|AUGRU))",
        "direction": r"(?:left2right|right2left|concat|sum)",
        "activation": r"(?:RELU|LOGISTIC|TANH)",
        "flags": "O",
        **dict.fromkeys(("trivial-strides", "with-peephole", "with-projection", "skip-nonlinear"), _BOOL),
    },
    "sdpa": {
        "dir": _DIR,
        "dt": _list(_DT, 1, 4),
        "mdt": _DT,
        "scale": r"(?:library|mul|div)",
        "mask": r"(?:none|buffer|buffer_1d|buffer_2d|causal_top_left|causal_bottom_right)",
        **dict.fromkeys(("qtag", "ktag", "vtag", "dtag"), _TAG),
    },
    "shuffle": {**_ONE, **_AXIS, "group": _INT},
    "softmax": {"dir": _DIR, **_ENDS, "alg": r"(?:SOFTMAX|LOGSOFTMAX)", **_AXIS},
    "sum": {"sdt": _list(_DT, 2), "ddt": _DT, "stag": _list(_TAG), "dtag": _TAG, "scales": _list(_FLOAT)},
    "zeropad": {"dt": _DT, "tag": _TAG},
}


def _entries(names: str, numbers: str = "") -> str:
    """A problem of entries such as ``mb1ic3``: these names in any order, underscores between them as one likes."""
    entry = rf"(?:{names})\d+" + (rf"|(?:{numbers}){_FLOAT}" if numbers else "")
    return rf"(?:{entry})(?:_*(?:{entry}))*"


_IMAGE = "i[cdhw]"
_WINDOW = f"mb|{_IMAGE}|o[dhw]|[ksdp][dhw]"
_PROBLEMS: Final = {
    "binary": _list(_DIMS, 2, 2),
    "bnorm": _entries(f"mb|{_IMAGE}", "eps"),
    "brgemm": _list(r"\d+x\d+", 2, 2),
    "concat": _list(_DIMS, 2),
    "conv": _entries(f"g|oc|{_WINDOW}"),
    "deconv": _entries(f"g|oc|{_WINDOW}"),
    "eltwise": _DIMS,
    "gnorm": _entries(f"g|mb|{_IMAGE}", "eps"),
    "ip": _entries(f"mb|oc|{_IMAGE}"),
    "lnorm": _DIMS,
    "lrn": _entries(f"mb|ls|{_IMAGE}", "alpha|beta|k"),
    "matmul": _list(r"\d+(?:x\d+)+", 2, 3),
    "pool": _entries(_WINDOW),
    "prelu": _list(_DIMS, 2, 2),
    "reduction": _list(_DIMS, 2, 2),
    "reorder": _DIMS,
    "resampling": _entries(f"mb|{_IMAGE}|o[dhw]"),
    "rnn": _entries("l|t|mb|sic|slc|dhc|dic"),
    "sdpa": _list(_DIMS, 3, 3),
    "shuffle": _DIMS,
    "softmax": _DIMS,
    "sum": _DIMS,
    "zeropad": _DIMS,
}
DRIVERS: Final = tuple(_OPTIONS)


class Line(NamedTuple):
    """A command line, taken apart: options by name, without the driver's."""

    driver: str
    options: dict[str, str]
    problem: str


def parse(arguments: list[str]) -> Line:
    """Take the arguments of one run of one driver apart; raises ValueError, in words, where the grammar has no such."""
    names = [word.removeprefix("--") for word in arguments if word.removeprefix("--") in _OPTIONS]
    if len(names) != 1:
        raise ValueError(f"a line names one driver, not {len(names)}")
    driver, options, problems = names[0], dict[str, str](), []
    allowed = {**_COMMON, **_OPTIONS[driver], **({} if driver == "zeropad" else _ATTRIBUTES)}
    for word in arguments:
        if not word.startswith("--"):
            problems.append(word)
            continue
        name, equals, value = word.removeprefix("--").partition("=")
        if name == driver and not equals:
            continue
        if name not in allowed:
            raise ValueError(f"the driver {driver} has no option --{name}")
        if not re.fullmatch(allowed[name], value):
            raise ValueError(f"--{name} of the driver {driver} can't be {value or 'empty'}")
        options[name] = value
    if len(problems) != 1:
        raise ValueError(f"the driver {driver} takes one problem, not {len(problems)}")
    if not re.fullmatch(_PROBLEMS[driver], problems[0]):
        raise ValueError(f"{problems[0] or 'an empty text'} is no problem of the driver {driver}")
    return Line(driver, options, problems[0])
