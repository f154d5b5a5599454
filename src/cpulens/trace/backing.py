"""A folder for what is too long for memory; it goes when its last user does."""

from __future__ import annotations

import os
import weakref
from pathlib import Path


class Backing:
    """A temporary folder with the events of a long log as `events.parquet`.

    Removed when the object goes, at exit at the latest; not by a forked child, which only inherited it.
    """

    def __init__(self) -> None:
        import tempfile

        self.folder = Path(tempfile.mkdtemp(prefix="cpulens-"))
        self._finalizer = weakref.finalize(self, _remove, self.folder, os.getpid())

    @property
    def events(self) -> Path:
        """Where the events are, or are to be."""
        return self.folder / "events.parquet"

    def close(self) -> None:
        """Remove the folder now."""
        self._finalizer()


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
