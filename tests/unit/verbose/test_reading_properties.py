"""What must hold for any bytes, and for any mixture of records of every era."""

# ruff: noqa: E501
from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpulens.errors import LogError
from cpulens.verbose import framing, load, pieces, source
from cpulens.verbose.explain import explain
from cpulens.verbose.understanding import understand
from verbose_support import LINES, OWN_TEXT, Line, read_plainly, read_with, rows_of

WORDS = [
    b"onednn_verbose,", b"v1,", b"dnnl_verbose,", b"mkldnn_verbose,", b"onednn_graph_verbose,", b"MKL_VERBOSE ", b"SGEMM(", b"BEGIN ", b"END ",
    b"mkl_sparse_d_mv(", b"exec,", b"cpu,", b"primitive,", b"graph,", b"create:dispatch,", b"exec:check,", b"info,", b"error,", b"matmul,",
    b"jit:uni,", b"undef,", b"src_f32::blocked:ab:f0 ", b",,", b",", b"1x2", b"0.5", b"0,5", b"1796113262148.625000,", b" 1.00us CNR:OFF",
    b" TID:0  NThr:2", b"\n", b"\r\n", b"\x1b[0m", b"\xff\xfe", b"[0] ", b"cpulens,v1,", b"begin,1,a", b"end,1,a", b"iteration,1,", b"0x7ffd2b8b68b8",
    b"fpm:strict,", b"dnnl_backend,", b"FFT(dcfi", b"FFT: MAIN_DESC | ", b"{\"log\":\"", b"nan", b"-", b"#",
]  # fmt: skip
SHREDS = st.lists(st.sampled_from(WORDS) | st.binary(max_size=12), max_size=40).map(b"".join)


@given(st.binary(max_size=400) | SHREDS)
@settings(max_examples=400, deadline=None)
def test_any_bytes_are_read_and_accounted_for(data: bytes) -> None:
    reading = read_with("plain", data)
    tally = reading.tally
    expected = sum(len(pieces.split(line)) for line in data.split(b"\n")) - (data.endswith(b"\n") or not data)
    # A record may be followed by text on its line: then the piece is two.
    assert tally.read >= expected or data.startswith(b"\xef\xbb\xbf") or b'{"log":"' in data or b"[0] " in data
    assert tally.records + tally.unknown == len(reading.columns)


@given(st.lists(SHREDS, max_size=12).map(b"".join))
@settings(max_examples=300, deadline=None)
def test_both_kernels_read_any_shreds_as_the_careful_way_does(data: bytes) -> None:
    measure = read_plainly(data)
    for kernel in ("plain", "numpy"):
        for block_bytes in (1, 100, 1 << 20):
            reading = read_with(kernel, data, block_bytes)
            assert rows_of(reading) == rows_of(measure)
            assert reading.tally == measure.tally
            assert reading.lines == measure.lines


