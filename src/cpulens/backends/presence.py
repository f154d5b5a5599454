"""Where oneDNN or oneMKL is: in PyTorch, loaded, hidden in a framework, installed, broken or absent; with evidence."""

from __future__ import annotations

import importlib.metadata
import os
import re
from typing import Any, Final, NamedTuple

from cpulens.backends import pytorch, verbosity
from cpulens.backends.environment_trial import short_mkl_version, trial
from cpulens.native import loaded
from cpulens.native.embedded import HiddenCopy, hidden_copies

TITLES: Final = {"onednn": "oneDNN", "mkl": "oneMKL"}
_BUILD_FLAGS: Final = {"onednn": "_has_mkldnn", "mkl": "has_mkl"}
#: How `torch.__config__.show()` names the version.
_IN_CONFIG: Final = {
    "onednn": re.compile(r"(?:MKL-DNN|oneDNN) v([0-9.]+)"),
    "mkl": re.compile(r"Math Kernel Library (.*)"),
}


class Presence(NamedTuple):
    """`available` is the answer, `reason` its evidence in one sentence; `paths`: the copies in this process."""

    available: bool
    reason: str
    version: str | None
    paths: tuple[str, ...]


def presence(library: str) -> Presence:
    """Where "onednn" or "mkl" is.

    With PyTorch loaded, `available` says whether it is built with the library; without it, whether this process has a
    copy; with none loaded, whether this environment has one that loads (tried in a child, once).
    """
    title = TITLES[library]
    copies = [copy for copy in verbosity.copies() if copy.library == library]
    hidden = hidden_of(library)
    every = [copy.path for copy in copies] + [copy.path for copy in hidden]
    paths = tuple(os.path.normpath(path) for path in every if path)
    torch = pytorch.loaded()
    if torch is not None:
        return _in_pytorch(library, torch, paths)
    if copies:
        return Presence(
            True, f"{title} is loaded as {copies[0].path or 'part of the program'}", _version(copies[0]), paths
        )
    if hidden:
        reason = f"{title} is inside {hidden[0].framework}, loaded as {hidden[0].path}, which hides its functions"
        return Presence(True, reason, None, paths)
    tried = trial(library)
    if not tried.loads:
        inside = pytorch.installed_version()
        hint = f" (PyTorch {inside} is installed but not loaded; it may bring its own: import torch)" if inside else ""
        return Presence(False, tried.reason + hint, None, ())
    named = f"{title} {tried.version}".rstrip()
    return Presence(True, f"{named} is installed but not loaded: {tried.path}", tried.version or None, ())


def hidden_of(library: str) -> list[HiddenCopy]:
    """The copies of a library that are inside frameworks' files and can't be reached."""
    reachable = frozenset((copy.library, copy.path) for copy in verbosity.copies())
    return [copy for copy in hidden_copies(reachable) if copy.library == library]


def _in_pytorch(library: str, torch: Any, paths: tuple[str, ...]) -> Presence:
    title = TITLES[library]
    built = bool(pytorch.built_with(_BUILD_FLAGS[library]))
    where = f"loaded as {paths[0]}" if paths else "no copy of it is visible in this process"
    if built:
        return Presence(
            True, f"PyTorch {pytorch.version()} is built with {title}; {where}", _of_config(library, torch), paths
        )
    others = f"; a copy for others is {where}" if paths else ""
    return Presence(False, f"PyTorch {pytorch.version()} is built without {title}{others}", None, paths)


def _of_config(library: str, torch: Any) -> str | None:
    try:
        text = torch.__config__.show()
    except Exception:  # a build without it, or a stand-in for torch
        return None
    found = _IN_CONFIG[library].search(text)
    if found is None:
        return None
    return found[1] if library == "onednn" else short_mkl_version(found[1]) or None


def _version(copy: verbosity.Copy) -> str | None:
    """The version of a loaded copy, without making it do anything."""
    if copy.version is not None:
        return ".".join(map(str, copy.version))
    if "libmkl_rt" in os.path.basename(copy.path):
        # Asking libmkl_rt would choose its threading layer for good.
        try:
            return importlib.metadata.version("mkl")
        except importlib.metadata.PackageNotFoundError:
            return None
    return None


def details(library: str) -> dict[str, Any]:
    """All of it as plain values: answer, evidence, version, and each copy with how its verbose level is switched."""
    found = presence(library)
    reachable = [
        {
            "path": copy.path,
            "version": ".".join(map(str, copy.version)) if copy.version else None,
            "verbose_by": copy.door,
            "environment": copy.environment.setting or None,
        }
        for copy in verbosity.copies()
        if copy.library == library
    ]
    return {
        "available": found.available,
        "reason": found.reason,
        "version": found.version,
        "copies": reachable,
        "hidden": [{"path": copy.path, "framework": copy.framework} for copy in hidden_of(library)],
    }


def loaded_named(*starts: str) -> list[str]:
    """Paths of loaded objects whose file name starts with one of these."""
    return [obj.path for obj in loaded.objects() if obj.name.startswith(starts)]
