"""Model numbers of server processors → the name of the design.

Sources: the kernel's ``arch/x86/include/asm/intel-family.h``, AMD's revision guides, Arm's ``cputype.h``, the kernel's
``arch/s390/kernel/processor.c``.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Family 6 of Intel, by model.
_INTEL = {
    63: "Haswell",
    79: "Broadwell",
    106: "Ice Lake",
    108: "Ice Lake",
    143: "Sapphire Rapids",
    173: "Granite Rapids",
    174: "Granite Rapids",
    175: "Sierra Forest",
    207: "Emerald Rapids",
    221: "Clearwater Forest",
}
#: AMD: family → (lowest model, name), ascending.
_AMD = {
    23: ((0x00, "Zen"), (0x08, "Zen+"), (0x10, "Zen"), (0x18, "Zen+"), (0x20, "Zen"), (0x30, "Zen 2")),
    25: ((0x00, "Zen 3"), (0x10, "Zen 4"), (0x20, "Zen 3"), (0x60, "Zen 4")),
    26: ((0x00, "Zen 5"), (0x50, "Zen 6"), (0x60, "Zen 5"), (0x80, "Zen 6")),
}
#: Arm: (implementer, part) → name.
_ARM = {
    (0x41, 0xD0C): "Neoverse N1",
    (0x41, 0xD40): "Neoverse V1",
    (0x41, 0xD49): "Neoverse N2",
    (0x41, 0xD4F): "Neoverse V2",
    (0x41, 0xD83): "Neoverse V3AE",
    (0x41, 0xD84): "Neoverse V3",
    (0x41, 0xD8E): "Neoverse N3",
    (0x46, 0x001): "A64FX",
    (0xC0, 0xAC3): "Ampere-1",
    (0xC0, 0xAC4): "Ampere-1A",
}
#: IBM Z, by machine type.
_Z = {"2964": "z13", "2965": "z13", "3906": "z14", "3907": "z14", "8561": "z15", "8562": "z15", "3931": "z16"}
_Z.update({"3932": "z16", "9175": "z17", "9176": "z17"})


def generation(cpuinfo: Mapping[str, str]) -> str | None:
    """Return the name of the design that the fields of ``/proc/cpuinfo`` describe; None when the table lacks it."""
    vendor = cpuinfo.get("vendor_id", "")
    family, model = _number(cpuinfo.get("cpu family")), _number(cpuinfo.get("model"))
    if vendor == "GenuineIntel" and family == 6:
        return _skylake_server(_number(cpuinfo.get("stepping"))) if model == 85 else _INTEL.get(model)
    if vendor == "AuthenticAMD" and model >= 0:
        return next((name for lowest, name in reversed(_AMD.get(family, ())) if model >= lowest), None)
    if "CPU part" in cpuinfo:
        return _ARM.get((_number(cpuinfo.get("CPU implementer")), _number(cpuinfo["CPU part"])))
    power = re.match(r"POWER\d+", cpuinfo.get("cpu", ""))
    if power:
        return power[0]
    machine = re.search(r"machine = (\w+)", cpuinfo.get("processor 0", ""))
    return _Z.get(machine[1]) if machine else None


def _skylake_server(stepping: int) -> str:
    """Model 85 is three designs, told apart by their stepping."""
    if stepping <= 4:
        return "Skylake-SP"
    return "Cascade Lake" if stepping <= 7 else "Cooper Lake"


def _number(text: str | None) -> int:
    """Return the number, -1 when there is none."""
    try:
        return int(text or "", 0)
    except ValueError:
        return -1
