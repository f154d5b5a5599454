"""The few system calls that Python has no function for, and the tree of our descendants."""

from __future__ import annotations

import ctypes
import os

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

#: Number of set_mempolicy (asm/unistd.h of each architecture).
_SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237, "riscv64": 237, "loongarch64": 237, "ppc64le": 261, "s390x": 270}

#: linux/mempolicy.h
MODES = {"default": 0, "preferred": 1, "bind": 2, "interleave": 3, "preferred-many": 5}

_libc = ctypes.CDLL(None, use_errno=True)


def set_subreaper(on: bool) -> None:
    """Become (or stop being) the parent of all orphaned descendants; Linux 3.4 and later."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(on), 0, 0, 0)


def allow_descriptors(count: int) -> None:
    """Raise the soft limit of open files of this process where it is below `count` and may be raised."""
    from resource import RLIMIT_NOFILE, getrlimit, setrlimit

    soft, hard = getrlimit(RLIMIT_NOFILE)
    if 0 <= soft < count:
        setrlimit(RLIMIT_NOFILE, (count if hard < 0 else min(count, hard), hard))


def die_with_parent(signal: int) -> None:
    """Get `signal` when the process that forked us ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal), 0, 0, 0)


def set_mempolicy(policy: str, nodes: tuple[int, ...]) -> None:
    """Set the memory policy of this thread; children inherit it.

    Raises OSError: EPERM under a container's seccomp filter, EINVAL for nodes or a policy that this kernel lacks.
    """
    machine = os.uname().machine
    number = _SET_MEMPOLICY.get(machine)
    if number is None:
        raise OSError(38, f"the number of set_mempolicy is not known on {machine}")
    bits = ctypes.sizeof(ctypes.c_ulong) * 8
    words = (ctypes.c_ulong * (max(nodes, default=0) // bits + 1))()
    for node in nodes:
        words[node // bits] |= 1 << (node % bits)
    # The kernel reads maxnode - 1 bits.
    size = ctypes.c_ulong(len(words) * bits + 1)
    mode = ctypes.c_long(MODES[policy])
    if _libc.syscall(ctypes.c_long(number), mode, words if nodes else None, size if nodes else ctypes.c_ulong(0)) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def proc_is_ours() -> bool:
    """Whether ``/proc`` is there and shows processes by the numbers that we know them by."""
    try:
        return os.readlink("/proc/self") == str(os.getpid())
    except OSError:
        return False


def descendants(ancestor: int) -> list[int]:
    """Return all living descendants of a process, nearest first; zombies are left out.

    Nothing is returned where ``/proc`` counts processes by another PID namespace than ours.
    """
    if not proc_is_ours():
        return []
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
            except (OSError, ValueError):
                continue
            if state not in (b"Z", b"X"):
                children.setdefault(int(parent), []).append(int(name))
    found: list[int] = []
    waiting = [ancestor]
    while waiting:
        below = children.get(waiting.pop(0), [])
        found += below
        waiting += below
    return found
