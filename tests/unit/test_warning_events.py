"""Why Kubernetes does not make a pod: only events tell, and whoever may not read them is told nothing."""

from dataclasses import replace
from typing import Any

from fakes.clock import Clock
from switchover.answers.errors import Unreachable
from switchover.answers.observed import Unknown
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.status import Verdict as Outcome
from switchover.cluster.coming_up import phase_of
from switchover.cluster.gates.quorum import CONTROLLERS_READY, QUORUM_UP
from switchover.cluster.picture import Picture
from switchover.engine.gate import Gate
from switchover.engine.rollout import Phase
from switchover.kubernetes.client.api_server import ApiServer, Forbidden
from switchover.kubernetes.client.warning_events import HOLDS_SECONDS, WarningEvents
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from unit.pictures import PRE, moment, spoil, spoil_workload, value, with_fact, workload_of
from unit.preflight_pictures import check

QUOTA = ('Create Pod kafka-1 in StatefulSet kafka failed error: pods "kafka-1" is forbidden: exceeded quota: all,'
         " requested: limits.cpu=4, used: limits.cpu=8, limited: limits.cpu=8")
MADE = "Create Pod kafka-1 in StatefulSet kafka successful"


def event(message: str, at: str, kind: str = "Warning", uid: str = "u", reason: str = "FailedCreate",
          **times: Any) -> dict[str, Any]:
    return {"involvedObject": {"uid": uid}, "type": kind, "reason": reason, "message": message,
            **(times or {"lastTimestamp": at})}


class Server(ApiServer):
    """Has a StatefulSet with three pods of which some are missing, and tells these events."""

    def __init__(self, *events: dict[str, Any], error: Exception | None = None, pods: tuple[int, ...] = (0,),
                 phase: str = "Bound") -> None:
        self.namespace, self.told, self.error, self.asked = "kafka", events, error, 0
        self.pods, self.phase = pods, phase

    async def request(self, method: str, path: str, body: Any = None, **parameters: Any) -> dict[str, Any]:
        assert (method, path) == ("GET", "/api/v1/namespaces/kafka/events")
        assert parameters["field_selector"].startswith("involvedObject.uid=")
        self.asked += 1
        if self.error is not None:
            raise self.error
        for each in self.told:
            parameters["take"](each)
        return {}

    async def get(self, path: str) -> dict[str, Any]:
        if "/jobs/" in path:
            metadata = {"name": "audit", "namespace": "kafka", "uid": "u", "creationTimestamp": "2026-11-21T20:00:00Z"}
            return {"metadata": metadata, "spec": {"template": {"spec": {"containers": []}}}}
        return {"metadata": {"name": "kafka", "uid": "u", "resourceVersion": "1", "generation": 1},
                "spec": {"replicas": 3, "selector": {}, "template": {"spec": {"containers": []}}}}

    async def items(self, path: str, labels: Any = None) -> list[dict[str, Any]]:
        match path.rpartition("/")[2]:
            case "persistentvolumeclaims":
                return [{"metadata": {"name": f"data-kafka-{n}", "uid": f"claim-{n}"}, "spec": {},
                         "status": {"phase": self.phase}} for n in range(3)]
            case "pods":
                volumes = [[{"name": "data", "persistentVolumeClaim": {"claimName": f"data-kafka-{n}"}}] for n in self.pods]
                unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no volume"}
                return [{"metadata": {"name": f"kafka-{n}", "uid": f"p{n}",
                                      "ownerReferences": [{"uid": "u", "controller": True}]},
                         "spec": {"containers": [], "volumes": each}, "status": {"conditions": [unscheduled]}}
                        for n, each in zip(self.pods, volumes, strict=True)]
        return []


async def why(*events: dict[str, Any], name: str = "kafka-1") -> str:
    return await WarningEvents(Server(*events), Clock(1.0)).why_not("u", name)


async def test_the_last_event_about_a_pod_tells_why_it_is_not_there() -> None:
    assert await why(event(QUOTA, "2026-11-21T20:00:00Z")) == f"FailedCreate: {QUOTA}"
    assert await why(event(QUOTA, "2026-11-21T20:00:00Z"), event(MADE, "2026-11-21T20:00:01Z", "Normal")) == ""
    assert await why(event(MADE, "2026-11-21T20:00:00Z", "Normal"), event(QUOTA, "2026-11-21T20:00:01Z")) != ""
    assert await why(event(QUOTA, "2026-11-21T20:00:00Z", uid="another")) == ""
    assert await why(event(QUOTA, ""), name="kafka-10") == await why(event(QUOTA, ""), name="afka-1") == ""
    assert await why() == ""


async def test_events_of_both_apis_are_read() -> None:
    newer = event("kafka-1: the series", "", eventTime="2026-11-21T20:00:00.000000Z", lastTimestamp=None,
                  series={"count": 7, "lastObservedTime": "2026-11-21T20:30:00.000000Z"})
    assert await why(event(QUOTA, "2026-11-21T20:10:00Z"), newer) == "FailedCreate: kafka-1: the series"


async def test_what_others_wrote_is_short_on_one_line_and_without_passwords() -> None:
    told = await why(event(f"kafka-1 {'x' * 9000}\npassword=hunter2", "2026-11-21T20:00:00Z"))
    assert len(told) < 700
    assert "\n" not in told
    assert "hunter2" not in told


