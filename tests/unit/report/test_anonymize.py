"""What tells who or where goes out of texts; what tells which kernel stays."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cpulens
from analyze_support import F32, header, mark, run, sgemm, trace_of
from cpulens.errors import CpulensError
from cpulens.report.bundle.anonymize import Anonymizer
from cpulens.report.bundle.identity import Identity
from cpulens.report.bundle.run import anonymized
from cpulens.trace.schema import EVENT_COLUMNS, TEXT_COLUMNS

US = Identity(
    users=("zaphod", "Zaphod Beeblebrox"),
    hosts=("node7.heart.example", "node7", "heart.example"),
    words=("Magrathea",),
    folders=("/home/zaphod", "/data/my models/v 2"),
)


def told(text: str) -> str:
    return Anonymizer(US).text(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("zaphod ran it on node7", "<user-1> ran it on <host-1>"),
        ("ZAPHOD on Node7.Heart.Example, then node7.", "<user-1> on <host-1>, then <host-2>."),
        ("by Zaphod Beeblebrox", "by <user-1>"),
        ("magrathea_model, zaphod-laptop", "<word-1>_model, <user-1>-laptop"),
        ("/srv/a/model.onnx and /srv/a/model.onnx, /srv/b", "<path-1>.onnx and <path-1>.onnx, <path-2>"),
        ("/home/zaphod/x.py:12: error", "<path-1>.py:12: error"),
        ("in /data/my models/v 2/net.xml now", "in <path-1>.xml now"),
        ("~/runs/a.log ~ford/b ../c/d ./e", "<path-1>.log <path-2> <path-3> <path-4>"),
        (r"C:\Users\ford\net.xml", "<path-1>.xml"),
        ("/opt/x/lib/libgomp-a34b3233.so.1", "<path-1>/libgomp-a34b3233.so.1"),
        (
            "/v/lib/python3.12/site-packages/torch/lib/libgomp.so.1",
            "<path-1>/site-packages/torch/lib/libgomp.so.1",
        ),
        ("/v/site-packages/magic_of_ours/libgomp.so.1", "<path-1>/libgomp.so.1"),
        ("/b/zaphod/oneDNN/src/cpu/x64/jit.cpp:7", "<path-1>/src/cpu/x64/jit.cpp:7"),
        ("/usr/lib/x86_64-linux-gnu/libgomp.so.1", "/usr/lib/x86_64-linux-gnu/libgomp.so.1"),
        ("LD_PRELOAD=/a/libtcmalloc.so.4:/b/mine.so", "LD_PRELOAD=<path-1>/libtcmalloc.so.4:<path-2>/mine.so"),
        ("10.1.2.3:8080 and 10.1.2.3, not 10.1.2.300", "<address-1>:8080 and <address-1>, not 10.1.2.300"),
        ("fe80::1ff:fe23:4567:890a, ::1, 127.0.0.1", "<address-1>, ::1, 127.0.0.1"),
        ("52:54:00:ab:cd:ef", "<address-1>"),
        ("mail arthur.dent@earth.example now", "mail <email-1> now"),
        ("s3://bucket/key?x=1 https://h.example/a.", "<url-1> <url-2>"),
        ("pod 0f8fad5b-d9cb-469f-a165-70867728950e", "pod <id-1>"),
        ("HF_TOKEN=abc123 and hf_abcdefghijklmnop", "HF_TOKEN=<secret-1> and <secret-2>"),
        # What is none of that:
        ("12.5 GFLOP/s, 3/4, N/A, f32/bf16", "12.5 GFLOP/s, 3/4, N/A, f32/bf16"),
        ("src:f32::blocked:ab::f0 at 12:30:45", "src:f32::blocked:ab::f0 at 12:30:45"),
        ("v3.12.0 (commit 40112196287e8866a7259df35f817229454d0c96)",) * 2,
        ("encoder.layers.0.attn, outer/inner",) * 2,
        ("zaphodic, anode7",) * 2,
    ],
)
def test_a_text(text: str, shown: str) -> None:
    assert told(text) == shown


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (
            ["/opt/v/bin/python3.11", "jobs/train.py", "--batch-size", "32", "--out=/srv/x", "bert-large"],
            ["<path-1>/python3.11", "<path-2>.py", "--batch-size", "32", "--out=<path-3>", "bert-large"],
        ),
        (["run.sh", "-I/srv/include", "--lr=1e-3"], ["<path-1>.sh", "-I<path-2>", "--lr=1e-3"]),
        (["x", "--api-key", "abc", "--token=def", "-v"], ["x", "--api-key", "<secret-1>", "--token=<secret-2>", "-v"]),
        (["python", "-c", "open('/home/zaphod/a b')"], ["python", "-c", "<code-1>"]),
        (["python", "my dir/other file.py"], ["python", "<path-1>.py"]),
        (
            ["srun", "-H", "a1,a2", "--master_addr=a1", "-N", "2", "--user", "ford", "--api-key", "7"],
            [
                "srun",
                "-H",
                "<host-1>",
                "--master_addr=<host-2>",
                "-N",
                "2",
                "--user",
                "<host-3>",
                "--api-key",
                "<secret-1>",
            ],
        ),
        (["taskset", "-c", "0-3,8", "numactl", "-C", "0"],) * 2,
        (["curl", "https://x.example/y"], ["curl", "<url-1>"]),
    ],
)
def test_a_command(command: list[str], shown: list[str]) -> None:
    assert Anonymizer(US).command(command) == shown


NAMES = st.text("abcdefghijklmnopqrstuvwxyzäß0123456789_-.", min_size=3, max_size=12).filter(
    lambda name: name[0].isalpha() and name[-1].isalnum()
)


@given(
    NAMES, NAMES, st.lists(st.sampled_from([" ", "/", "@", ":", ".", "=", "-", "_", "x", "USER", "HOST"]), max_size=20)
)
def test_no_name_survives_as_a_word_and_twice_changes_nothing(user: str, host: str, pieces: list[str]) -> None:
    words = {"USER": user, "HOST": host}
    text = "".join(words.get(piece, piece) for piece in pieces)
    identity = Identity(users=(user,), hosts=(host,))
    shown = Anonymizer(identity).text(text)
    bare = re.sub(r"<[a-z]+-\d+>", " ", shown)
    for name in (user, host):
        assert re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", bare, re.IGNORECASE) is None
    assert Anonymizer(identity).text(shown) == shown


def test_names_that_are_words_of_kernels_stay_there_and_are_told() -> None:
    trace = trace_of(header(), run(1.0, "matmul", "jit:uni"), command=["jit", "matmul"])
    changed, anonymizer = anonymized(trace, Identity(users=("jit",), hosts=("matmul",)))
    assert changed.frame.collect().filter(pl.col("event") == "exec").select("primitive", "implementation").row(0) == (
        "matmul",
        "jit:uni",
    )
    assert changed.facts["command"] == ["<user-1>", "<host-1>"]
    assert set(anonymizer.names_left(changed.texts["raw"].str.join("\n").item())) == {"jit", "matmul"}


def test_a_run_keeps_its_kernels_and_figures() -> None:
    trace = trace_of(
        header(),
        mark("begin", "zaphod/step", 1.0),
        run(1.0, start_ms=2.0),
        sgemm(0.25),
        "onednn_verbose,v1,primitive,error,cpu,matmul,bad file /srv/secret/x,src/common/y.cpp:3\n",
        mark("end", "zaphod/step", 5.0),
        "onednn_verbose,nobody knows zaphod\n",
        wall_ms=10.0,
        environment={"LD_PRELOAD": "/home/ford/libx.so", "OMP_NUM_THREADS": "2"},
        instances={},
    )
    changed, _ = anonymized(trace, US)
    before, after = trace.frame.collect(), changed.frame.collect()
    people = ("message", "raw", "region", "source")
    assert after.drop(people).equals(before.drop(people), null_equal=True)
    kernels = pl.col("event") == "exec"
    assert after.filter(kernels)["raw"].to_list() == before.filter(kernels)["raw"].to_list()
    assert set(after["region"].drop_nulls()) == {"<user-1>/step"}
    assert changed.facts["environment"].pop("LD_PRELOAD") == "<path-2>/libx.so"  # the first is in the error's line
    assert changed.facts["environment"] == {"OMP_NUM_THREADS": "2"}
    assert changed.facts["wall_ms"] == 10.0 and changed.facts["lines"] == trace.facts["lines"]
    everything = repr(after.to_dicts()) + repr(changed.facts)
    assert "zaphod" not in everything and "ford" not in everything and "/srv" not in everything


def test_users_and_instances_of_the_run_itself(tmp_path: Path) -> None:
    """A run of another host, read here: its home folders tell its users, its instances its hosts."""
    for host in ("trillian01", "trillian02"):
        text = header() + run(1.0) + "onednn_verbose,v1,info,cpu,loaded by marvin from /home/marvin/x\n"
        (tmp_path / f"{host}.log").write_text(text)
    trace = cpulens.load(tmp_path / "trillian01.log", tmp_path / "trillian02.log")
    trace.facts["notes"].append("trillian01.log: marvin's run was cut")
    changed, _ = anonymized(trace, Identity())
    everything = repr(changed.frame.collect().to_dicts()) + repr(changed.facts)
    assert "marvin" not in everything and "trillian" not in everything
    assert changed.facts["notes"][-1] == "<instance-1>: <user-1>'s run was cut"
    assert set(changed.facts["instances"]) == {"<instance-1>", "<instance-2>"}
    assert [one["instance"] for one in changed.facts["libraries"]] == ["<instance-1>", "<instance-2>"]
    assert set(changed.frame.collect()["instance"]) == {"<instance-1>", "<instance-2>"}


def test_numbered_instances_keep_their_numbers() -> None:
    lines = "".join(f"[{rank}] {line}\n" for rank in (0, 1) for line in (header() + run(1.0)).splitlines())
    trace = trace_of(lines)
    numbers = trace.frame.collect()["instance"].unique().sort().to_list()
    assert numbers == ["0", "1"]
    changed, _ = anonymized(trace, Identity())
    assert changed.frame.collect()["instance"].unique().sort().to_list() == numbers


SHARED = Path(__file__).parents[4] / "shared" / "logs"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared logs are not there")
def test_real_logs_keep_every_kernel() -> None:
    read = 0
    for path in sorted(SHARED.rglob("*.log")):
        if path.stat().st_size > 1_000_000:
            continue
        try:
            trace = cpulens.load(path)
        except CpulensError:
            continue
        read += 1
        changed, _ = anonymized(trace, US)
        _same_kernels(trace, changed)
    assert read > 10


def _same_kernels(trace: Any, changed: Any) -> None:
    people = ("message", "raw", "source", "instance", "region", "layer")
    kernels = [name for name in TEXT_COLUMNS if name not in people]
    assert changed.texts.select(kernels).equals(trace.texts.select(kernels), null_equal=True)
    figures = [name for name in EVENT_COLUMNS if name not in people]
    assert changed.events.select(figures).collect().equals(trace.events.select(figures).collect(), null_equal=True)


def test_descriptors_are_no_addresses() -> None:
    changed, _ = anonymized(trace_of(header(), run(1.0, descriptors=F32)), US)
    assert changed.texts["tensors"].drop_nulls().to_list() == [
        "src:f32::blocked:ab::f0 wei:f32::blocked:ab::f0 dst:f32::blocked:ab::f0"
    ]
