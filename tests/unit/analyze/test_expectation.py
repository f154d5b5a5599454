"""What a test expects of its kernels, held against small logs by hand."""

from __future__ import annotations

from typing import Any

import pytest

from analyze_support import moved, run, sgemm, trace_of
from cpulens.analyze.expectation import Expectation
from cpulens.analyze.summary import summarize
from cpulens.errors import UsageError

#: 8 ms in all: 5 in a product, 1 in a reference kernel, 2 in a reorder; and 0.5 in oneMKL.
LINES = (
    run(2.0, "matmul", "brg_matmul:avx10_1_512_amx"),
    run(3.0, "matmul", "brg_matmul:avx10_1_512_amx"),
    run(1.0, "eltwise", "ref:any"),
    moved(2.0, "64x64", "f32:ab", "f32:ba"),
    sgemm(0.5),
)


def broken(*lines: str, **words: Any) -> tuple[str, ...]:
    return Expectation.of(words).broken(summarize(trace_of(*(lines or LINES))))


@pytest.mark.parametrize(
    "words",
    [
        {"require": "*amx*"},
        {"require": "*AMX*|*bf16*"},
        {"require": ["*amx*", "sgemm"]},
        {"require": "reorder"},
        {"forbid": "simple*|conv*"},
        {"forbid": "ref"},  # a pattern matches the whole name
        {"forbid": "any"},
        {"max_ms": 8.5},
        {"max_reorder_share": 0.25},
        {"max_reorder_share": 1, "max_ms": 100, "require": "ref:any", "forbid": ()},
    ],
)
def test_what_holds_is_not_told(words: dict[str, Any]) -> None:
    assert broken(**words) == ()


def test_a_forbidden_kernel_is_named_with_its_calls_and_time() -> None:
    assert broken(forbid="ref*") == ("forbid='ref*': it ran eltwise ref:any (1 call, 1 ms)",)
    assert broken(forbid="*brg*|sgemm") == (
        "forbid='*brg*|sgemm': it ran matmul brg_matmul:avx10_1_512_amx (2 calls, 5 ms), sgemm (1 call, 0.5 ms)",
    )


def test_each_pattern_of_several_is_held_alone() -> None:
    assert broken(require=["*amx*", "*acl*", "conv*"]) == (
        "require='*acl*': nothing that ran matches it",
        "require='conv*': nothing that ran matches it",
    )


def test_limits_tell_both_numbers() -> None:
    (share,) = broken(max_reorder_share=0.1)
    assert share.startswith("max_reorder_share=0.1: reorders take 0.235 of the execution time, 2 ms of 8.5 ms in 1")
    (time,) = broken(max_ms=8)
    assert time == "max_ms=8: the kernels take 8.5 ms in 5 calls"


def test_a_limit_of_untimed_kernels_can_not_be_held() -> None:
    (told,) = broken(run(float("nan")), max_ms=8, max_reorder_share=0.5)
    assert told == "max_reorder_share and max_ms: no kernel that ran carries a time"


def test_creations_are_no_executions() -> None:
    created = run(9.0, "convolution", "ref:any", operation="create:cache_miss")
    assert broken(created, run(1.0), forbid="ref*", max_ms=2) == ()


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"forbidden": "ref*"},
        {"forbid": 3},
        {"forbid": ["ref*", 3]},
        {"require": ""},
        {"require": {"ref*"}},
        {"max_ms": "3"},
        {"max_ms": -1},
        {"max_ms": True},
        {"max_ms": float("nan")},
        {"max_reorder_share": 10},
    ],
)
def test_words_that_are_none_are_refused(words: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as refused:
        Expectation.of(words)
    assert all(name in str(refused.value) for name in words)
