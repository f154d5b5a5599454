"""oneDNN (called mkldnn in torch.backends): is it here, which, and verbose scopes.

Its switches inside PyTorch (`enabled`, `deterministic`, `allow_tf32`, `fp32_precision`, `flags`, …) are PyTorch's own.
"""

from __future__ import annotations

import sys
from typing import Any

from cpulens.backends import presence, pytorch
from cpulens.backends.forwarding import Attribute, Space, install
from cpulens.backends.levels import VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION
from cpulens.backends.verbose_scope import VerboseScope
from cpulens.machine.isa import read_processor
from cpulens.native.embedded import holds

__all__ = [
    "VERBOSE_OFF",
    "VERBOSE_ON",
    "VERBOSE_ON_CREATION",
    "details",
    "is_acl_available",
    "is_available",
    "verbose",
    "version",
    "why_not",
    "why_not_acl",
]


class verbose(VerboseScope):
    """Make oneDNN print what it runs, inside a `with` block or a decorated function.

    `level`: VERBOSE_OFF (0, prints nothing), VERBOSE_ON (1, a line per execution), VERBOSE_ON_CREATION (2, a line per
    creation as well), or one of their names ("OFF", "ON", "ON_CREATION"); anything else raises UsageError. It acts on
    every copy of oneDNN in the process that can be switched; what can't be is said once, as a CpulensWarning. Scopes
    nest and overlap; afterwards the level is again that of the newest scope still open, else the environment's.
    Lines go to the C library's standard output; to catch them use `cpulens.record`.
    """

    library = "onednn"

    def __init__(self, level: int | str) -> None:
        super().__init__(level)
        self.level = self._level


def is_available() -> bool:
    """Return whether PyTorch is built with oneDNN, when it is loaded.

    Without PyTorch: whether this process has a copy; with none loaded, whether this environment has one that loads,
    which is tried in a child process, once (about 0.1 s). `why_not` has the evidence.
    """
    return presence.presence("onednn").available


def version() -> str | None:
    """Return the version: PyTorch's copy, else the loaded one, else the installed one; None where none is known."""
    return presence.presence("onednn").version


def why_not() -> str:
    """One sentence with the evidence for `is_available`: built without, loaded as, installed, broken, or absent."""
    return presence.presence("onednn").reason


def details() -> dict[str, Any]:
    """Return answer, evidence, version, and each copy in this process with how its verbose level is switched."""
    return presence.details("onednn")


def is_acl_available() -> bool:
    """Return whether oneDNN works with Arm Compute Library.

    With PyTorch loaded: whether its oneDNN is built so. Without it: whether Arm Compute Library, or a oneDNN that
    holds it, is loaded in this process, or is the one of this environment.
    """
    return _acl()[0]


def why_not_acl() -> str:
    """One sentence with the evidence for `is_acl_available`."""
    return _acl()[1]


def _acl() -> tuple[bool, str]:
    architecture = read_processor().architecture
    if pytorch.loaded() is not None:
        built = bool(pytorch.built_with("_has_mkldnn_acl"))
        where = "" if built or architecture == "aarch64" else f", which is for Arm; this processor is {architecture}"
        words = "with" if built else "without"
        return built, f"PyTorch {pytorch.version()} is built {words} Arm Compute Library{where}"
    if architecture != "aarch64":
        return False, f"Arm Compute Library is for Arm processors; this one is {architecture}"
    own = presence.loaded_named("libarm_compute")
    if own:
        return True, f"Arm Compute Library is loaded as {own[0]}"
    found = presence.presence("onednn")
    path = found.paths[0] if found.paths else found.reason.rpartition(": ")[2]
    if found.available and holds(path, b"arm_compute"):
        return True, f"the oneDNN in {path} holds Arm Compute Library"
    return False, f"no Arm Compute Library is loaded, and oneDNN has none: {found.reason}"


_SWITCHES = (
    Attribute("enabled", "whether PyTorch uses oneDNN"),
    Attribute("deterministic", "whether only deterministic kernels are used"),
    Attribute("allow_tf32", "whether TF32 may be used"),
    Attribute("fp32_precision", "precision in which float32 may be computed"),
    Space("matmul", "precision of matrix products", ("fp32_precision",)),
    Space("conv", "precision of convolutions", ("fp32_precision",)),
    Space("rnn", "precision of recurrent layers", ("fp32_precision",)),
)
install(__name__, _SWITCHES, lambda: bool(pytorch.built_with("_has_mkldnn")))
_this: Any = sys.modules[__name__]


def __getattr__(name: str) -> Any:
    return _this.read(name)
