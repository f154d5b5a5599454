"""In a notebook's kernel `sys.stdout` is a message channel and native text goes elsewhere: recording works the same."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from jupyter_client.manager import KernelManager

CELL = """
import cpulens
import numpy as np
from cpulens.native import onednn
a = np.ones((8, 8), "float32")
onednn.matmul(a, a)
with cpulens.record() as recording:
    print("a cell's own output")
    onednn.matmul(a, a)
print(recording)
"""


@pytest.fixture
def kernel() -> Any:
    manager = KernelManager()
    assert manager.kernel_spec is not None
    manager.kernel_spec.argv[0] = sys.executable
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


# The kernel's own event loops warn about themselves on some versions; what we test is what the cell shows.
@pytest.mark.filterwarnings("default")
def test_a_cell_records(kernel: Any) -> None:
    shown: list[str] = []

    def collect(message: Any) -> None:
        assert message["msg_type"] != "error", message["content"]
        if message["msg_type"] == "stream" and message["content"]["name"] == "stdout":
            shown.append(message["content"]["text"])

    reply = kernel.execute_interactive(CELL, timeout=120, output_hook=collect)
    assert reply["content"]["status"] == "ok"
    text = "".join(shown)
    assert text.startswith("a cell's own output\n")
    assert "matmul" in text
    assert "onednn_verbose," not in text
