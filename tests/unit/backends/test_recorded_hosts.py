"""Processors of other hosts, restated as facts: what PyTorch, oneDNN and archspec make of each."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

import archspec.cpu as archspec_cpu
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpulens.backends.capability import onednn_isa, torch_capability
from cpulens.backends.microarchitecture import judge, target
from cpulens.machine.cpuinfo import ProcessorFacts, parse_auxv, parse_cpuinfo, read_facts
from cpulens.machine.isa import processor

AVX2 = "fpu sse sse2 ssse3 sse4_1 sse4_2 popcnt avx f16c fma avx2 bmi1 bmi2"
SKYLAKE = f"{AVX2} avx512f avx512dq avx512cd avx512bw avx512vl"
CASCADE = f"{SKYLAKE} avx512_vnni"
SAPPHIRE = f"{CASCADE} avx512vbmi avx512_bitalg avx_vnni avx512_bf16 avx512_fp16 amx_bf16 amx_tile amx_int8"
ZEN4 = f"{CASCADE} avx512vbmi avx512_bitalg avx512_bf16"
NEOVERSE_N1 = "fp asimd aes pmull sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp ssbs"
NEOVERSE_V1 = f"{NEOVERSE_N1} sha3 sha512 sve asimdfhm svei8mm svebf16 i8mm bf16 rng"
NEOVERSE_V2 = f"{NEOVERSE_V1} sve2 svesha3 sb bti"

#: Bits 17 and 18 of the state components: AMX's configuration and tiles.
PERMITTED, SUPPORTED, OLD_KERNEL = 0x602E7, 0x602E7, 0x2E7


class Host(NamedTuple):
    """`expected`: PyTorch's capability, oneDNN's instruction set, design, archspec's name for it."""

    facts: ProcessorFacts
    expected: tuple[str, str, str, str]
    usable: str
    unusable: str


def x86(vendor: str, family: int, model: int, stepping: int, flags: str, **more: object) -> ProcessorFacts:
    names = {"vendor_id": vendor, "cpu family": str(family), "model": str(model), "stepping": str(stepping)}
    return ProcessorFacts("x86_64", {**names, "flags": flags}, **more)  # type: ignore[arg-type]


