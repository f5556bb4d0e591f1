"""A chart's release goes over to KRaft settings of its own: what `helm upgrade` leaves of us, and that no later one
restarts a broker.

The StatefulSet controller computes the revision of the pod template here as it does everywhere: the same revision is
the same pods.
"""

from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from apiserver.charts import helm
from apiserver.finalized import MIGRATION, SPEC, Finalized, Kubectl
from switchover.api.kafka_migration import KafkaMigrationSpec
from switchover.cluster import template
from switchover.kubernetes.client.api_server import ApiServer

WORLDS = Path(__file__).parents[2] / "sandbox" / "worlds"
BROKERS = KafkaMigrationSpec.model_validate(SPEC).brokers[0]
SERVER_SIDE = ("--server-side=true", "--force-conflicts")
CLIENT_SIDE = ("--server-side=false",)
"""As Helm 3 does it: a strategic merge of the release before, the one of now, and what is there."""


def has_ours(spec: Any) -> bool:
    """Whether anything of Switchover's is in it; the images of the charts have that word in their names, too."""
    return "switchover" in str(spec).replace("localhost/switchover/", "")


class Release(Finalized):
    """Brokers from a chart, after Finalize."""

    def __init__(self, server: ApiServer, kubectl: Kubectl, namespace: str, world: str, how: tuple[str, ...],
                 kubeconfig: Path) -> None:
        super().__init__(server, kubectl, namespace)
        self.world, self.how = WORLDS / world, how
        self._to = ("--kubeconfig", str(kubeconfig), "--namespace", namespace)

    def helm(self, verb: str, *arguments: str) -> None:
        """`helm install` or `helm upgrade` of the brokers' release."""
        helm(verb, "kafka", str(self.world / "chart"), *self._to, *arguments)

    def upgrade(self, *arguments: str) -> None:
        self.helm("upgrade", "--values", str(self.world / "kraft-values.yaml"), *self.how, *arguments)

    async def brought(self) -> bool:
        return template.is_brought(await self.workload(), BROKERS, await self.original())

    async def take_ours_out(self) -> None:
        """What HandOver does."""
        operations = template.take_ours_out(await self.workload(), BROKERS)
        await self.workloads.patch("apps/v1", "StatefulSet", "kafka", operations)


RELEASES = [(world, how) for world in ("generated", "variables", "words") for how in (SERVER_SIDE, CLIENT_SIDE)]


def releases(*wanted: tuple[str, tuple[str, ...]]) -> pytest.MarkDecorator:
    """Every chart, upgraded as Helm 4 does it and as Helm 3 does; these in every run."""
    return pytest.mark.parametrize("release", [
        pytest.param(each, id=f"{each[0]}, {each[1][0]}", marks=[] if each in wanted else pytest.mark.long)
        for each in RELEASES], indirect=True)


@pytest_asyncio.fixture
async def release(request: pytest.FixtureRequest, server: ApiServer, kubectl: Kubectl, namespace: str,
                  kubeconfig: Path, crds: object) -> Release:
    found = Release(server, kubectl, namespace, *request.param, kubeconfig)
    found.helm("install", found.how[0])
    found.apply(("apply",), yaml.safe_dump(MIGRATION))
    await found.live("kafka")
    await found.take_over()
    await found.record("HandOver")
    return found


@releases(("generated", SERVER_SIDE), ("variables", CLIENT_SIDE))
async def test_what_an_upgrade_leaves_of_us_is_taken_out_and_later_ones_restart_nothing(release: Release) -> None:
    assert not await release.brought(), "nobody has changed anything"
    release.upgrade()
    merged = await release.workload()
    assert has_ours(merged.template), "a merge takes nothing away that it does not know"
    assert await release.brought()
    await release.take_ours_out()
    now = await release.live("kafka")
    assert not has_ours(now["spec"])
    assert template.is_users_new(await release.workload(), BROKERS, await release.original())
    strategy = template.restore_strategy(await release.workload(), await release.original())
    await release.workloads.patch("apps/v1", "StatefulSet", "kafka", strategy)
    release.upgrade()
    release.upgrade("--set", "updateStrategy.type=RollingUpdate")
    later = await release.live("kafka")
    assert later["status"]["updateRevision"] == now["status"]["updateRevision"]
    assert later["spec"]["updateStrategy"]["type"] == "RollingUpdate"
    release.upgrade("--set", "podAnnotations.changed=yes")
    assert (await release.live("kafka"))["status"]["updateRevision"] != now["status"]["updateRevision"], "it does tell"


@releases(("words", SERVER_SIDE))
async def test_the_template_is_what_the_chart_renders(release: Release, kubectl: Kubectl) -> None:
    """A release that never met us has the same revision of its template, by content."""
    release.upgrade()
    await release.take_ours_out()
    ours = (await release.live("kafka"))["spec"]["template"]
    kubectl("-n", release.namespace, "delete", "statefulset", "kafka")
    release.helm("upgrade", "--values", str(release.world / "kraft-values.yaml"), *release.how)
    assert (await release.live("kafka"))["spec"]["template"] == ours


@releases(("generated", CLIENT_SIDE))
async def test_a_release_of_the_old_values_has_brought_nothing(release: Release) -> None:
    """Whatever it is done for, brokers are not rolled to it."""
    release.helm("upgrade", *release.how)
    assert not await release.brought()
    release.helm("upgrade", "--set", "updateStrategy.type=OnDelete", *release.how)
    assert not await release.brought()
