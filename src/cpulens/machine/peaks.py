"""The best that a host was measured to do, kept in the user's cache: one file for each host and its conditions.

``$XDG_CACHE_HOME/cpulens/peaks`` (``~/.cache`` by default, XDG Base Directory Specification) holds one JSON object a
file. What measures is above (`cpulens.measure`); here they are only read and written, so that a recording can carry
those of its host.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from typing import Any, Final, NamedTuple

from cpulens.machine.cpuinfo import parse_cpuinfo
from cpulens.machine.sysfs import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA: Final = 1


class Product(NamedTuple):
    """The fastest matrix product of one data type: n × n × n, by this library and implementation.

    `settled`: nothing interrupted it, and it was confirmed; else the true peak is higher.
    """

    gflops_per_s: float
    library: str
    implementation: str | None
    n: int
    settled: bool = True


class Stream(NamedTuple):
    """The best rate of a pass over arrays that take `size_bytes` together.

    `kernel`: ``copy`` (y = x), ``triad`` (y = a x + y), ``read`` (x · y). Bytes are those read and written, as the
    STREAM benchmark counts. `settled`: as for a product.
    """

    kernel: str
    size_bytes: int
    gbytes_per_s: float
    library: str
    settled: bool = True


class Peaks(NamedTuple):
    """Peaks of one host for a number of threads.

    `products`: by data type (f32, bf16, int8, f64, f16; one that no library here computes is left out). `conditions`:
    host, processor, CPUs, libraries and variables under which they were measured. `measured`: when, ISO 8601.
    """

    threads: int
    products: Mapping[str, Product]
    streams: tuple[Stream, ...]
    conditions: Mapping[str, Any]
    measured: str
    notes: tuple[str, ...] = ()

    def bandwidth(self, size_bytes: float) -> float | None:
        """10⁹ bytes a second that a kernel which moves `size_bytes` could reach; None: nothing was measured.

        The best of all passes over as much memory or more, from the largest size measured that is not above
        `size_bytes`: smaller data lie in a faster cache.
        """
        sizes = sorted({one.size_bytes for one in self.streams})
        below = [size for size in sizes if size <= size_bytes] or sizes[:1]
        return (
            max((one.gbytes_per_s for one in self.streams if one.size_bytes >= below[-1]), default=None)
            if sizes
            else None
        )

    @property
    def unsettled(self) -> list[str]:
        """Names of the figures that other programs disturbed."""
        found = [name for name, one in self.products.items() if not one.settled]
        return list(dict.fromkeys([*found, *(one.kernel for one in self.streams if not one.settled)]))

    def better(self, other: Peaks) -> Peaks:
        """The better figure of two measurements under the same conditions: what disturbs one only makes it lower."""
        products = {**other.products, **self.products}
        for name, one in other.products.items():
            products[name] = max(one, products[name], key=lambda product: product.gflops_per_s)
        streams = {(one.size_bytes, one.kernel): one for one in other.streams}
        for stream in self.streams:
            key = (stream.size_bytes, stream.kernel)
            streams[key] = max(stream, streams.get(key, stream), key=lambda pass_: pass_.gbytes_per_s)
        return self._replace(products=products, streams=tuple(streams[key] for key in sorted(streams)))

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "schema": SCHEMA,
            "threads": self.threads,
            "gemm": {name: one._asdict() for name, one in self.products.items()},
            "stream": [one._asdict() for one in self.streams],
            "conditions": dict(self.conditions),
            "measured": self.measured,
            "notes": list(self.notes),
        }


def from_record(record: Any) -> Peaks | None:
    """Read a JSON object again; None for what is none of ours, or of a newer schema."""
    try:
        if record["schema"] != SCHEMA:
            return None
        peaks = Peaks(
            int(record["threads"]),
            {str(name): Product(**one) for name, one in record["gemm"].items()},
            tuple(Stream(**one) for one in record["stream"]),
            dict(record["conditions"]),
            str(record["measured"]),
            tuple(map(str, record.get("notes", ()))),
        )
        rates = [one.gflops_per_s for one in peaks.products.values()] + [one.gbytes_per_s for one in peaks.streams]
        return peaks if all(0 < rate < float("inf") for rate in rates) else None
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def host() -> dict[str, Any]:
    """What tells this host from others, and how much of it this process may use."""
    cpuinfo = parse_cpuinfo(read_text("/proc/cpuinfo"))
    names = (cpuinfo.get(key) for key in ("model name", "Processor", "cpu"))
    return {
        "host": platform.node(),
        "cpu": next((name for name in names if name), None),
        "architecture": platform.machine(),
        "cpus_allowed": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
    }


def folder() -> str:
    """Where the files are; they need not exist."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "cpulens", "peaks")


def path_of(threads: int, conditions: Mapping[str, Any]) -> str:
    """The file for these conditions."""
    words = json.dumps([SCHEMA, threads, conditions], sort_keys=True)
    return os.path.join(folder(), hashlib.sha256(words.encode()).hexdigest()[:16] + ".json")


def load(path: str) -> Peaks | None:
    """Read one file; None when it is absent or damaged: it is a cache, and can be measured again."""
    try:
        with open(path, encoding="utf-8") as file:
            return from_record(json.load(file))
    except (OSError, ValueError):
        return None


def store(peaks: Peaks) -> str:
    """Write the file for the conditions of `peaks`, whole or not at all; returns its path. Raises OSError."""
    path = path_of(peaks.threads, peaks.conditions)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(peaks.record(), file, indent=1)
    os.replace(temporary, path)
    return path


def known() -> list[Peaks]:
    """All that were measured on this host with the CPUs that this process may use; the newest first."""
    here = host()
    try:
        names = sorted(os.listdir(folder()))
    except OSError:
        return []
    found = [load(os.path.join(folder(), name)) for name in names if name.endswith(".json")]
    same = [one for one in found if one and all(one.conditions.get(key) == value for key, value in here.items())]
    return sorted(same, key=lambda one: one.measured, reverse=True)


def carried() -> list[dict[str, Any]]:
    """What a recording takes along: the newest of `known` for each number of threads, without the host's name."""
    newest: dict[int, Peaks] = {}
    for one in known():
        newest.setdefault(one.threads, one)
    records = [one.record() for one in newest.values()]
    for record in records:
        record["conditions"].pop("host", None)
    return records


def for_threads(found: list[Peaks], threads: int) -> Peaks | None:
    """The first one that was measured with this many threads."""
    return next((one for one in found if one.threads == threads), None)
