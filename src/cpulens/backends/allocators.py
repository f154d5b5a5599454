"""Which memory allocators are in this process, and what LD_PRELOAD asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final

from cpulens.native import loaded

#: Start of a file name → allocator.
NAMES: Final = {
    "libtcmalloc": "tcmalloc",
    "libjemalloc": "jemalloc",
    "libmimalloc": "mimalloc",
    "libtbbmalloc_proxy": "TBB's",
    "libhoard": "Hoard",
    "libsnmallocshim": "snmalloc",
}


def name_of(path: str) -> str | None:
    """Return the allocator that a library is; None for any other library."""
    base = os.path.basename(path)
    return next((title for start, title in NAMES.items() if base.startswith(start)), None)


def allocators(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the allocators loaded here, in load order, and the entries of LD_PRELOAD that are not loaded.

    Without any, the C library's own allocator serves the process. A library that replaces it must come before it:
    one that a framework loads later serves that framework only.
    """
    objects = loaded.objects()
    found = [{"name": name, "path": os.path.normpath(obj.path)} for obj in objects if (name := name_of(obj.path))]
    paths = {os.path.realpath(obj.path) for obj in objects} | {obj.name for obj in objects}
    asked = [entry for entry in re.split(r"[:\s]+", environ.get("LD_PRELOAD", "")) if entry]
    missing = [e for e in asked if os.path.realpath(e) not in paths and os.path.basename(e) not in paths]
    preloaded = [entry for entry in asked if entry not in missing and name_of(entry)]
    return {"loaded": found, "preloaded": preloaded, "preload_failed": missing}
