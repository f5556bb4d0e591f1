"""`switchover dashboard` on a real API server: objects of both kinds at a hold and at their end, as the operator has written
them, live, without a write; and where rights are missing."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from apiserver.test_cli import without_rights
from patience import stretched
from switchover.answers.clock import WallClock
from switchover.cli.objects import Kind
from switchover.kubernetes.client.api_server import ApiServer
from switchover.kubernetes.client.migrations import KubernetesMigrations
from unit.test_dashboard import below
from unit.test_report import Page
from unit.told_walks import told_walk

Kubectl = Callable[..., Any]
PROGRAM = Path(sys.executable).with_name("switchover")
HELD, MOVED = told_walk("cluster held"), told_walk("group done")


@asynccontextmanager
async def dashboard(kubeconfig: Path, namespace: str) -> AsyncIterator[Callable[[str], Any]]:
    """The program in a process of its own; what is yielded asks it for a page: its status, and the page."""
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "dashboard", "--kubeconfig", kubeconfig, "--namespace", namespace, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        address = (await asyncio.wait_for(process.stdout.readline(), stretched(60))).decode().strip()
        async with aiohttp.ClientSession() as session:
            async def ask(path: str) -> tuple[int, Page]:
                async with session.get(address.removesuffix("/") + path) as answer:
                    return answer.status, Page(await answer.text())

            yield ask
    finally:
        process.terminate()
        await process.wait()


def migrations(server: ApiServer, kind: Kind) -> KubernetesMigrations:
    return KubernetesMigrations(server, WallClock(), kind.name, kind.plural)


@pytest.fixture
async def names(crds: object, apply: Callable[..., None], server: ApiServer) -> dict[str, Kind]:
    """An object of each kind with the status that an operator wrote over a walk, the cluster with an Event."""
    for told in (HELD, MOVED):
        name, kind = told.resource["metadata"]["name"], told.kind
        await asyncio.to_thread(apply, {**{key: told.resource[key] for key in ("apiVersion", "kind", "spec")},
                                        "metadata": {"name": name}})
        await write(server, kind, name, told.resource["status"])
    cluster = HELD.resource["metadata"]["name"]
    found = await migrations(server, HELD.kind).get(cluster)
    assert found is not None
    await migrations(server, HELD.kind).announce(
        cluster, found["metadata"]["uid"], "HoldReached", "Finalize waits <b>", warning=False)
    return {told.resource["metadata"]["name"]: told.kind for told in (HELD, MOVED)}


async def write(server: ApiServer, kind: Kind, name: str, status: dict[str, Any]) -> None:
    found = await migrations(server, kind).get(name)
    assert found is not None
    metadata = found["metadata"]
    own = {"observedGeneration": metadata["generation"], "uid": metadata["uid"]}
    await migrations(server, kind).record(name, metadata["uid"], metadata["resourceVersion"], {**status, **own})


async def test_both_kinds_are_shown_as_they_are_now_and_nothing_is_written(
        names: dict[str, Kind], server: ApiServer, kubeconfig: Path, kubectl: Kubectl, namespace: str) -> None:
    paths = {name: f"/{namespace}/{kind.short}/{name}" for name, kind in names.items()}
    cluster, group = (told.resource["metadata"]["name"] for told in (HELD, MOVED))

    async def versions() -> list[str]:
        return [found["metadata"]["resourceVersion"] for name, kind in names.items()
                if (found := await migrations(server, kind).get(name)) is not None]

    before = await versions()
    async with dashboard(kubeconfig, namespace) as ask:
        status, index = await ask("/")
        assert (status, sorted(below(index.links))) == (200, sorted(paths.values()))
        assert "AwaitingApproval" in index.text
        status, page = await ask(paths[cluster])
        assert status == 200
        for words in ("Finalize waits <b>", "HoldReached", f"switchover approve kmig/{cluster} Finalize",
                      "Lag of the groups, records", "Finalize: has not begun"):
            assert words in page.text, words
        status, page = await ask(paths[group])
        for words in ("HandOver: has begun", "every member takes part by the new protocol", "Gap: how long"):
            assert words in page.text, words
        assert (status, "path" in page.tags) == (200, True), "the plots are there, of what the API server kept"
        assert await versions() == before

        await write(server, names[cluster], cluster, {**HELD.resource["status"], "phase": "Paused"})
        assert "Paused" in (await ask("/"))[1].text
        await asyncio.to_thread(kubectl, "-n", namespace, "delete", MOVED.kind.plural, group)
        status, page = await ask(paths[group])
        assert (status, f"there is no migration cgmig/{group}" in page.text) == (503, True)


async def test_who_may_not_read_them_is_told_so(
        names: dict[str, Kind], kubeconfig: Path, kubectl: Kubectl, namespace: str, tmp_path: Path) -> None:
    nobody = await asyncio.to_thread(without_rights, kubeconfig, kubectl, namespace, tmp_path)
    async with dashboard(nobody, namespace) as ask:
        for path in ("/", f"/{namespace}/{HELD.kind.short}/{HELD.resource['metadata']['name']}"):
            status, page = await ask(path)
            assert (status, "the API server forbids" in page.text, "kafkamigrations" in page.text) == (503, True, True)
            assert not any(words in page.text for words in ("Finalize", "HoldReached", "HandOver"))
