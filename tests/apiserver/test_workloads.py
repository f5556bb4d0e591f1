"""The Kubernetes adapters against a real API server: fences, refusals, budgets, the Lease, and whose words reach us.

No node runs here: tests put Pods down as the StatefulSet controller would and write their status as a kubelet would.
"""

import asyncio
import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.examples import documented
from apiserver.kubelet import budget, run_as_kubelet
from fakes.clock import Clock
from patience import Patience
from switchover.answers.errors import Fenced, NameTaken, Refused, Unreachable
from switchover.api.kafka_migration import BrokerSet
from switchover.cluster.door.mount import KEEPER
from switchover.cluster.template import is_ours, patch
from switchover.kubernetes.client.api_server import ApiServer, connect
from switchover.kubernetes.client.migrations import KubernetesMigrations
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.kubernetes.lease import ACTING_SECONDS, LEFT_SECONDS, LOOKING_SECONDS
from switchover.kubernetes.reports import DiskReport
from switchover.kubernetes.workloads import Pod

Kubectl = Callable[..., Any]
FINALIZER = "switchover.dev/finalizer"
LABELS = {"app": "kafka"}


@pytest.fixture
def clock() -> Clock:
    return Clock(1_790_000_000.25)


@pytest.fixture
def workloads(server: ApiServer, clock: Clock) -> KubernetesWorkloads:
    return KubernetesWorkloads(server, clock)


@pytest.fixture
def migrations(server: ApiServer, clock: Clock, crds: object) -> KubernetesMigrations:
    return KubernetesMigrations(server, clock, "KafkaMigration", "kafkamigrations")


@pytest.fixture
def stateful_set(apply: Callable[..., None]) -> None:
    """`kafka` of two pods, a budget that selects them, and one that does not."""
    apply(
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "kafka"},
            "spec": {
                "serviceName": "kafka",
                "replicas": 2,
                "podManagementPolicy": "Parallel",
                "selector": {"matchLabels": LABELS},
                "template": {
                    "metadata": {"labels": LABELS},
                    "spec": {"containers": [{"name": "kafka", "image": "localhost/kafka:1"}],
                             "terminationGracePeriodSeconds": 0},
                },
            },
        },
        budget("kafka", {"matchExpressions": [{"key": "app", "operator": "In", "values": ["kafka"]}]}),
        budget("other", {"matchLabels": {"app": "other"}}),
    )


async def pods_of(workloads: KubernetesWorkloads, count: int = 2) -> dict[str, Pod]:
    """The pods of `kafka`, once the StatefulSet controller has made them."""
    for _ in Patience(30).looks():
        found = await workloads.stateful_set("kafka")
        assert found is not None
        if len(found.pods) == count:
            return dict(found.pods)
        await asyncio.sleep(0.1)
    raise AssertionError(f"the StatefulSet controller made {len(found.pods)} pods of {count}")


async def allowed_disruptions(server: ApiServer, wanted: int) -> None:
    """Wait until the disruption controller has counted."""
    for _ in Patience(30).looks():
        found = await server.get(server.path("policy/v1", "PodDisruptionBudget", "kafka"))
        status = found.get("status") or {}
        counted = status.get("observedGeneration") == found["metadata"]["generation"]
        if counted and status.get("disruptionsAllowed") == wanted and status.get("expectedPods") == 2:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"the budget does not come to allow {wanted} disruptions: {found.get('status')}")


@contextmanager
def refused(*words: str) -> Iterator[None]:
    with pytest.raises(Refused) as caught:
        yield
    for word in words:
        assert word in str(caught.value)


