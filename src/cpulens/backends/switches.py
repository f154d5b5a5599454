"""The table behind `settings`: one row a switch, with how it is read and changed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from cpulens.backends import cpu, openmp, opt_einsum, python_native, pytorch, verbosity
from cpulens.backends.levels import parse_level
from cpulens.backends.pytorch import Lacking

#: Changes a value and returns what puts back the one that was found.
Change = Callable[[Any], Callable[[], None]]


class Switch(NamedTuple):
    """One row. `change` is None for one that can only be read; `refusal` then says why."""

    name: str
    summary: str
    read: Callable[[], Any]
    change: Change | None = None
    refusal: str = ""
    kind: type | None = bool


def _attribute(name: str, summary: str, kind: type | None = bool) -> Switch:
    """An attribute below torch.backends."""
    owner_path, _, attribute = f"backends.{name}".rpartition(".")

    def change(value: Any) -> Callable[[], None]:
        owner, found = pytorch.lookup(owner_path), read()
        if found is None:
            raise Lacking(f"{name} has no value to change: PyTorch {pytorch.version()} is built without its device")
        setattr(owner, attribute, value)
        return lambda: setattr(owner, attribute, found)

    def read() -> Any:
        return pytorch.lookup(f"{owner_path}.{attribute}")

    return Switch(name, summary, read, change, kind=kind)


def _functions(name: str, summary: str, getter: str, setter: str) -> Switch:
    """A pair of functions below torch."""

    def change(value: Any) -> Callable[[], None]:
        found, put = pytorch.lookup(getter, name)(), pytorch.lookup(setter, name)
        put(value)
        return lambda: put(found)

    return Switch(name, summary, lambda: bool(pytorch.lookup(getter, name)()), change)


_GET_PRECISION: Final = "_C._get_fp32_precision_getter"
_SET_PRECISION: Final = "_C._set_fp32_precision_setter"


def _precision(name: str, backend: str, operation: str, summary: str) -> Switch:
    """One place of PyTorch's tree of precisions; "none" takes the place's value from the one above.

    `torch.backends.mkldnn.fp32_precision` sets the root instead of oneDNN's place (2.13), so the tree is used itself.
    """

    def change(value: Any) -> Callable[[], None]:
        put, found = pytorch.lookup(_SET_PRECISION, name), _inherited(name, backend, operation)
        put(backend, operation, value)
        return lambda: put(backend, operation, found)

    def read() -> Any:
        return pytorch.lookup(_GET_PRECISION, name)(backend, operation)

    return Switch(name, summary, read, change, kind=str)


def _inherited(name: str, backend: str, operation: str) -> str:
    """A place's value, "none" where it says the same as the one above: which of both it was can't be read."""
    get = pytorch.lookup(_GET_PRECISION, name)
    if (backend, operation) == ("generic", "all"):
        return str(get(backend, operation))
    above = (backend, "all") if operation != "all" else ("generic", "all")
    own = str(get(backend, operation))
    return "none" if own == get(*above) else own


def _tf32(name: str, summary: str, operations: tuple[str, ...]) -> Switch:
    """An older switch that writes into the tree of precisions: what it overwrites there is put back too."""
    plain = _attribute(name, summary)
    assert plain.change is not None
    apply = plain.change

    def change(value: Any) -> Callable[[], None]:
        found = {operation: _inherited(name, "cuda", operation) for operation in operations}
        undo = apply(value)

        def put_back() -> None:
            undo()
            for operation, precision in found.items():
                pytorch.lookup(_SET_PRECISION, name)("cuda", operation, precision)

        return put_back

    return plain._replace(change=change)


def _reduction(precision: str) -> tuple[Switch, Switch]:
    """Whether products may reduce in a precision, and whether split-k ones may: PyTorch sets both together."""
    name = f"cuda.matmul.allow_{precision}_reduced_precision_reduction"
    plain = _attribute(name, f"whether {precision} products may reduce in it; a pair sets split-k too", None)

    def change(value: Any) -> Callable[[], None]:
        products = pytorch.lookup("backends.cuda.matmul", name)
        attribute = name.rpartition(".")[2]
        found = (getattr(products, attribute), getattr(products, f"{attribute}_split_k"))
        setattr(products, attribute, value)
        return lambda: setattr(products, attribute, found)

    split_k = _read_only(
        f"{name}_split_k",
        f"whether split-k {precision} products may reduce in it",
        lambda: pytorch.lookup(f"backends.{name}_split_k"),
        f"PyTorch sets it with its partner, as a pair: {name} = (allow, allow_split_k)",
    )
    return plain._replace(change=change), split_k


def _both(name: str, summary: str, kind: type) -> Switch:
    """A function of torch.backends that answers without an argument and sets with one."""

    def change(value: Any) -> Callable[[], None]:
        function = pytorch.lookup(f"backends.{name}")
        found = function()
        function(value)

        def put_back() -> None:
            function(found)

        return put_back

    def read() -> Any:
        return _plain(pytorch.lookup(f"backends.{name}")())

    return Switch(name, summary, read, change, kind=kind)


def _plain(value: Any) -> Any:
    """PyTorch's enumerations by the words that it takes: `_BlasBackend.Cublas` → "cublas"."""
    return value if isinstance(value, int) and type(value) is int else str(value).rpartition(".")[2].lower()