async def test_who_may_not_read_events_is_told_nothing_and_asks_seldom() -> None:
    for error in (Forbidden("no"), Unreachable("no answer")):
        server, clock = Server(error=error), Clock(1.0)
        told = WarningEvents(server, clock)
        assert [await told.why_not("u", "kafka-1") for _ in range(3)] == ["", "", ""]
        assert server.asked == 1
        clock.seconds += HOLDS_SECONDS
        assert await told.why_not("u", "kafka-1") == ""
        assert server.asked == 2


async def test_nobody_asks_while_every_pod_is_there() -> None:
    server = Server(event(QUOTA, "2026-11-21T20:00:00Z"), pods=(0, 1, 2))
    workloads = KubernetesWorkloads(server, Clock(1.0))
    found = await workloads.stateful_set("kafka")
    assert found is not None
    assert (found.absent, server.asked) == ({}, 0)
    consumers = await workloads.member_workloads([("StatefulSet", "kafka")])
    assert (consumers["kafka"].trouble, server.asked) == ("", 0)         # type: ignore[union-attr]


async def test_a_stateful_set_is_read_with_why_its_pods_are_not_there() -> None:
    workloads = KubernetesWorkloads(Server(event(QUOTA, "2026-11-21T20:00:00Z")), Clock(1.0))
    found = await workloads.stateful_set("kafka")
    assert found is not None
    assert found.absent == {"kafka-1": f"FailedCreate: {QUOTA}", "kafka-2": ""}
    consumers = await workloads.member_workloads([("StatefulSet", "kafka")])
    assert consumers["kafka"].trouble == f"FailedCreate: {QUOTA}"        # type: ignore[union-attr]


async def test_a_claim_that_nobody_provisions_is_told_of_the_pod_that_waits_for_it() -> None:
    failed = event("no room in the pool", "2026-11-21T20:00:00Z", uid="claim-0", reason="ProvisioningFailed")
    found = await KubernetesWorkloads(Server(failed, phase="Pending"), Clock(1.0)).stateful_set("kafka")
    assert found is not None
    assert found.pods["kafka-0"].trouble == (
        "Unschedulable: no volume; claim data-kafka-0: ProvisioningFailed: no room in the pool")
    found = await KubernetesWorkloads(Server(failed), Clock(1.0)).stateful_set("kafka")
    assert found is not None
    assert found.pods["kafka-0"].trouble == "Unschedulable: no volume", "it has its volume"


async def test_a_job_without_a_pod_says_why() -> None:
    refused = event('Error creating: pods "audit-" is forbidden: exceeded quota: all', "2026-11-21T20:00:00Z")
    workloads = KubernetesWorkloads(Server(refused, pods=()), Clock(1.0))
    assert await workloads.job("audit", "of the one on record") is None, "whatever has its name"
    found = await workloads.job("audit", "u")
    assert found is not None
    assert found.detail == (f"it has no pod: FailedCreate: {refused['message']}; "
                            "kubectl --namespace kafka describe job audit says more")


# --- and is told on ---------------------------------------------------------------------------------------------------


def without_pods(**absent: str) -> Picture:
    """The controllers' StatefulSet is there, and none of its pods."""
    picture = moment("ProvisionControllers", Mode.ZOOKEEPER, Mode.MIGRATION_CONTROLLER, state=PRE)
    silent = Unknown("no controller leads")
    answers = {node: silent if node >= 3000 else answer for node, answer in picture.facts.answers.items()}
    for fact, told in (("quorum", silent), ("log", silent), ("answers", answers)):
        picture = with_fact(picture, fact, told)
    controllers = value(picture.facts.kubernetes).controllers
    names = {name: absent.get(name.replace("-", "_"), "") for name in picture.controllers}
    return spoil(picture, "kubernetes", controllers=replace(controllers, pods={}, absent=names))


def told(gate: Gate[Picture], picture: Picture) -> tuple[Outcome, str, str, str]:
    verdict = gate.check(picture)
    return verdict.outcome, verdict.reason, verdict.message, verdict.unblocks


def test_a_controller_that_kubernetes_does_not_make_is_told_with_the_quota() -> None:
    picture = without_pods(kafka_controller_1=f"FailedCreate: {QUOTA}")
    for gate in (QUORUM_UP, CONTROLLERS_READY):
        assert told(gate, picture) == (
            Outcome.UNKNOWN, "ControllerInTrouble",
            f"pod kafka-controller-1 does not exist at this moment: FailedCreate: {QUOTA}; 2 more do not come up",
            "find out why: kubectl --namespace kafka describe statefulset kafka-controller; if spec.controllers must change:"
            " switchover rollback kmig/to-kraft --namespace kafka, change it once that is RolledBack, then switchover retry"
            " kmig/to-kraft --namespace kafka")
        assert told(gate, without_pods())[1:3] == (
            "ControllerComingUp", "pod kafka-controller-0 does not exist at this moment; 2 more do not come up")


def test_a_broker_that_kubernetes_does_not_make_again_is_told_with_the_quota() -> None:
    picture = moment("EnableMigration", (Mode.MIGRATION, Mode.ZOOKEEPER), Mode.MIGRATION_CONTROLLER, ("kafka-0",))
    others = {name: pod for name, pod in workload_of(picture).pods.items() if name != "kafka-0"}
    picture = spoil_workload(picture, pods=others, absent={"kafka-0": "FailedCreate: no room"})
    assert phase_of(picture, "kafka-0", None) == Phase(
        "pod kafka-0 does not exist at this moment: FailedCreate: no room", True,
        "kubectl --namespace kafka describe statefulset kafka")
    waits = check("ObjectsExist", picture)
    assert (waits.reason, waits.message) == (
        "PodsNotReady", "not every pod of StatefulSet kafka is Ready: kafka-0: FailedCreate: no room")
