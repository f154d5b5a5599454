"""The pytest plugin: tests that say which oneDNN and oneMKL kernels they may run, and a record of what they ran.

It is loaded into every pytest of an environment that has cpulens, so it imports nothing but pytest until a test asks:
by the mark `kernels`, by the fixture `kernel_trace`, or by the option `--kernel-trace`.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from cpulens.analyze.expectation import Expectation
    from cpulens.analyze.summary import Summary
    from cpulens.recording import Recording

_RECORDING: Final = pytest.StashKey["Recording | None"]()
_MARKED: Final = "@pytest.mark.kernels"
_MARK: Final = (
    "kernels(forbid=None, require=None, max_reorder_share=None, max_ms=None): record the oneDNN and oneMKL kernels of "
    "the test, and fail it when a forbidden one runs, a required one doesn't, or a limit is passed"
)
#: Rows of the table in a failure, and of the summary at the end.
_KERNELS: Final = 10
_TESTS: Final = 20
#: Characters of a test's name in the name of its file.
_LONG: Final = 120


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --kernel-trace and --kernel-trace-dir."""
    group = parser.getgroup("cpulens", "oneDNN and oneMKL kernels (cpulens)")
    group.addoption(
        "--kernel-trace",
        action="store_true",
        help="record the oneDNN and oneMKL kernels of every test, and show at the end which tests spent most in them",
    )
    group.addoption(
        "--kernel-trace-dir",
        metavar="DIR",
        help="the same, and write the run of each test into DIR, as a file for cpulens top, diff, findings, …",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known; refuse the options where tables can't be made."""
    config.addinivalue_line("markers", _MARK)
    if _all_tests(config):
        import importlib.util

        if importlib.util.find_spec("polars") is None:
            raise pytest.UsageError("--kernel-trace needs polars, which is not installed: pip install cpulens")
    folder = config.getoption("kernel_trace_dir")
    if folder:
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise pytest.UsageError(f"--kernel-trace-dir {folder} can't be made: {error.strerror}") from error


def _all_tests(config: pytest.Config) -> bool:
    return bool(config.getoption("kernel_trace") or config.getoption("kernel_trace_dir"))


@pytest.fixture
def kernel_trace(request: pytest.FixtureRequest) -> Recording:
    """Record the kernels of this test: a `cpulens.Recording`, open while the test function runs.

    `kernel_trace.trace`, `.summary()` and `.raw()` give what ran so far; set-up and teardown are not recorded.
    """
    from cpulens.recording import record

    recording = request.node.stash[_RECORDING] = record()
    return recording


# The innermost wrapper, so that what the recording hands on is captured as the test's own; the older kind of wrapper,
# which every pytest of the last years takes.
@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Record the test where that is asked for, and hold its kernels against its marks."""
    marks = list(item.iter_markers("kernels"))
    recording = item.stash.get(_RECORDING, None)
    if not marks and recording is None and not _all_tests(item.config):
        yield
        return
    expectations = _expectations(marks)
    with _entered(recording) as recording:
        outcome = yield
    item.stash[_RECORDING] = None  # where the test is run again, it gets a new one
    failed = outcome.excinfo is not None
    if not marks and not failed and not _all_tests(item.config):
        return
    try:
        wrong: BaseException | None = _broken(item, recording, expectations)
    except Exception as error:  # a wrapper must not raise: it is the test's failure
        wrong = error
    if wrong is not None and not failed:
        outcome.force_exception(wrong)


def _expectations(marks: list[pytest.Mark]) -> list[Expectation]:
    """Read the marks; fail with a sentence where one can't be read."""
    from cpulens.analyze.expectation import Expectation
    from cpulens.errors import UsageError

    try:
        if any(mark.args for mark in marks):
            raise UsageError("kernels() takes its words by name, such as forbid='ref*'")
        return [Expectation.of(mark.kwargs) for mark in marks]
    except UsageError as error:
        raise pytest.fail.Exception(f"{_MARKED}: {error}", pytrace=False) from None


@contextmanager
def _entered(recording: Recording | None) -> Iterator[Recording]:
    from cpulens.errors import CpulensError
    from cpulens.recording import record

    recording = recording or record()
    try:
        recording.__enter__()
    except CpulensError as error:
        raise pytest.fail.Exception(f"the kernels can't be recorded: {error}", pytrace=False) from None
    try:
        yield recording
    finally:
        recording.__exit__(None, None, None)


def _broken(item: pytest.Item, recording: Recording, expectations: list[Expectation]) -> BaseException | None:
    """Put what ran into the test's report, and into its file; what the marks forbid of it, as a failure."""
    from cpulens.errors import BackendUnavailable, CpulensError, LogError

    fault = None
    try:
        summary = recording.summary()
        _store(item, recording, summary)
    except (BackendUnavailable, LogError) as error:  # without a mark it is no fault to run no kernel
        fault = f"{_MARKED}: {error}" if expectations else ""
    except CpulensError as error:
        fault = str(error)
    if fault is not None:
        return pytest.fail.Exception(fault, pytrace=False) if fault else None
    wrong = [sentence for one in expectations for sentence in one.broken(summary)]
    from cpulens.report.terminal import summary_text

    table = summary_text(summary, _KERNELS, rest="--kernel-trace-dir keeps all")
    if not wrong:
        item.add_report_section("call", "kernels", table)
        return None
    text = "\n".join([f"{_MARKED}: {wrong[0]}", *wrong[1:], "", "What ran:", "", table])
    return pytest.fail.Exception(text, pytrace=False)


def _store(item: pytest.Item, recording: Recording, summary: Summary) -> None:
    """Give the test's report the figures, for the end of the session, other workers and JUnit files; write the run."""
    phases, total = summary.phases, summary.total_ms
    item.user_properties += [("kernels_ms", total), ("kernels_calls", phases.executions)]
    if total:
        item.user_properties.append(("kernels_reorder_share", round(phases.reorder_ms / total, 4)))
    if summary.rows:
        item.user_properties.append(("kernels_top", " ".join(str(word) for word in summary.rows[0].key[1:] if word)))
    folder = item.config.getoption("kernel_trace_dir")
    if folder:
        recording.save(os.path.join(folder, _file_name(item.nodeid)), force=True)


def _file_name(nodeid: str) -> str:
    """A file's name for a test; where it doesn't tell tests apart, with a checksum."""
    name = re.sub(r"[^\w.-]+", "-", nodeid).strip("-")
    if "[" in nodeid or len(name) > _LONG:
        name = f"{name[:_LONG]}-{zlib.crc32(nodeid.encode('utf-8', 'surrogatepass')):08x}"
    return f"{name}.cpulens"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show the tests that spent most time in kernels, those of all workers."""
    if not _all_tests(config):
        return
    reports = {
        report.nodeid: dict(report.user_properties)
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
    }
    ran = {nodeid: found for nodeid, found in reports.items() if "kernels_calls" in found}
    terminalreporter.section("kernels of oneDNN and oneMKL")
    for line in _table(ran):
        terminalreporter.write_line(line)
    silent = len(reports) - len(ran)
    if silent:
        terminalreporter.write_line(
            f"nothing was recorded of {silent:,} of {len(reports):,} tests: they ran no kernel of either library, or "
            "loaded it only as they ran"
        )


def _table(ran: dict[str, dict[str, Any]]) -> Iterator[str]:
    if not ran:
        return
    from cpulens.report.text import milliseconds, percent, visible

    yield f"{'total ms':>10} {'calls':>8} {'reorders':>8}  test, heaviest kernel"
    ordered = sorted(ran.items(), key=lambda one: -(one[1]["kernels_ms"] or 0.0))
    for nodeid, found in ordered[:_TESTS]:
        share = found.get("kernels_reorder_share")
        reorders = "–" if share is None else f"{percent(share)} %"
        figures = f"{milliseconds(found['kernels_ms']):>10} {found['kernels_calls']:>8,} {reorders:>8}"
        yield f"{figures}  {visible(nodeid)}, {visible(found.get('kernels_top', '–'))}"
    if len(ordered) > _TESTS:
        rest = sum(found["kernels_ms"] or 0.0 for _, found in ordered[_TESTS:])
        yield f"{milliseconds(rest):>10} in {len(ordered) - _TESTS:,} more tests"
