"""Where lines come from: files, compressed files, standard input, bytes. All give blocks of whole lines.

A line longer than MAX_LINE_BYTES is cut there: its beginning is read, the rest is skipped and counted. A block ends
with the end of a line, but for the last one of the source.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, cast

from cpulens.errors import BackendUnavailable, LogError

#: Large enough to hide what numpy costs a call, small enough for a processor's cache; no longer than a line may be.
BLOCK_BYTES: Final = 1 << 20
#: The documented limit of one line.
MAX_LINE_BYTES: Final = 1 << 20
_START_BYTES: Final = 4096
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_XZ: Final = b"\xfd7zXZ\x00"
_UTF16: Final = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_UTF8_BOM: Final = b"\xef\xbb\xbf"


class Stream(NamedTuple):
    """An opened source: its name for messages, a file object of plain bytes, its path and size where it can be cut up.

    `opened`: what `close` closes; the caller's own files are not in it.
    """

    name: str
    file: IO[bytes]
    path: Path | None
    size_bytes: int | None
    opened: list[IO[bytes]]

    @property
    def damage(self) -> str | None:
        """What is wrong with it as far as it was read; None: nothing."""
        return next((file.damage for file in self.opened if isinstance(file, _Decompressed) and file.damage), None)

    def close(self) -> None:
        """Close what was opened for it, the outermost first."""
        for file in reversed(self.opened):
            file.close()


def start_of(path: Path) -> bytes:
    """Give the first bytes of a file. Raises LogError when it can't be read, or is a folder."""
    if path.is_dir():
        raise LogError(f"{path} is a directory. Name the log files in it, for example {path}/*.log.")
    try:
        with path.open("rb") as file:
            return file.read(_START_BYTES)
    except FileNotFoundError as error:
        raise LogError(f"There is no file {path}. Check the name; - reads standard input.") from error
    except OSError as error:
        raise LogError(f"{path} can't be read: {error.strerror or error}.") from error


def opened(path: Path) -> Stream:
    """Open a log, through its compression and encoding, which its first bytes tell."""
    start = start_of(path)
    file: IO[bytes] = path.open("rb")
    opened = [file]
    try:
        plain = _plain(start, file, opened)
    except BaseException:
        file.close()
        raise
    if plain is file:
        return Stream(str(path), file, path, path.stat().st_size if path.is_file() else None, opened)
    return Stream(str(path), plain, None, None, opened)


def from_file(file: IO[bytes], name: str) -> Stream:
    """Read a file object of bytes, standard input for one, through its compression and encoding."""
    start = _fill(file, _START_BYTES)
    opened: list[IO[bytes]] = []
    return Stream(name, _plain(start, cast("IO[bytes]", _Rejoined(start, file)), opened), None, None, opened)


def from_pipe(path: Path) -> Stream:
    """Read a named pipe or another file that can be read only once."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise LogError(f"{path} can't be read: {error.strerror or error}.") from error
    stream = from_file(file, str(path))
    stream.opened.insert(0, file)
    return stream


def from_bytes(data: bytes) -> Stream:
    """Read bytes."""
    return from_file(io.BytesIO(data), "the given bytes")


def standard_input() -> Stream:
    """Read standard input."""
    if sys.stdin.isatty():
        print("cpulens: reading a log from the terminal; end it with Ctrl-D", file=sys.stderr)
    return from_file(sys.stdin.buffer, "standard input")


def _plain(start: bytes, file: IO[bytes], opened: list[IO[bytes]]) -> IO[bytes]:
    if start.startswith(_GZIP):
        import gzip

        file = decompressed(gzip.GzipFile(fileobj=file), opened)
    elif start.startswith(_XZ):
        import lzma

        file = decompressed(lzma.LZMAFile(file), opened)  # noqa: SIM115
    elif start.startswith(_ZSTD):
        file = decompressed(_zstd(file), opened)
    elif start[:2] in _UTF16:
        return cast("IO[bytes]", _Recoded(file, _UTF16[start[:2]]))
    elif b"\x00" in start:
        raise LogError(
            "This is a binary file, not a log (it has zero bytes in its first 4 kB). Give a verbose log or a run file."
        )
    else:
        return file
    inner = _fill(file, _START_BYTES)
    rejoined = cast("IO[bytes]", _Rejoined(inner, file))
    return cast("IO[bytes]", _Recoded(rejoined, _UTF16[inner[:2]])) if inner[:2] in _UTF16 else rejoined


def _zstd(file: IO[bytes]) -> Any:
    try:
        if sys.version_info >= (3, 14):
            from compression.zstd import ZstdFile
        else:
            from backports.zstd import ZstdFile
    except ImportError as error:
        raise BackendUnavailable(
            "Reading zstd needs backports.zstd. Install it with: pip install backports.zstd"
        ) from error
    return ZstdFile(file)


def _fill(file: IO[bytes], size: int) -> bytes:
    """Read `size` bytes, fewer only at the end."""
    parts: list[bytes] = []
    while size > 0 and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def decompressed(file: Any, opened: list[IO[bytes]]) -> IO[bytes]:
    """Read a compressed file to where it is whole."""
    tolerant = cast("IO[bytes]", _Decompressed(file))
    opened.append(tolerant)
    return tolerant


class _Decompressed(io.RawIOBase):
    """A compressed file that ends where it is damaged, with `damage` telling so; what stands before is not lost."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.damage: str | None = None

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        parts: list[bytes] = []
        while self.damage is None and size > 0:
            try:
                part = self._file.read1(size)
            except Exception as error:  # each decoder has errors of its own
                self.damage = f"the compressed data are damaged or cut off ({str(error).rstrip('.')})"
                break
            if not part:
                break
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        self._file.close()
        super().close()


