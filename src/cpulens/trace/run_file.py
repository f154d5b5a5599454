"""The run file, ``*.cpulens``: a plain zip of ``facts.json``, ``texts.parquet`` and ``events.parquet``, uncompressed.

``facts.json`` stands first and holds ``{"format": "cpulens run", "schema": 1, "facts": {…}}``. Files of older
schemas are read: columns they lack are null. Those of newer ones are refused.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from cpulens.errors import TraceFileError
from cpulens.trace.backing import Backing
from cpulens.trace.needs import polars
from cpulens.trace.schema import EVENT_COLUMNS, SCHEMA_VERSION, TEXT_COLUMNS
from cpulens.trace.tables import PARQUET, schema
from cpulens.trace.writing import atomic

if TYPE_CHECKING:
    import zipfile

    import polars as pl

    from cpulens.trace.run import Trace

_FORMAT: Final = "cpulens run"
_ZIP: Final = b"PK\x03\x04"
#: Events up to this size are read into memory; larger ones are unpacked beside and scanned.
_IN_MEMORY_BYTES: Final = 8 << 20


def recognise(start: bytes) -> bool:
    """Tell a run file by its first 64 bytes."""
    return start.startswith(_ZIP) and start[30:40] == b"facts.json"


def save(trace: Trace, path: Path, *, force: bool) -> Path:
    """Write a trace; see `Trace.save`."""
    facts = json.dumps({"format": _FORMAT, "schema": SCHEMA_VERSION, "facts": trace.facts}, indent=1)
    import zipfile

    texts = io.BytesIO()
    trace.texts.write_parquet(texts)
    with (
        atomic(path, force=force) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive,
    ):
        archive.writestr("facts.json", facts)
        archive.writestr("texts.parquet", texts.getvalue())
        with archive.open("events.parquet", "w", force_zip64=True) as member:
            _write_events(trace, member)
    return path


def _write_events(trace: Trace, member: IO[bytes]) -> None:
    if trace.backing is not None and trace.backing.events.exists():
        import shutil

        with trace.backing.events.open("rb") as events:
            shutil.copyfileobj(events, member, 1 << 20)
        return
    written = io.BytesIO()
    trace.events.sink_parquet(written, **PARQUET)
    member.write(written.getbuffer())


def load(path: Path) -> tuple[pl.DataFrame, pl.LazyFrame, dict[str, Any], Backing | None]:
    """Read texts, events, facts, and the backing of the events if they are long."""
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            facts = _facts(path, archive.read("facts.json"))
            texts = polars().read_parquet(io.BytesIO(archive.read("texts.parquet")))
            events, backing = _events(archive)
    except FileNotFoundError as error:
        raise TraceFileError(f"There is no run file {path}.") from error
    except (zipfile.BadZipFile, KeyError, OSError, EOFError) as error:
        raise TraceFileError(
            f"{path} is not a whole run file ({type(error).__name__}: {error}). "
            f"Read the log again: cpulens convert LOG -o {path}"
        ) from error
    except polars().exceptions.PolarsError as error:
        raise TraceFileError(f"{path} is damaged: its tables can't be read ({str(error).splitlines()[0]}).") from error
    return _complete(texts, TEXT_COLUMNS), _complete_lazy(events), facts, backing


def _facts(path: Path, text: bytes) -> dict[str, Any]:
    try:
        content = json.loads(text)
        version, facts = content["schema"], content["facts"]
    except (ValueError, KeyError, TypeError) as error:
        raise TraceFileError(f"{path} is damaged: its facts.json can't be read ({error}).") from error
    if not isinstance(version, int) or not isinstance(facts, dict):
        raise TraceFileError(f"{path} is damaged: its facts.json has no schema number or no facts.")
    if version > SCHEMA_VERSION:
        raise TraceFileError(
            f"{path} has schema {version}, and this cpulens reads up to schema {SCHEMA_VERSION}. "
            "Install a newer cpulens."
        )
    return facts


def _events(archive: zipfile.ZipFile) -> tuple[pl.LazyFrame, Backing | None]:
    module = polars()
    if archive.getinfo("events.parquet").file_size <= _IN_MEMORY_BYTES:
        frame: pl.LazyFrame = module.read_parquet(io.BytesIO(archive.read("events.parquet"))).lazy()
        return frame, None
    import shutil

    backing = Backing()
    with archive.open("events.parquet") as member, backing.events.open("wb") as file:
        shutil.copyfileobj(member, file, 1 << 20)
    scanned: pl.LazyFrame = module.scan_parquet(backing.events)
    return scanned, backing


def _complete(table: pl.DataFrame, columns: dict[str, tuple[str, str]]) -> pl.DataFrame:
    """Add the columns that an older schema lacks, and put all in the newest order."""
    return _complete_frame(table.lazy(), set(table.columns), columns).collect()


def _complete_lazy(events: pl.LazyFrame) -> pl.LazyFrame:
    return _complete_frame(events, set(events.collect_schema().names()), EVENT_COLUMNS)


def _complete_frame(frame: pl.LazyFrame, there: set[str], columns: dict[str, tuple[str, str]]) -> pl.LazyFrame:
    module, types = polars(), schema(columns)
    return frame.select(
        module.col(name) if name in there else module.lit(None, types[name]).alias(name) for name in columns
    )
