"""This host's processor, against what others say of it: the kernel, oneDNN, PyTorch."""

from __future__ import annotations

import json
import platform

import pytest

from cpulens.backends import cpu
from cpulens.machine import isa
from tests_support import Program

#: dnnl_cpu_isa_t of oneDNN 3.x: bits of the public enumeration → the word of ONEDNN_MAX_CPU_ISA.
ISA_BITS = {
    0x1: "sse41",
    0x3: "avx",
    0x7: "avx2",
    0xF: "avx2_vnni",
    0x1F: "avx2_vnni_2",
    0x27: "avx512_core",
    0x67: "avx512_core_vnni",
    0xE7: "avx512_core_bf16",
    0x1EF: "avx10_1_512",
    0xFEF: "avx10_1_512_amx",
    0x1FEF: "avx10_1_512_amx_fp16",
}
LIMITS = ["", "SSE41", "avx", "AVX2", "avx2_vnni", "avx512_core", "avx512_core_vnni", "avx512_core_bf16"]
LIMITS += ["avx512_core_fp16", "AVX512_CORE_AMX", "default", "avx9000"]


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the wheel of oneDNN exists for x86-64 only")
def test_onednn_uses_what_is_said(program: Program, limit: str) -> None:
    done = program(
        """
        import json
        from cpulens.backends import cpu
        from cpulens.native import find
        said = cpu.onednn_isa()
        library = find.load(find.ONEDNN)
        print(json.dumps([said, library.dnnl_get_effective_cpu_isa()]))
        """,
        ONEDNN_MAX_CPU_ISA=limit,
    )
    assert done.returncode == 0, done.stderr.decode()
    said, effective = json.loads(done.stdout)
    assert said == ISA_BITS[effective]


@pytest.mark.torch
@pytest.mark.parametrize("setting", [None, "avx2", "default", "AVX2", "sve256"])
def test_capability_is_pytorchs_in_any_environment(program: Program, setting: str | None) -> None:
    """Our own rules, applied before PyTorch is imported, and PyTorch's answer."""
    done = program(
        """
        import warnings
        from cpulens.backends import cpu
        own = cpu.get_cpu_capability()
        warnings.simplefilter("ignore")
        import torch
        print(own, torch.backends.cpu.get_cpu_capability(), cpu.get_cpu_capability())
        """,
        **({} if setting is None else {"ATEN_CPU_CAPABILITY": setting}),
    )
    assert done.returncode == 0, done.stderr.decode()
    own, theirs, ours = done.stdout.decode().split()
    assert own == theirs == ours


@pytest.mark.torch
def test_extensions_are_those_that_pytorch_finds_by_cpuid(program: Program) -> None:
    done = program("import json, torch; print(json.dumps(dict(torch.cpu.get_capabilities())))")
    theirs = json.loads(done.stdout)
    names = {"avx512_bf16": "avx512_bf16", "avx512_vnni": "avx512_vnni", "avx512_fp16": "avx512_fp16", "avx2": "avx2"}
    names |= {"amx_bf16": "amx_bf16", "amx_int8": "amx_int8", "amx_fp16": "amx_fp16", "avx_vnni": "avx_vnni"}
    names |= {"avx_ne_convert": "avx_ne_convert", "avx_vnni_int8": "avx_vnni_int8", "avx10": "avx10_1"}
    processor = isa.read_processor()
    compared = {ours: theirs[name] for ours, name in names.items() if name in theirs}
    assert compared == {ours: processor.has(ours) for ours in compared}
    assert compared or theirs["architecture"] != "x86_64"


def test_amx_is_asked_of_the_kernel(program: Program) -> None:
    """Independently: arch_prctl by its number. A request by us, or by oneDNN, turns on_request into granted."""
    done = program(
        """
        import ctypes, platform
        from cpulens.machine import cpuinfo, isa

        def tiles(question):
            mask = ctypes.c_ulong()
            failed = ctypes.CDLL(None).syscall(158, question, ctypes.byref(mask))
            return not failed and bool(mask.value & 1 << 18)

        before = isa.read_processor().amx
        if platform.machine() != "x86_64" or "amx_tile" not in open("/proc/cpuinfo").read():
            assert before.state == "absent" and not cpuinfo.request_amx()
        elif tiles(0x1021):
            assert before.state == ("granted" if tiles(0x1022) else "on_request")
            assert cpuinfo.request_amx() and tiles(0x1022)
            assert isa.read_processor().amx.state == "granted"
        else:
            assert before.state == "refused" and not cpuinfo.request_amx()
            assert "has not granted AMX" in isa.read_processor().why_not("amx")
        print(before.state)
        """
    )
    assert done.returncode == 0, done.stderr.decode()


def test_details_agree_with_the_single_answers() -> None:
    details = cpu.details()
    assert details["capability"] == cpu.get_cpu_capability()
    assert details["onednn_isa"] == cpu.onednn_isa()
    assert details["usable"] == [name for name, reason in cpu.features().items() if not reason]
    assert all(cpu.why_not(name) == reason for name, reason in details["unusable"].items())
    found = cpu.microarchitecture()
    assert bool(found.name) != bool(found.reason)


def test_without_archspec_the_name_is_unknown_and_the_rest_is_not(program: Program) -> None:
    done = program(
        """
        import sys
        sys.modules["archspec"] = None
        from cpulens.backends import cpu
        assert cpu.microarchitecture() == (None, None, "the package archspec is not installed: pip install archspec")
        assert cpu.details()["usable"]
        """
    )
    assert done.returncode == 0, done.stderr.decode()