# --- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("stateful_set")
async def test_a_stateful_set_with_its_pods_and_budgets(server: ApiServer, workloads: KubernetesWorkloads) -> None:
    pods = await pods_of(workloads)
    await run_as_kubelet(server, pods["kafka-0"])
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting"}
    await run_as_kubelet(server, pods["kafka-1"], ready=False, waiting=waiting)
    found = await workloads.stateful_set("kafka")
    assert found is not None
    assert (found.replicas, found.budgets, found.claimed_by) == (2, ("kafka",), "")
    assert found.update_strategy == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    first, second = found.pods["kafka-0"], found.pods["kafka-1"]
    assert (first.ready, first.terminating, first.node, first.cordoned) == (True, False, "node-0", False)
    assert first.started_at == 1795291200.0
    assert first.trouble == ""
    assert first.revision == found.update_revision != ""
    assert (second.ready, second.started_at) == (False, None)
    assert second.trouble == "container kafka: CrashLoopBackOff: back-off 10s restarting"
    assert await workloads.stateful_set("nothing") is None


@pytest.mark.usefixtures("stateful_set")
async def test_a_pod_on_a_cordoned_node(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None], kubectl: Kubectl
) -> None:
    pods = await pods_of(workloads)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-0"}, "spec": {"unschedulable": True}}
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump(node))
    try:
        await run_as_kubelet(server, pods["kafka-0"])
        found = await workloads.stateful_set("kafka")
        assert found is not None
        assert (found.pods["kafka-0"].cordoned, found.pods["kafka-1"].cordoned) == (True, False)
    finally:
        kubectl("delete", "node", "node-0")


async def test_the_values_of_a_config_map_and_of_none(workloads: KubernetesWorkloads, apply: Callable[..., None]) -> None:
    keystore = b"\xfe\xed\xfe\xed"
    apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"}, "data": {"baseline.json": "{}"},
           "binaryData": {"key.jks": base64.b64encode(keystore).decode()}})
    found = await workloads.config_map("config")
    assert found is not None
    assert found["baseline.json"] == "{}"
    assert found["key.jks"].encode(errors="surrogateescape") == keystore
    await workloads.write_node_files("files", dict(found), {})
    assert await workloads.node_files("files") == found                  # what is no text comes through unharmed
    assert await workloads.config_map("nothing") is None
    with refused("Secret nothing does not exist"):
        await workloads.client_properties("nothing")


# --- writing ----------------------------------------------------------------------------------------------------------


async def test_node_files_are_replaced_as_a_whole_and_nobody_owns_them(
    server: ApiServer, workloads: KubernetesWorkloads
) -> None:
    assert await workloads.node_files("files") == {}
    await workloads.write_node_files("files", {"kafka-0": "a", "kafka-1": "b"}, {"managed": "yes"})
    assert await workloads.node_files("files") == {"kafka-0": "a", "kafka-1": "b"}
    await workloads.write_node_files("files", {"kafka-1": "c"}, {"managed": "yes"})
    assert await workloads.node_files("files") == {"kafka-1": "c"}
    secret = await server.get(server.path("v1", "Secret", "files"))
    assert secret["metadata"]["labels"] == {"managed": "yes"}
    assert secret["metadata"]["annotations"] == {"reloader.stakater.com/ignore": "true"}
    assert "ownerReferences" not in secret["metadata"]
    assert [entry["manager"] for entry in secret["metadata"]["managedFields"]] == ["switchover"]


async def test_node_files_are_written_over_what_was_read_and_nothing_else(
    server: ApiServer, clock: Clock, workloads: KubernetesWorkloads
) -> None:
    another = KubernetesWorkloads(server, clock)
    for absent in (workloads, another):
        assert await absent.node_files("files") == {}
    await workloads.write_node_files("files", {"kafka-0": "A"}, {})
    with pytest.raises(Fenced):
        await another.write_node_files("files", {"kafka-0": "stale"}, {})
    for present in (workloads, another):
        assert await present.node_files("files") == {"kafka-0": "A"}
    await workloads.write_node_files("files", {"kafka-0": "B"}, {})
    with pytest.raises(Fenced):
        await another.write_node_files("files", {"kafka-0": "stale"}, {})
    assert await another.node_files("files") == {"kafka-0": "B"}


