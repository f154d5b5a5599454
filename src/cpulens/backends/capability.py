"""What PyTorch and oneDNN make of a processor: pure decisions, by their own rules.

PyTorch: ``aten/src/ATen/native/DispatchStub.cpp`` and ``aten/src/ATen/Version.cpp``. oneDNN:
``src/cpu/x64/cpu_isa_traits.{hpp,cpp}``, ``src/cpu/aarch64/cpu_isa_traits.hpp``, and the masks in ``dnnl_types.h``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cpulens.machine.isa import Processor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Choice(NamedTuple):
    """A name, and a sentence where the environment or the kernel stood against what the processor has ("" if not)."""

    name: str
    note: str = ""


#: Architecture → words that ATEN_CPU_CAPABILITY takes there → capability.
_ATEN_WORDS: Final = {
    "x86_64": {"avx512": "AVX512", "avx2": "AVX2", "default": "DEFAULT"},
    "aarch64": {"sve256": "SVE256", "sve128": "SVE128", "default": "DEFAULT"},
    "ppc64le": {"vsx": "VSX", "default": "DEFAULT"},
    "s390x": {"zvector": "Z VECTOR", "default": "DEFAULT"},
}
_X86_ORDER: Final = ("DEFAULT", "AVX2", "AVX512")
#: PyTorch says "NO AVX" for an x86 processor without AVX2 before this version, "DEFAULT" from it on.
_STANDARD_NAMES: Final = (2, 9)
#: The first version that has kernels for SVE of 128 bits.
_SVE128: Final = (2, 12)


def torch_capability(processor: Processor, setting: str | None, version: tuple[int, int] | None = None) -> Choice:
    """PyTorch's capability of a processor.

    `setting` is ATEN_CPU_CAPABILITY (None: not set), which PyTorch compares letter by letter, lower case. `version`
    is PyTorch's (None: a current one); it decides between "NO AVX" and "DEFAULT", and about SVE128.
    """
    own = _own_capability(processor, version)
    if setting is None:
        return Choice(_spelled(own, processor, version))
    words = _ATEN_WORDS.get(processor.architecture, {"default": "DEFAULT"})
    if setting not in words or (setting == "sve128" and _older(version, _SVE128)):
        note = f"PyTorch ignores ATEN_CPU_CAPABILITY={setting}: it takes {', '.join(words)} here"
        return Choice(_spelled(own, processor, version), note)
    wanted = words[setting]
    if processor.architecture == "aarch64" and wanted not in (own, "DEFAULT"):
        return Choice("DEFAULT", f"ATEN_CPU_CAPABILITY={setting} is not what this processor has: PyTorch falls back")
    note = ""
    if wanted in _X86_ORDER and own in _X86_ORDER and _X86_ORDER.index(wanted) > _X86_ORDER.index(own):
        note = f"ATEN_CPU_CAPABILITY={setting} asks for more than the processor has ({own}): its kernels will crash"
    return Choice(_spelled(wanted, processor, version), note)


def _own_capability(processor: Processor, version: tuple[int, int] | None) -> str:
    if not processor.listed and processor.architecture in ("x86_64", "aarch64"):
        return "DEFAULT"  # PyTorch reads /proc/cpuinfo, and gives up without it
    if processor.architecture == "x86_64":
        if processor.has("avx512vl", "avx512bw", "avx512dq", "fma"):
            return "AVX512"
        return "AVX2" if processor.has("avx2", "fma") else "DEFAULT"
    if processor.architecture == "aarch64" and processor.has("sve", "bf16"):
        if processor.sve_bits == 256:
            return "SVE256"
        if processor.sve_bits == 128 and not _older(version, _SVE128):
            return "SVE128"
    if processor.architecture == "s390x" and processor.has("vxe"):
        return "Z VECTOR"
    return "VSX" if processor.architecture == "ppc64le" else "DEFAULT"


def _spelled(name: str, processor: Processor, version: tuple[int, int] | None) -> str:
    if name == "DEFAULT" and processor.architecture == "x86_64" and _older(version, _STANDARD_NAMES):
        return "NO AVX"
    return name


def _older(version: tuple[int, int] | None, than: tuple[int, int]) -> bool:
    return version is not None and version < than


class _Isa(NamedTuple):
    mask: int
    flags: tuple[str, ...]
    aliases: tuple[str, ...] = ()


_CORE: Final = ("avx512f", "avx512bw", "avx512vl", "avx512dq")
_BF16: Final = (*_CORE, "avx512_vnni", "avx512_bf16")
_FP16: Final = (*_BF16, "avx512_fp16", "avx2", "avx_vnni")
_AMX: Final = (*_FP16, "amx_tile", "amx_int8", "amx_bf16")
#: oneDNN's levels for x86-64, weakest first: bits, flags of the kernel, older names. AVX10.2 needs flags that no
#: kernel shows yet, and is left out.
_X64: Final = {
    "sse41": _Isa(0x1, ("sse4_1",)),
    "avx": _Isa(0x3, ("avx",)),
    "avx2": _Isa(0x7, ("avx2",)),
    "avx2_vnni": _Isa(0xF, ("avx2", "avx_vnni")),
    "avx2_vnni_2": _Isa(0x1F, ("avx2", "avx_vnni", "avx_vnni_int8", "avx_ne_convert")),
    "avx512_core": _Isa(0x27, _CORE),
    "avx512_core_vnni": _Isa(0x67, (*_CORE, "avx512_vnni")),
    "avx512_core_bf16": _Isa(0xE7, _BF16),
    "avx10_1_512": _Isa(0x1EF, _FP16, ("avx512_core_fp16",)),
    "avx10_1_512_amx": _Isa(0xFEF, _AMX, ("avx512_core_amx",)),
    "avx10_1_512_amx_fp16": _Isa(0x1FEF, (*_AMX, "amx_fp16"), ("avx512_core_amx_fp16",)),
}
_SVE_BITS: Final = (512, 256, 128)
_VARIABLES: Final = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")


def onednn_isa(processor: Processor, environ: Mapping[str, str]) -> Choice:
    """The highest instruction set that oneDNN uses, in the words of ONEDNN_MAX_CPU_ISA; "" where it has no name.

    The variable is read in any case, ONEDNN_ before DNNL_; an unknown word counts as no limit. AMX needs the kernel's
    permission, which oneDNN asks for itself. On AArch64 the variable counts only in builds that enable it.
    """
    variable, limit = next(((name, environ[name].lower()) for name in _VARIABLES if environ.get(name)), ("", ""))
    if processor.architecture == "aarch64":
        return _onednn_aarch64(processor)
    if processor.architecture != "x86_64":
        return Choice("")
    wanted = {alias: name for name, isa in _X64.items() for alias in isa.aliases}.get(limit, limit)
    mask = _X64[wanted].mask if wanted in _X64 else ~0
    best = next((name for name in reversed(_X64) if _may_use(processor, _X64[name], mask)), "")
    unlimited = next((name for name in reversed(_X64) if _may_use(processor, _X64[name], ~0)), "")
    if limit and wanted not in _X64 and limit != "default":
        return Choice(best, f"oneDNN ignores {variable}={environ[variable]}: it is no instruction set that it knows")
    if best != unlimited:
        return Choice(best, f"{variable}={environ[variable]} holds oneDNN below {unlimited}")
    if processor.has(*_AMX) and not processor.amx.usable:
        return Choice(best, processor.amx.reason)
    return Choice(best)


def _may_use(processor: Processor, isa: _Isa, mask: int) -> bool:
    if isa.mask & mask != isa.mask or not processor.has(*isa.flags):
        return False
    return processor.amx.usable if "amx_tile" in isa.flags else True


def _onednn_aarch64(processor: Processor) -> Choice:
    if processor.has("sme"):
        return Choice("sme")
    if processor.has("sve"):
        return Choice(next((f"sve_{bits}" for bits in _SVE_BITS if processor.sve_bits >= bits), "asimd"))
    return Choice("asimd" if processor.has("asimd") else "")
