"""watch(): every kernel belongs to the layer that issued it, and watching changes no kernel."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import cpulens
from attribution_support import PRELUDE, said
from cpulens.trace import Trace
from tests_support import Program, run_program

MODELS = ["resnet", "resnet_bf16", "transformer", "transformer_bf16"]
CODE = f"""
def alone(model, inputs):
    leaves = {{name: module for name, module in model.named_modules() if not list(module.children())}}
    given = {{}}
    hooks = [
        module.register_forward_pre_hook(lambda module, args, name=name: given.setdefault(name, []).append(args))
        for name, module in leaves.items()
    ]
    with torch.no_grad():
        model(inputs)
    for hook in hooks:
        hook.remove()
    found = {{}}
    for name, module in leaves.items():
        recording = recorded(lambda: [module(*args) for args in given.get(name, [])])
        found[name] = [what for _, what in kernels(recording.trace)] if recording.raw() else []
    return found

values = {{}}
for name in {[*MODELS, "encoder_bf16"]}:
    model, inputs = getattr(models, name)()
    with torch.no_grad():
        model(inputs)
    mine = values[name] = {{"paths": [path for path, _ in model.named_modules()]}}
    mine["plain"] = kernels(recorded(lambda: model(inputs)).trace)
    mine["watched"] = kernels(recorded(lambda: model(inputs), model).trace)
    mine["after"] = kernels(recorded(lambda: model(inputs)).trace)
    mine["alone"] = alone(model, inputs)
    hooks = [module.register_forward_hook(lambda *_: None) for module in model.modules()]
    mine["hooked"] = kernels(recorded(lambda: model(inputs), model).trace)
say(**values)
"""


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    """Each model recorded without and with a watch, and its layers run one by one."""
    return said(run_program(PRELUDE + CODE))


@pytest.mark.torch
@pytest.mark.parametrize("model", MODELS)
def test_each_kernel_belongs_to_the_layer_that_issued_it(recorded: dict[str, Any], model: str) -> None:
    values = recorded[model]
    assert all(layer is not None for layer, _ in values["watched"])
    by_layer: dict[str, list[str]] = {}
    for layer, what in values["watched"]:
        by_layer.setdefault(layer, []).append(what)
    for name, kernels in values["alone"].items():
        assert by_layer.pop(name, []) == kernels, name
    # What is left was issued by modules that have layers inside: only attention has products of its own.
    assert set(by_layer) <= {path for path in values["paths"] if path.endswith("attention")}
    if "transformer" in model:
        assert len(by_layer) == 3
        assert len({json.dumps(kernels) for kernels in by_layer.values()}) == 1
    assert sum(bool(kernels) for kernels in values["alone"].values()) >= 10


@pytest.mark.torch
@pytest.mark.parametrize("model", [*MODELS, "encoder_bf16"])
def test_watching_changes_no_kernel(recorded: dict[str, Any], model: str) -> None:
    values = recorded[model]
    without = [what for _, what in values["plain"]]
    assert without
    assert [what for _, what in values["watched"]] == without
    assert values["after"] == values["plain"] == [[None, what] for what in without]
    if model == "encoder_bf16":  # its fast path stays; hooks on the modules themselves switch it off
        assert {layer for layer, _ in values["watched"]} == {"layers.0", "layers.1"}
        assert {layer for layer, _ in values["hooked"]} >= {"layers.0.linear1", "layers.1.linear2"}


@pytest.mark.torch
def test_reorders_belong_to_the_layer_in_whose_call_they_happen(recorded: dict[str, Any]) -> None:
    reorders = Counter(layer for layer, what in recorded["resnet"]["watched"] if " reorder " in what)
    convolutions = Counter(layer for layer, what in recorded["resnet"]["watched"] if " convolution " in what)
    assert set(reorders) == set(convolutions)


@pytest.mark.torch
def test_top_by_layer_and_a_watch_from_one_line_in_a_script(program: Program, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        PRELUDE
        + """
model, inputs = models.transformer_bf16()
cpulens.watch(model)
with torch.no_grad():
    for _ in range(3):
        cpulens.iteration()
        model(inputs)
print("done")
"""
    )
    run = tmp_path / "run.cpulens"
    result = program(
        f"""
import subprocess, sys
record = subprocess.run([sys.executable, "-m", "cpulens", "record", "-o", {str(run)!r}, "--", sys.executable,
                         {str(script)!r}], capture_output=True)
assert (record.returncode, record.stdout) == (0, b"done\\n"), record
top = [sys.executable, "-m", "cpulens", "top", {str(run)!r}, "--by", "layer,primitive,iteration", "--json"]
print(subprocess.run(top, capture_output=True, check=True).stdout.decode().strip())
"""
    )
    rows = said(result)["rows"]
    layers = {row["layer"] for row in rows}
    assert None not in layers
    assert {"embed", "layers.0.attention.query", "layers.1.mlp.0", "layers.2.attention", "head"} <= layers
    assert {row["iteration"] for row in rows} == {0, 1, 2}


def test_an_old_run_file_has_no_layers(tmp_path: Path) -> None:
    line = b"onednn_verbose,v1,primitive,exec,cpu,matmul,ref:any,undef,src:f32::blocked:ab::f0,,,8x8:8x8,0.5\n"
    trace = cpulens.load(line)
    Trace(trace.texts, trace.events.drop("layer"), trace.facts).save(tmp_path / "old.cpulens")
    assert Trace.open(tmp_path / "old.cpulens").events.collect()["layer"].to_list() == [None]


def test_two_threads_in_layers_at_once_are_not_guessed_apart() -> None:
    execution = b"onednn_verbose,v1,primitive,exec,cpu,matmul,ref:any,undef,src:f32::blocked:ab::f0,,,8x8:8x8,0.5\n"
    marks = (
        b"cpulens,v1,layer,1@1796113262148.625000,a\n",
        b"cpulens,v1,layer,2,b\n",
        b"cpulens,v1,layer,1@1796113262149.000000,\n",
        b"cpulens,v1,layer,2,\n",
    )
    trace = cpulens.load(b"".join(mark + execution for mark in marks))
    events = trace.frame.collect()
    assert events.filter(events["event"] == "exec")["layer"].to_list() == ["a", None, "b", None]
    assert trace.facts["layers_ambiguous"] == 1
    marked = events.filter(events["event"] == "layer")
    assert marked["start_ns"].to_list() == [1796113262148625000, None, 1796113262149000000, None]
    assert marked["thread"].to_list() == [1, 2, 1, 2]
