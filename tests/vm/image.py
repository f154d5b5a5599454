"""The guest's file system: Debian's busybox and Python, packed once; the project and its checks, packed each time."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from vm import acpi, cpio, debian
from vm.machines import Machine

PROJECT = Path(__file__).resolve().parents[2]
BUILD = PROJECT / "build" / "vm"

#: Parts of the standard library that no guest needs, half of its size.
UNUSED = (
    *("ensurepip", "idlelib", "lib2to3", "pydoc_data", "sqlite3", "test", "tkinter", "turtledemo", "unittest"),
    *("wsgiref", "xmlrpc", "curses", "dbm", "distutils", "sitecustomize.py", "turtle.py", "pydoc.py", "doctest.py"),
    *("_pydecimal.py", "pickletools.py"),
)

#: What the guest has besides the Debian packages.
INIT = """\
#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t tmpfs tmp /tmp
/bin/busybox mount -t cgroup2 cgroup /sys/fs/cgroup
export PATH=/usr/bin:/bin HOME=/tmp PYTHONPATH=/srv
exec python3 -m guest.agent
"""

#: The console script as pip writes it.
RUN_CPU = """\
#!/usr/bin/python3
import sys
from run_cpu.cli import main
if __name__ == '__main__':
    sys.exit(main())
"""

APPLETS = "sh mount umount taskset unshare poweroff"


class Image(NamedTuple):
    """What QEMU boots."""

    kernel: Path
    initramfs: Path


def build() -> Image:
    """Return a bootable image with the project as it stands in the work tree. Raises MissingPackage."""
    debian.require_tools()
    kernel, packages = debian.choose()
    recipe = Path(__file__).read_bytes() + Path(debian.__file__).read_bytes() + repr((kernel, packages)).encode()
    base = BUILD / f"base-{hashlib.sha256(recipe).hexdigest()[:12]}"
    if not (base / "complete").exists():
        _build_base(base, kernel, packages)
    project = BUILD / "project"
    _lay_out_project(project)
    _compile(base / "root", project, keep_sources=True)
    initramfs = BUILD / "initramfs"
    with initramfs.open("wb") as archive:
        archive.write((base / "base.cpio").read_bytes())
        cpio.write(project, archive)
    return Image(base / "vmlinuz", initramfs)


def initramfs_for(machine: Machine, image: Image) -> Path:
    """Return the initramfs of a machine: the common one, behind a table of the firmware that the machine changes."""
    if not machine.order:
        return image.initramfs
    own = BUILD / f"initramfs-{machine.name}"
    with own.open("wb") as archive:
        cpio.write_file(acpi.PATH, acpi.multiple_apic_table(machine.order), archive)
        archive.write(image.initramfs.read_bytes())
    return own


def _build_base(base: Path, kernel: debian.Package, packages: list[debian.Package]) -> None:
    for old in BUILD.glob("base-*"):
        shutil.rmtree(old)
    root = base / "root"
    root.mkdir(parents=True)
    kernel_file, *files = debian.download([kernel, *packages], BUILD / "packages")
    debian.take_kernel(kernel_file, base / "vmlinuz")
    for file in files:
        debian.unpack(file, root)
    for unused in ("usr/share", "usr/lib/x86_64-linux-gnu/gconv", "etc", "var"):
        shutil.rmtree(root / unused, ignore_errors=True)
    library = _library(root)
    for name in (*UNUSED, *(path.name for path in library.glob("config-*"))):
        path = library / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for name in ("proc", "sys", "dev", "tmp", "srv"):
        (root / name).mkdir(exist_ok=True)
    for applet in APPLETS.split():
        (root / "bin" / applet).symlink_to("busybox")
    (root / "bin" / "python3").symlink_to(library.name)
    _compile(root, library, keep_sources=False)
    with (base / "base.cpio").open("wb") as archive:
        cpio.write(root, archive)
    (base / "complete").touch()


def _lay_out_project(target: Path) -> None:
    """The packages as pip would install them, and the guest's half of the tests."""
    shutil.rmtree(target, ignore_errors=True)
    skip = shutil.ignore_patterns("__pycache__")
    for source, place in (("src/cpulens", "cpulens"), ("launcher/run_cpu", "run_cpu"), ("tests/vm/guest", "guest")):
        shutil.copytree(PROJECT / source, target / "srv" / place, ignore=skip)
    (target / "srv/guest/probe.py").chmod(0o755)
    for place, text in (("init", INIT), ("usr/bin/run_cpu", RUN_CPU)):
        path = target / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    (target / "usr/bin/probe").symlink_to("/srv/guest/probe.py")


def _library(root: Path) -> Path:
    return next(
        path for path in (root / "usr/lib").glob("python3.*") if (path / "os.py").exists() or (path / "os.pyc").exists()
    )


def _compile(root: Path, folder: Path, keep_sources: bool) -> None:
    """Compile all modules with the guest's own Python: under emulation, compiling is most of a program's start."""
    libraries = root / "usr/lib/x86_64-linux-gnu"
    python = [libraries / "ld-linux-x86-64.so.2", "--library-path", libraries, root / "usr/bin" / _library(root).name]
    as_seen = ["-s", root if folder.is_relative_to(root) else folder, "-p", "/"]
    form = ["-q", "--invalidation-mode", "unchecked-hash", *([] if keep_sources else ["-b"])]
    subprocess.run(
        [*python, "-m", "compileall", *form, *as_seen, folder],
        check=True,
        env={"PYTHONHOME": str(root / "usr")},
        stdout=subprocess.DEVNULL,
    )
    if not keep_sources:
        for source in folder.rglob("*.py"):
            source.unlink()