def arm(part: str, features: str, sve_bits: int, **more: object) -> ProcessorFacts:
    names = {"CPU implementer": "0x41", "CPU architecture": "8", "CPU part": part}
    return ProcessorFacts("aarch64", {**names, "Features": features}, sve_bytes=sve_bits // 8, **more)  # type: ignore[arg-type]


HOSTS = {
    "Skylake-SP": Host(
        x86("GenuineIntel", 6, 85, 4, SKYLAKE),
        ("AVX512", "avx512_core", "Skylake-SP", "skylake_avx512"),
        "avx2 avx512",
        "avx512_vnni avx512_bf16 amx",
    ),
    "Cascade Lake": Host(
        x86("GenuineIntel", 6, 85, 7, CASCADE),
        ("AVX512", "avx512_core_vnni", "Cascade Lake", "cascadelake"),
        "avx512_vnni",
        "avx512_bf16 avx_vnni",
    ),
    "Sapphire Rapids": Host(
        x86("GenuineIntel", 6, 143, 8, SAPPHIRE, xcomp_supported=SUPPORTED, xcomp_permitted=PERMITTED),
        ("AVX512", "avx10_1_512_amx", "Sapphire Rapids", "sapphirerapids"),
        "avx512_fp16 avx_vnni amx amx_int8 amx_bf16",
        "amx_fp16 avx10",
    ),
    "Sapphire Rapids, AMX not asked for yet": Host(
        x86("GenuineIntel", 6, 143, 8, SAPPHIRE, xcomp_supported=SUPPORTED, xcomp_permitted=0x202E7),
        ("AVX512", "avx10_1_512_amx", "Sapphire Rapids", "sapphirerapids"),
        "amx amx_bf16",
        "amx_fp16",
    ),
    "Sapphire Rapids, kernel without AMX": Host(
        x86("GenuineIntel", 6, 143, 8, SAPPHIRE, xcomp_supported=OLD_KERNEL, xcomp_permitted=OLD_KERNEL),
        ("AVX512", "avx10_1_512", "Sapphire Rapids", "sapphirerapids"),
        "avx512_fp16",
        "amx amx_int8 amx_bf16",
    ),
    "Sapphire Rapids, sandbox that refuses the call": Host(
        x86("GenuineIntel", 6, 143, 8, SAPPHIRE),
        ("AVX512", "avx10_1_512", "Sapphire Rapids", "sapphirerapids"),
        "avx512_fp16",
        "amx",
    ),
    # The kernel's list leaves out amx_fp16 and avx10; CPUID has them in leaf 7, subleaf 1 (EAX 21, EDX 19).
    "Granite Rapids": Host(
        x86(
            *("GenuineIntel", 6, 173, 1, SAPPHIRE),
            cpuid={"7.1": (1 << 4 | 1 << 5 | 1 << 21, 0, 0, 1 << 19)},
            xcomp_supported=SUPPORTED,
            xcomp_permitted=PERMITTED,
        ),
        ("AVX512", "avx10_1_512_amx_fp16", "Granite Rapids", ""),
        "amx_fp16 avx10 amx_bf16",
        "avx_vnni_int8",
    ),
    "Zen 2": Host(
        x86("AuthenticAMD", 23, 49, 0, f"{AVX2} sse4a"),
        ("AVX2", "avx2", "Zen 2", "zen2"),
        "avx2 f16c",
        "avx512 avx_vnni",
    ),
    "Zen 3": Host(
        x86("AuthenticAMD", 25, 1, 1, f"{AVX2} sse4a vaes"), ("AVX2", "avx2", "Zen 3", "zen3"), "avx2", "avx512"
    ),
    "Zen 4": Host(
        x86("AuthenticAMD", 25, 17, 1, ZEN4),
        ("AVX512", "avx512_core_bf16", "Zen 4", "zen4"),
        "avx512_bf16 avx512_vnni",
        "avx_vnni avx512_fp16 amx",
    ),
    "Zen 5": Host(
        x86("AuthenticAMD", 26, 2, 1, f"{ZEN4} avx_vnni avx512_vp2intersect movdiri"),
        ("AVX512", "avx512_core_bf16", "Zen 5", "zen5"),
        "avx_vnni avx512_bf16",
        "avx512_fp16 amx",
    ),
    "Graviton 2": Host(
        arm("0xd0c", NEOVERSE_N1, 0),
        ("DEFAULT", "asimd", "Neoverse N1", "neoverse_n1"),
        "asimd dotprod fp16",
        "bf16 i8mm sve",
    ),
    "Graviton 3": Host(
        arm("0xd40", NEOVERSE_V1, 256),
        ("SVE256", "sve_256", "Neoverse V1", "neoverse_v1"),
        "bf16 i8mm sve svebf16",
        "sve2 sme",
    ),
    "Graviton 4": Host(
        arm("0xd4f", f"{NEOVERSE_V2} paca pacg", 128),
        ("SVE128", "sve_128", "Neoverse V2", "neoverse_v2"),
        "sve2 svei8mm bf16",
        "sme amx",
    ),
    "Grace": Host(
        arm("0xd4f", f"{NEOVERSE_V2} sm3 sm4 svesm4", 128),
        ("SVE128", "sve_128", "Neoverse V2", "neoverse_v2"),
        "sve2 svebf16",
        "sme",
    ),
    # HWCAP bit 7 is VSX; HWCAP2 bits 17 and 18 are MMA and ISA 3.1.
    "POWER9": Host(
        ProcessorFacts("ppc64le", {"cpu": "POWER9, altivec supported"}, hwcap=1 << 7, hwcap2=0),
        ("VSX", "", "POWER9", "power9le"),
        "vsx",
        "mma",
    ),
    "POWER10": Host(
        ProcessorFacts("ppc64le", {"cpu": "POWER10, altivec supported"}, hwcap=1 << 7, hwcap2=1 << 17 | 1 << 18),
        ("VSX", "", "POWER10", "power10le"),
        "vsx mma",
        "avx2",
    ),
    "z15": Host(
        ProcessorFacts(
            "s390x",
            {"features": "esan3 zarch vx vxd vxe gs vxe2 vxp sort dflt", "processor 0": "version = FF, machine = 8561"},
            hwcap=1 << 11 | 1 << 13 | 1 << 15,
        ),
        ("Z VECTOR", "", "z15", ""),
        "vx vxe vxe2",
        "nnpa",
    ),
    # z13 has vectors, but not for float32 (VXE): PyTorch then uses none.
    "z13": Host(
        ProcessorFacts(
            "s390x", {"features": "esan3 zarch vx", "processor 0": "version = FF, machine = 2964"}, hwcap=1 << 11
        ),
        ("DEFAULT", "", "z13", ""),
        "vx",
        "vxe nnpa",
    ),
}


@pytest.mark.parametrize("name", HOSTS)
def test_capability_isa_and_name_of_a_recorded_host(name: str) -> None:
    host = HOSTS[name]
    found = processor(host.facts)
    capability, isa, generation, archspec_name = host.expected
    assert torch_capability(found, None).name == capability
    assert onednn_isa(found, {}).name == isa
    assert found.generation == generation
    known = frozenset(archspec_cpu.TARGETS)
    verdict = judge(found, "the nearest", known)
    if archspec_name:
        assert archspec_name in known, "archspec's own name for it"
        assert verdict == (archspec_name, "the nearest", "")
    else:
        assert target(generation, found.architecture) not in known
        assert verdict.name is None
        assert generation in verdict.reason


@pytest.mark.parametrize("name", HOSTS)
def test_extensions_of_a_recorded_host(name: str) -> None:
    host = HOSTS[name]
    found = processor(host.facts)
    for feature in host.usable.split():
        assert found.why_not(feature) == "", feature
    for feature in host.unusable.split():
        assert found.why_not(feature), feature


def test_reasons_name_the_evidence() -> None:
    def why_not(host: str, feature: str) -> str:
        return processor(HOSTS[host].facts).why_not(feature)

    assert why_not("Skylake-SP", "avx512_vnni") == "the processor lacks avx512_vnni"
    assert why_not("Graviton 4", "amx") == "amx is an extension of x86_64; this processor is aarch64"
    assert why_not("Sapphire Rapids, kernel without AMX", "amx").startswith("the kernel has not granted AMX")
    assert "ARCH_GET_XCOMP_PERM" in why_not("Sapphire Rapids, sandbox that refuses the call", "amx_bf16")
    nothing = processor(ProcessorFacts("x86_64", {}, notes=("/proc/cpuinfo can't be read",)))
    assert nothing.why_not("avx2") == "the processor's features are not known: /proc/cpuinfo can't be read"


@pytest.mark.parametrize(
    ("host", "setting", "version", "capability", "noted"),
    [
        ("Cascade Lake", "avx2", None, "AVX2", False),
        ("Cascade Lake", "default", None, "DEFAULT", False),
        ("Cascade Lake", "default", (2, 8), "NO AVX", False),
        ("Cascade Lake", "AVX2", None, "AVX512", True),  # upper case is ignored
        ("Cascade Lake", "sve256", None, "AVX512", True),
        ("Cascade Lake", "", None, "AVX512", True),
        ("Zen 3", "avx512", None, "AVX512", True),  # taken, and its kernels crash
        ("Graviton 3", "sve256", None, "SVE256", False),
        ("Graviton 3", "default", None, "DEFAULT", False),
        ("Graviton 2", "sve256", None, "DEFAULT", True),
        ("Graviton 4", None, (2, 8), "DEFAULT", False),  # kernels for 128 bits came later
        ("POWER9", "vsx", None, "VSX", False),
        ("POWER9", "default", None, "DEFAULT", False),
        ("z13", "zvector", None, "Z VECTOR", False),
    ],
)
def test_aten_cpu_capability(
    host: str, setting: str | None, version: tuple[int, int] | None, capability: str, noted: bool
) -> None:
    choice = torch_capability(processor(HOSTS[host].facts), setting, version)
    assert choice.name == capability
    assert bool(choice.note) is noted


def test_an_old_x86_processor() -> None:
    old = processor(x86("GenuineIntel", 6, 42, 7, "fpu sse sse2 ssse3 sse4_1 sse4_2 avx"))
    assert torch_capability(old, None).name == "DEFAULT"
    assert torch_capability(old, None, (2, 5)).name == "NO AVX"
    assert onednn_isa(old, {}).name == "avx"


@pytest.mark.parametrize(
    ("environ", "isa", "noted"),
    [
        ({"ONEDNN_MAX_CPU_ISA": "AVX2"}, "avx2", True),
        ({"ONEDNN_MAX_CPU_ISA": "avx512_core_bf16"}, "avx512_core_bf16", True),
        ({"ONEDNN_MAX_CPU_ISA": "avx512_core_amx"}, "avx10_1_512_amx", False),  # the older name of what it has
        ({"DNNL_MAX_CPU_ISA": "avx2_vnni"}, "avx2_vnni", True),
        ({"ONEDNN_MAX_CPU_ISA": "sse41", "DNNL_MAX_CPU_ISA": "avx2"}, "sse41", True),
        ({"ONEDNN_MAX_CPU_ISA": "", "DNNL_MAX_CPU_ISA": "avx2"}, "avx2", True),
        ({"ONEDNN_MAX_CPU_ISA": "DEFAULT"}, "avx10_1_512_amx", False),
        ({"ONEDNN_MAX_CPU_ISA": "avx1024"}, "avx10_1_512_amx", True),
    ],
)
def test_onednn_max_cpu_isa(environ: dict[str, str], isa: str, noted: bool) -> None:
    choice = onednn_isa(processor(HOSTS["Sapphire Rapids"].facts), environ)
    assert (choice.name, bool(choice.note)) == (isa, noted)


def test_auxiliary_vector_alone_tells_an_arm_processor(tmp_path: Path) -> None:
    """A sandbox may hide /proc/cpuinfo; AT_HWCAP (16) and AT_HWCAP2 (26) remain."""
    (tmp_path / "proc/self").mkdir(parents=True)
    # ASIMD is bit 1, ASIMDDP bit 20, SVE bit 22; SVE2 is bit 1 of the second word, BF16 bit 14.
    words = [16, 1 << 1 | 1 << 20 | 1 << 22, 26, 1 << 1 | 1 << 14, 0, 0]
    (tmp_path / "proc/self/auxv").write_bytes(struct.pack(f"{len(words)}N", *words))
    facts = read_facts(str(tmp_path), architecture="aarch64")
    found = processor(facts._replace(sve_bytes=16))
    assert found.flags == {"asimd", "asimddp", "sve", "sve2", "bf16"}
    assert onednn_isa(found, {}).name == "sve_128"
    assert torch_capability(found, None).name == "DEFAULT", "PyTorch gives up without /proc/cpuinfo"
    assert found.notes == (f"{tmp_path}/proc/cpuinfo can't be read",)


def test_cpuid_alone_tells_an_x86_processor() -> None:
    """glibc's copy: leaf 1 ECX has FMA (12), SSE4.1 (19), AVX (28); leaf 7 EBX AVX2 (5) and AVX-512 F, DQ, BW, VL."""
    leaves = {
        "1": (0, 0, 1 << 12 | 1 << 19 | 1 << 28, 0),
        "7": (0, 1 << 5 | 1 << 16 | 1 << 17 | 1 << 30 | 1 << 31, 1 << 11, 0),
        "7.1": (1 << 5, 0, 0, 0),
    }
    found = processor(ProcessorFacts("x86_64", {}, cpuid=leaves, notes=("/proc/cpuinfo can't be read",)))
    assert onednn_isa(found, {}).name == "avx512_core_bf16"
    assert found.why_not("avx512_vnni") == "" and found.why_not("amx") == "the processor lacks amx_tile, amx_int8"
    assert torch_capability(found, None).name == "DEFAULT", "PyTorch gives up without /proc/cpuinfo"


def test_this_host_told_by_cpuid_is_the_one_that_the_kernel_lists() -> None:
    facts = read_facts()
    listed, told = processor(facts), processor(facts._replace(cpuinfo={}))
    if facts.architecture == "x86_64" and facts.cpuid:
        assert {f.name for f in listed.features} and listed.usable == told.usable


def test_cpuinfo_of_several_processors_keeps_the_first() -> None:
    text = "processor\t: 0\nflags\t\t: avx avx2\n\nprocessor\t: 1\nflags\t\t: avx\n\nmachine: last\n"
    assert parse_cpuinfo(text) == {"processor": "0", "flags": "avx avx2", "machine": "last"}


WORDS = st.text(alphabet=st.characters(codec="utf-8"), max_size=40)


@given(
    architecture=st.sampled_from(["x86_64", "aarch64", "ppc64le", "s390x", "riscv64", ""]),
    cpuinfo=st.dictionaries(
        st.sampled_from(["flags", "Features", "features", "cpu", "model", "cpu family", "stepping", "vendor_id"])
        | st.sampled_from(["CPU part", "CPU implementer", "processor 0", "model name"]),
        WORDS | st.sampled_from(["GenuineIntel", "AuthenticAMD", "6", "0x41", "0xd40", "25", SAPPHIRE]),
    ),
    words=st.tuples(*[st.none() | st.integers(0, 2**64 - 1)] * 4),
    sve_bytes=st.none() | st.integers(0, 256),
)
def test_no_account_of_a_processor_is_too_strange(
    architecture: str, cpuinfo: dict[str, str], words: tuple[int | None, ...], sve_bytes: int | None
) -> None:
    """Whatever a kernel, a sandbox or a copied tree says: an answer, and each extension is in or has a reason."""
    hwcap, hwcap2, supported, permitted = words
    facts = ProcessorFacts(architecture, cpuinfo, hwcap, hwcap2, {}, supported, permitted, sve_bytes)
    found = processor(facts)
    assert torch_capability(found, None).name in ("DEFAULT", "VSX", "Z VECTOR", "AVX2", "AVX512", "SVE128", "SVE256")
    assert isinstance(onednn_isa(found, {}).name, str)
    for feature in found.features:
        assert (feature.name in found.usable) == (found.why_not(feature.name) == "")


@given(st.binary(max_size=200), st.text(max_size=200))
def test_any_bytes_are_read(data: bytes, text: str) -> None:
    assert all(key for key in parse_auxv(data))
    assert all(isinstance(value, str) for value in parse_cpuinfo(text).values())