class _Rejoined(io.RawIOBase):
    """A file whose first bytes were already read."""

    def __init__(self, start: bytes, file: IO[bytes]) -> None:
        self._start, self._file = start, file

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._start:
            given = self._start if size < 0 else self._start[:size]
            self._start = self._start[len(given) :]
            return given
        return self._file.read(size)


class _Recoded(io.RawIOBase):
    """UTF-16 with its mark, as PowerShell's `>` writes it, read as UTF-8."""

    def __init__(self, file: IO[bytes], encoding: str) -> None:
        import codecs

        self._file = file
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._first = True

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while True:
            data = self._file.read(size)
            text = self._decoder.decode(data, final=not data)
            if self._first and text:
                text, self._first = text.removeprefix("\ufeff"), False
            if text or not data:
                return text.encode("utf-8", "replace")


class Block(NamedTuple):
    """Whole lines. `cut`: how many of them were longer than the limit (only a block's last line can be)."""

    data: bytes
    cut: int


def blocks(file: IO[bytes], limit: int | None = None, wait: Callable[[], bool] | None = None) -> Iterator[Block]:
    """Cut a file into blocks of whole lines.

    `limit`: stop after the line that reaches over this many bytes. `wait`: called at the end of the file; True: try
    again, there may be more.
    """
    rest, done = b"", 0
    while limit is None or done < limit:
        data = file.read(BLOCK_BYTES)
        if not data:
            if wait is not None and wait():
                continue
            break
        end = data.rfind(b"\n") + 1
        if not end:
            if len(rest) + len(data) <= MAX_LINE_BYTES:
                rest += data
                continue
            head = rest + data
            skipped, rest = _skip_line(file, wait)
            done += len(head) + skipped
            yield Block(head[:MAX_LINE_BYTES] + b"\n", 1)
            continue
        block, rest = b"".join((rest, memoryview(data)[:end])), data[end:]
        if limit is not None and done + len(block) > limit:
            block = _until(block, limit - done)
            rest = b""
        done += len(block)
        yield from _checked(block)
    if rest and (limit is None or done < limit):
        yield from _checked(rest)


def _until(block: bytes, wanted: int) -> bytes:
    """Keep the lines that begin before byte `wanted`."""
    end = block.find(b"\n", wanted - 1) + 1
    return block[:end] if end else block


def _checked(block: bytes) -> Iterator[Block]:
    """Cut the one line that may be too long: the first, which was put together of two reads."""
    first = block.find(b"\n")
    if first > MAX_LINE_BYTES:
        yield Block(block[:MAX_LINE_BYTES] + b"\n", 1)
        if first + 1 < len(block):
            yield Block(block[first + 1 :], 0)
    else:
        yield Block(block, 0)


def _skip_line(file: IO[bytes], wait: Callable[[], bool] | None) -> tuple[int, bytes]:
    """Read on to the end of a line: how many bytes were skipped, and what follows it."""
    skipped = 0
    while True:
        data = file.read(BLOCK_BYTES)
        if not data:
            if wait is not None and wait():
                continue
            return skipped, b""
        end = data.find(b"\n") + 1
        if end:
            return skipped + end, data[end:]
        skipped += len(data)


def from_descriptor_range(path: Path, start: int, end: int) -> tuple[IO[bytes], int]:
    """Open a file for the lines that begin in [start, end): the file there, and how many bytes to read."""
    file = path.open("rb")
    if start == 0:
        return file, end
    file.seek(start - 1)
    skipped = 0
    while True:
        data = file.read(min(BLOCK_BYTES, max(end - start + 1 - skipped, 1)))
        at = data.find(b"\n") + 1
        if at:
            first = start - 1 + skipped + at
            break
        skipped += len(data)
        if not data or start - 1 + skipped >= end:
            return file, 0
    file.seek(first, os.SEEK_SET)
    return file, max(end - first, 0)
