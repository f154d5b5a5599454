"""The Debian packages that a guest is made of: found by apt, downloaded once, unpacked without being installed."""

from __future__ import annotations

import lzma
import os
import re
import shutil
import struct
import subprocess
import tarfile
from pathlib import Path
from typing import NamedTuple

#: Programs of this host that the tests need, and the packages that bring them.
TOOLS = {"qemu-system-x86_64": "qemu-system-x86", "apt-get": "apt", "dpkg-deb": "dpkg"}

#: Libraries that the unpacked Python needs for what runs in a guest; it names more (readline, SQLite, …) than that.
LIBRARIES = re.compile(r"libc6|libexpat\d+|libffi\d+|zlib1g")

#: apt's own account for downloads can't write into a folder of this user.
DOWNLOAD = ("apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root")


class MissingPackage(Exception):
    """Something must be installed or fetched first; the message says what and how."""


class Package(NamedTuple):
    """One package as apt would install it."""

    name: str
    version: str
    depends: tuple[str, ...]  #: names, without versions; the first of alternatives

    @property
    def file_name(self) -> str:
        """Name that ``apt-get download`` gives its file."""
        return f"{self.name}_{self.version.replace(':', '%3a')}_amd64.deb"


def require_tools() -> None:
    """Raise MissingPackage when a program that the tests need is not installed."""
    missing = [package for program, package in TOOLS.items() if shutil.which(program) is None]
    if missing:
        raise MissingPackage(
            f"the guests need {', '.join(missing)} from Debian; "
            f"as root: apt-get install --no-install-recommends {' '.join(missing)}"
        )


def choose() -> tuple[Package, list[Package]]:
    """Return the package of the kernel, and those of the guest's user space."""
    kernel = _only(describe("linux-image-amd64").depends, r"linux-image-\d.*")
    python = _only(describe("python3-minimal").depends, r"python3\.\d+-minimal")
    version = python.removeprefix("python").removesuffix("-minimal")
    parts = [describe(python), describe(f"libpython{version}-minimal"), describe(f"libpython{version}-stdlib")]
    needed = {name for part in parts for name in part.depends if LIBRARIES.fullmatch(name)}
    return describe(kernel), [describe("busybox-static"), *parts, *map(describe, sorted(needed))]


def describe(name: str) -> Package:
    """Return the candidate version of a package. Raises MissingPackage when apt does not know it."""
    shown = subprocess.run(["apt-cache", "show", "--no-all-versions", name], capture_output=True, text=True)
    fields = dict(re.findall(r"^([\w-]+): (.*)$", shown.stdout, re.MULTILINE))
    if "Version" not in fields:
        raise MissingPackage(f"apt knows no package {name}; as root: apt-get update (a Debian amd64 host is needed)")
    listed = ", ".join(fields[key] for key in ("Pre-Depends", "Depends") if key in fields)
    names = (re.match(r"[a-z0-9.+-]+", part.strip()) for part in listed.split(","))
    return Package(name, fields["Version"], tuple(match[0] for match in names if match))


def _only(names: tuple[str, ...], pattern: str) -> str:
    found = [name for name in names if re.fullmatch(pattern, name)]
    if len(found) != 1:
        raise MissingPackage(f"of {', '.join(names)} exactly one should match {pattern}")
    return found[0]


def download(packages: list[Package], folder: Path) -> list[Path]:
    """Return the packages' files in `folder`, fetching those that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / package.file_name for package in packages]
    missing = [f"{p.name}={p.version}" for p, file in zip(packages, files, strict=True) if not file.exists()]
    if missing:
        fetched = subprocess.run([*DOWNLOAD, *missing], cwd=folder, capture_output=True, text=True)
        if fetched.returncode or not all(file.exists() for file in files):
            raise MissingPackage(
                f"apt-get download {' '.join(missing)} failed ({fetched.stderr.strip() or 'other files came'}); "
                "as root: apt-get update"
            )
    return files


def unpack(package: Path, root: Path) -> None:
    """Unpack a package below `root`; ``/lib`` and its like become parts of ``/usr`` as on an installed host."""
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        if not (root / name).is_symlink():
            os.symlink(f"usr/{name}", root / name)
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as stream:
        subprocess.run(["tar", "-x", "--keep-directory-symlink", "-C", root], stdin=stream.stdout, check=True)
    if stream.returncode:
        raise MissingPackage(f"{package} is damaged; delete it and start again")


def take_kernel(package: Path, target: Path) -> None:
    """Write the kernel of a ``linux-image`` package to `target`; the modules behind it are never unpacked."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as stream:
        try:
            with tarfile.open(fileobj=stream.stdout, mode="r|") as archive:
                for member in archive:
                    if member.name.startswith("./boot/vmlinuz-"):
                        content = archive.extractfile(member)
                        assert content is not None
                        target.write_bytes(unpacked(content.read()))
                        return
        finally:
            stream.kill()
    raise MissingPackage(f"{package} holds no kernel")


def unpacked(kernel: bytes) -> bytes:
    """Return the kernel without its compression, which emulation would take five seconds to undo at each boot.

    A kernel that is not packed with xz is returned as it is. (``Documentation/arch/x86/boot.rst``: sectors of set-up
    code at 0x1F1, offset and length of the packed kernel behind them at 0x248.)
    """
    offset, length = struct.unpack_from("<II", kernel, 0x248)
    start = ((kernel[0x1F1] or 4) + 1) * 512 + offset
    packed = kernel[start : start + length]
    # The uncompressed size follows the xz stream.
    return lzma.LZMADecompressor().decompress(packed) if packed.startswith(b"\xfd7zXZ\0") else kernel
