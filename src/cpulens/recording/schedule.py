"""Which iterations are recorded: wait, warm up, record, and so again.

``Schedule(wait=1, warmup=1, active=3, repeat=2)`` lets the first iteration pass, warms up in the second, records three,
and does all that once more. Iterations are counted by `cpulens.iteration()`; what runs before its first call is not
recorded. While it waits, the libraries' levels are what they were, so waiting costs nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final

from cpulens.backends import verbosity
from cpulens.errors import UsageError

WAIT: Final = "wait"
WARMUP: Final = "warmup"
ACTIVE: Final = "active"
#: The schedule of a program that `cpulens record` records, and the levels of its active iterations.
FROM_OUTSIDE: Final = "CPULENS_SCHEDULE"

_lock: Final = threading.RLock()
_listeners: Final[list[Callable[[], None]]] = []


@dataclass(frozen=True, slots=True)
class Schedule:
    """Numbers of iterations. `repeat`: how often the whole is done; 0: as long as the recording lasts.

    While it warms up, the libraries print as in an active iteration, and what they print is thrown away; in a program
    that is recorded from outside (`cpulens record`), they are silent. Raises UsageError for numbers that record
    nothing.
    """

    wait: int = 0
    warmup: int = 0
    active: int = 1
    repeat: int = 0

    def __post_init__(self) -> None:
        if min(self.wait, self.warmup, self.repeat) < 0 or self.active < 1:
            raise UsageError(
                f"a schedule needs active of 1 or more and nothing below 0, not {self}; it counts iterations"
            )

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """Read "wait=1,warmup=1,active=3,repeat=2", any of them. Raises UsageError for other words."""
        numbers: dict[str, int] = {}
        for word in text.split(","):
            name, _, number = word.strip().partition("=")
            if name not in cls.__slots__ or not number.isdecimal() or name in numbers:
                raise UsageError(
                    f"{text!r} is no schedule; write wait=N,warmup=N,active=N,repeat=N, those that you need, as in "
                    "wait=2,active=5"
                )
            numbers[name] = int(number)
        return cls(**numbers)

    def phase(self, iteration: int) -> str:
        """What is to be done in iteration `iteration` (from 0; -1: before the first)."""
        cycle = self.wait + self.warmup + self.active
        if iteration < 0 or (self.repeat and iteration >= cycle * self.repeat):
            return WAIT
        at = iteration % cycle
        return WAIT if at < self.wait else WARMUP if at < self.wait + self.warmup else ACTIVE

    def as_facts(self) -> dict[str, int]:
        """The four numbers."""
        return asdict(self)

    def __str__(self) -> str:
        return ",".join(f"{name}={number}" for name, number in asdict(self).items())


def listen(step: Callable[[], None]) -> None:
    """Let `step` be called whenever an iteration begins."""
    with _lock:
        _listeners.append(step)


def stop_listening(step: Callable[[], None]) -> None:
    """Take a listener out again."""
    with _lock:
        if step in _listeners:
            _listeners.remove(step)


def advance() -> None:
    """An iteration begins: tell those who listen, and the schedule given from outside."""
    with _lock:
        for step in list(_listeners):
            step()
        if outside is not None:
            outside.step()


class Outside:
    """The schedule of this process, given by `cpulens record` in the environment: levels on in active iterations."""

    def __init__(self, text: str) -> None:
        words, _, levels = text.partition(";")
        self._schedule = Schedule.parse(words)
        self._levels = {name: int(level) for name, _, level in (word.partition("=") for word in levels.split(","))}
        self._iteration = -1
        self._request: verbosity.Request | None = None

    @property
    def is_active(self) -> bool:
        """Whether this iteration is recorded."""
        return self._request is not None

    def step(self) -> None:
        """Begin the next iteration."""
        self._iteration += 1
        active = self._schedule.phase(self._iteration) == ACTIVE
        if active and self._request is None:
            self._request = verbosity.acquire(**self._levels)
        elif not active and self._request is not None:
            verbosity.release(self._request)
            self._request = None


def outside_setting(schedule: Schedule, levels: dict[str, int | None]) -> str:
    """The value of the variable that gives a recorded program its schedule."""
    return f"{schedule};{','.join(f'{library}={level or 0}' for library, level in levels.items())}"


#: None where this process has no schedule from outside.
outside: Final = Outside(os.environ[FROM_OUTSIDE]) if os.environ.get(FROM_OUTSIDE) else None