async def test_no_word_of_a_secret_gets_into_a_refusal(workloads: KubernetesWorkloads) -> None:
    with pytest.raises(Refused) as caught:
        await workloads.write_node_files("files", {"not a key": "canary-7c1d"}, {})
    assert "secrets" in str(caught.value)
    with pytest.raises(Refused) as too_large:
        await workloads.write_node_files("files", {"kafka-0": "canary-7c1d" * 200_000}, {})
    assert "canary" not in f"{caught.value!r} {too_large.value!r}"
    assert caught.value.__suppress_context__


@pytest.mark.usefixtures("stateful_set")
async def test_the_strategy_is_replaced_under_a_test(workloads: KubernetesWorkloads) -> None:
    found = await workloads.stateful_set("kafka")
    assert found is not None
    patch = [
        {"op": "test", "path": "/spec/updateStrategy", "value": found.update_strategy},
        {"op": "replace", "path": "/spec/updateStrategy", "value": {"type": "OnDelete"}},
    ]
    await workloads.patch("apps/v1", "StatefulSet", "kafka", patch)
    changed = await workloads.stateful_set("kafka")
    assert changed is not None
    assert changed.update_strategy == {"type": "OnDelete"}
    with pytest.raises(Fenced):
        await workloads.patch("apps/v1", "StatefulSet", "kafka", patch)
    with pytest.raises(Fenced):
        await workloads.patch("apps/v1", "StatefulSet", "nothing", patch)
    with refused("replicas"):                              # 422 as well, but a value that can never be
        await workloads.patch("apps/v1", "StatefulSet", "kafka", [{"op": "replace", "path": "/spec/replicas", "value": -1}])


RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
SECURITY = {"runAsNonRoot": True, "runAsUser": 1000, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"}}


async def test_a_template_taken_over_is_admitted_where_the_brokers_were_and_its_report_is_read(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None], kubectl: Kubectl, namespace: str
) -> None:
    """A namespace with pod security `restricted`, a quota that wants limits, and a limit range with a minimum."""
    kubectl("label", "namespace", namespace, *(f"{key}={value}" for key, value in RESTRICTED.items()))
    resources = {"requests": {"cpu": "1", "memory": "512Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}}
    container = {
        "name": "kafka", "image": "localhost/kafka:1", "securityContext": SECURITY, "resources": resources,
        "volumeMounts": [{"name": "config", "mountPath": "/etc/kafka"}, {"name": "data", "mountPath": "/data"}],
    }
    template = {"metadata": {"labels": LABELS}, "spec": {
        "containers": [container], "volumes": [{"name": "config", "configMap": {"name": "kafka-config"}}]}}
    claim = {"metadata": {"name": "data"},
             "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    apply(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "all"},
         "spec": {"hard": {"limits.cpu": "2", "limits.memory": "1Gi"}}},
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "all"},
         "spec": {"limits": [{"type": "Container", "min": {"memory": "256Mi"}}]}},
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "kafka"}, "spec": {
            "serviceName": "kafka", "replicas": 2, "podManagementPolicy": "Parallel", "selector": {"matchLabels": LABELS},
            "template": template, "volumeClaimTemplates": [claim]}},
    )
    before = {name: pod.uid for name, pod in (await pods_of(workloads)).items()}
    found = await workloads.stateful_set("kafka")
    assert found is not None
    brokers = BrokerSet.model_validate({"name": "kafka"})
    await workloads.patch("apps/v1", "StatefulSet", "kafka", patch(found, brokers))
    ours = await workloads.stateful_set("kafka")
    assert ours is not None
    assert is_ours(ours, brokers)
    assert {name: pod.uid for name, pod in ours.pods.items()} == before, "a pod was replaced"
    await workloads.delete_pod("kafka-0", ours.pods["kafka-0"].uid)
    for _ in Patience(30).looks():
        pods = await pods_of(workloads)
        if pods["kafka-0"].uid != before["kafka-0"]:
            break
        await asyncio.sleep(0.1)
    pod = pods["kafka-0"]
    assert pod.uid != before["kafka-0"], "the new pod is not admitted"
    assert pod.disks is None
    manifest = await server.get(server.path("v1", "Pod", "kafka-0"))
    assert manifest["status"]["qosClass"] == "Guaranteed", "as before"
    await run_as_kubelet(server, pod)

    async def told(name: str, code: int, message: str) -> Pod:
        """The pod, when one of our init containers has ended with these words."""
        state = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", "message": message}}
        ended = {"name": name, "image": "", "imageID": "", "ready": code == 0, "restartCount": 0, "state": state}
        path = server.path("v1", "Pod", "kafka-0", "status")
        await server.json_patch(path, [{"op": "add", "path": "/status/initContainerStatuses", "value": [ended]}])
        return (await pods_of(workloads))["kafka-0"]

    pod = await told("switchover-disks", 0, "disks 1 1 7 0 1\nnameless /data/orders-0\n")
    assert pod.disks == DiskReport(1, 7, 0, 1, (), ("/data/orders-0",))
    assert pod.trouble == ""
    pod = await told(KEEPER, 78, "switchover: the image has no /opt/kafka/bin/kafka-server-start.sh; it has: none")
    assert pod.trouble == (f"container {KEEPER} ended with 78: Error: switchover: the image has no"
                           " /opt/kafka/bin/kafka-server-start.sh; it has: none")


