"""The levels that a recorded command gets by its environment, from words on the command line."""

from __future__ import annotations

import difflib
from typing import Final

from cpulens.backends.levels import HIGHEST, LEVEL_NAMES, VARIABLES, VERBOSE_ON, environment_level, parse_level
from cpulens.capture.tap import RECORDED_FROM_OUTSIDE
from cpulens.errors import UsageError
from cpulens.recording.schedule import FROM_OUTSIDE, Schedule, outside_setting
from cpulens.recording.stamps import VARIABLES as STAMPS

#: What oneDNN 3.2 and later take beside a number (and its values that carry a parameter).
_WORDS: Final = (
    "all",
    "check",
    "debuginfo",
    "dispatch",
    "error",
    "filter",
    "none",
    "profile",
    "profile_create",
    "profile_exec",
    "profile_externals",
    "warn",
)
#: Variables by which a library writes its lines elsewhere than to standard output.
_DIVERSIONS: Final = ("MKL_VERBOSE_OUTPUT_FILE", "ONEDNN_VERBOSE_LOGFILE", "DNNL_VERBOSE_LOGFILE")


def onednn_setting(text: str) -> str:
    """ON_CREATION,dispatch → 2,dispatch: the number first, so that versions before 3.2 understand it too.

    Raises UsageError for a word that no version knows.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    numbers = [word for word in words if word.isdigit() or word.upper().removeprefix("VERBOSE_") in LEVEL_NAMES]
    rest = [word for word in words if word not in numbers]
    for word in rest:
        name = word.partition("=")[0].lower()
        if name not in _WORDS:
            known = [*LEVEL_NAMES, *_WORDS]
            near = difflib.get_close_matches(word, [*known, *(name.lower() for name in LEVEL_NAMES)], n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f"{word!r} is not a level of oneDNN; it has {', '.join(known)}{hint}")
    if not words:
        raise UsageError("the level of oneDNN is empty; it has " + ", ".join([*LEVEL_NAMES, *_WORDS]))
    level = max((parse_level("onednn", word) for word in numbers), default=_implied(rest))
    return ",".join([str(level), *rest])


def _implied(words: list[str]) -> int:
    """The number that says to an old version what the words say to a new one."""
    if "all" in words or "profile_create" in words or "profile" in words:
        return 2
    return 0 if words == ["none"] else VERBOSE_ON


def child_environment(
    environ: dict[str, str], onednn: str | None, mkl: str | None
) -> tuple[dict[str, str], dict[str, int | None], list[str]]:
    """The environment of a recorded command, the levels it gives, and sentences on what was found in `environ`.

    `onednn` and `mkl` are words as above; None is ON, unless `environ` asks for more than a number, which then stays.
    """
    notes: list[str] = []
    child = dict(environ)
    levels: dict[str, int | None] = {}
    for library, wish in (("onednn", onednn), ("mkl", mkl)):
        given = environment_level(library, environ, None)
        if wish is None and given.level is None:
            notes.append(f"{given.setting} holds more than a number: it was left as it is")
            levels[library] = HIGHEST[library]
            continue
        if library == "onednn":
            setting = onednn_setting("ON" if wish is None else wish)
            levels[library] = int(setting.partition(",")[0])
        else:
            levels[library] = parse_level("mkl", "ON" if wish is None else wish)
            setting = str(levels[library])
        for variable in VARIABLES[library]:
            child[variable] = setting
    for variable in _DIVERSIONS:
        if child.pop(variable, None) is not None:
            notes.append(f"{variable} was taken out, since it sends the lines into a file of its own")
    for variable in STAMPS:
        if not any(name in environ for name in STAMPS):
            child[variable] = "1"
    child[RECORDED_FROM_OUTSIDE] = "1"
    return child, levels, notes


def scheduled(child: dict[str, str], levels: dict[str, int | None], schedule: Schedule) -> None:
    """Let a recorded command begin in silence and switch its levels by `schedule`, in its calls of `iteration()`.

    Changes `child`, as `child_environment` made it. Raises UsageError when more than a number is asked of a library:
    no library can be switched to that while it runs.
    """
    for library in levels:
        for variable in VARIABLES[library]:
            if not child.get(variable, "0").isdigit():
                raise UsageError(
                    f"a schedule switches levels while the program runs, which takes numbers only, and {variable} is "
                    f"to be {child[variable]}; leave out the words or the schedule"
                )
            child[variable] = "0"
    child[FROM_OUTSIDE] = outside_setting(schedule, levels)
