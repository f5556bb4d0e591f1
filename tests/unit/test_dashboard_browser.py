"""The dashboard in a real Chromium: on a desk and on a phone, in dark and light, by keyboard, while the migration goes on.

The pictures lie in build/dashboard, to be looked at.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fakes.api_on_loopback import ApiOnLoopback, on_loopback
from fakes.api_server import Problem
from switchover.cli import dashboard as served
from unit.browser import Tab, browser
from unit.test_dashboard import dashboard, names
from unit.told_walks import told_walk

pytestmark = pytest.mark.long
PICTURES = Path(__file__).parents[2] / "build" / "dashboard"
PHONE, DESK = 390, 1280
UNREADABLE = """(() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((each) => (each / 255 <= 0.04045
      ? each / 255 / 12.92 : ((each / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const back = (node) => { for (; node; node = node.parentElement) {
    const colour = getComputedStyle(node).backgroundColor;
    if (colour !== "rgba(0, 0, 0, 0)") return colour; } return "rgb(255, 255, 255)"; };
  return [...document.querySelectorAll("h1, h2, h3, p, td, th, dt, dd, a, span, b, li")].filter((node) => {
    const [one, two] = [light(getComputedStyle(node).color), light(back(node))];
    return (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05) < 4.5;
  }).map((node) => node.textContent.slice(0, 40));
})()"""
"""Texts with less contrast than WCAG 2.2 AA wants of normal text."""


@asynccontextmanager
async def opened(tmp_path: Path) -> AsyncIterator[tuple[ApiOnLoopback, str, Tab]]:
    async with (on_loopback(tmp_path) as (api, kubeconfig), dashboard(kubeconfig) as address,
                browser(tmp_path / "profile") as tab):
        for name in ("cluster held", "group done"):
            api.add(told_walk(name))
        yield api, address, tab


def troubles(tab: Tab) -> list[dict[str, Any]]:
    """What the browser complains of, and what it has asked of somebody else."""
    return [each for each in tab.events if each["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")
            and "503" not in str(each)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESK])
async def test_each_page_is_readable(width: int, scheme: str, tmp_path: Path) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    async with opened(tmp_path) as (api, address, tab):
        for name, path in (("index", "/"), *zip(("cluster", "group"), names(api), strict=True), ("trouble", "/")):
            if name == "trouble":
                api.trouble = Problem(403, "Forbidden", "kafkamigrations is forbidden: User cannot list resource")
            await tab.shows(address + path, width, scheme)
            (PICTURES / f"{name}-{width}-{scheme}.png").write_bytes(await tab.picture())
            assert await tab.value("document.documentElement.scrollWidth") <= width, f"{name} is wider than the screen"
            assert await tab.value(UNREADABLE) == [], name
            dark = await tab.value("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
            assert dark is (scheme == "dark")
        asked = [each["params"]["request"]["url"] for each in tab.events if each["method"] == "Network.requestWillBeSent"]
        assert asked
        assert all(each.startswith(address) for each in asked), asked
        assert troubles(tab) == []


@pytest.fixture
def each_second(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pages are read again each second."""
    monkeypatch.setattr(served, "EVERY_SECONDS", 1)
    served.live.cache_clear()
    yield
    served.live.cache_clear()


@pytest.mark.usefixtures("each_second")
async def test_a_page_follows_the_migration_and_keeps_what_the_reader_has(tmp_path: Path) -> None:
    async with opened(tmp_path) as (api, address, tab):
        path, _ = names(api)
        await tab.shows(f"{address}/", PHONE, "light")
        for _ in range(2):
            await tab.press("Tab")
        await tab.press("Enter")                                                    # the second link: of the cluster
        await tab.until(f"location.pathname.endsWith({path!r}) && document.readyState === 'complete'")
        for _ in range(4):
            await tab.press("Tab")
        focused = await tab.value("document.activeElement.getAttribute('href')")
        assert focused.startswith("#")
        await tab.value("scrollTo(0, 700)")

        def change(phase: str) -> None:
            api.api.edit("kafkamigrations", path.rpartition("/")[2], lambda each: each["status"].update(phase=phase))

        change("Paused")
        await tab.until("document.querySelector('h1 .phase').textContent === 'Paused'")
        assert "Paused" in await tab.value("document.title")
        assert await tab.value("document.activeElement.getAttribute('href')") == focused
        assert await tab.value("scrollY") == 700

        await tab.value("getSelection().selectAllChildren(document.querySelector('h1'))")
        change("Running")
        await tab.until("document.getElementById('live')?.textContent.startsWith('Not refreshed while text is selected')")
        assert await tab.value("document.querySelector('h1 .phase').textContent") == "Paused"
        await tab.value("getSelection().removeAllRanges()")
        await tab.until("document.querySelector('h1 .phase').textContent === 'Running' && !document.getElementById('live')")

        api.trouble = Problem(500, "InternalError", "etcd <b>leader</b> changed")
        await tab.until("document.getElementById('live')?.textContent.includes('etcd <b>leader</b> changed')")
        assert await tab.value("document.querySelector('h1 .phase').textContent") == "Running", "what was read stays"
        assert await tab.value("document.getElementById('live').getBoundingClientRect().top") == 0, "seen when scrolled"
        assert "What stands here was read at" in await tab.value("document.getElementById('live').textContent")
        (PICTURES / "stale.png").write_bytes(await tab.picture())
        api.trouble = None
        await tab.until("!document.getElementById('live')")
        assert troubles(tab) == []
        assert set(api.asked) == {"GET"}


@pytest.mark.usefixtures("each_second")
async def test_a_dashboard_that_has_ended_is_told_on_the_page(tmp_path: Path) -> None:
    async with on_loopback(tmp_path) as (api, kubeconfig), browser(tmp_path / "profile") as tab:
        api.add(told_walk("group done"))
        async with dashboard(kubeconfig) as address:
            await tab.shows(f"{address}/", DESK, "dark")
        await tab.until("document.getElementById('live')?.textContent.startsWith('switchover dashboard does not answer')")
        assert await tab.value("document.querySelectorAll('tbody tr').length") == 1, "what was read stays"
