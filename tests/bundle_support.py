"""Everything that can be read in a bundle, the strings of its tables included."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl


def everything_in(archive: Path) -> Iterator[tuple[str, str]]:
    """Where and what: names and contents of members, of the run's own members, names of columns and their values."""
    with zipfile.ZipFile(archive) as outer:
        yield "comment", outer.comment.decode()
        for info in outer.infolist():
            yield "name", info.filename
            yield "extra", repr((info.extra, info.comment))
            content = outer.read(info)
            if info.filename.endswith(".cpulens"):
                yield from _run(content)
            else:
                yield info.filename, content.decode()


def _run(content: bytes) -> Iterator[tuple[str, str]]:
    with zipfile.ZipFile(io.BytesIO(content)) as inner:
        for info in inner.infolist():
            yield "name", info.filename
            data = inner.read(info)
            if not info.filename.endswith(".parquet"):
                yield info.filename, data.decode()
                continue
            metadata: dict[str, Any] = pl.read_parquet_metadata(io.BytesIO(data))
            yield "metadata", repr({name: value for name, value in metadata.items() if name != "ARROW:schema"})
            table = pl.read_parquet(io.BytesIO(data))
            for name in table.columns:
                yield f"{info.filename}:{name}", name
                if table[name].dtype == pl.String:
                    yield from ((f"{info.filename}:{name}", value) for value in table[name].drop_nulls().unique())