async def test_apply_takes_over_what_a_user_applied(server: ApiServer, workloads: KubernetesWorkloads,
                                                    apply: Callable[..., None]) -> None:
    apply(budget("ours", {"matchLabels": LABELS}))
    await workloads.apply(budget("ours", {"matchLabels": LABELS}, unavailable=2))
    found = await server.get(server.path("policy/v1", "PodDisruptionBudget", "ours"))
    assert found["spec"]["maxUnavailable"] == 2
    with refused("kind CronJob"):
        await workloads.apply({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "x"}})
    await workloads.delete_object("policy/v1", "PodDisruptionBudget", "ours")
    await workloads.delete_object("policy/v1", "PodDisruptionBudget", "ours")


async def test_what_is_provided_is_never_somebody_elses(
        server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]) -> None:
    path, theirs = server.path("policy/v1", "PodDisruptionBudget", "theirs"), budget("theirs", {"matchLabels": LABELS})
    mine, late = ({**each, "metadata": {**each["metadata"], "labels": LABELS}} for each in (
        budget("mine", {"matchLabels": LABELS}), budget("late", {"matchLabels": LABELS})))
    apply(theirs)
    taken = {**mine, "metadata": {**mine["metadata"], "name": "theirs"}, "spec": {"maxUnavailable": 0}}
    for _ in range(2):                                                     # the second time the first is there already
        with pytest.raises(NameTaken, match="PodDisruptionBudget theirs exists and is not Switchover's"):
            await workloads.provide((mine, taken, late))
    assert (await server.get(path))["spec"]["maxUnavailable"] == theirs["spec"]["maxUnavailable"]
    assert await workloads.manifest("policy/v1", "PodDisruptionBudget", "late") is None, "it may need the one before"
    for name in ("mine", "theirs"):
        await workloads.delete_object("policy/v1", "PodDisruptionBudget", name, labels=LABELS)
    assert await workloads.manifest("policy/v1", "PodDisruptionBudget", "mine") is None
    assert await workloads.manifest("policy/v1", "PodDisruptionBudget", "theirs") is not None


async def test_what_came_after_the_last_reading_is_not_deleted(
    server: ApiServer, workloads: KubernetesWorkloads, clock: Clock
) -> None:
    await workloads.write_node_files("files", {"a": "1"}, {})
    await workloads.node_files("files")
    another = KubernetesWorkloads(server, clock)
    await another.delete_object("v1", "Secret", "files")
    await another.write_node_files("files", {"a": "2"}, {})
    await workloads.delete_object("v1", "Secret", "files")
    assert await another.node_files("files") == {"a": "2"}
    await workloads.delete_object("v1", "Secret", "files")                 # read anew: this is the one that is meant
    assert await another.node_files("files") == {}


