#!/usr/bin/python3 -IS
"""The program that the launcher starts in a guest: takes memory with all its threads, and reports what it got.

``probe FOLDER [size=MIB] [stay] [deaf] [child] [exit=CODE]``: writes ``FOLDER/<pid>``, then ends with CODE (default 0);
`stay` waits to be ended, `deaf` ignores the signals that ask for it, `child` leaves a process in a session of its own.
"""

from __future__ import annotations

import mmap
import os
import signal
import sys
import threading
import time

PAGE_BYTES = mmap.PAGESIZE


def touch(memory: mmap.mmap, start: int, stop: int) -> None:
    for offset in range(start, stop, PAGE_BYTES):
        memory[offset] = 1


def region() -> tuple[str, dict[int, int]]:
    """Return policy and pages by node of the largest anonymous mapping, as the kernel counts them."""
    largest: tuple[int, str, dict[int, int]] = (0, "", {})
    with open("/proc/self/numa_maps") as file:
        for line in file:
            words = line.split()
            first = next((i for i, word in enumerate(words) if "=" in word), len(words))
            policy = " ".join(word for word in words[1:first] if word not in ("heap", "stack", "huge"))
            values = dict(word.split("=", 1) for word in words[first:] if "=" in word)
            anonymous = int(values.get("anon", 0))
            if anonymous > largest[0]:
                pages = {int(k[1:]): int(v) for k, v in values.items() if k[0] == "N" and k[1:].isdecimal()}
                largest = (anonymous, policy, pages)
    return largest[1], largest[2]


def ran_on() -> int:
    """Return the CPU that this thread last ran on (field 39 of its stat)."""
    with open(f"/proc/self/task/{threading.get_native_id()}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[36])


def work(size_bytes: int) -> dict[str, object]:
    count = int(os.environ.get("OMP_NUM_THREADS", "1"))
    memory = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages = size_bytes // PAGE_BYTES
    bounds = [pages * i // count * PAGE_BYTES for i in range(count + 1)]
    all_alive = threading.Barrier(count)
    threads: list[dict[str, object]] = []

    def one(index: int) -> None:
        touch(memory, bounds[index], bounds[index + 1])
        all_alive.wait()
        threads.append({"cpus": os.sched_getaffinity(threading.get_native_id()), "ran_on": ran_on()})

    others = [threading.Thread(target=one, args=(index,)) for index in range(1, count)]
    for thread in others:
        thread.start()
    one(0)
    for thread in others:
        thread.join()
    policy, by_node = region()
    return {"threads": threads, "policy": policy, "pages": by_node, "touched_pages": pages}


def describe() -> dict[str, object]:
    return {
        "pid": os.getpid(),
        "cpus": os.sched_getaffinity(0),
        "environ": dict(os.environ),
        "argv": sys.argv,
    }


def report(folder: str, found: dict[str, object]) -> None:
    """Write the report in one step: whoever finds the file finds all of it."""
    with open(f"{folder}/.{os.getpid()}", "w") as file:
        file.write(repr(found))
    os.rename(f"{folder}/.{os.getpid()}", f"{folder}/{os.getpid()}")


def leave_child() -> None:
    """Start a process the way daemons do: its parent ends, it leads a session of its own."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    os.wait()


def main() -> int:
    folder, *words = sys.argv[1:]
    values = dict(word.partition("=")[::2] for word in words)
    if "deaf" in values:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
    found = work(int(values.get("size", 8)) << 20)
    if "child" in values:
        leave_child()
    report(folder, {**found, **describe()})
    print(f"probe {os.getpid()} has reported", flush=True)
    while "stay" in values:
        time.sleep(600)
    return int(values.get("exit", 0))


if __name__ == "__main__":
    sys.exit(main())
