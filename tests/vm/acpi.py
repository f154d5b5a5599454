"""The firmware's list of processors in an order of our own: Linux numbers them as it finds them there."""

from __future__ import annotations

import struct
from collections.abc import Sequence

#: Where Linux looks, in an initramfs, for tables that replace the firmware's
#: (``Documentation/admin-guide/acpi/initrd_table_override.rst``).
PATH = "kernel/firmware/acpi/apic.aml"


def multiple_apic_table(processors: Sequence[int]) -> bytes:
    """Return the MADT (ACPI specification, 5.2.12) of QEMU's ``pc`` machine, with these local APICs in this order."""
    entries = [struct.pack("<BBBBI", 0, 8, number, number, 1) for number in processors]
    entries.append(struct.pack("<BBBBII", 1, 12, 0, 0, 0xFEC00000, 0))  # the I/O APIC
    entries.append(struct.pack("<BBBBIH", 2, 10, 0, 0, 2, 0))  # the timer's interrupt 0 arrives at its pin 2
    entries += [struct.pack("<BBBBIH", 2, 10, 0, number, number, 0xD) for number in (5, 9, 10, 11)]  # level, high
    entries.append(struct.pack("<BBBHB", 4, 6, 0xFF, 0, 1))  # NMI on pin 1 of all local APICs
    body = struct.pack("<II", 0xFEE00000, 1) + b"".join(entries)
    # A table replaces that of the same names when its revision (here 2) is higher.
    names = (b"BOCHS ", b"BXPC    ", 2, b"BXPC", 1)
    header = struct.pack("<4sIBB6s8sI4sI", b"APIC", 36 + len(body), 1, 0, *names)
    checksum = -sum(header + body) % 256
    return header[:9] + bytes([checksum]) + header[10:] + body
