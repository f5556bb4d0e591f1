"""What a ConsumerGroupMigration prints for a person, run as it stands on a real API server with its controllers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.consumers import deployment, perform, read, stateful_set, tried, until, up
from apiserver.test_member_deployments import TOTAL, Roll, roll
from switchover.answers.observed import Known
from switchover.api.consumer_group_migration import ContainerChange
from switchover.engine.gate import Verdict
from switchover.groups.gates.ending import check_audit
from switchover.groups.gates.on_record import check_record_holds
from switchover.groups.gates.workloads import check_ours
from switchover.groups.picture import Fleet, Picture
from switchover.groups.preflight.workloads import find_unmovable
from switchover.groups.workloads import change, kinds
from switchover.groups.workloads import stateful_set as ordered
from switchover.kubernetes import names
from switchover.kubernetes.client.api_server import ApiServer
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.kubernetes.members import MemberWorkload
from switchover.kubernetes.workloads import JobState
from switchover.network.addresses import Address
from switchover.network.credentials import KAFKA, allowed_servers
from unit.group_pictures import NOW, UID, audited, moment, spec_of, with_fact, workload_of

__all__ = ["roll"]                                      # a fixture
Kubectl = Callable[..., Any]
Paste = Callable[..., None]
NEW = ContainerChange.model_validate({"image": "localhost/orders:2"})
FLUX = {"kustomize.toolkit.fluxcd.io/name": "shop"}
BY_FLUX = ("--field-manager", "kustomize-controller")
EDITOR = "#!/bin/sh\nexec sed -i 's|image: localhost/orders:1$|image: localhost/orders:2|' \"$1\"\n"
"""A person who makes the image what spec.workloads has."""


def seen(found: MemberWorkload, namespace: str, stored: Mapping[str, Any] | None, step: str = "Canary",
         modes: str = "OOOOTT") -> Picture:
    """What a migration sees of the workload, whose pods have these modes by its record."""
    spec = spec_of(workload_of(found.kind, template=NEW.model_dump(exclude_unset=True)))
    picture = replace(moment(step, modes, spec=spec), namespace=namespace)
    return with_fact(picture, "fleet", Known(Fleet({found.name: found}, {found.name: stored}), NOW))


def stored_of(original: MemberWorkload) -> Mapping[str, Any]:
    kept: Mapping[str, Any] = change.original_manifest(original, UID, 1, {})["data"]
    return kept


@dataclass
class Moving:
    """A Deployment that Flux applied and this migration has claimed; two of its six pods have moved."""

    roll: Roll
    namespace: str

    async def begin(self) -> None:
        workloads = self.roll.workloads

        async def claim() -> Any:
            return change.claim(await read(workloads), UID)

        await tried(workloads, claim)
        await self.roll.write(change.changed(self.roll.original.template, "app", NEW))
        await self.roll.move(2)
        assert (await self.judged()).outcome == "Pass"

    async def judged(self, modes: str = "OOOOTT") -> Verdict:
        return check_ours(seen(await self.roll.look(), self.namespace, stored_of(self.roll.original), modes=modes))

    async def goes_on(self) -> None:
        """Nothing is found, two pods have moved as on record, the next batch moves, and no pod too many has left."""
        async def well() -> bool:
            return (await self.judged()).outcome == "Pass" and self.roll.revisions(await self.roll.look()) == (TOTAL - 2, 2)

        await until(well, "nothing is found, and two pods have moved")
        assert self.roll.revisions(await self.roll.move(4)) == (TOTAL - 4, 4)
        assert (await self.judged("OOTTTT")).outcome == "Pass"
        assert self.roll.fewest == TOTAL


@pytest.fixture
async def moving(roll: Roll, kubectl: Kubectl, namespace: str) -> Moving:
    kubectl("-n", namespace, "label", "deployment", "orders", *(f"{key}={value}" for key, value in FLUX.items()))
    made = Moving(roll, namespace)
    await made.begin()
    return made


@pytest.mark.case("NotClaimed")
@pytest.mark.parametrize("by", ["-", "=another"], ids=["taken off", "another's"])
async def test_a_claim_is_put_back(moving: Moving, kubectl: Kubectl, paste: Paste, by: str) -> None:
    kubectl("-n", moving.namespace, "annotate", "--overwrite", "deployment", "orders", f"{names.CLAIM}{by}")
    lost = await moving.judged()
    assert lost.reason == "NotClaimed"
    paste(lost.unblocks or "")
    await moving.goes_on()


@pytest.mark.case("ReplicasChanged")
@pytest.mark.parametrize("count", [TOTAL + 2])
async def test_a_deployment_that_was_scaled_is_scaled_back(
        moving: Moving, kubectl: Kubectl, paste: Paste, count: int) -> None:
    kubectl("-n", moving.namespace, "scale", "deployment", "orders", "--replicas", str(count))
    scaled = await moving.judged()
    assert (scaled.reason, scaled.observed) == ("ReplicasChanged", str(count))
    paste(scaled.unblocks or "")
    await moving.goes_on()


@pytest.mark.case("RevertedByGitOps")
async def test_a_template_that_flux_put_back_is_edited_and_flux_leaves_it_alone(
        moving: Moving, kubectl: Kubectl, paste: Paste, tmp_path: Path) -> None:
    in_git = deployment(TOTAL)
    in_git["metadata"]["labels"] = FLUX
    kubectl("-n", moving.namespace, "apply", "--server-side", "--force-conflicts", *BY_FLUX, "-f", "-",
            stdin=yaml.safe_dump(in_git))
    reverted = await moving.judged()
    assert (reverted.reason, reverted.observed) == ("RevertedByGitOps", "kustomize-controller")
    editor = tmp_path / "editor"
    editor.write_text(EDITOR)
    editor.chmod(0o755)
    paste(reverted.unblocks or "", KUBE_EDITOR=str(editor))
    await moving.goes_on()
    assert is_left_alone(await moving.roll.look(), moving.namespace)


def is_left_alone(found: MemberWorkload, namespace: str) -> bool:
    """By Flux, whose mark is on it."""
    assert namespace
    return found.marks["kustomize.toolkit.fluxcd.io/reconcile"] == "disabled"


@pytest.mark.case("DeploymentNotHeld")
@pytest.mark.parametrize(("written", "reason"), [
    ({"minReadySeconds": 0}, "DeploymentNotHeld")])
async def test_settings_that_flux_wrote_are_held_again_and_flux_leaves_them_alone(
        moving: Moving, kubectl: Kubectl, paste: Paste, written: dict[str, Any], reason: str) -> None:
    kubectl("-n", moving.namespace, "patch", "deployment", "orders", *BY_FLUX, "--type", "merge", "--patch",
            yaml.safe_dump({"spec": written}))
    lost = await moving.judged()
    assert lost.reason == reason
    paste(lost.unblocks or "")
    found = await moving.roll.look()
    assert is_left_alone(found, moving.namespace)

    async def held() -> Any:
        [effect] = kinds.of(found).hold_again(await moving.roll.look())
        return effect

    await tried(moving.roll.workloads, held)             # what the migration does in the pass that says so
    await moving.goes_on()


@pytest.mark.case("RevertedByGitOps")
async def test_the_template_of_a_stateful_set_that_was_put_back_is_undone(
        server: ApiServer, workloads: KubernetesWorkloads, kubectl: Kubectl, paste: Paste, namespace: str) -> None:
    in_git = stateful_set(4)
    in_git["metadata"]["labels"] = FLUX
    flux = ("-n", namespace, "apply", "--server-side", "--force-conflicts", *BY_FLUX, "-f", "-")
    kubectl(*flux, stdin=yaml.safe_dump(in_git))
    original = await up(server, workloads, "StatefulSet")
    for step in (lambda found: change.claim(found, UID), ordered.hold,
                 lambda found: change.write(found, "app", change.changed(original.template, "app", NEW), "the change",
                                            ordered.holding(found)),
                 lambda found: ordered.lower(found, 2)):
        await perform(workloads, step(await up(server, workloads, "StatefulSet")))
        await up(server, workloads, "StatefulSet")

    async def judged() -> Verdict:
        return check_ours(seen(await up(server, workloads, "StatefulSet"), namespace, stored_of(original), modes="OOTT"))

    assert (await judged()).outcome == "Pass"
    moved = {pod.revision for pod in (await read(workloads, "StatefulSet")).pods.values()}
    kubectl(*flux, stdin=yaml.safe_dump(in_git))
    reverted = await judged()
    assert (reverted.reason, reverted.observed) == ("RevertedByGitOps", "kustomize-controller")
    paste(reverted.unblocks or "")

    async def back() -> bool:
        found = await up(server, workloads, "StatefulSet")
        return (await judged()).outcome == "Pass" and {pod.revision for pod in found.pods.values()} == moved

    await until(back, "two pods are of the template of before, and two of the migration's")
    assert is_left_alone(await read(workloads, "StatefulSet"), namespace)


@pytest.mark.case("WorkloadUnsupported")
async def test_a_deployment_that_somebody_has_paused_is_resumed(
        server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None], kubectl: Kubectl, paste: Paste,
        namespace: str) -> None:
    apply(deployment(2))
    original = await up(server, workloads)
    kubectl("-n", namespace, "rollout", "pause", "deployment", "orders")

    async def found() -> list[Verdict]:
        return list(find_unmovable(seen(await up(server, workloads), namespace, None, "Preflight", "OO")))

    [paused] = await found()
    assert (paused.reason, paused.subject) == ("WorkloadUnsupported", "orders")
    paste(paused.message)
    assert await found() == []
    assert (await read(workloads)).pods.keys() == original.pods.keys(), "no pod was replaced"


@pytest.mark.case("RecordContradicted")
async def test_a_revision_of_somebody_elses_is_deleted_and_written_again(
        server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None], paste: Paste, namespace: str) -> None:
    apply(deployment(2))
    original = await up(server, workloads)
    manifest = change.original_manifest(original, UID, 1, names.labels("orders"))
    name = manifest["metadata"]["name"]
    forged = {**manifest, "data": {**manifest["data"], "template": change.changed(original.template, "app", NEW)}}

    async def judged() -> Verdict:
        stored = await workloads.original(name)
        return check_record_holds(seen(await up(server, workloads), namespace, stored, "Baseline", "OO"))

    apply(forged, {**manifest, "metadata": {"name": "of-others"}})
    contradicted = await judged()
    assert (contradicted.reason, name in contradicted.message) == ("RecordContradicted", True)
    paste(contradicted.unblocks or "")
    assert await workloads.original(name) is None
    assert await workloads.original("of-others") is not None
    assert (await judged()).outcome == "Pass"
    await workloads.apply(manifest)                      # what the migration does in the next pass
    assert (await judged()).outcome == "Pass"
    assert (await read(workloads)).pods.keys() == original.pods.keys()


@pytest.mark.case("ZooKeeperUnknown")
@pytest.mark.parametrize("before", ["", "kafka-0.kafka:9092"])
async def test_the_owner_of_a_secret_lets_it_go_to_more_servers(
        workloads: KubernetesWorkloads, apply: Callable[..., None], paste: Paste, namespace: str, before: str) -> None:
    servers = [Address("kafka", 9092), Address("kafka-1.kafka", 9092), Address("2001:db8::1", 9092)]
    others = {"sasl.jaas.config": "x 'y' \"z\"", **({KAFKA: before} if before else {})}
    apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kafka-client"}, "stringData": others})

    async def why_not() -> str:
        return allowed_servers("kafka-client", namespace, await workloads.client_properties("kafka-client"), KAFKA).why_not(
            servers)

    paste(await why_not())
    assert await why_not() == ""
    after = await workloads.client_properties("kafka-client")
    assert after["sasl.jaas.config"] == others["sasl.jaas.config"]
    assert after[KAFKA].startswith(before), "what it named stays"


@pytest.mark.case("AuditFailed", "AuditIndeterminate", "AuditUnknown", "AuditViolations")
def test_an_audit_is_run_again_once_its_job_is_deleted(kubectl: Kubectl, paste: Paste, namespace: str) -> None:
    """Whatever it found: the operator creates a Job that is not there."""
    for name in ("to-consumer-audit-1", "of-others"):
        kubectl("--namespace", namespace, "create", "job", name, "--image", "localhost/pipeline:1")
    found = with_fact(replace(moment("Audit", "TTTTTT"), namespace=namespace), "audit", Known(audited(JobState.FAILED), NOW))
    paste(check_audit(found).unblocks or "")
    assert kubectl("--namespace", namespace, "get", "jobs", "--output", "name").stdout.split() == ["job.batch/of-others"]
