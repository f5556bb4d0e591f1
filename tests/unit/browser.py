"""A headless Chromium, spoken to by its DevTools protocol: a page as a person has it, on a screen of a size, by keyboard."""

import asyncio
import subprocess
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp

from patience import stretched


class Tab:
    """One page."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = count(1)
        self.events: list[dict[str, Any]] = []
        """What the browser has said unasked, such as an exception or a line of its console."""

    async def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command, and its answer."""
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        async with asyncio.timeout(stretched(30)):
            while True:
                told: dict[str, Any] = await self._socket.receive_json()
                if told.get("id") == number:
                    assert "error" not in told, told
                    result: dict[str, Any] = told["result"]
                    return result
                self.events.append(told)

    async def value(self, expression: str) -> Any:
        """Of an expression of JavaScript."""
        return (await self.ask("Runtime.evaluate", expression=expression, returnByValue=True))["result"].get("value")

    async def until(self, expression: str) -> None:
        """Until it is true."""
        async with asyncio.timeout(stretched(30)):
            while not await self.value(expression):  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    async def shows(self, address: str, width: int, scheme: str) -> None:
        """Open it on a screen `width` pixels wide, in the dark or the light scheme."""
        await self.ask("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1,
                       mobile=width < 600)
        await self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        await self.ask("Page.navigate", url=address)
        await self.until(f"location.href === {address!r} && document.readyState === 'complete'")

    async def press(self, key: str) -> None:
        """A key, down and up."""
        codes = {"Tab": 9, "Enter": 13}
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            await self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key], **text)

    async def picture(self) -> bytes:
        """The whole page, as PNG."""
        size = (await self.ask("Page.getLayoutMetrics"))["cssContentSize"]
        found = await self.ask("Page.captureScreenshot", captureBeyondViewport=True, clip={**size, "scale": 1})
        return b64decode(found["data"])


@asynccontextmanager
async def browser(directory: Path) -> AsyncIterator[Tab]:
    """A tab of a Chromium of its own, with its profile in the directory."""
    process = await asyncio.create_subprocess_exec(
        "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0",
        f"--user-data-dir={directory}", "about:blank", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        told = directory / "DevToolsActivePort"
        async with asyncio.timeout(stretched(60)):
            while not told.exists() or not told.read_text().strip():
                assert process.returncode is None, "Chromium has ended"
                await asyncio.sleep(0.1)
        port = told.read_text().splitlines()[0]
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json") as answer:
                (page,) = (each for each in await answer.json() if each["type"] == "page")
            async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                tab = Tab(socket)
                for domain in ("Page", "Runtime", "Log", "Network"):
                    await tab.ask(f"{domain}.enable")
                yield tab
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
