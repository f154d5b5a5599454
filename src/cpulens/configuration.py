"""Settings from files: `[tool.cpulens]` of pyproject.toml, or the whole of cpulens.toml; flags win over both."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

from cpulens.errors import UsageError

#: In each folder the first of these counts.
_OWN: Final = "cpulens.toml"
_PROJECT: Final = "pyproject.toml"


def settings(section: str, start: Path | None = None) -> dict[str, Any]:
    """Read one section, such as "findings", from the nearest file at or above `start` (default: the current folder).

    A folder's cpulens.toml wins over its pyproject.toml; one without `[tool.cpulens]` is passed over. Empty where there
    is none. Raises UsageError for a file that is no TOML, or a section that is no table.
    """
    folder = (start or Path.cwd()).resolve()
    for place in (folder, *folder.parents):
        for name in (_OWN, _PROJECT):
            found = _table(place / name)
            if found is None:
                continue
            table = found.get(section, {})
            if not isinstance(table, dict):
                raise UsageError(f"{section} in {place / name} is no table of settings")
            return table
    return {}


def _table(path: Path) -> dict[str, Any] | None:
    """Cpulens's own table in a file; None where there is none."""
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError):
        return None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} can't be read: {error}") from error
    if path.name == _OWN:
        return content
    tool = content.get("tool", {})
    own = tool.get("cpulens") if isinstance(tool, dict) else None
    if own is None:
        return None
    if not isinstance(own, dict):
        raise UsageError(f"tool.cpulens in {path} is no table of settings")
    return own
