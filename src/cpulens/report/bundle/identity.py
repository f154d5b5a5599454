"""Who and where we are: the names by which this host and its user could be known."""

from __future__ import annotations

import getpass
import os
import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_USER_VARIABLES: Final = ("USER", "LOGNAME", "USERNAME", "SUDO_USER")
_HOST_VARIABLES: Final = ("HOSTNAME", "COMPUTERNAME")
#: Names that every host has.
_EVERYBODY: Final = {"localhost", "localdomain", "localhost.localdomain", "(none)", "unknown"}
#: The home folder of a user in a path, on Linux, macOS and Windows.
_HOMES: Final = re.compile(r"(?:/home/|/Users/|[A-Za-z]:[\\/]+Users[\\/]+)([^\s/\\:;,'\"<>|]{2,})")


@dataclass(frozen=True, slots=True)
class Identity:
    """Names to be replaced wherever they stand as words, and folders whose names may hold blanks."""

    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    def with_users(self, found: Iterable[str]) -> Identity:
        """The same with further users."""
        return Identity(_distinct([*self.users, *found]), self.hosts, self.words, self.folders)


def here(words: Iterable[str] = ()) -> Identity:
    """The identity of this process: user, full name, host, home and current folder. `words`: further ones, given."""
    hosts = [name for found in _hosts() for name in _parts(found)]
    return Identity(
        users=_distinct(_users()),
        hosts=tuple(name for name in _distinct(hosts) if name.lower() not in _EVERYBODY),
        words=_distinct(words),
        folders=tuple(folder for folder in _distinct(_folders()) if folder.count(os.sep) > 1 or len(folder) > 3),
    )


def users_in(texts: Iterable[str]) -> tuple[str, ...]:
    """Users whose home folders are named in texts."""
    return _distinct(name for text in texts for name in _HOMES.findall(text))


def _users() -> list[str]:
    found = [os.environ.get(name, "") for name in _USER_VARIABLES]
    try:
        found.append(getpass.getuser())
        import pwd

        entry = pwd.getpwuid(os.getuid())
        found += [entry.pw_name, entry.pw_gecos.split(",")[0]]
    except (ImportError, KeyError, OSError):  # no such user in the container, or no such module on the system
        pass
    return found


def _hosts() -> list[str]:
    found = [platform.node(), *(os.environ.get(name, "") for name in _HOST_VARIABLES)]
    try:
        with open("/etc/hostname", encoding="utf-8", errors="replace") as file:
            found.append(file.read().strip())
    except OSError:
        pass
    return found


def _parts(name: str) -> list[str]:
    """node7.cluster.example → itself, node7, cluster.example."""
    first, _, domain = name.partition(".")
    return [name, first, domain]


def _folders() -> list[str]:
    home = os.path.expanduser("~")
    try:
        return [home, os.getcwd()]
    except OSError:  # the current folder was removed
        return [home]


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in names if len(name.strip()) > 1))