@given(st.lists(LINES | OWN_TEXT, max_size=30), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_both_kernels_read_repeated_lines_as_the_careful_way_does(lines: list[Line | str], rng: random.Random) -> None:
    """Repeating is what the kernels' short cuts are for."""
    chosen = [line.text if isinstance(line, Line) else line for line in rng.choices(lines, k=60)] if lines else []
    end = rng.choice(("\n", "\r\n"))
    data = "".join(line + end for line in chosen).encode()
    measure = read_plainly(data)
    for kernel in ("plain", "numpy"):
        reading = read_with(kernel, data, rng.choice((50, 500, 1 << 20)))
        assert rows_of(reading) == rows_of(measure)
        assert reading.tally == measure.tally


@given(st.lists(LINES, min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_records_of_every_era_are_read_back_as_made(lines: list[Line]) -> None:
    frame = load("\n".join(line.text for line in lines).encode()).frame.collect()
    keys = ("library", "event", "primitive", "implementation", "duration_ms", "start_ns")
    assert frame.select(keys).rows() == [tuple(getattr(line, key) for key in keys) for line in lines]
    assert frame["line"].to_list() == list(range(1, len(lines) + 1))


@given(st.lists(LINES, min_size=2, max_size=6), st.data())
@settings(max_examples=200, deadline=None)
def test_cutting_and_gluing_never_loses_a_whole_record(lines: list[Line], data: st.DataObject) -> None:
    """A torn beginning of a line glued before whole ones, and whole ones glued to each other, on one line."""
    torn, *whole = lines
    cut = data.draw(st.integers(0, len(torn.text) - 1))
    glue = data.draw(st.sampled_from(("", "\x1b[0m", " ", "\t", "progress 10%\r")))
    text = torn.text[:cut] + glue + glue.join(line.text for line in whole) + "\n"
    reading = read_plainly(text.encode())
    found = [framing_of(entry) for entry in rows_of(reading)]
    wanted = [framing_of_line(line) for line in whole]
    assert found[len(found) - len(wanted) :] == wanted


@given(
    st.lists(LINES, min_size=1, max_size=8),
    st.lists(OWN_TEXT, min_size=1, max_size=8),
    st.randoms(use_true_random=False),
)
@settings(max_examples=100, deadline=None)
def test_interleaving_with_other_text_never_loses_a_whole_record(
    lines: list[Line], texts: list[str], rng: random.Random
) -> None:
    mixed = [line.text for line in lines] + texts
    order = sorted(range(len(mixed)), key=lambda at: rng.random())
    glued = [rng.choice(("\n", "")) if at >= len(lines) else "\n" for at in order]
    text = "".join(mixed[at] + end for at, end in zip(order, glued, strict=True))
    reading = read_plainly(text.encode())
    wanted = [framing_of_line(lines[at]) for at in order if at < len(lines)]
    assert [framing_of(row) for row in rows_of(reading)] == wanted


def framing_of(row: tuple) -> tuple[object, ...]:
    (kind, text, *_), _, duration, start = row
    fields = understand(kind, text)
    return fields["library"], fields["event"], fields.get("primitive"), duration, start


def framing_of_line(line: Line) -> tuple[object, ...]:
    return (
        line.library,
        line.event,
        line.primitive,
        line.duration_ms,
        line.start_ns if line.start_ns is not None else -(2**63),
    )


@given(SHREDS)
@settings(max_examples=300, deadline=None)
def test_understanding_and_explaining_never_raise(data: bytes) -> None:
    for line in data.split(b"\n"):
        for piece in pieces.split(line):
            if piece.verbose:
                frame = framing.frame(piece.text)
                fields = understand(frame.kind, frame.text)
                assert fields["library"] in ("onednn", "mkl", "cpulens")
                understand(frame.kind, framing.coarse(frame.kind, frame.text), whole=False)
        explain(line)


@given(LINES, st.integers(0, 300), st.binary(min_size=1, max_size=1))
@settings(max_examples=300, deadline=None)
def test_one_changed_byte_never_raises(line: Line, at: int, byte: bytes) -> None:
    data = bytearray(line.text.encode())
    data[at % len(data)] = byte[0]
    reading = read_plainly(bytes(data))
    for (kind, text, *_), *_ in rows_of(reading):
        understand(kind, text)


@given(st.binary(max_size=3000), st.integers(1, 400))
@settings(max_examples=200, deadline=None)
def test_pieces_joined_are_the_line_again(data: bytes, _: int) -> None:
    assert b"".join(piece.text for piece in pieces.split(data)) == data


@given(st.lists(LINES.map(lambda line: line.text) | OWN_TEXT, max_size=40), st.integers(1, 7))
@settings(max_examples=100, deadline=None)
def test_byte_ranges_hold_every_line_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], parts: int
) -> None:
    path = tmp_path_factory.mktemp("ranges") / "log"
    data = "\n".join(lines).encode()
    path.write_bytes(data)
    found = b""
    for part in range(parts):
        start, end = len(data) * part // parts, len(data) * (part + 1) // parts
        file, limit = source.from_descriptor_range(path, start, end)
        with file:
            found += b"".join(block.data for block in source.blocks(file, limit))
    assert found == data


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_load_gives_a_trace_or_says_why_not(data: bytes) -> None:
    try:
        trace = load(data)
    except LogError as error:
        assert str(error).strip()
    else:
        lines = trace.facts["lines"]
        assert lines["read"] == lines["records"] + lines["own"] + lines["unknown"]


def test_a_torn_log_of_two_processes_keeps_every_whole_line() -> None:
    """Lines of the real log that end in a time and hold one marker are whole, and all of them are records."""
    import gzip

    path = Path(__file__).parents[2] / "data" / "logs" / "onednn_v3.2_torn_2proc_2thr_longlines.log.gz"
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    whole = [
        number
        for number, line in enumerate(lines, 1)
        if line.startswith("onednn_verbose,") and line.count("onednn_verbose,") == 1
    ]
    records = set(load(path).events.select("line").collect()["line"])
    assert set(whole) <= records