# --- pods -------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("stateful_set")
async def test_an_eviction_against_the_budget_carries_its_words(
    server: ApiServer, workloads: KubernetesWorkloads
) -> None:
    pods = await pods_of(workloads)
    for pod in pods.values():
        await run_as_kubelet(server, pod)
    await allowed_disruptions(server, 1)
    await workloads.evict("kafka-0", pods["kafka-0"].uid)
    with refused("budget", "kafka"):
        await workloads.evict("kafka-1", pods["kafka-1"].uid)


@pytest.mark.usefixtures("stateful_set")
async def test_an_eviction_of_a_pod_that_is_gone_is_done(server: ApiServer, workloads: KubernetesWorkloads) -> None:
    """Its successor stays. (The API server counts such an eviction against the budget all the same, for a while.)"""
    pods = await pods_of(workloads)
    for pod in pods.values():
        await run_as_kubelet(server, pod)
    await allowed_disruptions(server, 1)
    await workloads.evict("kafka-0", "another")
    assert (await pods_of(workloads))["kafka-0"].uid == pods["kafka-0"].uid
    await workloads.evict("kafka-9", pods["kafka-0"].uid)


@pytest.mark.usefixtures("stateful_set")
async def test_two_budgets_on_a_pod_are_refused_in_words(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    apply(budget("second", {"matchLabels": LABELS}))
    pods = await pods_of(workloads)
    await run_as_kubelet(server, pods["kafka-0"])
    with refused("more than one PodDisruptionBudget"):
        await workloads.evict("kafka-0", pods["kafka-0"].uid)


@pytest.mark.usefixtures("stateful_set")
async def test_a_broken_pod_is_deleted_by_its_uid(workloads: KubernetesWorkloads) -> None:
    pods = await pods_of(workloads)
    await workloads.delete_pod("kafka-0", "another")
    assert (await pods_of(workloads))["kafka-0"].uid == pods["kafka-0"].uid
    await workloads.delete_pod("kafka-0", pods["kafka-0"].uid)
    for _ in Patience(30).looks():
        found = await workloads.stateful_set("kafka")
        assert found is not None
        if "kafka-0" in found.pods and found.pods["kafka-0"].uid != pods["kafka-0"].uid:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("kafka-0 was not deleted")


async def test_volume_claims_by_label(workloads: KubernetesWorkloads, apply: Callable[..., None]) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    for name, labels in (("data-kafka-0", LABELS), ("data-kafka-1", LABELS), ("other", {"app": "other"})):
        apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "labels": labels},
               "spec": claim})
    assert await workloads.volume_claims(LABELS) == ["data-kafka-0", "data-kafka-1"]


# --- the Lease --------------------------------------------------------------------------------------------------------


async def test_a_lease_has_one_holder_until_it_expires(workloads: KubernetesWorkloads, clock: Clock) -> None:
    assert await workloads.hold_lease("cluster", "a", 15) == "a"
    clock.seconds += 10
    assert await workloads.hold_lease("cluster", "a", 15) == "a"         # renewed
    assert await workloads.hold_lease("cluster", "b", 15) == "a"
    clock.seconds += 14.9
    assert await workloads.hold_lease("cluster", "b", 15) == "a"
    clock.seconds += 0.2
    assert await workloads.hold_lease("cluster", "b", 15) == "b"
    await workloads.release_lease("cluster", "a")                        # not its own any more
    assert await workloads.hold_lease("cluster", "a", 15) == "b"
    await workloads.release_lease("cluster", "b")
    assert await workloads.hold_lease("cluster", "a", 15) == "a"


async def test_a_lease_is_held_without_a_word_while_it_is_ours_and_not_due(
    workloads: KubernetesWorkloads, clock: Clock
) -> None:
    assert not await workloads.holds_lease("cluster", "u/ns/one", LOOKING_SECONDS), "there is none"
    await workloads.hold_lease("cluster", "u/ns/one", LOOKING_SECONDS)
    assert await workloads.holds_lease("cluster", "u/ns/one", LOOKING_SECONDS)
    assert await workloads.holds_lease("cluster", "u/ns/two", LOOKING_SECONDS), "who only looks lets the next operator in"
    assert not await workloads.holds_lease("cluster", "v/ns/one", LOOKING_SECONDS)
    assert not await workloads.holds_lease("cluster", "u/ns/one", ACTING_SECONDS)
    clock.seconds += LOOKING_SECONDS / 2
    assert not await workloads.holds_lease("cluster", "u/ns/one", LOOKING_SECONDS), "it is due"


