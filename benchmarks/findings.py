"""How long findings take on a long trace, and how much memory: in a fresh process, as the command does it.

    python benchmarks/findings.py [--rows 10000000]

The trace is a small inference of 240 kernels (convolutions, products, reorders, a few of oneMKL, timed markers)
repeated to that length, with times that vary; it is written as a run file first, which is not measured.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT_S, LIMIT_BYTES = 15.0, 2e9


def inference(kernels: int) -> list[str]:
    """Lines of one inference, without their times."""
    lines = []
    for layer in range(kernels // 8):
        size = 16 * (1 + layer % 12)
        conv = f"mb4_ic{size}oc{size}_ih28oh28kh3sh1dh0ph1_iw28ow28kw3sw1dw0pw1"
        act, wei = f"4x{size}x28x28", f"{size}x{size}x3x3"
        lines += [
            f"reorder,jit:uni,undef,src:f32::blocked:abcd::f0 dst:f32::blocked:ABcd16b16a::f0,,,{wei}",
            f"reorder,jit:blk,undef,src:f32::blocked:abcd::f0 dst:f32::blocked:aBcd16b::f0,,,{act}",
            "convolution,jit:avx512_core,forward_inference,src:f32::blocked:aBcd16b::f0 "
            "wei:f32::blocked:ABcd16b16a::f0 "
            f"bia:undef::undef::: dst:f32::blocked:aBcd16b::f0,,alg:convolution_direct,{conv}",
            f"reorder,jit:blk,undef,src:f32::blocked:aBcd16b::f0 dst:f32::blocked:abcd::f0,,,{act}",
            f"eltwise,jit:avx512_core,forward_inference,src:f32::blocked:abcd::f0 dst:f32::blocked:abcd::f0,,"
            f"alg:eltwise_relu alpha:0 beta:0,{act}",
            f"matmul,brg_matmul:avx512_core,undef,src:f32::blocked:ab::f0 wei:f32::blocked:ab::f0 "
            f"dst:f32::blocked:ab::f0,,,{size}x{size}:{size}x{size}",
            f"softmax,jit:avx512_core,forward_inference,src:f32::blocked:ab::f0 dst:f32::blocked:ab::f0,,"
            f"alg:softmax_accurate axis:1,{size}x{size}",
            f"MKL_VERBOSE SGEMM(N,N,{size},{size},{size},0x1,0x2,{size},0x3,{size},0x4,0x5,{size}) "
            "{us}us CNR:OFF Dyn:1 FastMM:1 TID:0  NThr:2",
        ]
    return lines


def write_log(path: Path, rows: int) -> None:
    """A log of `rows` records with stamps and times."""
    chance = random.Random(1)
    lines, clock_ns, written, number = inference(240), 1_796_113_262_148_000_000, 0, 0
    with path.open("w", encoding="ascii") as file:
        file.write(
            "onednn_verbose,v1,info,oneDNN v3.12.0 (commit N/A)\nonednn_verbose,v1,info,cpu,runtime:OpenMP,nthr:2\n"
        )
        while written < rows:
            parts = [f"cpulens,v1,iteration,1@{clock_ns // 10**6}.{clock_ns % 10**6:06d},{number}\n"]
            for line in lines:
                time_us = chance.choice((20, 21, 22, 25, 90))
                if line.startswith("MKL"):
                    parts.append(line.format(us=f"{time_us:.2f}") + "\n")
                else:
                    stamp = f"{clock_ns // 10**6}.{clock_ns % 10**6:06d}"
                    parts.append(f"onednn_verbose,v1,{stamp},primitive,exec,cpu,{line},{time_us / 1e3}\n")
                clock_ns += (time_us + 5) * 1000
            file.writelines(parts)
            written += len(parts)
            number += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    rows = parser.parse_args().rows
    command = [sys.executable, "-m", "cpulens"]
    with tempfile.TemporaryDirectory() as folder:
        log, run = Path(folder) / "run.log", Path(folder) / "run.cpulens"
        write_log(log, rows)
        subprocess.run([*command, "convert", str(log), "-o", str(run)], check=True, stdout=subprocess.DEVNULL)
        log.unlink()
        measure = "import resource, sys; from cpulens.cli import main; main(sys.argv[1:]);"
        measure += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
        began = time.perf_counter()
        result = subprocess.run(
            [sys.executable, "-c", measure, "findings", str(run)], check=True, capture_output=True, text=True
        )
        seconds = time.perf_counter() - began
        peak_bytes = int(result.stderr.split()[-1]) * 1024
    print(result.stdout)
    print(f"{rows:,} rows: findings in {seconds:.1f} s (limit {LIMIT_S:g}), {peak_bytes / 1e6:,.0f} MB (limit 2,000)")
    if seconds > LIMIT_S or peak_bytes > LIMIT_BYTES:
        sys.exit(1)


if __name__ == "__main__":
    main()
