"""Write a realistic verbose log of any length, quickly: a few thousand distinct texts, repeated as in an inference.

Kinds: `mixed` (oneDNN with stamps, dispatch noise, foreign lines, MKL lines), `v1` (plain oneDNN v1 without stamps, as
oneDNN's own converter wants it), `mkl`, `foreign`, `torn`, `different` (every line another problem), `line` (one line).
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator
from pathlib import Path

# ruff: noqa: E501
_MARK = "onednn_verbose,v1,"
_IMPLEMENTATIONS = (
    "brg_matmul:avx512_core_amx",
    "brg_matmul:avx512_core_bf16",
    "jit:avx512_core",
    "brgconv:avx512_core",
)


def _texts(rng: random.Random, count: int) -> list[str]:
    """Make distinct texts of executions and creations, without stamp and time."""
    texts = []
    for number in range(count):
        width = 8 * (number + 1)
        dt = rng.choice(("f32", "bf16"))
        kind = number % 3
        if kind == 0:
            body = (
                f"cpu,matmul,{rng.choice(_IMPLEMENTATIONS[:2])},undef,src:{dt}::blocked:ab::f0 wei:{dt}:ap:blocked:BA16a64b::f0 "
                f"bia:f32::blocked:ab::f0_mask2 dst:{dt}::blocked:ab::f0,attr-scratchpad:user attr-post-ops:eltwise_gelu_erf,,"
                f"128x{width}:{width}x1024"
            )
        elif kind == 1:
            body = (
                f"cpu,convolution,{rng.choice(_IMPLEMENTATIONS[2:])},forward_inference,src:{dt}:a:blocked:acdb::f0 "
                f"wei:{dt}:a:blocked:Acdb32a::f0 bia:f32::blocked:a::f0 dst:{dt}:a:blocked:acdb::f0,attr-scratchpad:user,"
                f"alg:convolution_direct,mb1_ic64oc{width}_ih56oh56kh3sh1dh0ph1_iw56ow56kw3sw1dw0pw1"
            )
        else:
            body = (
                f"cpu,reorder,jit:uni,undef,src:{dt}::blocked:abcd::f0 dst:{dt}::blocked:acdb::f0,attr-scratchpad:user,,"
                f"1x{width}x56x56"
            )
        operation = "create:cache_hit" if number % 5 == 4 else "exec"
        texts.append(f"primitive,{operation},{body}")
    return texts


def _time(rng: random.Random) -> str:
    return f"{rng.randrange(1, 1 << 16) / 4096:.6g}"


def _mkl(rng: random.Random) -> str:
    pointers = [f"0x{rng.randrange(1 << 44, 1 << 47):x}" for _ in range(5)]
    a, b, c, alpha, beta = pointers
    n = 64 * rng.randrange(1, 40)
    call = f"SGEMM(N,N,{n},64,{n},{alpha},{a},{n},{b},{n},{beta},{c},{n})"
    time = f"{rng.randrange(100, 99_999) / 100:.2f}us"
    return f"MKL_VERBOSE {call} {time} CNR:OFF Dyn:1 FastMM:1 TID:{rng.randrange(2)}  NThr:2"


def mixed(rng: random.Random, *, stamps: bool = True, noise: bool = True) -> Iterator[str]:
    """Give lines without end."""
    texts = _texts(rng, 2_400)
    dispatch = [
        f"primitive,create:dispatch,matmul,cpu,matmul,brg_matmul:avx10_2,undef,src:f32::blocked:ab::f0 wei:f32::blocked:ab::f0 "
        f"dst:f32::blocked:ab::f0,,,128x{8 * n}:{8 * n}x1024,unsupported isa,src/cpu/x64/matmul/brgemm_matmul.cpp:{100 + n % 9}"
        for n in range(600)
    ]
    now = 1_796_113_262_148_625
    number = 0
    while True:
        number += 1
        now += rng.randrange(50, 900)
        stamp = f"{now // 1000}.{now % 1000:03}{'906'}," if stamps else ""
        dice = rng.random() if noise else 1.0
        if dice < 0.05:
            yield f"[INFO] step {number} loss {rng.random():.4f} of the program itself"
        elif dice < 0.10:
            yield _mkl(rng)
        elif dice < 0.20:
            yield f"{_MARK}{stamp}{rng.choice(dispatch)}"
        else:
            yield f"{_MARK}{stamp}{texts[int(len(texts) * rng.random() ** 2)]},{_time(rng)}"


def _plain(rng: random.Random) -> Iterator[str]:
    return mixed(rng, stamps=False, noise=False)


def _mkl_only(rng: random.Random) -> Iterator[str]:
    while True:
        yield _mkl(rng)


def _foreign(rng: random.Random) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield (
            f"2026-01-01 12:00:00,123 worker {number % 7} [INFO] request {number} took {rng.random():.5f} s "
            + "." * 130
        )


def _torn(rng: random.Random) -> Iterator[str]:
    for line in mixed(rng, noise=False):
        yield line[: rng.randrange(30, max(31, len(line) - 30))]


def _different(rng: random.Random) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield (
            f"{_MARK}primitive,exec,cpu,matmul,brg_matmul:avx512_core,undef,src:f32::blocked:ab::f0 wei:f32::blocked:ab::f0 "
            f"dst:f32::blocked:ab::f0,attr-scratchpad:user,,{number}x64:64x1024,{_time(rng)}"
        )


KINDS: dict[str, Callable[[random.Random], Iterator[str]]] = {
    "mixed": mixed,
    "v1": _plain,
    "mkl": _mkl_only,
    "foreign": _foreign,
    "torn": _torn,
    "different": _different,
}
#: Lines that are really generated; longer logs repeat them, which no reader can tell from new ones.
_GENERATED = 250_000


def write(path: Path, kind: str, lines: int, seed: int = 0) -> None:
    """Write a log of so many lines; `different` never repeats a line."""
    source = KINDS[kind](random.Random(seed))
    block = lines if kind == "different" else min(lines, _GENERATED)
    text = "".join(next(source) + "\n" for _ in range(block)).encode()
    with path.open("wb") as file:
        for _ in range(lines // block):
            file.write(text)
        left = lines % block
        if left:
            file.write(b"".join(text.splitlines(keepends=True)[:left]))


def main() -> None:
    """Write one log from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--kind", choices=KINDS, default="mixed")
    parser.add_argument("--lines", type=int, default=1_000_000)
    args = parser.parse_args()
    write(args.path, args.kind, args.lines)


if __name__ == "__main__":
    main()
