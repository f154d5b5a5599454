"""What can't be told apart is said, and charged nowhere else: compiled and scripted modules, shared ones, failures."""

from __future__ import annotations

from typing import Any

import pytest

from attribution_support import PRELUDE, said
from tests_support import run_program

pytestmark = pytest.mark.torch
MADE = {
    "torch.jit.script(inner)": "scripted (torch.jit)",
    "torch.jit.trace(inner, inputs)": "scripted (torch.jit)",
    'torch.compile(inner, backend="eager")': "compiled (torch.compile)",
}
CODE = f"""
import warnings
warnings.simplefilter("ignore")  # torch says that hooks fire once more for a compiled module: that one call is wanted
from cpulens.errors import UsageError

class Outer(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.pre, self.inner = torch.nn.Conv2d(3, 3, 3, padding=1), inner

    def forward(self, x):
        return self.inner(self.pre(x))

class Fails(torch.nn.Module):
    what = None
    def forward(self, x):
        if self.what is not None:
            raise self.what("here")
        return x

values = {{}}
inner, inputs = models.resnet()
for made in {list(MADE)}:
    for compiled_before in (False, True):
        torch._dynamo.reset()
        model = Outer(eval(made)).eval()
        if compiled_before:
            with torch.no_grad():
                for _ in range(3):
                    model(inputs)
        first = recorded(lambda: model(inputs), model)
        again = recorded(lambda: model(inputs), model)
        plain = recorded(lambda: model(inputs))
        values[f"{{made}} {{compiled_before}}"] = {{
            "notes": first.notes, "first": kernels(first.trace), "again": kernels(again.trace),
            "plain": kernels(plain.trace), "breaks": dict(torch._dynamo.utils.counters["graph_break"]),
        }}

model = Outer(models.resnet()[0]).eval()
model.inner.compile(backend="eager")
recording = recorded(lambda: model(inputs), model)
values["in place"] = {{"notes": recording.notes, "kernels": kernels(recording.trace)}}

shared = torch.nn.Conv2d(3, 3, 3, padding=1)
recording = recorded(lambda: model(inputs), model := torch.nn.Sequential(shared, torch.nn.ReLU(), shared))
values["shared"] = {{"notes": recording.notes, "kernels": kernels(recording.trace)}}

fails, free = Fails(), torch.nn.Conv2d(3, 3, 3)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 3), fails)
watch = cpulens.watch(model)
values["failures"] = []
for fails.what in (ValueError, KeyboardInterrupt, None):
    with cpulens.record() as recording, torch.no_grad():
        try:
            model(inputs)
        except BaseException:
            pass
        if fails.what is not KeyboardInterrupt:
            free(inputs)
    values["failures"].append(sorted({{str(layer) for layer, _ in kernels(recording.trace)}}))
watch.remove()

values["refused"] = []
for wrong in (print, torch.nn.ReLU, None):
    try:
        cpulens.watch(wrong)
    except UsageError as error:
        values["refused"].append(str(error))
recording = recorded(lambda: free(inputs), torch.nn.ReLU())
hooks = torch.nn.modules.module
values["not called"] = recording.notes
values["hooks left"] = len(hooks._global_forward_hooks) + len(hooks._global_forward_pre_hooks)
say(**values)
"""


@pytest.fixture(scope="module")
def values() -> dict[str, Any]:
    return said(run_program(PRELUDE + CODE))


@pytest.mark.parametrize("compiled_before", [False, True])
@pytest.mark.parametrize("made", MADE)
def test_opaque_modules_are_one_layer(values: dict[str, Any], made: str, compiled_before: bool) -> None:
    found = values[f"{made} {compiled_before}"]
    assert found["notes"] == [f"watch: inner is {MADE[made]}: its kernels are charged to it as a whole"]
    kernels = [what for _, what in found["plain"]]
    assert kernels
    for watched in (found["first"], found["again"]):
        assert [what for _, what in watched] == kernels
        assert {layer for layer, _ in watched} == {"pre", "inner"}
    assert found["breaks"] == {}


def test_a_module_compiled_in_place_is_said_to_be_charged_around_it(values: dict[str, Any]) -> None:
    sentence = "watch: inner was compiled in place (Module.compile): its kernels are charged to the layer around it"
    assert values["in place"]["notes"] == [sentence]
    assert {layer for layer, _ in values["in place"]["kernels"]} == {"pre", "(Outer)"}


def test_one_module_at_two_places(values: dict[str, Any]) -> None:
    sentence = "watch: 2 is the same module as 0, and its kernels are charged to that"
    assert values["shared"]["notes"] == [sentence]
    assert {layer for layer, _ in values["shared"]["kernels"]} == {"0"}


def test_an_exception_and_an_interrupt_leave_no_layer_open(values: dict[str, Any]) -> None:
    assert values["failures"] == [["0", "None"], ["0"], ["0", "None"]]


def test_what_is_not_a_module_is_refused(values: dict[str, Any]) -> None:
    assert [word.partition(",")[0] for word in values["refused"]] == ["watch takes a torch.nn.Module"] * 3
    assert values["not called"] == ["watch: no module of the watched model was called in the block"]
    assert values["hooks left"] == 0
