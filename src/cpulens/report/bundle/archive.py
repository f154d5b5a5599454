"""What a bundle holds, and its zip file."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from cpulens.analyze.coverage import cover
from cpulens.analyze.findings import Thresholds, find
from cpulens.analyze.summary import summarize
from cpulens.report.benchdnn.listing import listing_text
from cpulens.report.benchdnn.reproducers import reproducers
from cpulens.report.bundle.contents import contents_text
from cpulens.report.bundle.identity import Identity
from cpulens.report.bundle.run import anonymized, texts_of
from cpulens.report.findings import coverage_text, findings_text
from cpulens.report.findings_json import findings_object
from cpulens.report.terminal import summary_text
from cpulens.trace.writing import atomic

if TYPE_CHECKING:
    import zipfile

    from cpulens.trace import Trace

#: Everything lies in one folder of the archive.
_FOLDER: Final = "cpulens-bundle"
_RUN: Final = "run.cpulens"
_WIDTH: Final = 110
_REPRODUCERS: Final = 100


@dataclass(frozen=True, slots=True)
class Member:
    """One text file of a bundle: its name, what it is, its content."""

    name: str
    about: str
    content: str


@dataclass(frozen=True)
class Bundle:
    """A bundle that can be looked at before it is written.

    `trace`: the run as it goes into the archive. `replaced`: kind, original, placeholder and number of distinct texts.
    `left`: names that a library uses as a word of its own for a kernel, and how often they stand there.
    """

    trace: Trace
    members: tuple[Member, ...]
    replaced: tuple[tuple[str, str, str, int], ...]
    left: Counter[str]

    def write(self, path: Path, *, force: bool = False) -> None:
        """Write the zip file. Raises TraceFileError when it exists, unless `force`, or can't be written."""
        import zipfile

        with (
            tempfile.TemporaryDirectory(prefix="cpulens-bundle-") as folder,
            atomic(path, force=force) as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            for member in self.members:
                with _entry(archive, member.name) as target:
                    target.write(member.content.encode("utf-8", "replace"))
            run = self.trace.save(Path(folder, _RUN))
            with _entry(archive, _RUN) as target, run.open("rb") as source:
                shutil.copyfileobj(source, target, 1 << 20)


def bundle(trace: Trace, identity: Identity, *, thresholds: Thresholds | None = None) -> Bundle:
    """Make the bundle of a run.

    `identity`: who and where we are (`here()`); what the run itself tells by its form (paths, addresses, home folders)
    is replaced in any case. `thresholds`: of the findings (default: those of `Thresholds`).
    """
    changed, anonymizer = anonymized(trace, identity)
    members = list(_members(changed, thresholds))
    left: Counter[str] = Counter()
    for text in (*texts_of(changed), *(member.content for member in members)):
        left.update(anonymizer.names_left(text))
    replaced = tuple(anonymizer.replaced)
    kinds = Counter({kind: len({one[1] for one in replaced if one[0] == kind}) for kind, *_ in replaced})
    files = [*((member.name, member.about) for member in members), (_RUN, "the run itself: cpulens top run.cpulens")]
    first = Member("CONTENTS.txt", "this list", contents_text(changed, files, kinds, len(left)))
    return Bundle(changed, (first, *members), replaced, left)


def _members(trace: Trace, thresholds: Thresholds | None) -> Iterator[Member]:
    yield Member("top.txt", "where the time went", summary_text(summarize(trace), None, _WIDTH) + "\n")
    by_problem = summarize(trace, ("library", "primitive", "implementation", "problem"))
    yield Member(
        "problems.txt",
        "the same by problem",
        summary_text(by_problem, _REPRODUCERS, _WIDTH, "run.cpulens has all") + "\n",
    )
    covered = cover(trace)
    found = find(trace, thresholds, covered)
    parts = [part for part in (coverage_text(covered), findings_text(found, _WIDTH)) if part]
    yield Member("findings.txt", "what the rules find wrong, with evidence", "\n\n".join(parts) + "\n")
    yield Member("findings.json", "the same for programs", _json(findings_object(found, covered)))
    lines = listing_text(reproducers(trace), _REPRODUCERS, {})
    yield Member("reproducers.sh", "benchdnn command lines that run the heaviest problems again", lines + "\n")
    yield Member("facts.json", "libraries, machine, settings, command, counts of lines", _json(trace.facts))


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _entry(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    """A member without the time and the owner that zip tools put beside a file."""
    import zipfile

    info = zipfile.ZipInfo(f"{_FOLDER}/{name}", date_time=(1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    return archive.open(info, "w", force_zip64=True)
