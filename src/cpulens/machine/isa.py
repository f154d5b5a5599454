"""Which instruction set extensions this processor has, and which of them this process may use.

Deciding (`Processor`) is apart from asking the host (`cpuinfo.read_facts`), so that a recorded host can be judged too.
"""

from __future__ import annotations

from typing import NamedTuple

from cpulens.machine.cpuinfo import XTILEDATA, ProcessorFacts, read_facts
from cpulens.machine.isa_table import CPUID, CPUID_7_1, FEATURES, FLAG_FIELDS, HWCAPS, Feature
from cpulens.machine.models import generation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Amx(NamedTuple):
    """Whether the kernel lets this process use AMX's tiles. `state`: granted, on_request, refused or absent."""

    state: str
    reason: str

    @property
    def usable(self) -> bool:
        """Whether a library that asks for the tiles can use them."""
        return self.state in ("granted", "on_request")


class Processor(NamedTuple):
    """One processor: flags in the kernel's spelling, lengths of its scalable vectors in bits (0: none)."""

    architecture: str
    name: str | None  #: as the firmware calls it; None: it doesn't say
    vendor: str | None
    generation: str | None  #: name of the design, from its model number; None: not in the table
    flags: frozenset[str]
    sve_bits: int
    sme_bits: int
    amx: Amx
    listed: bool  #: whether the kernel's list could be read; else the flags come from other sources
    notes: tuple[str, ...]  #: what could not be read

    @property
    def known(self) -> bool:
        """Whether the processor's extensions could be read at all."""
        return bool(self.flags)

    @property
    def features(self) -> tuple[Feature, ...]:
        """The extensions that matter on this architecture, weakest first; () for one that the table doesn't have."""
        return FEATURES.get(self.architecture, ())

    def has(self, *flags: str) -> bool:
        """Whether the processor has all of these flags."""
        return self.flags.issuperset(flags)

    def why_not(self, name: str) -> str:
        """One sentence why the extension `name` can't be used here; "" when it can.

        Takes the table's names (avx512_vnni, amx_bf16, sve, …) and `amx` for any of its kinds; any flag of the kernel
        (sha_ni) is taken too.
        """
        if not self.known:
            return f"the processor's features are not known: {'; '.join(self.notes) or 'no source names them'}"
        wanted = "amx_int8" if name == "amx" else name
        elsewhere = [arch for arch, features in FEATURES.items() if any(f.name == wanted for f in features)]
        feature = next((feature for feature in self.features if feature.name == wanted), None)
        if feature is None:
            if elsewhere:
                return f"{name} is an extension of {elsewhere[0]}; this processor is {self.architecture}"
            feature = Feature(name, name, (name,))
        missing = [flag for flag in feature.flags if flag not in self.flags]
        if missing:
            return f"the processor lacks {', '.join(missing)}"
        if "amx_tile" in feature.flags and not self.amx.usable:
            return self.amx.reason
        return ""

    @property
    def usable(self) -> tuple[str, ...]:
        """Names of the extensions that can be used, weakest first."""
        return tuple(feature.name for feature in self.features if not self.why_not(feature.name))


def read_processor(root: str = "/") -> Processor:
    """Return this host's processor, or the one that a copied `root` describes; never raises for what can't be read."""
    return processor(read_facts(root))


def processor(facts: ProcessorFacts) -> Processor:
    """Return the processor that the facts describe."""
    flags = _flags(facts)
    info = facts.cpuinfo
    return Processor(
        architecture=facts.architecture,
        name=_first(info, "model name", "Processor", "cpu", "Model"),
        vendor=_first(info, "vendor_id", "CPU implementer"),
        generation=generation(info),
        flags=flags,
        sve_bits=8 * (facts.sve_bytes or 0) if "sve" in flags else 0,
        sme_bits=8 * (facts.sme_bytes or 0) if "sme" in flags else 0,
        amx=_amx(facts, flags),
        listed=bool(info),
        notes=facts.notes,
    )


_NO_REGISTERS = (0, 0, 0, 0)


def _flags(facts: ProcessorFacts) -> frozenset[str]:
    found = set(facts.cpuinfo.get(FLAG_FIELDS.get(facts.architecture, ""), "").split())
    for word, bits in zip((facts.hwcap, facts.hwcap2), HWCAPS.get(facts.architecture, ({}, {})), strict=True):
        found.update(flag for bit, flag in bits.items() if word is not None and word >> bit & 1)
    for leaf, flag_of in CPUID.items() if not found else ():
        registers = facts.cpuid.get(leaf, _NO_REGISTERS)
        found.update(flag for (register, bit), flag in flag_of.items() if registers[register] >> bit & 1)
    registers = facts.cpuid.get("7.1", _NO_REGISTERS)
    for (register, bit), (flag, needed) in CPUID_7_1.items():
        if registers[register] >> bit & 1 and needed in found:
            found.add(flag)
    return frozenset(found)


def _amx(facts: ProcessorFacts, flags: frozenset[str]) -> Amx:
    """The tiles' 8 KiB of state are granted to a process that asks (Linux 5.16 and newer)."""
    if "amx_tile" not in flags:
        return Amx("absent", "the processor lacks amx_tile")
    if (facts.xcomp_permitted or 0) >> XTILEDATA & 1:
        return Amx("granted", "the kernel has granted AMX to this process")
    if facts.xcomp_supported is None and facts.xcomp_permitted is None:
        return Amx(
            "refused",
            "the kernel has not granted AMX: it doesn't answer arch_prctl(ARCH_GET_XCOMP_PERM); "
            "Linux 5.16 or newer is needed, and a sandbox that lets the call through",
        )
    if (facts.xcomp_supported or 0) >> XTILEDATA & 1:
        return Amx("on_request", "the kernel grants AMX to a process that asks; this one has not asked yet")
    return Amx("refused", "the kernel has not granted AMX: tile data is not among the states that it supports")


def _first(info: Mapping[str, str], *names: str) -> str | None:
    return next((info[name] for name in names if info.get(name)), None)