def _read_only(name: str, summary: str, read: Callable[[], Any], refusal: str) -> Switch:
    return Switch(name, summary, read, None, refusal, None)


def _verbose(name: str, library: str) -> Switch:
    def change(value: Any) -> Callable[[], None]:
        request = verbosity.acquire(**{library: parse_level(library, value)})
        return lambda: verbosity.release(request)

    return Switch(name, "verbose level", lambda: verbosity.level(library), change, kind=None)


def _dsl(dsl: python_native.Dsl) -> Switch:
    def change(value: Any) -> Callable[[], None]:
        found = dsl.enabled
        dsl.enabled = value

        def put_back() -> None:
            dsl.enabled = found

        return put_back

    return Switch(f"python_native.{dsl.name}.enabled", "whether its operators may be used", lambda: dsl.enabled, change)


def _einsum(name: str, summary: str, kind: type) -> Switch:
    switches: Any = opt_einsum

    def change(value: Any) -> Callable[[], None]:
        return opt_einsum.swap(name, value)

    return Switch(f"opt_einsum.{name}", summary, lambda: getattr(switches, name), change, kind=kind)


def _disabled_operations() -> list[str]:
    if not python_native.is_available():
        raise Lacking(f"python_native can't be used: {python_native.why_not()}")
    known = [name for dsl in python_native.all_dsls for name in python_native.get_dsl_operations(dsl)]
    return sorted(name for name in set(known) if python_native.is_operation_disabled(name))


def _change_operations(value: Any) -> Callable[[], None]:
    stack = contextlib.ExitStack()
    stack.enter_context(python_native.operations_disabled(*value))
    return stack.close


