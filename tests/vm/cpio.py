"""An initramfs archive: cpio in its "newc" form (``Documentation/driver-api/early-userspace/buffer-format.rst``)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


def write(root: Path, archive: BinaryIO) -> None:
    """Write all below `root` as files of user 0. The kernel unpacks several archives one after the other."""
    for number, path in enumerate(_walk(root), 1):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            content = os.readlink(path).encode()
        elif stat.S_ISREG(status.st_mode):
            content = path.read_bytes()
        else:
            content = b""
        _entry(archive, str(path.relative_to(root)), number, status.st_mode, content)
    _entry(archive, "TRAILER!!!", 0, 0, b"")


def write_file(name: str, content: bytes, archive: BinaryIO) -> None:
    """Write an archive of one file, as Linux wants it for what it needs before it unpacks the rest."""
    _entry(archive, name, 1, stat.S_IFREG | 0o644, content)
    _entry(archive, "TRAILER!!!", 0, 0, b"")


def _walk(root: Path) -> Iterator[Path]:
    """Folders before what is in them."""
    for folder, folders, files in os.walk(root):
        for name in sorted(folders + files):
            yield Path(folder, name)


def _entry(archive: BinaryIO, name: str, number: int, mode: int, content: bytes) -> None:
    encoded = name.encode() + b"\0"
    # inode, mode, user, group, links, time, size, device (2), special device (2), length of the name, checksum
    numbers = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0)
    header = b"070701" + b"".join(b"%08x" % value for value in numbers)
    for part in (header + encoded, content):
        archive.write(part + b"\0" * (-len(part) % 4))
