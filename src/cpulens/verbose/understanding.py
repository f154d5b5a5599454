"""One text → the columns of one row of `texts`, whoever printed it."""

from __future__ import annotations

from typing import Final

from cpulens.verbose import framing

_LIBRARIES: Final = {framing.ONEDNN: "onednn", framing.MKL: "mkl", framing.MARKER: "cpulens"}

Fields = dict[str, str | int | None]


def understand(kind: int, text: bytes, *, whole: bool = True) -> Fields:
    """Give the columns of a text, `library` and `raw` included; never raises.

    `kind`: as its frame says. `whole`: False for a text of which only the coarse part is kept; its raw text is null.
    """
    raw = text.decode("utf-8", "replace")
    if kind == framing.UNKNOWN:
        library = "mkl" if raw.startswith("MKL") else "cpulens" if raw.startswith("cpulens") else "onednn"
        return {"library": library, "event": "unknown", "message": raw, "raw": raw}
    fields: Fields = {"library": _LIBRARIES[kind], "raw": raw if whole else None}
    if kind == framing.ONEDNN:
        from cpulens.verbose import onednn

        fields |= onednn.understand(text)
    elif kind == framing.MKL:
        from cpulens.verbose import mkl

        fields |= mkl.understand(text)
    else:
        _, _, event, name = raw.split(",", 3)
        fields |= {"component": "marker", "event": event, "message": name}
    return fields
