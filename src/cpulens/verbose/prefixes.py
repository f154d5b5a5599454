"""What launchers and containers put before each line, and which process it tells.

=====================  =====================================  ==========
Intel MPI, run_cpu     ``[0] ``                               0
Open MPI               ``[1,0]<stdout>:``                     0
srun -l                ``0: ``                                0
torchrun               ``[default0]:``                        default0
docker compose         ``name-1  | ``                         name-1
kubectl --prefix       ``[pod/name/container] ``              pod/name/container
systemd                ``Dec 01 10:00:00 host app[12]: ``     app[12]
Kubernetes CRI         ``2026-01-01T00:00:00.0Z stdout F ``
GitHub Actions         ``2026-01-01T00:00:00.0000000Z ``
docker json-file       ``{"log":"…\\n","stream":"stdout",…}``
spdlog                 ``[2026-01-01 12:00:00.000] [oneDNN] [info] ``
=====================  =====================================  ==========

A prefix is looked for only in lines that hold a marker, and counts only when the marker follows it at once.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

_TIME: Final = rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_TRANSPORT: Final = re.compile(
    rb"(?:(?:[^\t\n]{1,200}\t){2}|)(?:" + _TIME + rb" (?:std(?:out|err) [FP] )?|\[" + _TIME + rb"\] (?:\[[\w .-]*\] )+)"
)
_INSTANCE: Final = re.compile(
    rb"(?:\x1b\[[\d;]*m)?\[(\d{1,6})\](?:\x1b\[[\d;]*m)? ?"
    rb"|\[(?:[\w.-]+@)?\d+,(\d{1,6})\]<std(?:out|err)>: ?"
    rb"| *(\d{1,6}): "
    rb"|\[([A-Za-z][\w.-]*\d+)\]: ?"
    rb"|(?:\x1b\[[\d;]*m)?([\w.-]+) +\| (?:\x1b\[[\d;]*m)?"
    rb"|\[(pod/[^\]\s]+)\] "
    rb"|(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d )?\S+ (\S+\[\d+\]): "
)
_MARKED: Final = re.compile(rb"(?:\x1b\[[0-9;?]*[ -/]*[@-~])*(?:mkldnn_|dnnl_|onednn_|MKL_VERBOSE |cpulens,v1,)")
_JSON: Final = (b'{"log":"', b'{"log": "')


class Stripped(NamedTuple):
    """A line without what was put before it, and the instance that this told."""

    text: bytes
    instance: str | None


def strip(line: bytes) -> Stripped:
    """Take a known prefix off a line that holds a marker; without one the line is given back."""
    if line.startswith(_JSON):
        line = _unwrapped(line)
    transport = _TRANSPORT.match(line)
    start = transport.end() if transport else 0
    found = _INSTANCE.match(line, start)
    if found and _MARKED.match(line, found.end()):
        instance = next(group for group in found.groups() if group is not None)
        return Stripped(line[found.end() :], instance.decode("utf-8", "replace"))
    if transport and _MARKED.match(line, start):
        return Stripped(line[start:], None)
    return Stripped(line, None)


def _unwrapped(line: bytes) -> bytes:
    try:
        text = json.loads(line)["log"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return line
    return text.encode("utf-8", "replace") if isinstance(text, str) else line
