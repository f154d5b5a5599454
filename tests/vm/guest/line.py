"""The guest's end of the line to the host (the second serial port)."""

from __future__ import annotations

import os
import tty

PORT = "/dev/ttyS1"

_descriptor = -1


def open_port() -> None:
    """Open the port, without echo."""
    global _descriptor
    _descriptor = os.open(PORT, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    tty.setraw(_descriptor)


def say(text: str) -> None:
    """Send one line."""
    data = text.encode() + b"\n"
    while data:
        data = data[os.write(_descriptor, data) :]


def unplug(device: str) -> None:
    """Have the host take a device out of this machine. Fails when it does not."""
    say(f"unplug {device}")
    answer = b""
    while not answer.endswith(b"\n"):
        answer += os.read(_descriptor, 1)
    assert answer == b"done\n", f"{device}: {answer.decode()}"
