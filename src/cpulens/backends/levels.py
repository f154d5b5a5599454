"""Verbose levels: their names, and what the environment asks for."""

from __future__ import annotations

from typing import Final, NamedTuple

from cpulens.errors import UsageError

VERBOSE_OFF: Final = 0
VERBOSE_ON: Final = 1
VERBOSE_ON_CREATION: Final = 2

LEVEL_NAMES: Final = {"OFF": VERBOSE_OFF, "ON": VERBOSE_ON, "ON_CREATION": VERBOSE_ON_CREATION}

#: Per library: the variables it reads, the one that wins first. MKLDNN_VERBOSE counts up to oneDNN 2.4 only, and the
#: name ONEDNN_VERBOSE from 2.5 on (oneDNN's `getenv_int_user`).
VARIABLES: Final = {"onednn": ("ONEDNN_VERBOSE", "DNNL_VERBOSE", "MKLDNN_VERBOSE"), "mkl": ("MKL_VERBOSE",)}
HIGHEST: Final = {"onednn": VERBOSE_ON_CREATION, "mkl": VERBOSE_ON}

_NOTHING: Final = frozenset({"", "none"})


class EnvironmentLevel(NamedTuple):
    """What the environment asks of a library: a `level`, or None where `setting` holds more than a number."""

    level: int | None
    setting: str


def parse_level(library: str, level: object) -> int:
    """A level as a number, from a number, a bool or a name ("ON", "on_creation", "VERBOSE_ON", "1").

    Raises UsageError for anything else, and for a level that `library` ("onednn" or "mkl") doesn't have.
    """
    number: int | None = None
    if isinstance(level, int):
        number = int(level)
    elif isinstance(level, str):
        name = level.strip().upper().removeprefix("VERBOSE_")
        number = int(name) if name.isdigit() else LEVEL_NAMES.get(name)
    if number is None or not VERBOSE_OFF <= number <= HIGHEST[library]:
        known = ", ".join(f"{name} ({value})" for name, value in LEVEL_NAMES.items() if value <= HIGHEST[library])
        raise UsageError(f"{level!r} is not a verbose level of {library}; it has {known}")
    return number


def environment_level(library: str, environ: dict[str, str], version: tuple[int, int] | None) -> EnvironmentLevel:
    """The level that `environ` gives a library of `version` (None: not known, taken as a current one)."""
    for variable in VARIABLES[library]:
        if variable not in environ or not _is_read(variable, version):
            continue
        value = environ[variable].strip().lower()
        setting = f"{variable}={environ[variable]}"
        if value in _NOTHING:
            return EnvironmentLevel(VERBOSE_OFF, setting)
        if value.isdigit() and int(value) <= VERBOSE_ON_CREATION:
            return EnvironmentLevel(int(value), setting)
        return EnvironmentLevel(None, setting)
    return EnvironmentLevel(VERBOSE_OFF, "")


def _is_read(variable: str, version: tuple[int, int] | None) -> bool:
    if variable == "MKLDNN_VERBOSE":
        return version is not None and version < (2, 5)
    if variable == "ONEDNN_VERBOSE":
        return version is None or version >= (2, 5)
    return True
