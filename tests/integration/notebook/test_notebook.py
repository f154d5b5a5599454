"""The magics and the rich results in a real Jupyter kernel, on real kernels of oneDNN."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from jupyter_client.manager import KernelManager

from tests_support import Program

# The kernel's own event loops warn about themselves on some versions; what we test is what the cells show.
pytestmark = pytest.mark.filterwarnings("default")

START = """
%load_ext cpulens
import numpy as np
from cpulens.native import onednn
a = np.ones((32, 32), "float32")
_ = onednn.matmul(a, a)
"""


class Notebook:
    """Cells run one after another in one kernel: `run(code)` gives what was shown."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def run(self, code: str) -> Shown:
        shown = Shown()
        reply = self._client.execute_interactive(code, timeout=120, output_hook=shown.collect)
        shown.status = reply["content"]["status"]
        return shown


class Shown:
    """What a cell showed: text it printed, display bundles, its value, the error it ended with."""

    def __init__(self) -> None:
        self.text = ""
        self.displays: list[dict[str, str]] = []
        self.value: dict[str, str] | None = None
        self.error = ""
        self.status = ""

    def collect(self, message: Any) -> None:
        content = message["content"]
        match message["msg_type"]:
            case "stream":
                self.text += content["text"]
            case "display_data":
                self.displays.append(content["data"])
            case "execute_result":
                self.value = content["data"]
            case "error":
                self.error = f"{content['ename']}: {content['evalue']}"


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    manager = KernelManager()
    assert manager.kernel_spec is not None
    manager.kernel_spec.argv[0] = sys.executable
    manager.start_kernel(cwd=str(tmp_path_factory.mktemp("notebook")))
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    started = Notebook(client)
    assert started.run(START).status == "ok"
    yield started
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def rows(html: str) -> list[list[str]]:
    """The cells of the table's body, without tags."""
    body = html.partition("<tbody>")[2]
    found = re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.DOTALL)
    return [
        [re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)] for row in found
    ]


def test_a_cell_shows_its_kernels_below_its_own_output(notebook: Notebook) -> None:
    shown = notebook.run("%%kernels\nprint('own words')\nb = onednn.matmul(a, a)\nb.shape")
    assert shown.status == "ok" and shown.text == "own words\n"
    assert shown.value is not None and shown.value["text/plain"] == "(32, 32)"
    (bundle,) = shown.displays
    ((library, primitive, implementation, *figures),) = rows(bundle["text/html"])
    assert (library, primitive) == ("onednn", "matmul") and implementation
    assert figures[1:3] == ["100.0", "1"]
    assert re.search(r"^onednn +matmul ", bundle["text/plain"], re.MULTILINE)
    value = notebook.run("float(b.sum()), _kernels.raw().count(b',exec,')").value
    assert value == {"text/plain": "(32768.0, 1)"}


def test_variables_and_options(notebook: Notebook) -> None:
    shown = notebook.run(
        "%%kernels mine --onednn ON_CREATION --by event,primitive --findings --save run.cpulens\n"
        "for size in (8, 16):\n    onednn.matmul(a[:size, :size], a[:size, :size])"
    )
    assert shown.status == "ok" and shown.value is None, shown.error
    table, findings = shown.displays
    assert {"exec", "create"} <= {row[0] for row in rows(table["text/html"])}
    assert "finding" in findings["text/html"] or "Nothing found" in findings["text/html"]
    told = notebook.run("import cpulens; saved = cpulens.load('run.cpulens'); saved.texts.equals(mine.trace.texts)")
    assert told.value == {"text/plain": "True"}


def test_a_statement(notebook: Notebook) -> None:
    shown = notebook.run("%kernels onednn.matmul(a, a)[0, 0] == 32")
    assert shown.value is not None and "True" in shown.value["text/plain"]
    assert [row[1] for row in rows(shown.displays[0]["text/html"])] == ["matmul"]


def test_quiet_and_no_kernels(notebook: Notebook) -> None:
    assert notebook.run("%%kernels --quiet\n_ = onednn.matmul(a, a)").displays == []
    (bundle,) = notebook.run("%%kernels\n1 + 1").displays
    assert "nothing was recorded; the oneDNN in libdnnl" in bundle["text/plain"]
    assert "nothing was recorded" in bundle["text/html"]


def test_an_error_in_the_cell_is_its_own_and_what_ran_before_is_shown(notebook: Notebook) -> None:
    shown = notebook.run("%%kernels\n_ = onednn.matmul(a, a)\n1 / 0")
    assert shown.status == "error" and shown.error == "ZeroDivisionError: division by zero"
    assert [row[1] for row in rows(shown.displays[0]["text/html"])] == ["matmul"]
    assert notebook.run("from cpulens.backends import verbosity; len(verbosity._requests)").value == {"text/plain": "0"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--onednn LOUD", "LOUD"),
        ("--by nonsense", "nonsense is not a column of the trace"),
        ("--wrong", "unrecognized arguments: --wrong"),
        ("not-a-name", "can't be the name of a variable"),
        ("--schedule wait", "'wait' is no schedule"),
    ],
)
def test_options_that_can_not_be_are_one_sentence_before_the_cell_runs(
    notebook: Notebook, options: str, told: str
) -> None:
    shown = notebook.run(f"%%kernels {options}\nran = True")
    assert shown.status == "error" and told in shown.error + shown.text and "Traceback" not in shown.text
    assert notebook.run("'ran' in globals()").value == {"text/plain": "False"}


def test_a_file_that_is_there_is_kept(notebook: Notebook) -> None:
    assert notebook.run("open('kept.log', 'w').close()").status == "ok"
    shown = notebook.run("%%kernels --save kept.log\n_ = onednn.matmul(a, a)")
    assert shown.status == "ok" and "kept.log exists" in shown.displays[0]["text/plain"]
    assert notebook.run("import os; os.path.getsize('kept.log')").value == {"text/plain": "0"}


def test_results_show_themselves(notebook: Notebook) -> None:
    setup = """
import cpulens
from cpulens.analyze.compare import compare
from cpulens.analyze.findings import find
def recorded():
    with cpulens.record() as recording:
        for _ in range(3):
            onednn.matmul(a, a)
    return recording
first, second = recorded(), recorded()
"""
    assert notebook.run(setup).status == "ok"
    for code, key in {
        "first": ["onednn", "matmul"],
        "first.trace": ["onednn", "matmul"],
        "first.summary()": ["onednn", "matmul"],
        "first.summary('problem')": ["32x32:32x32"],
    }.items():
        value = notebook.run(code).value
        assert value is not None and rows(value["text/html"])[0][: len(key)] == key, code
    value = notebook.run("compare(first.trace, second.trace)").value
    assert value is not None and "matmul 32x32:32x32" in re.sub(r"<[^>]*>", "", value["text/html"])
    value = notebook.run("find(first.trace)").value
    assert value is not None and ("finding" in value["text/html"] or "Nothing found" in value["text/html"])
    value = notebook.run("cpulens.record()").value
    assert value is not None and "never entered" in value["text/html"]


def test_the_magic_has_help(notebook: Notebook) -> None:
    shown = notebook.run("print(get_ipython().find_line_magic('kernels').__doc__)")
    for option in ("--onednn", "--mkl", "--by", "--save", "--findings", "%%kernels: record"):
        assert option in shown.text


def test_only_loading_the_extension_needs_ipython(program: Program) -> None:
    done = program("""
        import sys
        import cpulens
        cpulens.load_ipython_extension
        print([name for name in sys.modules if name.startswith(("IPython", "cpulens.notebook", "polars"))])
    """)
    assert done.stdout == b"[]\n", done.stderr
