"""A chart's release goes over to KRaft settings of its own: what `helm upgrade` leaves of us, and that no later one
restarts a broker.

The StatefulSet controller computes the revision of the pod template here as it does everywhere: the same revision is
the same pods.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from apiserver.charts import helm
from apiserver.finalized import MIGRATION, SPEC, Finalized, Kubectl
from patience import Patience
from switchover.answers.observed import Known
from switchover.api.kafka_migration import KafkaMigrationSpec
from switchover.cluster import names, template
from switchover.cluster.ending import trial_job
from switchover.cluster.picture import Picture
from switchover.engine.effects import Create, Delete
from switchover.kubernetes import reports
from switchover.kubernetes.client.api_server import ApiServer
from switchover.kubernetes.client.pods import JOB_POD
from unit.kraft_gates import to_own
from unit.pictures import NOW, spoil, value, with_fact, workload_of

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


# --- the trial ----------------------------------------------------------------------------------------------------------


async def seen(release: Release, job: str = "") -> Picture:
    """A moment of HandOver on paper, with the brokers' StatefulSet, what is kept of it and the trial of this uid as they are
    there."""
    paper, found = to_own(), await release.migrations.get("to-kraft")
    assert found is not None
    uid = found["metadata"]["uid"]
    live = replace(await release.workload(), pods=workload_of(paper).pods)
    trial = await release.workloads.job(names.trial("kafka", uid), job)
    picture = spoil(replace(paper, uid=uid), "kubernetes", brokers={"kafka": live},
                    originals={"kafka": await release.original()})
    return with_fact(picture, "trials", {"kafka": Known(trial, NOW)})


async def pods_of(release: Release, labels: Mapping[str, str]) -> dict[str, Any]:
    found = await release.server.items(release.server.path("v1", "Pod"), labels)
    return {each["metadata"]["name"]: each for each in found}


async def one_pod(release: Release, job: str) -> dict[str, Any]:
    """That of the Job, once its controller has made it."""
    for _ in Patience(60).looks():
        if found := await pods_of(release, {JOB_POD: job}):
            return dict(next(iter(found.values())))
        await asyncio.sleep(0.2)
    raise AssertionError(f"{job} has no pod")


@releases(("generated", SERVER_SIDE), ("variables", CLIENT_SIDE), ("words", SERVER_SIDE))
async def test_the_template_is_tried_in_a_pod_of_its_own(release: Release) -> None:
    """The API server takes the Job; nothing selects its pod, which has nobody's data; its report is read, and it goes."""
    release.upgrade()
    picture = await seen(release)
    (made,) = trial_job.keep(picture, value(picture.facts.kubernetes))
    assert isinstance(made, Create)
    uid = await release.workloads.create(made.manifest)
    job = names.trial("kafka", picture.uid)
    pod = await one_pod(release, job)
    selectors = [(await release.live("kafka"))["spec"]["selector"]["matchLabels"]]
    for api, kind in (("v1", "Service"), ("policy/v1", "PodDisruptionBudget")):
        found = await release.server.items(release.server.path(api, kind))
        selectors += [spec.get("matchLabels") or spec for each in found if (spec := each["spec"].get("selector"))]
    for selector in selectors:
        assert pod["metadata"]["name"] not in await pods_of(release, selector), selector
    assert len(await pods_of(release, selectors[0])) == 3, "the brokers' own"
    kinds = {kind for volume in pod["spec"]["volumes"] for kind in volume.keys() - {"name"}}
    assert kinds <= {"configMap", "secret", "emptyDir", "projected"}

    path = release.server.path("v1", "Pod", pod["metadata"]["name"])
    nonce = value((await seen(release, uid)).facts.trials["kafka"]).nonce
    ended = {"exitCode": 0, "reason": "Completed", "message": f"trial 2 1 {nonce}\nnode.id=2"}
    await release.server.json_patch(f"{path}/status", [{"op": "add", "path": "/status", "value": {
        "phase": "Succeeded", "containerStatuses": [{
            "name": pod["spec"]["containers"][0]["name"], "image": "", "imageID": "", "ready": False, "restartCount": 0,
            "state": {"terminated": ended}}]}}])
    picture = await seen(release, uid)
    told = value(picture.facts.trials["kafka"])
    assert reports.started_with(told.message, told.nonce) == {"node.id": "2"}
    assert trial_job.compared_with(told) == value(trial_job.goes_first(picture, "kafka"))
    assert trial_job.keep(picture, value(picture.facts.kubernetes)) == (), "tried once"

    release.upgrade("--set", "podAnnotations.changed=yes")
    picture = await seen(release, uid)
    (gone,) = trial_job.keep(picture, value(picture.facts.kubernetes))
    assert isinstance(gone, Delete)
    await release.workloads.delete_object(gone.api_version, gone.kind, gone.name, gone.uid)
    for _ in Patience(60).looks():
        if await release.workloads.job(job, uid) is None and not await pods_of(release, {JOB_POD: job}):
            return
        await asyncio.sleep(0.2)
    raise AssertionError("the Job or its pod is there still")
