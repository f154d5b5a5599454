"""Small reads below ``/sys`` and ``/proc`` of this host, or of a copy of another's."""

from __future__ import annotations

import os

from cpulens.machine import cpulist

#: More than any of the files read here can hold; a copied tree may hold anything.
LIMIT_BYTES = 1 << 20


class Sysfs:
    """Reads below ``root/sys`` (`root` is ``/`` for this host); what is absent or unreadable reads as nothing."""

    def __init__(self, root: str = "/") -> None:
        self.root = root
        self.base = os.path.join(root, "sys")

    def path(self, name: str) -> str:
        """Return the full path of `name`, which is relative to ``sys``."""
        return f"{self.base}/{name}"

    def text(self, name: str) -> str:
        """Return the content of a file as text, without surrounding blanks; "" when it can't be read."""
        return read_text(self.path(name)).strip()

    def numbers(self, name: str) -> list[int]:
        """Return a list such as ``0-3,8``; empty when it is absent or not a list."""
        try:
            return cpulist.parse(self.text(name))
        except ValueError:
            return []

    def number(self, name: str) -> int | None:
        """Return a whole number; None when it is absent or not a number."""
        try:
            return int(self.text(name))
        except ValueError:
            return None

    def names(self, name: str) -> list[str]:
        """Return the names in a directory, sorted; empty when there is none."""
        try:
            return sorted(os.listdir(self.path(name)))
        except OSError:
            return []

    def memory_bytes(self, name: str, field: str) -> int | None:
        """Return a field of a node's ``meminfo`` (``Node 0 MemFree:  1234 kB``) in bytes; None when absent."""
        for line in self.text(name).splitlines():
            words = line.split()
            if len(words) >= 4 and words[2] == f"{field}:" and words[3].isdecimal():
                return int(words[3]) * 1024
        return None


def read_text(path: str) -> str:
    """Return a small file's text; "" when it can't be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(descriptor, LIMIT_BYTES).decode("ascii", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)
