"""Header lines: which copy of which library printed what follows.

A header is printed once per copy and process, so a log may hold several, or none. Each one starts a new segment.
"""

from __future__ import annotations

import re
from typing import Any, Final

from cpulens.verbose.mkl_framing import HEADER as MKL_HEADER

_ONEDNN: Final = re.compile(
    r"(?:oneDNN|DNNL|Intel(?:\(R\))? MKL-DNN) v(\d+(?:\.\d+)*\S*) \((?:commit|Git Hash) ([^)]*)\)(?:,(.*))?"
)
_MKL_VERSION: Final = re.compile(r"\d[\d.]*.*")
_CONTINUED: Final = (
    "cpu,", "gpu,runtime", "gpu,engine", "graph,backend", "backend,", "prim_template:", "template:", "graph,template:",
    "primitive,template:", "experimental", "use batch", "GPU convolution", "Detected ISA", "exception while",
)  # fmt: skip
_INTERFACES: Final = ("lp64", "ilp64", "cdecl")


def library(name: str, instance: str | None) -> dict[str, Any]:
    """Give an empty description of one library copy."""
    return {
        "instance": instance,
        "library": name,
        "version": None,
        "commit": None,
        "runtime": None,
        "threads": None,
        "isa": None,
        "product": None,
        "build": None,
        "interface": None,
        "threading": None,
        "header": [],
    }


class Headers:
    """Collect header lines, in their order, into one description per library copy."""

    def __init__(self) -> None:
        self.libraries: list[dict[str, Any]] = []
        self._newest: dict[tuple[str, str | None], dict[str, Any]] = {}

    def add(self, raw: str, message: str, instance: str | None) -> None:
        """Take one `info` line: its raw text, and what follows `info,` in it."""
        if raw.startswith("MKL_VERBOSE "):
            self._mkl(raw, instance)
            return
        marker = raw.partition("_verbose,")[0]
        key = (marker, instance)
        found = _ONEDNN.match(message)
        if found:
            same = self._newest.get((marker.removesuffix("_graph"), instance))
            if marker.endswith("_graph") and same is not None and same["header"][0].endswith(message):
                same["header"].append(raw)  # the graph part of the same copy says it all again
                self._newest[key] = same
                return
            described = library("onednn", instance)
            described |= {
                "version": found[1],
                "commit": None if found[2] == "N/A" else found[2],
                "isa": found[3] or None,
            }
            described["header"].append(raw)
            self.libraries.append(described)
            self._newest[key] = described
        elif message.startswith(_CONTINUED):
            described = self._newest.get(key) or self._headless(key, instance)
            described["header"].append(raw)
            _continue(described, message)

    def _headless(self, key: tuple[str, str | None], instance: str | None) -> dict[str, Any]:
        """Start a description without its first line: the log begins in the middle of a header."""
        described = library("onednn", instance)
        self.libraries.append(described)
        self._newest[key] = described
        return described

    def _mkl(self, raw: str, instance: str | None) -> None:
        key = ("mkl", instance)
        found = MKL_HEADER.match(raw.encode())
        if found:
            self._newest[key] = _mkl(raw, [group.decode() for group in found.groups()], instance)
            self.libraries.append(self._newest[key])
        elif raw.startswith("MKL_VERBOSE Detected GPU") and key in self._newest:
            self._newest[key]["header"].append(raw)


def _continue(described: dict[str, Any], message: str) -> None:
    if message.startswith("cpu,runtime:"):
        runtime, _, threads = message.removeprefix("cpu,runtime:").partition(",nthr:")
        described["runtime"] = runtime
        described["threads"] = int(threads) if threads.isdigit() else None
    elif message.startswith("cpu,isa:"):
        described["isa"] = message.removeprefix("cpu,isa:")
    elif message.startswith("Detected ISA is "):
        described["isa"] = message.removeprefix("Detected ISA is ")


def _mkl(raw: str, groups: list[str], instance: str | None) -> dict[str, Any]:
    product, build, cpu, _, _, rest = groups
    words = rest.split()
    version = _MKL_VERSION.search(product)
    described = library("mkl", instance)
    described |= {
        "version": version[0] if version else None,
        "isa": cpu.partition(" architecture ")[2] or cpu,
        "product": product,
        "build": build,
        "interface": next((word for word in words if word in _INTERFACES), None),
        "threading": next((word for word in words if word not in _INTERFACES), None),
        "header": [raw],
    }
    return described
