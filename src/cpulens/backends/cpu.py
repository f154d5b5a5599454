"""The processor: PyTorch's capability string, and beyond it the extensions that decide about kernels.

Works without PyTorch, on the standard library; `microarchitecture` needs archspec.
"""

from __future__ import annotations

import os
from typing import Any

from cpulens.backends import capability, pytorch
from cpulens.backends.microarchitecture import Microarchitecture, microarchitecture
from cpulens.machine.isa import Processor, read_processor

__all__ = [
    "Microarchitecture",
    "details",
    "features",
    "get_cpu_capability",
    "microarchitecture",
    "onednn_isa",
    "processor",
    "why_not",
]


def get_cpu_capability() -> str:
    """Return the capability for which PyTorch chooses its own kernels.

    One of "DEFAULT", "VSX", "Z VECTOR", "NO AVX" (PyTorch before 2.9), "AVX2", "AVX512", "SVE128" (2.12 and newer)
    and "SVE256". When PyTorch is loaded it is asked; else its rules are applied to this processor and to
    ATEN_CPU_CAPABILITY, in the spelling of the version that is installed, or of a current one.
    """
    torch = pytorch.loaded()
    if torch is not None:
        answer: str = torch._C._get_cpu_capability()
        return answer
    return _capability().name


def processor() -> Processor:
    """Return this host's processor: flags, vector lengths, AMX's permission. Asks the kernel each time (under 1 ms)."""
    return read_processor()


def features() -> dict[str, str]:
    """Return each extension that matters on this architecture → "" when it can be used here, else why not.

    Weakest first. x86-64: avx2, avx_vnni, avx512, avx512_vnni, avx512_bf16, avx512_fp16, avx10, amx_int8, amx_bf16,
    amx_fp16, …; AArch64: dotprod, i8mm, bf16, sve, sve2, …; POWER: vsx, mma; s390x: vx, vxe, vxe2, nnpa.
    """
    found = read_processor()
    return {feature.name: found.why_not(feature.name) for feature in found.features}


def why_not(feature: str) -> str:
    """One sentence why this process can't use an extension (avx512_bf16, amx, sve, any flag); "" when it can."""
    return read_processor().why_not(feature)


def onednn_isa() -> str:
    """Return the highest instruction set that oneDNN would use here, in the words of ONEDNN_MAX_CPU_ISA.

    "" where oneDNN has no name for it (POWER, s390x). A library that is loaded already has read the variable.
    """
    return capability.onednn_isa(read_processor(), os.environ).name


def details() -> dict[str, Any]:
    """Return all of it as plain values: names, capability, extensions and what stands against them."""
    found = read_processor()
    aten, onednn = _capability(found), capability.onednn_isa(found, os.environ)
    return {
        "architecture": found.architecture,
        "name": found.name,
        "generation": found.generation,
        "capability": get_cpu_capability(),
        "usable": list(found.usable),
        "unusable": {f.name: reason for f in found.features if (reason := found.why_not(f.name))},
        "sve_bits": found.sve_bits,
        "amx": found.amx.state,
        "amx_reason": found.amx.reason,
        "onednn_isa": onednn.name,
        "notes": [note for note in (aten.note, onednn.note, *found.notes) if note],
    }


def _capability(found: Processor | None = None) -> capability.Choice:
    setting = os.environ.get("ATEN_CPU_CAPABILITY")
    return capability.torch_capability(found or read_processor(), setting, pytorch.numbers(pytorch.version()))
