"""The grammar takes what the documentation shows and nothing that it does not; what is printed reads back."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cpulens
from analyze_support import run, tensors
from cpulens.errors import CpulensError
from cpulens.report.benchdnn import Command, command, grammar
from cpulens.report.benchdnn.listing import listing_text
from cpulens.report.benchdnn.reproducers import reproducers

LOGS = Path(__file__).parents[2] / "data" / "logs"

#: Options and problems of the kinds that the documentation of each driver shows.
DOCUMENTED = [
    "--binary --sdt=f32:f32 --ddt=f32 --stag=acdb:acdb --alg=MUL 8x8x3x5:8x1x1x1",
    "--conv --dir=FWD_D --attr-post-ops=sum+relu:0.5 ic16oc16ih4oh4kh1ph0",
    "--conv --attr-post-ops=relu+dw:k3s1p1:s8+relu --attr-scales=dst:per_oc ic16oc16ih4oh4kh1ph0",
    "--conv --attr-post-ops=add:s32:common+add:f32:per_tensor:acdb ic16oc16ih4oh4kh1ph0",
    "--matmul --bia-dt=f32 --bia_mask=4 2x10x30:2x30x20",
    "--matmul --strides=8x4x1:24x6x1:21x7x1 3x2x4:3x4x6",
    "--matmul --dt=u8:s8:u8 --wtag=any --attr-zero-points=src:common:1+dst:common:-2 10x30:30x20",
    "--matmul --dt=f32:s8:f32 --attr-fpmath=bf16:true --attr-scales=wei:per_ocic:bf16:2x1 "
    "--attr-zero-points=wei:per_ocic:s8:2x1 6x4:4x5",
    "--reorder --sdt=s8 --ddt=u8 --stag=abc --dtag=acb --attr-scales=src:common:2.5 2x8x8",
    "--reduction --alg=norm_lp_max --p=2 --eps=0.5 2x8:2x1",
    "--rnn --alg=VANILLA_GRU --direction=concat --cfg=u8u8u8f32 --tag=any:any:any l1t2mb3_sic4_slc4_dhc4_dic4",
    "--shuffle --dir=FWD_D --dt=f32 --tag=abcd --group=4 --axis=2 1x68x56x56",
    "--softmax --dir=FWD_D --sdt=f32 --ddt=f32 --stag=ab --axis=1 256x1000",
    "--sum --sdt=s8:s8:u8 --ddt=s32 --stag=acdb:acdb:acdb --dtag=acdb --scales=2:4:1 16x16x3x5",
    "--zeropad --dt=f32 --tag=ABcd4a4b 64x3x60x60",
    "--brgemm --dt=u8:s8:u8 --bs=10 10x30:30x20",
]
WRONG = [
    "--softmax --wtag=ab 2x2",
    "--softmax --axis=-1 2x2",
    "--softmax --alg=HARDMAX 2x2",
    "--matmul --attr-scales=src:0 2x2:2x2",
    "--matmul --attr-scales=wei:2:0.5:f32 2x2:2x2",
    "--matmul --attr-post-ops=relu+ 2x2:2x2",
    "--matmul 2x2",
    "--matmul 2x2:2x2 2x2:2x2",
    "--conv mb1ic3xx4",
    "--conv",
    "--matmul --softmax 2x2",
    "2x2",
]


@pytest.mark.parametrize("line", DOCUMENTED)
def test_documented_lines_are_taken(line: str) -> None:
    found = grammar.parse(line.split())
    assert line.split()[0] == f"--{found.driver}"
    assert found.problem == line.split()[-1]
    rebuilt = [f"--{found.driver}", *(f"--{name}={value}" for name, value in found.options.items()), found.problem]
    assert rebuilt == line.split()


@pytest.mark.parametrize("line", WRONG)
def test_other_lines_are_not(line: str) -> None:
    with pytest.raises(ValueError, match=r"driver|problem"):
        grammar.parse(line.split())


SIZES = st.integers(1, 99)
TYPES = st.sampled_from(("f32", "bf16", "f16", "s8", "u8"))


@given(SIZES, SIZES, SIZES, TYPES, TYPES, st.sampled_from(("ab", "ba")), st.sampled_from(("", "a", "ap")))
def test_products_read_back(m: int, n: int, k: int, dt: str, out: str, tag: str, properties: str) -> None:
    described = f"src:{dt}::blocked:{tag}::f0 wei:{dt}:{properties}:blocked:BA16a64b::f0 dst:{out}::blocked:ab::f0"
    log = f"onednn_verbose,v1,primitive,exec,cpu,matmul,brg,undef,{described},,,{m}x{k}:{k}x{n},1\n"
    (columns,) = cpulens.load(log.encode()).texts.iter_rows(named=True)
    made = command(columns)
    assert isinstance(made, Command)
    found = grammar.parse(list(made.arguments))
    assert (found.driver, found.problem) == ("matmul", f"{m}x{k}:{k}x{n}")
    assert found.options["dt"].split(":") == [dt, dt, out]
    assert [found.options[f"{letter}tag"] for letter in "swd"] == [tag, "any" if properties else "BA16a64b", "ab"]


@pytest.mark.parametrize("path", sorted(LOGS.glob("*.log")), ids=lambda path: path.stem)
def test_every_execution_of_a_real_log_has_a_line_or_a_reason(path: Path) -> None:
    try:
        trace = cpulens.load(path)
    except CpulensError:
        return  # a log without a record
    result = reproducers(trace)
    executed = trace.frame.filter(pl.col("event") == "exec").collect()
    assert sum(one.calls for one in (*result.found, *result.refused)) == len(executed)
    assert all(one.reason for one in result.refused)
    for one in result.found:
        found = grammar.parse(list(one.arguments))
        assert f"--{found.driver}" == one.arguments[0]


def test_problems_are_joined_and_ordered_by_time() -> None:
    log = run(1.0) + run(5.0, problem="8x8:8x8") + run(3.0, implementation="ref:any") + run(2.0, "gemm_api")
    result = reproducers(cpulens.load(log.encode()))
    assert [(one.calls, one.total_ms, one.arguments[-1]) for one in result.found] == [
        (1, 5.0, "8x8:8x8"),
        (2, 4.0, "64x64:64x64"),
    ]
    assert result.found[1].implementations == ("ref:any", "brg_matmul:avx2")
    assert [one.share for one in result.found] == [5 / 11, 4 / 11]
    (refused,) = result.refused
    assert (refused.name, refused.total_ms) == ("gemm_api", 2.0)
    text = listing_text(result, 1)
    assert "1 more problem, 4.00 ms" in text
    assert "dnnl_gemm" in text
    commands = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert [line.split()[-1] for line in commands] == ["8x8:8x8"]


def test_control_characters_never_reach_the_text() -> None:
    log = run(1.0, implementation="evil\x1b[2J", problem="8x8:8x8") + run(
        1.0, "\x1b]0;x\x07", descriptors=tensors(src="f32:ab")
    )
    text = listing_text(reproducers(cpulens.load(log.encode())), 20)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert all(line.startswith(("#", "benchdnn ")) for line in text.splitlines() if line)
