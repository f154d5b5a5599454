"""Where tcmalloc, jemalloc, mimalloc and libiomp5 are, by the names they really have, and whether they load."""

from __future__ import annotations

import functools
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Family → file names up to ``.so``, better ones first. Debian has no plain ``.so`` without the development package.
NAMES = {
    "tcmalloc": ("libtcmalloc.so", "libtcmalloc_minimal.so"),
    "jemalloc": ("libjemalloc.so",),
    "mimalloc": ("libmimalloc.so", "libmimalloc-secure.so"),
    "iomp5": ("libiomp5.so",),
}
#: What a user may have preloaded already, by the beginning of the file's name.
ALLOCATORS = (
    "libtcmalloc",
    "libjemalloc",
    "libmimalloc",
    "libtbbmalloc_proxy",
    "libhoard",
    "libsnmalloc",
    "librpmalloc",
)
OPENMP_RUNTIMES = ("libiomp5", "libomp.", "libgomp")
#: Debian's folders are named after these; a folder for another architecture is empty or its libraries do not load.
ARCHITECTURES = ("x86_64", "aarch64", "riscv64", "powerpc64le", "s390x", "loongarch64")
#: A library that needs longer than this to load is not preloaded.
TRIAL_S = 10.0


def preloaded(environ: Mapping[str, str]) -> list[str]:
    """Return what LD_PRELOAD names; blanks and colons separate (ld.so(8))."""
    return environ.get("LD_PRELOAD", "").replace(":", " ").split()


def find(family: str, environ: Mapping[str, str], root: str = "/") -> list[str]:
    """Return the files of a family below `root`, the best first: full before minimal, environments before the system.

    Paths are as that host sees them: `root` itself is left out.
    """
    candidates = [os.path.join(folder, file) for folder in _folders(environ, root) for file in _listed(root, folder)]
    candidates += [path for path in _cached(root) if os.path.exists(below(root, path))]
    found = []
    for place, path in enumerate(candidates):
        name = os.path.basename(path)
        for rank, stem in enumerate(NAMES[family]):
            if name == stem or (name.startswith(stem + ".") and name[len(stem) :].replace(".", "").isdecimal()):
                found.append((rank, place, path))
    return list(dict.fromkeys(path for *_, path in sorted(found)))


def below(root: str, path: str) -> str:
    """Return where a path of the host at `root` lies here."""
    return path if root == "/" else os.path.join(root, path.lstrip("/"))


def _folders(environ: Mapping[str, str], root: str) -> list[str]:
    """Where conda, virtual environments, pip and distributions put shared libraries."""
    prefixes = [environ.get("CONDA_PREFIX"), environ.get("VIRTUAL_ENV"), sys.prefix, os.path.expanduser("~/.local")]
    folders = [f"{prefix}/lib" for prefix in prefixes if prefix]
    folders += [folder for folder in environ.get("LD_LIBRARY_PATH", "").split(":") if folder.startswith("/")]
    folders += ["/usr/local/lib", "/usr/local/lib64"]
    folders += [f"/usr/lib/{machine}-linux-{libc}" for machine in ARCHITECTURES for libc in ("gnu", "musl")]
    folders += ["/usr/lib64", "/usr/lib", "/lib64", "/lib", "/opt/intel/oneapi/compiler/latest/lib"]
    return list(dict.fromkeys(folders))


@functools.cache
def _listed(root: str, folder: str) -> tuple[str, ...]:
    """Names that may be of interest in a folder, short ones (plain ``.so``) first."""
    beginnings = tuple(stem.removesuffix(".so") for stems in NAMES.values() for stem in stems)
    try:
        return tuple(sorted((n for n in os.listdir(below(root, folder)) if n.startswith(beginnings)), key=len))
    except OSError:
        return ()


@functools.cache
def _cached(root: str) -> tuple[str, ...]:
    """Paths that ldconfig has recorded: they stand in its cache as plain strings, each ended by a zero byte."""
    try:
        with open(below(root, "/etc/ld.so.cache"), "rb") as file:
            strings = file.read().split(b"\0")
    except OSError:
        return ()
    wanted = tuple(stem.encode() for stems in NAMES.values() for stem in stems)
    return tuple(os.fsdecode(s) for s in strings if s.startswith(b"/") and any(stem in s for stem in wanted))


def unloadable(paths: Iterable[str]) -> str:
    """Return why these libraries can't be preloaded together, "" when they can: tried in a child process."""
    wanted = list(paths)
    for path in wanted:
        reason = _wrong_kind(path)
        if reason:
            return f"{path} is {reason}"
    maps, problems = _maps_of_a_child(":".join(wanted))
    for path in wanted:
        if os.path.realpath(path) not in maps:
            first = problems.strip().splitlines()
            return f"{path} does not load in a child process" + (f" ({first[0]})" if first else "")
    return ""


def _wrong_kind(path: str) -> str:
    """Compare class, byte order and machine of two ELF headers (elf.h)."""
    ours, theirs = _header("/proc/self/exe"), _header(path)
    if theirs[:4] != b"\x7fELF":
        return "not a shared library"
    if ours and (ours[4:6], ours[18:20]) != (theirs[4:6], theirs[18:20]):
        return "built for another processor"
    return ""


def _header(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(20)
    except OSError:
        return b""


def _maps_of_a_child(preload: str) -> tuple[str, str]:
    """Return what a child that preloads `preload` has mapped, and what its loader complains of."""
    command = ["/bin/cat", "/proc/self/maps"]
    if not os.access(command[0], os.X_OK):
        command = [sys.executable, "-ISc", "print(open('/proc/self/maps').read())"]
    read, write = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, write, 1), (os.POSIX_SPAWN_DUP2, write, 2)]
    try:
        child = os.posix_spawn(command[0], command, {"LD_PRELOAD": preload}, file_actions=actions)
    except OSError as error:
        os.close(read)
        return "", str(error)
    finally:
        os.close(write)
    text = _read_until(read, time.monotonic() + TRIAL_S)
    if text is None:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if text is None or status != 0:
        return "", (text or b"it hangs").decode(errors="replace")
    lines = text.decode(errors="replace").splitlines()
    return "\n".join(lines), "\n".join(line for line in lines if line.startswith("ERROR: ld.so"))


def _read_until(descriptor: int, deadline: float) -> bytes | None:
    """Read a pipe to its end and close it; None when that takes too long."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    chunks: list[bytes] = []
    try:
        while poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                return b"".join(chunks)
            chunks.append(chunk)
        return None
    finally:
        os.close(descriptor)
