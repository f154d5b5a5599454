"""A headless Chromium, driven through the Chrome DevTools Protocol."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import websocket

_NAMES = ("chromium", "chromium-browser", "google-chrome")
#: Without these it looks for updates and hosts on the network.
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
)  # fmt: skip


def find_chromium() -> str | None:
    """The path of a Chromium on this host."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


class Browser:
    """One tab. `events`: what the protocol told since `open`."""

    def __init__(self, program: str, profile: Path) -> None:
        command = [program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        port = next(found[1] for line in self._process.stderr if (found := re.search(r"ws://[\d.]+:(\d+)/", line)))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=30) as answer:
            tabs = json.load(answer)
        address = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
        self._socket = websocket.create_connection(address, timeout=120)
        self._number = 0
        self.events: list[dict[str, Any]] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.command(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()
        self._process.terminate()
        assert self._process.stderr is not None
        self._process.stderr.close()
        self._process.wait(30)

    def command(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and give its result; what is told meanwhile goes to `events`."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result
            self.events.append(message)

    def js(self, expression: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        answer = self.command("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def open(self, page: Path, *, scheme: str = "light", width: int = 1280, scripts: bool = True) -> None:
        """Open a file and wait until it is loaded."""
        self.command("Emulation.setScriptExecutionDisabled", value=not scripts)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.command("Emulation.setEmulatedMedia", features=features)
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.command("Page.navigate", url="about:blank")
        self.events.clear()
        self.command("Page.navigate", url=page.resolve().as_uri())
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def wait(self, condition: str, seconds: float = 60) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.js(condition):
            assert time.monotonic() < end, f"never true: {condition}"
            time.sleep(0.05)

    def click(self, selector: str, number: int = 0) -> None:
        """Click with the mouse on the middle of an element."""
        box = self.js(
            f"(() => {{ const one = document.querySelectorAll({json.dumps(selector)})[{number}];"
            "one.scrollIntoView({block: 'center'}); const box = one.getBoundingClientRect();"
            "return {x: box.x + box.width / 2, y: box.y + box.height / 2}; })()"
        )
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
            self.command("Input.dispatchMouseEvent", type=kind, x=box["x"], y=box["y"], **button)

    def type_into(self, selector: str, text: str) -> None:
        """Put the keyboard on an element and type."""
        self.js(f"document.querySelector({json.dumps(selector)}).focus()")
        self.command("Input.insertText", text=text)

    def screenshot(self) -> bytes:
        """The whole page as PNG."""
        size = self.js("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
        shot = self.command("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(shot["data"])

    def complaints(self) -> list[str]:
        """What the console and the log say."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(event)[:500] for event in self.events if event["method"] in kinds]

    def requests(self) -> list[str]:
        """Addresses that the page asked for, besides itself and what it carries."""
        asked = (event["params"] for event in self.events if event["method"] == "Network.requestWillBeSent")
        addresses = [one["request"]["url"] for one in asked]
        return [address for address in addresses if not address.startswith(("data:", "blob:"))][1:]
