"""What the kernel and the processor say of themselves, as they say it; nothing is concluded here.

Sources: ``/proc/cpuinfo``, the auxiliary vector (``getauxval(3)``, ``Documentation/arch/arm64/elf_hwcaps.rst``), the C
library's copy of CPUID (glibc 2.33 and newer), ``arch_prctl(2)`` (``Documentation/arch/x86/xstate.rst``) and
``prctl(2)``. What can't be read is None, and a note says so.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from typing import NamedTuple

from cpulens.machine.sysfs import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

AT_HWCAP = 16
AT_HWCAP2 = 26
_ARCH_GET_XCOMP_SUPP = 0x1021
_ARCH_GET_XCOMP_PERM = 0x1022
_ARCH_REQ_XCOMP_PERM = 0x1023
_ARCH_PRCTL = 158  #: number of the system call, x86-64
_PR_SVE_GET_VL = 51
_PR_SME_GET_VL = 64
_VL_LEN_MASK = 0xFFFF
XTILEDATA = 18  #: number of the state component that AMX's tiles need


class ProcessorFacts(NamedTuple):
    """One processor's own account. `cpuinfo`: the fields of its first block."""

    architecture: str  #: as in ``uname -m``
    cpuinfo: Mapping[str, str]
    hwcap: int | None = None
    hwcap2: int | None = None
    cpuid: Mapping[str, tuple[int, int, int, int]] = {}  #: leaf → EAX, EBX, ECX, EDX; leaves "1", "7" and "7.1"
    xcomp_supported: int | None = None  #: state components that the kernel can grant on request
    xcomp_permitted: int | None = None  #: those that this process may use now
    sve_bytes: int | None = None  #: length of an SVE vector; 0: none
    sme_bytes: int | None = None  #: length of a streaming vector; 0: none
    notes: tuple[str, ...] = ()


def read_facts(root: str = "/", architecture: str | None = None) -> ProcessorFacts:
    """Return what this host says, or what a copied `root` recorded (``proc/cpuinfo``, ``proc/self/auxv``).

    A copy has no CPUID, no permissions and no vector lengths to ask for: those are None.
    """
    machine = architecture or _machine()
    cpuinfo = parse_cpuinfo(read_text(os.path.join(root, "proc/cpuinfo")))
    notes = () if cpuinfo else (f"{os.path.join(root, 'proc/cpuinfo')} can't be read",)
    auxv = parse_auxv(_bytes(os.path.join(root, "proc/self/auxv")))
    facts = ProcessorFacts(machine, cpuinfo, auxv.get(AT_HWCAP), auxv.get(AT_HWCAP2), notes=notes)
    if root != "/" or sys.platform != "linux":
        return facts
    if not auxv:
        facts = facts._replace(hwcap=_getauxval(AT_HWCAP), hwcap2=_getauxval(AT_HWCAP2))
    if machine == "x86_64":
        return facts._replace(
            cpuid=_cpuid(), xcomp_supported=xcomp(_ARCH_GET_XCOMP_SUPP), xcomp_permitted=permitted_components()
        )
    if machine == "aarch64":
        return facts._replace(sve_bytes=_vector_bytes(_PR_SVE_GET_VL), sme_bytes=_vector_bytes(_PR_SME_GET_VL))
    return facts


def parse_cpuinfo(text: str) -> dict[str, str]:
    """Return the fields of the first processor, with those that stand once for all (s390x, POWER)."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip(), value.strip())
    return fields


def parse_auxv(data: bytes) -> dict[int, int]:
    """Return the entries of an auxiliary vector: pairs of this host's words."""
    word = struct.calcsize("N")
    pairs = struct.iter_unpack("NN", data[: len(data) // (2 * word) * (2 * word)])
    return {key: value for key, value in pairs if key}


def permitted_components() -> int | None:
    """Return the state components that this process may use now, as a bit mask; None where the kernel can't say."""
    return xcomp(_ARCH_GET_XCOMP_PERM)


def request_amx() -> bool:
    """Ask the kernel to let this process use AMX's tiles, as oneDNN does before its first kernel; True if it may.

    The permission can't be given back: for a process of one's own only, never for somebody else's.
    """
    if _machine() != "x86_64":
        return False
    _libc().syscall(_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, ctypes.c_ulong(XTILEDATA))
    return bool((permitted_components() or 0) >> XTILEDATA & 1)


def xcomp(question: int) -> int | None:
    """Return the kernel's answer to one of the ``ARCH_GET_XCOMP_*`` questions."""
    mask = ctypes.c_ulong()
    try:
        status = _libc().syscall(_ARCH_PRCTL, question, ctypes.byref(mask))
    except (AttributeError, OSError):
        return None
    return mask.value if status == 0 else None


def _machine() -> str:
    """As in ``uname -m``; "" on systems without it."""
    return os.uname().machine if hasattr(os, "uname") else ""


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _getauxval(key: int) -> int | None:
    try:
        ask = _libc().getauxval
    except AttributeError:
        return None
    ask.argtypes, ask.restype = [ctypes.c_ulong], ctypes.c_ulong
    answer: int = ask(key)
    return answer


def _vector_bytes(question: int) -> int | None:
    try:
        answer: int = _libc().prctl(question, 0, 0, 0, 0)
    except (AttributeError, OSError):
        return None
    return answer & _VL_LEN_MASK if answer >= 0 else 0


class _Leaf(ctypes.Structure):
    _fields_ = (("cpuid", ctypes.c_uint32 * 4), ("active", ctypes.c_uint32 * 4))


#: Leaf → its index in glibc's ``<sys/platform/x86.h>``, and whether only the bits that the system supports count.
_LEAVES = {"1": (0, True), "7": (1, True), "7.1": (6, False)}


def _cpuid() -> dict[str, tuple[int, int, int, int]]:
    """Return the leaves as glibc read them at start; the kernel leaves some of 7.1 out of ``/proc/cpuinfo``."""
    try:
        ask = _libc()["__x86_get_cpuid_feature_leaf"]
    except AttributeError:
        return {}
    ask.argtypes, ask.restype = [ctypes.c_uint], ctypes.POINTER(_Leaf)
    found = {}
    for name, (index, active) in _LEAVES.items():
        leaf = ask(index)
        if leaf:
            eax, ebx, ecx, edx = leaf.contents.active if active else leaf.contents.cpuid
            found[name] = (eax, ebx, ecx, edx)
    return found


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(1 << 16)
    except OSError:
        return b""
