"""The doctor's facts as a person reads them: plain lines, each with a style, for any width."""

from __future__ import annotations

import sys
import sysconfig
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from cpulens.report.machine_picture import picture
from cpulens.report.text import count, visible


class Line(NamedTuple):
    """One line of text; `style` is rich's ("" plain, "bold", "dim", "red", "yellow")."""

    text: str
    style: str = ""


_TITLES: Final = {
    "mkldnn": "oneDNN",
    "mkl": "oneMKL",
    "openmp": "OpenMP",
    "nnpack": "NNPACK",
    "kleidiai": "KleidiAI",
    "opt_einsum": "opt_einsum",
    "python_native": "Python DSLs",
}
_LABEL: Final = 14


def doctor_lines(facts: Mapping[str, Any], width: int = 80, places: Mapping[str, str] | None = None) -> list[Line]:
    """The whole report, `width` columns wide.

    `places` (default: this Python's folders) gives the short words that stand for folders in paths; those that were
    used are explained at the top.
    """
    page = _Page(width, _places() if places is None else places)
    for part in (_imports, _machine, _processor, _backends, _process, _variables, _verdict):
        part(facts, page)
    used = [Line(f"{word} is {visible(folder)}", "dim") for word, folder in page.places.items() if word in page.used]
    return [*used, *([Line("")] if used else []), *page.lines]


def _places() -> dict[str, str]:
    return {"SITE": sysconfig.get_path("purelib"), "ENV": sys.prefix}


class _Page:
    """Collects lines, folded to a width."""

    def __init__(self, width: int, places: Mapping[str, str]) -> None:
        self.lines: list[Line] = []
        self.width, self.places = width, places
        self.used: set[str] = set()

    def title(self, text: str) -> None:
        if self.lines:
            self.lines.append(Line(""))
        self.lines.append(Line(text, "bold"))

    def row(self, label: str, text: str, style: str = "") -> None:
        """A label and a text beside it, folded below itself."""
        self.put(f"  {label:<{_LABEL}}", text, style)

    def put(self, head: str, text: str, style: str = "", indent: int | None = None) -> None:
        """A head and a text after it, folded under the text, or to `indent`."""
        head, shown = visible(head), visible(" ".join(text.split()))
        for word, folder in self.places.items():
            if folder.strip("/") and f"{folder}/" in shown:
                shown = shown.replace(f"{folder}/", f"{word}/")
                self.used.add(word)
        folded = textwrap.wrap(
            shown,
            self.width,
            initial_indent=head if head.endswith(" ") else head + " ",
            subsequent_indent=" " * (len(head) if indent is None else indent),
            break_on_hyphens=False,
        )
        self.lines += [Line(line, style) for line in folded or [head.rstrip()]]


def _imports(facts: Mapping[str, Any], page: _Page) -> None:
    if not facts["imports"]:
        return
    page.title("loaded first")
    for one in facts["imports"]:
        if one["error"]:
            page.row(one["module"], f"can't be imported: {one['error']}", "red")
        else:
            page.row(one["module"], one["version"] or "(no version)")


def _machine(facts: Mapping[str, Any], page: _Page) -> None:
    machine = facts["machine"]
    page.title("machine")
    if machine["groups"]:
        with_cpus = sum(1 for node in machine["nodes"] if node["cpus"]) or 1
        page.put(
            "  ",
            f"{count(machine['packages'], 'package')}, {count(with_cpus, 'node')}, {count(machine['cores'], 'core')} "
            f"of {count(machine['threads_per_core'], 'thread')}: CPUs {machine['cpus_online']}",
        )
        page.lines += [Line(line) for line in picture(machine, page.width)]
    allowed = machine["cpus_allowed"]
    memory = machine["memory_nodes_allowed"]
    quota = machine["quota_cpus"]
    page.row(
        "this process",
        (f"CPUs {allowed}" if allowed else "CPUs not known")
        + (f", memory of {'nodes' if ',' in memory or '-' in memory else 'node'} {memory}" if memory else "")
        + (f", a quota of {quota:g} CPUs" if quota else ", no quota"),
    )
    page.row("set up", ", ".join(_tuning(facts["tuning"])))
    for note in machine["notes"]:
        page.row("note", note, "yellow")


def _tuning(tuning: Mapping[str, Any]) -> Iterator[str]:
    governors = tuning["governors"] or {}
    if len(governors) == 1:
        yield f"governor {next(iter(governors))}"
    yield from (f"governor {name} on CPUs {cpus}" for name, cpus in governors.items() if len(governors) > 1)
    if not governors:
        yield "governor not shown by this host"
    for name, title in (("turbo", "turbo"), ("numa_balancing", "NUMA balancing"), ("smt", "SMT"), ("swap", "swap")):
        if tuning[name] is not None:
            yield f"{title} {'on' if tuning[name] else 'off'}"
    if tuning["transparent_huge_pages"]:
        yield f"huge pages {tuning['transparent_huge_pages']}"


