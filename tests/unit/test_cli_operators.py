"""What a person is told of the operator before it must do what they ask."""

from typing import Any

import pytest

from switchover.cli import operators
from switchover.cli.acts import Act
from switchover.cli.objects import KAFKA_MIGRATION, Found
from switchover.kubernetes.client.api_server import Forbidden

NOW = 1_795_773_630.0                                       # 2026-11-27T10:00:30Z
KAFKA = Found(KAFKA_MIGRATION, {"metadata": {"name": "kafka", "namespace": "shop", "uid": "u-1"}})
NOTHING = "your request is recorded, and nothing happens until one runs (switchover doctor)"


def pod(phase: str = "Running", waits: str = "") -> dict[str, Any]:
    waiting = [{"state": {"waiting": {"reason": waits}}}] if waits else [{"state": {"running": {}}}]
    return {"metadata": {"name": "switchover-0"}, "status": {"phase": phase, "containerStatuses": waiting}}


def lease(holder: str | None, renewed: str | None = "2026-11-27T10:00:10.000000Z") -> dict[str, Any]:
    return {"metadata": {"name": "switchover-x"},
            "spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 30}}


def deployment(release: str | None) -> dict[str, Any]:
    return {"metadata": {"name": "switchover", "labels": {"app.kubernetes.io/version": release} if release else None}}


@pytest.mark.parametrize(("pods", "leases", "words"), [
    ([], [], [f"no operator is seen in namespace shop: {NOTHING}"]),
    ([pod()], [], []),
    ([pod("Pending"), pod()], [], []),
    ([pod("Running", "CrashLoopBackOff")], [], [f"the operator's pod switchover-0 is CrashLoopBackOff: {NOTHING}"]),
    ([pod("Pending")], [], [f"the operator's pod switchover-0 is Pending: {NOTHING}"]),
    ([], [lease("u-1/operator-in-another-namespace")], []),
    ([], [lease("u-1/gone", "2026-11-27T09:00:00.000000Z")], [f"no operator is seen in namespace shop: {NOTHING}"]),
    ([], [lease("u-2/of-another-object"), lease(None), lease("u-1/never", None)],
     [f"no operator is seen in namespace shop: {NOTHING}"]),
], ids=["none", "running", "another starts", "crashing", "pending", "elsewhere", "died", "of another"])
def test_no_operator_is_told_and_one_that_holds_the_lease_is_none_missing(pods: Any, leases: Any, words: Any) -> None:
    assert list(operators.absent(KAFKA, Act.PAUSE, pods, leases, NOW)) == words


def test_what_is_abandoned_without_an_operator_stays_until_one_releases_it() -> None:
    assert list(operators.absent(KAFKA, Act.ABANDON, [], [], NOW)) == [
        "no operator is seen in namespace shop: your request is recorded, and the object stays until one runs that"
        " releases it (switchover doctor)"]


@pytest.mark.parametrize(("release", "told"), [("0.1.0", ""), ("0.0.9", "release 0.0.9"), (None, "release unknown")])
def test_another_release_is_told(release: str | None, told: str) -> None:
    words = list(operators.other_release([deployment(release)], "0.1.0"))
    assert [line.partition(" and this program 0.1.0: your request is recorded, ")[0] for line in words] == [
        f"the operator is {told}"] * bool(told)


class Pods:
    """An API server that has pods by namespace; None for all where they may not be listed."""

    namespace = "shop"

    def __init__(self, here: list[dict[str, Any]], everywhere: list[dict[str, Any]] | None) -> None:
        self._found = {"/here": here, "/api/v1/pods": everywhere}

    def path(self, *_: str) -> str:
        return "/here"

    async def items(self, path: str, labels: Any) -> list[dict[str, Any]]:
        found = self._found[path]
        if found is None:
            raise Forbidden("you may not list pods")
        return found


def serving(namespace: str, name: str, watch: str, phase: str = "Running") -> dict[str, Any]:
    return {"metadata": {"namespace": namespace, "name": name}, "status": {"phase": phase},
            "spec": {"containers": [{"env": [{"name": "WATCH", "value": watch}]}]}}


@pytest.mark.parametrize(("here", "everywhere", "found"), [
    ([serving("shop", "own", "")], [serving("ops", "other", "*")], ("shop", "own")),
    ([], [serving("ops", "not-ours", "bank"), serving("ops", "ours", "bank,shop")], ("ops", "ours")),
    ([], [serving("ops", "starting", "*", "Pending"), serving("ops", "running", "*")], ("ops", "running")),
    ([], [], None),
    ([], None, None),
], ids=["beside", "elsewhere", "that runs", "none", "forbidden"])
async def test_what_an_operator_sees_is_asked_in_its_own_pod_wherever_that_is(
        here: Any, everywhere: Any, found: tuple[str, str] | None) -> None:
    server: Any = Pods(here, everywhere)
    assert await operators.running(server) == found
