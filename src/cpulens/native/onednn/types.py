"""Values of oneDNN's C enumerations, under the names that its verbose lines print.

Source of the values: ``dnnl_types.h`` and ``dnnl_common_types.h`` of oneDNN 3.0 to 3.13, where none of those used
here has ever changed. Format tags are the exception: there are several hundred, new ones come with every release, so
the loaded library itself is asked for them (`OneDnn.format_tags`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, TypeVar

from cpulens.errors import UsageError

MAX_NDIMS: Final = 12


class DataType(IntEnum):
    """``dnnl_data_type_t``; members beyond u8 need a newer library than 3.2 or another engine than the CPU."""

    f16 = 1
    bf16 = 2
    f32 = 3
    s32 = 4
    s8 = 5
    u8 = 6
    f64 = 7
    f8_e5m2 = 9
    f8_e4m3 = 10

    @property
    def size_bytes(self) -> int:
        """Bytes of one element."""
        return _SIZE_BYTES[self]


_SIZE_BYTES: Final = {
    DataType.f16: 2,
    DataType.bf16: 2,
    DataType.f32: 4,
    DataType.s32: 4,
    DataType.s8: 1,
    DataType.u8: 1,
    DataType.f64: 8,
    DataType.f8_e5m2: 1,
    DataType.f8_e4m3: 1,
}


class PropKind(IntEnum):
    """``dnnl_prop_kind_t``, the forward ones."""

    forward_training = 64
    forward_inference = 96


class Algorithm(IntEnum):
    """``dnnl_alg_kind_t`` of the primitives bound here and of binary post-operations."""

    convolution_direct = 0x1
    convolution_winograd = 0x2
    convolution_auto = 0x3
    eltwise_relu = 0x20
    eltwise_tanh = 0x21
    eltwise_elu = 0x22
    eltwise_square = 0x23
    eltwise_abs = 0x24
    eltwise_sqrt = 0x25
    eltwise_linear = 0x26
    eltwise_soft_relu = 0x27
    eltwise_hardsigmoid = 0x28
    eltwise_logistic = 0x29
    eltwise_exp = 0x2A
    eltwise_gelu_tanh = 0x2B
    eltwise_swish = 0x2C
    eltwise_log = 0x2D
    eltwise_clip = 0x2E
    eltwise_clip_v2 = 0x2F
    eltwise_pow = 0x30
    eltwise_gelu_erf = 0x31
    eltwise_round = 0x32
    eltwise_mish = 0x33
    eltwise_hardswish = 0x34
    eltwise_relu_use_dst_for_bwd = 0x100
    eltwise_tanh_use_dst_for_bwd = 0x101
    eltwise_elu_use_dst_for_bwd = 0x102
    eltwise_sqrt_use_dst_for_bwd = 0x103
    eltwise_logistic_use_dst_for_bwd = 0x104
    eltwise_exp_use_dst_for_bwd = 0x105
    eltwise_clip_v2_use_dst_for_bwd = 0x106
    binary_add = 0x1FFF0
    binary_mul = 0x1FFF1
    binary_max = 0x1FFF2
    binary_min = 0x1FFF3
    binary_div = 0x1FFF4
    binary_sub = 0x1FFF5
    binary_ge = 0x1FFF6
    binary_gt = 0x1FFF7
    binary_le = 0x1FFF8
    binary_lt = 0x1FFF9
    binary_eq = 0x1FFFA
    binary_ne = 0x1FFFB
    softmax_accurate = 0x30000
    softmax_log = 0x30001


class FpMathMode(IntEnum):
    """``dnnl_fpmath_mode_t``: the types that f32 computations may silently be rounded to."""

    strict = 0
    bf16 = 1
    f16 = 2
    any = 3
    tf32 = 4


class ScratchpadMode(IntEnum):
    """``dnnl_scratchpad_mode_t``: who owns the temporary memory of a primitive."""

    library = 0
    user = 1


class FormatKind(IntEnum):
    """``dnnl_format_kind_t``, as far as a CPU client meets it."""

    undef = 0
    any = 1
    blocked = 2
    opaque = 3


class Query(IntEnum):
    """``dnnl_query_t``, those asked here."""

    impl_info_str = 8
    strides = 14
    exec_arg_md = 255
    ndims = 256
    dims = 257
    data_type = 258
    padded_dims = 260
    format_kind = 262
    inner_nblks = 263
    inner_blks = 264
    inner_idxs = 265


#: Name of an execution argument → ``DNNL_ARG_*``.
ARGUMENTS: Final = {"src": 1, "dst": 17, "weights": 33, "bias": 41, "workspace": 64, "scratchpad": 80}
ARG_SCALES: Final = 4096
ARG_ZERO_POINTS: Final = 8192
ARG_POST_OP: Final = 32768
ARG_SRC_1: Final = 2

#: ``dnnl_status_t``.
STATUS: Final = {
    0: "success",
    1: "out_of_memory",
    2: "invalid_arguments",
    3: "unimplemented",
    4: "last_impl_reached",
    5: "runtime_error",
    6: "not_required",
    7: "invalid_graph",
    8: "invalid_graph_op",
    9: "invalid_shape",
    10: "invalid_data_type",
}

_Enum = TypeVar("_Enum", bound=IntEnum)


def named(kind: type[_Enum], name: str | _Enum) -> _Enum:
    """The member of `kind` called `name`; `UsageError` with the names there are."""
    if isinstance(name, kind):
        return name
    try:
        return kind[str(name)]
    except KeyError:
        raise UsageError(f"unknown {kind.__name__} {name!r}; known: {', '.join(kind.__members__)}") from None


def argument_index(name: str) -> int:
    """``DNNL_ARG_*`` of an argument's name.

    Names are those of `ARGUMENTS`, ``scales_src`` and ``zero_points_src`` (also of weights and dst) for values that
    attributes leave to the execution, and ``post_op_0`` for the second source of the binary post-operation at that
    place. Raises `UsageError`.
    """
    for prefix, base in (("scales_", ARG_SCALES), ("zero_points_", ARG_ZERO_POINTS)):
        if name.startswith(prefix) and name.removeprefix(prefix) in ARGUMENTS:
            return base | ARGUMENTS[name.removeprefix(prefix)]
    place = name.removeprefix("post_op_")
    if place != name and place.isdecimal():
        return ARG_POST_OP * (int(place) + 1) | ARG_SRC_1
    if name not in ARGUMENTS:
        known = ", ".join((*ARGUMENTS, "scales_<argument>", "zero_points_<argument>", "post_op_<place>"))
        raise UsageError(f"unknown argument {name!r} of a oneDNN primitive; known: {known}")
    return ARGUMENTS[name]
