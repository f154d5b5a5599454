"""The boots behind the tests: each machine that a selected test names is booted once, two at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from vm import image
from vm.boot import Boot, boot
from vm.debian import MissingPackage
from vm.machines import MACHINES

#: More gain nothing on two cores, and emulated processors that wait for a turn spin.
AT_ONCE = 2


@pytest.fixture(scope="session")
def boots(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[Boot]]]:
    selected = {item.callspec.params.get("machine") for item in request.session.items if hasattr(item, "callspec")}
    try:
        built = image.build()
    except MissingPackage as reason:
        pytest.exit(f"no guest can be built: {reason}", returncode=1)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {name: pool.submit(boot, MACHINES[name], built) for name in MACHINES if name in selected}


@pytest.fixture
def booted(boots: dict[str, Future[Boot]]) -> Callable[[str], Boot]:
    """Return the finished boot of a machine."""
    return lambda machine: boots[machine].result()