async def test_one_that_was_left_or_whose_operator_acts_no_more_is_taken_at_once(
    workloads: KubernetesWorkloads, clock: Clock
) -> None:
    successor = KubernetesWorkloads(workloads._server, clock, {"ns/one"})
    assert await workloads.hold_lease("cluster", "u/ns/one", ACTING_SECONDS) == "u/ns/one"
    assert await workloads.hold_lease("cluster", "u/ns/two", ACTING_SECONDS) == "u/ns/one"
    assert await successor.hold_lease("cluster", "v/ns/two", ACTING_SECONDS) == "u/ns/one"
    assert await successor.hold_lease("cluster", "u/ns/two", ACTING_SECONDS) == "u/ns/two"
    assert await workloads.hold_lease("cluster", "u/ns/three", ACTING_SECONDS) == "u/ns/two", "it is written, fresh or not"
    assert await workloads.hold_lease("cluster", "u/ns/two", LEFT_SECONDS) == "u/ns/two"
    assert await workloads.hold_lease("cluster", "v/ns/three", ACTING_SECONDS) == "u/ns/two"
    assert await workloads.hold_lease("cluster", "u/ns/three", ACTING_SECONDS) == "u/ns/three"


@pytest.mark.parametrize("hour", [-3600, 3600])
async def test_the_clock_of_who_holds_a_lease_may_be_any(workloads: KubernetesWorkloads, clock: Clock, hour: float) -> None:
    """One that is behind held nothing, one that is ahead held it for an hour after its death."""
    theirs = Clock(1_790_000_000.25)
    theirs.seconds += hour
    other = KubernetesWorkloads(workloads._server, theirs)
    assert await other.hold_lease("cluster", "a", 15) == "a"
    assert await workloads.hold_lease("cluster", "b", 15) == "a"
    clock.seconds += 14.9
    assert await workloads.hold_lease("cluster", "b", 15) == "a"
    clock.seconds += 0.2
    assert await workloads.hold_lease("cluster", "b", 15) == "b"


async def test_of_many_who_want_a_lease_at_once_one_gets_it(workloads: KubernetesWorkloads, clock: Clock) -> None:
    for _ in range(3):                                                   # created, then taken over twice
        names = [f"operator-{n}" for n in range(8)]
        told = await asyncio.gather(*(workloads.hold_lease("cluster", name, 15) for name in names))
        assert sum(name == holder for name, holder in zip(names, told, strict=True)) == 1
        await workloads.hold_lease("cluster", "who looks on", 15)
        clock.seconds += 60


# --- the resource -----------------------------------------------------------------------------------------------------


@pytest.fixture
def resource(apply: Callable[..., None], crds: object) -> str:
    example = next(each for each in documented() if each["kind"] == "KafkaMigration")
    apply(example)
    return str(example["metadata"]["name"])


async def test_a_record_replaces_the_whole_status_of_what_was_read(
    migrations: KubernetesMigrations, resource: str
) -> None:
    read = await migrations.get(resource)
    assert read is not None
    uid, version = read["metadata"]["uid"], read["metadata"]["resourceVersion"]
    first = {"phase": "Running", "planHash": "7f3a5c21", "observedGeneration": 1}
    newer = await migrations.record(resource, uid, version, first)
    with pytest.raises(Fenced):
        await migrations.record(resource, uid, version, {"phase": "Stalled"})
    with pytest.raises(Fenced):
        await migrations.record(resource, "another", newer, {"phase": "Stalled"})
    await migrations.record(resource, uid, newer, {"phase": "Succeeded"})
    found = await migrations.get(resource)
    assert found is not None
    assert found["status"]["phase"] == "Succeeded"
    assert "planHash" not in found["status"]
    with pytest.raises(Fenced):
        await migrations.record("nothing", uid, newer, {})


