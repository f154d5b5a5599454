"""One boot: start QEMU, answer the guest, collect what its checks report.

The kernel's console is the first serial port and goes to a file. The second carries lines of text between guest and
host: ``begin CHECK``, then ``ok CHECK`` or ``fail CHECK "reason as a JSON string"``; ``unplug DEVICE`` wants that taken
out of the machine and waits for ``done`` or ``refused REASON``; ``end`` says that no check is left.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
from typing import IO, NamedTuple

from vm.image import BUILD, Image, initramfs_for
from vm.machines import Machine, arguments

#: A guest that is silent for longer has hung: its first word takes 10 s on two idle cores, a check 2 s.
START_LIMIT_S = 150.0
SILENCE_LIMIT_S = 120.0

#: Huge pages off and no balancing: then every page lies where the policy put it, and can be counted. The test of the
#: timer fails on a busy host.
KERNEL = "console=ttyS0 loglevel=6 panic=-1 no_timer_check transparent_hugepage=never numa_balancing=disable"


class Outcome(NamedTuple):
    """What became of one check."""

    passed: bool
    reason: str = ""


class Boot:
    """A finished boot: outcomes by check, and what the kernel said."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.console_path = BUILD / "logs" / f"{machine.name}.console"
        self.complaints_path = self.console_path.with_suffix(".qemu")
        self.outcomes: dict[str, Outcome] = {}
        self.running = ""
        self.complete = False

    def outcome(self, check: str) -> Outcome:
        """Return what became of a check; one that never reported has failed."""
        if check in self.outcomes:
            return self.outcomes[check]
        where = "was running when the guest stopped" if self.running == check else "was never reached"
        return Outcome(False, f"the check {where}; {self.last_words()}")

    def last_words(self) -> str:
        """Return the end of what the kernel and QEMU said."""
        said = [*self.console().splitlines()[-12:], *self.complaints_path.read_text(errors="replace").splitlines()[-3:]]
        return "\n".join([f"the end of {self.console_path}:", *said])

    def console(self) -> str:
        """Return the kernel's console; empty before it said anything."""
        return self.console_path.read_text(errors="replace") if self.console_path.exists() else ""

    def exit_code_of_init(self) -> int | None:
        """Return the exit code of the guest's process 1, which the kernel tells when it panics over its end."""
        told = re.search(r"Attempted to kill init! exitcode=0x([0-9a-f]+)", self.console())
        return int(told[1], 16) >> 8 if told else None


def boot(machine: Machine, image: Image) -> Boot:
    """Boot a machine and return when it is off; once more when the emulation hung before the first check began."""
    done = _boot(machine, image)
    if done.running:
        return done
    done.console_path.replace(done.console_path.with_suffix(".hung"))
    return _boot(machine, image)


def _boot(machine: Machine, image: Image) -> Boot:
    done = Boot(machine)
    done.console_path.parent.mkdir(parents=True, exist_ok=True)
    done.console_path.unlink(missing_ok=True)
    lines, guest_lines = socket.socketpair()
    control, guest_control = socket.socketpair()
    command = [
        *("nice", "-n", "5", "qemu-system-x86_64", *arguments(machine)),
        *(
            "-kernel",
            image.kernel,
            "-initrd",
            initramfs_for(machine, image),
            "-append",
            f"{KERNEL} MACHINE={machine.name}",
        ),
        *("-display", "none", "-no-reboot", "-nodefaults"),
        *("-serial", f"file:{done.console_path}"),
        *("-chardev", f"socket,id=lines,fd={guest_lines.fileno()}", "-serial", "chardev:lines"),
        *("-chardev", f"socket,id=control,fd={guest_control.fileno()}", "-mon", "chardev=control,mode=control"),
    ]
    with lines, control, done.complaints_path.open("wb") as complaints:
        qemu = subprocess.Popen(
            command, pass_fds=(guest_lines.fileno(), guest_control.fileno()),
            stdin=subprocess.DEVNULL, stdout=complaints, stderr=complaints,
        )  # fmt: skip
        guest_lines.close()
        guest_control.close()
        lines.settimeout(START_LIMIT_S)
        control.settimeout(START_LIMIT_S)
        try:
            with control.makefile("rw", encoding="utf-8", newline="\n") as commands:
                _converse(done, lines, Control(commands))
            qemu.wait(30)
        except (TimeoutError, subprocess.TimeoutExpired):
            done.complete = False
        finally:
            qemu.kill()
            qemu.wait()
    if not done.console():
        raise RuntimeError(f"QEMU did not start {machine.name}: {done.last_words()}")
    return done


def _converse(done: Boot, lines: socket.socket, control: Control) -> None:
    begun_s = time.monotonic()
    with (
        lines.makefile("rw", encoding="utf-8", errors="replace", newline="\n") as stream,
        done.console_path.with_suffix(".lines").open("w") as record,
    ):
        for line in stream:
            record.write(f"{time.monotonic() - begun_s:6.1f} {line}")
            word, _, rest = line.strip().partition(" ")
            if word == "begin":
                lines.settimeout(SILENCE_LIMIT_S)
                done.running = rest
            elif word == "ok":
                done.outcomes[rest] = Outcome(True)
            elif word == "fail":
                check, _, reason = rest.partition(" ")
                done.outcomes[check] = Outcome(False, json.loads(reason))
            elif word == "unplug":
                stream.write(control.unplug(rest) + "\n")
                stream.flush()
            elif word == "end":
                done.complete = True


class Control:
    """QEMU's control socket (QMP): how the guest has its machine changed."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream
        self.ready = False

    def unplug(self, device: str) -> str:
        """Ask the guest's kernel to give a device up; return the line for the guest's checks."""
        return self._execute("device_del", id=device)

    def _execute(self, command: str, **arguments: object) -> str:
        if not self.ready:
            self.ready = True
            self.stream.readline()  # the greeting
            self._execute("qmp_capabilities")
        self.stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.stream.flush()
        for line in self.stream:
            reply = json.loads(line)
            if "return" in reply:
                return "done"
            if "error" in reply:
                return f"refused {reply['error']['desc']}"
        return "refused QEMU is gone"
