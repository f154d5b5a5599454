"""Every check that runs in a guest, as one test each; what they check is in ``guest/on_*.py``."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest

from vm.boot import Boot
from vm.guest.check import EXIT_CODE_AS_INIT, checks_of
from vm.machines import MACHINES


def named() -> list[tuple[str, str]]:
    return [
        (machine, check.__name__)
        for machine in MACHINES
        for check in checks_of(importlib.import_module(f"vm.guest.on_{machine}"))
    ]


@pytest.mark.parametrize(("machine", "check"), named())
def test_guest(machine: str, check: str, booted: Callable[[str], Boot]) -> None:
    outcome = booted(machine).outcome(check)
    assert outcome.passed, outcome.reason


@pytest.mark.parametrize("machine", MACHINES)
def test_guest_ran_to_its_end(machine: str, booted: Callable[[str], Boot]) -> None:
    boot = booted(machine)
    assert boot.complete, boot.last_words()


@pytest.mark.parametrize("machine", ["endings"])
def test_exit_code_of_run_cpu_as_init(machine: str, booted: Callable[[str], Boot]) -> None:
    assert booted(machine).exit_code_of_init() == EXIT_CODE_AS_INIT