async def test_a_status_that_the_schema_refuses_is_no_fence(migrations: KubernetesMigrations, resource: str) -> None:
    read = await migrations.get(resource)
    assert read is not None
    meta = read["metadata"]
    with refused("phase"):
        await migrations.record(resource, meta["uid"], meta["resourceVersion"], {"phase": "Dancing"})


async def test_the_finalizer_holds_and_lets_go(
    migrations: KubernetesMigrations, resource: str, kubectl: Kubectl, namespace: str
) -> None:
    for _ in range(2):
        assert await migrations.set_finalizer(resource, FINALIZER, True)
    kubectl("-n", namespace, "delete", "kafkamigration", resource, "--wait=false")
    assert not await migrations.set_finalizer(resource, "switchover.dev/another", True)
    found = await migrations.get(resource)
    assert found is not None
    assert found["metadata"]["finalizers"] == [FINALIZER]
    await migrations.set_finalizer(resource, FINALIZER, False)
    assert await migrations.get(resource) is None
    assert not await migrations.set_finalizer(resource, FINALIZER, False)


async def test_an_announcement_is_an_event_on_the_resource(
    migrations: KubernetesMigrations, resource: str, kubectl: Kubectl, namespace: str
) -> None:
    read = await migrations.get(resource)
    assert read is not None
    await migrations.announce(resource, read["metadata"]["uid"], "StepStarted", "é" * 2000, warning=False)
    described = kubectl("-n", namespace, "describe", "kafkamigration", resource).stdout
    assert "StepStarted" in described
    assert "switchover" in described


# --- rights and reach -------------------------------------------------------------------------------------------------


@pytest.fixture
def changed_kubeconfig(kubeconfig: Path, tmp_path: Path) -> Callable[[Callable[[dict[str, Any]], None]], str]:
    """The administrator's kubeconfig with a change, as a file of its own."""

    def changed(change: Callable[[dict[str, Any]], None]) -> str:
        settings = yaml.safe_load(kubeconfig.read_text())
        change(settings)
        own = tmp_path / "kubeconfig"
        own.write_text(yaml.safe_dump(settings))
        return str(own)

    return changed


async def test_what_is_forbidden_is_refused_with_verb_and_resource(
    changed_kubeconfig: Callable[..., str], namespace: str, clock: Clock, kubectl: Kubectl, apply: Callable[..., None]
) -> None:
    apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody"}})
    token = kubectl("-n", namespace, "create", "token", "nobody").stdout.strip()

    def as_nobody(settings: dict[str, Any]) -> None:
        settings["users"] = [{"name": user["name"], "user": {"token": token}} for user in settings["users"]]

    server = await connect(namespace, changed_kubeconfig(as_nobody))
    try:
        workloads = KubernetesWorkloads(server, clock)
        with refused("get or list", f"statefulsets kafka in namespace {namespace}", "Role"):
            await workloads.stateful_set("kafka")
        with refused("create", f"secrets in namespace {namespace}"):
            await workloads.write_node_files("files", {"kafka-0": "canary-7c1d"}, {})
    finally:
        await server.close()


async def test_a_server_that_is_not_there_is_unreachable(changed_kubeconfig: Callable[..., str], clock: Clock) -> None:
    def elsewhere(settings: dict[str, Any]) -> None:
        for cluster in settings["clusters"]:
            cluster["cluster"]["server"] = "https://127.0.0.1:1"

    server = await connect("default", changed_kubeconfig(elsewhere))
    try:
        with pytest.raises(Unreachable, match="cannot be reached"):
            await KubernetesWorkloads(server, clock).stateful_set("kafka")
    finally:
        await server.close()


async def test_credentials_that_cannot_be_read_are_refused_in_words(tmp_path: Path) -> None:
    with refused("kubeconfig", "nothing"):
        await connect("default", str(tmp_path / "nothing"))
    with refused("service account"):
        await connect("default")