_SDP: Final = "whether attention may use it: "
TABLE: Final = (
    _read_only(
        "cpu.cpu_capability",
        "the capability that PyTorch's kernels are chosen for",
        cpu.get_cpu_capability,
        "PyTorch reads ATEN_CPU_CAPABILITY once, when its first kernel is chosen",
    ),
    _read_only(
        "cpu.onednn_isa",
        "the highest instruction set that oneDNN uses",
        cpu.onednn_isa,
        "oneDNN reads ONEDNN_MAX_CPU_ISA once, at its first kernel",
    ),
    _verbose("mkl.verbose", "mkl"),
    _verbose("mkldnn.verbose", "onednn"),
    Switch(
        "openmp.num_threads",
        "threads of a parallel region",
        openmp.get_num_threads,
        openmp.swap_num_threads,
        kind=int,
    ),
    _precision("fp32_precision", "generic", "all", "precision in which float32 may be computed, everywhere"),
    _attribute("mkldnn.enabled", "whether PyTorch uses oneDNN"),
    _attribute("mkldnn.deterministic", "whether oneDNN uses deterministic kernels only"),
    _attribute("mkldnn.allow_tf32", "whether oneDNN may use TF32"),
    _precision("mkldnn.fp32_precision", "mkldnn", "all", "precision in which oneDNN may compute float32"),
    _precision("mkldnn.matmul.fp32_precision", "mkldnn", "matmul", "the same, of matrix products"),
    _precision("mkldnn.conv.fp32_precision", "mkldnn", "conv", "the same, of convolutions"),
    _precision("mkldnn.rnn.fp32_precision", "mkldnn", "rnn", "the same, of recurrent layers"),
    _functions("nnpack.enabled", "whether NNPACK is used", "_C._get_nnpack_enabled", "_C._set_nnpack_enabled"),
    _einsum("enabled", "whether torch.einsum plans with opt_einsum", bool),
    _einsum("strategy", "how opt_einsum plans: auto, greedy, optimal", str),
    _functions(
        "mha.fastpath_enabled",
        "fast path of attention layers",
        "backends.mha.get_fastpath_enabled",
        "backends.mha.set_fastpath_enabled",
    ),
    _dsl(python_native.triton),
    _dsl(python_native.cutedsl),
    Switch(
        "python_native.disabled_operations",
        "operators that are switched off, by name; a scope adds to them",
        _disabled_operations,
        _change_operations,
        kind=None,
    ),
    _tf32("cuda.matmul.allow_tf32", "whether products may use TF32", ("matmul",)),
    *_reduction("fp16"),
    *_reduction("bf16"),
    _attribute("cuda.matmul.allow_fp16_accumulation", "whether fp16 products may accumulate in it"),
    _attribute("cuda.matmul.prefer_cublaslt_grouped_gemm", "whether grouped products prefer cuBLASLt"),
    _both("cuda.preferred_blas_library", "BLAS that is preferred", str),
    _both("cuda.preferred_linalg_library", "linear algebra that is preferred", str),
    _both("cuda.preferred_rocm_fa_library", "flash attention that ROCm prefers", str),
    _both("cuda.cublas_workspace_size", "workspace of cuBLAS in bytes", int),
    _both("cuda.cublaslt_workspace_size", "workspace of cuBLASLt in bytes", int),
    _attribute("cuda.cufft_plan_cache.max_size", "plans that cuFFT keeps", int),
    _read_only(
        "cuda.cufft_plan_cache.size",
        "plans that cuFFT has now",
        lambda: pytorch.lookup("backends.cuda.cufft_plan_cache.size"),
        "it counts the plans in the cache; max_size sets how many may be",
    ),
    *(
        _functions(
            f"cuda.{name}_enabled", _SDP + kernel, f"backends.cuda.{name}_enabled", f"backends.cuda.enable_{name}"
        )
        for name, kernel in (
            ("flash_sdp", "flash attention"),
            ("mem_efficient_sdp", "memory-efficient attention"),
            ("math_sdp", "plain operations"),
            ("cudnn_sdp", "cuDNN"),
        )
    ),
    _functions(
        "cuda.fp16_bf16_reduction_math_sdp_allowed",
        "whether plain attention may reduce in fp16 and bf16",
        "backends.cuda.fp16_bf16_reduction_math_sdp_allowed",
        "backends.cuda.allow_fp16_bf16_reduction_math_sdp",
    ),
    _attribute("cudnn.enabled", "whether cuDNN is used"),
    _attribute("cudnn.deterministic", "whether cuDNN uses deterministic algorithms only"),
    _attribute("cudnn.benchmark", "whether cuDNN tries algorithms and keeps the fastest"),
    _attribute("cudnn.benchmark_limit", "how many algorithms are tried; None without cuDNN", int),
    _tf32("cudnn.allow_tf32", "whether convolutions may use TF32", ("conv", "rnn")),
    _attribute("miopen.immediate", "whether MIOpen picks an algorithm at once"),
)
