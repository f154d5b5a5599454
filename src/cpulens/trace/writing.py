"""Files that are complete or not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from cpulens.errors import TraceFileError


@contextmanager
def atomic(path: Path, *, force: bool) -> Iterator[IO[bytes]]:
    """Write a file beside its name and rename it when the block ends well; nothing is left when it doesn't.

    Raises TraceFileError when the file exists (unless `force`) or its folder can't be written to.
    """
    if path.exists() and not force:
        raise TraceFileError(f"{path} exists and is not overwritten. Give another name, or --force to replace it.")
    if path.is_dir():
        raise TraceFileError(f"{path} is a directory. Give the name of a file.")
    import tempfile

    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent or ".")
    except OSError as error:
        raise TraceFileError(f"{path} can't be written: {error.strerror or error}.") from error
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
        _rename(Path(temporary), path, force=force)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise TraceFileError(f"{path} can't be written: {error.strerror or error}.") from error
        raise


def _rename(temporary: Path, path: Path, *, force: bool) -> None:
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(temporary, 0o666 & ~mask)
    if force:
        os.replace(temporary, path)
        return
    try:
        os.link(temporary, path)  # fails where another process was quicker, unlike a rename
    except FileExistsError as error:
        raise TraceFileError(f"{path} was written by someone else meanwhile and is not overwritten.") from error
    except OSError:
        os.replace(temporary, path)  # a file system without hard links
        return
    os.unlink(temporary)