def _processor(facts: Mapping[str, Any], page: _Page) -> None:
    processor = facts["processor"]
    page.title("processor")
    if not processor.get("architecture"):
        page.put("  ", facts["failures"].get("processor", "not known"), "yellow")
        return
    micro = processor["microarchitecture"]
    known = processor["generation"] or "its design is not in our table"
    page.put("  ", f"{processor['name'] or processor['architecture']}: {known}")
    page.row("archspec", micro["name"] or micro["reason"])
    page.row("PyTorch uses", processor["capability"])
    page.row("oneDNN uses", processor["onednn_isa"] or "plain C++ (it has no name for this processor)")
    page.row("can use", ", ".join(processor["usable"]) or "none of the extensions that matter")
    reasons: dict[str, list[str]] = {}
    for name, reason in processor["unusable"].items():
        reasons.setdefault("the processor lacks it" if "lacks" in reason else reason, []).append(name)
    for reason, names in reasons.items():
        page.row("can't use", f"{', '.join(names)}: {reason}")
    if processor["amx"] in ("granted", "on_request"):
        page.row("AMX", processor["amx_reason"])
    if processor["sve_bits"]:
        page.row("SVE", f"vectors of {processor['sve_bits']} bits")


def _backends(facts: Mapping[str, Any], page: _Page) -> None:
    page.title("backends")
    for name, details in facts["backends"].items():
        version = details.get("version")
        named = f"{version}: " if version and version not in details["reason"] else ""
        _answer(page, _TITLES.get(name, name), details["available"], named + details["reason"])
    absent = [name for name, details in facts["devices"].items() if not details["available"]]
    for name, details in facts["devices"].items():
        if details["available"]:
            _answer(page, name, True, details["reason"])
    if absent:
        _answer(page, "other devices", False, ", ".join(absent))


def _answer(page: _Page, title: str, available: bool, text: str) -> None:
    head = f"  {title:<{_LABEL}}{'yes' if available else 'no':<4}"
    page.put(head, text, "" if available else "dim")


def _process(facts: Mapping[str, Any], page: _Page) -> None:
    page.title("in this process")
    for runtime in facts["runtimes"]:
        bound = runtime["proc_bind"] not in (None, "false")
        threads = "threads not asked" if runtime["threads"] is None else count(runtime["threads"], "thread")
        binding = f", bound ({runtime['proc_bind']}, {count(runtime['places'] or 0, 'place')})" if bound else ""
        page.row("OpenMP", f"{runtime['family']}, {threads}{binding}: {runtime['path'] or 'part of the program'}")
    if not facts["runtimes"]:
        page.row("OpenMP", "no runtime is loaded")
    for one in facts["blas"]:
        about = [one["name"] + (f" {one['version']}" if one["version"] else "")]
        about += [count(one["threads"], "thread")] if one["threads"] else []
        about += [f"kernels for {one['kernels']}"] if one["kernels"] else []
        page.row("BLAS", f"{', '.join(about)}{', of ' + one['owner'] if one['owner'] else ''}: {one['path']}")
    found = facts["allocators"]["loaded"]
    page.row("allocator", "; ".join(f"{one['name']}: {one['path']}" for one in found) or "the C library's")
    for framework in facts["frameworks"]:
        page.row(framework["title"], " ".join(filter(None, (framework["version"], _carried(framework)))))
        for title, ways in (
            ("run time", framework["at_run_time"]),
            ("start", framework["by_environment"]),
            ("never", framework["never"]),
        ):
            if ways:
                page.put(f"    {title:<{_LABEL - 2}}", "; ".join(ways), "dim")
    if facts["pytorch"]["version"] and not facts["pytorch"]["loaded"]:
        page.row("PyTorch", f"{facts['pytorch']['version']} is installed but not loaded; --import torch looks into it")


def _carried(framework: Mapping[str, Any]) -> str:
    return f"({'; '.join(framework['libraries'])})" if framework["libraries"] else ""


def _variables(facts: Mapping[str, Any], page: _Page) -> None:
    page.title("variables")
    for variable in facts["variables"]:
        page.put("  ", f"{variable['name']}={variable['value']}")
        page.put("    ", f"{variable['origin']}; for {variable['used_by']}", "dim")
    if not facts["variables"]:
        page.put("  ", "none of those that matter is set: every library takes its defaults")
    if facts.get("preload_file"):
        page.row("preloaded", f"{facts['preload_file']} (/etc/ld.so.preload, for every program)")


def _verdict(facts: Mapping[str, Any], page: _Page) -> None:
    for severity, title, style in (("problem", "problems", "red"), ("advice", "advice", "yellow")):
        found = [finding for finding in facts["findings"] if finding["severity"] == severity]
        if found:
            page.title(title)
        for finding in found:
            page.put("  - ", finding["sentence"], style)
            if finding["remedy"]:
                page.put("      → ", finding["remedy"])
    if facts["failures"]:
        page.title("could not be looked at")
        for name, reason in facts["failures"].items():
            page.row(name, reason, "yellow")
    if not facts["findings"] and not facts["failures"]:
        page.title("nothing speaks against it")
