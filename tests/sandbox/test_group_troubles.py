"""Consumer groups in trouble: real members in real pods on Kafka 4.4, one trouble after the other under traffic.

`orders` (a Deployment with an autoscaler) goes through its stories in the order of this file; beside the first of them
`payments` (static members in a StatefulSet) go there online and back offline. At the end the oracle judges all of it.
"""

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from demo import migration
from demo.cluster import Cluster, CommandFailed
from demo.diagnostics import collect
from demo_groups import histories, world
from demo_groups.follow import Told, follow
from demo_groups.stories import TURNS_BACK, Story, workload
from history.report import Report
from patience import Patience
from sandbox.group_troubles import (
    AUTOSCALER,
    ORDERS,
    Autoscaled,
    ByHand,
    Flapping,
    Killer,
    LetGo,
    Resource,
    TurnedBack,
)
from sandbox.operator_killed import left_behind

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

IMAGES = [image for image in world.images() if "java" not in image]
"""No member is in Java."""
OUTPUT = Path(__file__).parents[2] / "build" / "group-troubles"
PAYMENTS = "statefulset/payments"
CLASSIC, CONSUMER = {"GROUP_PROTOCOL": "classic"}, {"GROUP_PROTOCOL": "consumer"}
ROLLOUT = {"steps": [{"pods": 2, "bakeSeconds": 5}, {"pods": 4, "bakeSeconds": 5}]}

FLAPPING = Story(
    "flappingCanary", "a canary whose pods are killed again and again", "orders",
    {"protocol": {"to": "Consumer"}, **TURNS_BACK, "workloads": [workload("orders", CONSUMER)]},
    end="RolledBack", because="NewPodRestarts")
TURNED = Story(
    "turnedBack", "taken back in the middle of the rollout", "orders",
    {"protocol": {"to": "Consumer"}, "workloads": [workload("orders", CONSUMER)],
     "rollout": {"steps": [{"pods": 2, "bakeSeconds": 5}, {"pods": 1, "bakeSeconds": 5}]}},
    end="RolledBack")
BRIDGE = Story(
    "bridgeFirst", "over a bridge, with a member that somebody starts by hand", "orders",
    {"protocol": {"to": "Consumer"}, "rollout": ROLLOUT,
     "workloads": [workload("orders", CONSUMER | {"COMMIT_INTERVAL": "2"}, bridge={"COMMIT_INTERVAL": "2"})]},
    end="Succeeded", because="ForeignMembers")
OFFLINE = Story(
    "offline", "all members stopped, and started with the classic protocol", "orders",
    {"protocol": {"to": "Classic", "strategy": "Offline"}, "workloads": [workload("orders", CLASSIC)]},
    end="Succeeded")
COORDINATORS = Story(
    "coordinatorsKilled", "the broker that coordinates the group is killed in each step", "orders",
    {"protocol": {"to": "Consumer"}, "rollout": ROLLOUT, "soakSeconds": 20,
     "workloads": [workload("orders", CONSUMER)]},
    end="Succeeded")
STATIC = Story(
    "staticMembers", "static members in a StatefulSet, by its partition", "payments",
    {"protocol": {"to": "Consumer"}, "workloads": [workload("payments", CONSUMER, kind="StatefulSet")]},
    end="Succeeded")
STATIC_BACK = Story(
    "staticOffline", "the same back to the classic protocol, all of them stopped in between", "payments",
    {"protocol": {"to": "Classic", "strategy": "Offline"},
     "workloads": [workload("payments", CLASSIC, kind="StatefulSet")]},
    end="Succeeded")

WITNESS = """
import json, sys
from confluent_kafka.admin import AdminClient
admin = AdminClient({"bootstrap.servers": "kafka:9092"})
[told] = admin.describe_consumer_groups([sys.argv[1]]).values()
found = told.result(10)
print(json.dumps([found.type.name, found.state.name, len(found.members)]))
"""


@dataclass
class Scene:
    """One cluster in trouble, and what was seen of each story."""

    cluster: Cluster
    told: dict[str, Told] = field(default_factory=dict)

    def tell(self, story: Story, *troubles: Callable[[Resource], None]) -> Told:
        def each(resource: Resource) -> None:
            for trouble in troubles:
                trouble(resource)

        try:
            told = self.told[story.name] = follow(self.cluster, story, print, each)
        except BaseException:
            collect(self.cluster, OUTPUT / "diagnostics" / story.name)
            raise
        print(f"{story.name}: {told.end - told.start:.0f} s, waited for {', '.join(sorted(told.reasons))}")
        return told

    def specs(self, *objects: str) -> list[dict[str, Any]]:
        return [self.cluster.get(each)["spec"] for each in objects]

    def becomes(self, group: str, *wanted: object) -> None:
        """What Kafka's own client tells of the group: type, state and number of members."""
        patience, told = Patience(90), None
        while told != [*wanted]:
            assert not patience.over, f"group {group} is {told}, not {wanted}"
            witness = ("exec", "deployment/orders-producer", "--", "python", "-c", WITNESS, group)
            with contextlib.suppress(CommandFailed):            # while the coordinator moves
                told = json.loads(self.cluster.kubectl(*witness))


@pytest.fixture(scope="module")
def scene(cluster: Cluster) -> Scene:
    world.remove(cluster)
    world.deploy(cluster, print, world.TROUBLES)
    migration.install_operator(cluster)
    return Scene(cluster)


@dataclass(frozen=True, slots=True)
class Static:
    """A StatefulSet before, between and after its two stories; uids by the pods' names."""

    specs: list[dict[str, Any]]
    pods: list[dict[str, str]]


@pytest.fixture(scope="module")
def static(scene: Scene) -> Iterator[Future[Static]]:
    """`payments` go their way beside the first stories of `orders`."""
    def go() -> Static:
        found = Static([], [])

        def look() -> None:
            found.specs.extend(scene.specs(PAYMENTS))
            found.pods.append({pod["metadata"]["name"]: pod["metadata"]["uid"]
                               for pod in scene.cluster.items("pods", "--selector", "app=payments")})

        look()
        for story, kind in ((STATIC, "CONSUMER"), (STATIC_BACK, "CLASSIC")):
            scene.tell(story)
            scene.becomes("payments", kind, "STABLE", 4)
            look()
        return found

    with ThreadPoolExecutor(1) as beside:
        yield beside.submit(go)


def test_a_canary_that_is_killed_again_and_again_is_taken_back_by_itself(scene: Scene, static: Future[Static]) -> None:
    before, flapping = scene.specs(ORDERS, AUTOSCALER), Flapping(scene.cluster)
    told = scene.tell(FLAPPING, flapping)
    assert flapping.kills >= 2
    assert told.resource["status"]["rollback"]["failure"] == "NewPodRestarts"
    assert scene.specs(ORDERS, AUTOSCALER) == before
    scene.becomes("orders", "CLASSIC", "STABLE", 6)


def test_taken_back_in_the_middle_only_what_had_moved_is_replaced(scene: Scene) -> None:
    before, turned = scene.specs(ORDERS, AUTOSCALER), TurnedBack(scene.cluster)
    scene.tell(TURNED, turned)
    assert len(turned.moved) >= 2
    assert turned.stayed
    after = {pod["metadata"]["uid"] for pod in scene.cluster.items("pods", "--selector", "app=orders")}
    assert turned.stayed <= after, "a pod that had not moved was replaced"
    assert not turned.moved & after
    assert scene.specs(ORDERS, AUTOSCALER) == before
    scene.becomes("orders", "CLASSIC", "STABLE", 6)


def test_over_a_bridge_with_an_autoscaler_a_member_by_hand_and_a_hold_that_is_taken_off(scene: Scene) -> None:
    autoscaler = scene.specs(AUTOSCALER)
    by_hand, autoscaled, let_go = ByHand(scene.cluster), Autoscaled(scene.cluster), LetGo(scene.cluster)
    told = scene.tell(BRIDGE, by_hand, autoscaled, let_go)
    assert let_go.done
    assert "DeploymentNotHeld" in told.reasons
    steps = [record["name"] for record in told.resource["status"]["steps"]]
    assert steps == ["Preflight", "Baseline", "BridgeCanary", "Bridge", "Canary", "Rollout", "Settle", "HandOver"]
    assert "orders-by-hand at " in by_hand.words
    assert autoscaled.seen.pop("Preflight")[0] == 5
    assert autoscaled.seen == dict.fromkeys(steps[2:-1], (1, {"Disabled"}))
    assert scene.specs(AUTOSCALER) == autoscaler
    scene.becomes("orders", "CONSUMER", "STABLE", 6)


def test_a_deployment_offline(scene: Scene) -> None:
    autoscaler, [before] = scene.specs(AUTOSCALER), scene.specs(ORDERS)
    scene.tell(OFFLINE)
    [after] = scene.specs(ORDERS)
    changed = [item for item in after["template"]["spec"]["containers"][0]["env"]
               if item not in before["template"]["spec"]["containers"][0]["env"]]
    assert changed == [{"name": "GROUP_PROTOCOL", "value": "classic"}]
    assert (scene.specs(AUTOSCALER), after["replicas"]) == (autoscaler, 6)
    scene.becomes("orders", "CLASSIC", "STABLE", 6)


def test_static_members_there_by_partition_and_back_offline(scene: Scene, static: Future[Static]) -> None:
    found = static.result()
    before, between, after = found.specs
    assert between["template"] != before["template"]
    assert {**between, "template": before["template"]} == before
    assert after == before
    assert [sorted(pods) for pods in found.pods] == [[f"payments-{ordinal}" for ordinal in range(4)]] * 3
    assert len({uid for pods in found.pods for uid in pods.values()}) == 12
    status = scene.told[STATIC.name].resource["status"]
    assert [record["name"] for record in status["steps"]] == [
        "Preflight", "Baseline", "Canary", "Rollout", "Settle", "HandOver"]
    assert {slot["assigned"] for slot in status["slots"]} == {"Target"}


def test_the_coordinator_is_killed_in_each_step_of_an_upgrade(scene: Scene, static: Future[Static]) -> None:
    wait([static])
    killer = Killer(scene.cluster, ("Canary", "Rollout", "Settle"))
    told = scene.tell(COORDINATORS, killer)
    print(*sorted(killer.words), sep="\n")
    assert tuple(killer.killed) == killer.steps
    assert tuple(killer.followed) == killer.steps, "the status names the broker that took over"
    assert killer.words, "the outage was seen"
    group = told.resource["status"]["group"]
    assert (group["type"], group["classicMembers"], group["members"]) == ("Consumer", 0, 6)
    scene.becomes("orders", "CONSUMER", "STABLE", 6)
    assert left_behind(scene.cluster) == []


@dataclass(frozen=True, slots=True)
class Judged:
    """The oracle's word on each group, and what befell it in each story."""

    reports: dict[str, Report]
    spans: dict[str, histories.Span]


@pytest.fixture(scope="module")
def judged(scene: Scene, static: Future[Static]) -> Judged:
    """After all stories."""
    wait([static])
    world.stop_traffic(scene.cluster)
    directory = OUTPUT / "histories"
    shutil.rmtree(directory, ignore_errors=True)
    histories.collect(scene.cluster, directory)
    reports = {group: histories.judge(directory, group) for group in world.MEMBERS}
    spans = {name: histories.between(directory, told.story.group, told.start, told.end)
             for name, told in scene.told.items()}
    figures = {name: {"seconds": round(told.end - told.start), "deliveries": spans[name].deliveries,
                      "duplicates": spans[name].duplicates, "longestGap": round(spans[name].longest_gap, 1),
                      "shortestGap": round(min(spans[name].gaps.values()), 1), "claims": spans[name].claims,
                      "moves": spans[name].moves} for name, told in scene.told.items()}
    (OUTPUT / "summary.json").write_text(json.dumps(figures, indent=2) + "\n")
    for group, report in reports.items():
        print(*(f"oracle, {group}: {line}" for line in report.lines()), sep="\n")
    print(json.dumps(figures, indent=2))
    return Judged(reports, spans)


def test_the_oracle_finds_no_fault_in_all_of_it(judged: Judged) -> None:
    for report in judged.reports.values():
        assert report.faults == []
        assert report.never_owned == []
        assert report.deliveries > 10_000
        assert not [note for note in report.notes if "not judged" in note], report.notes


def test_no_partition_of_a_static_member_moves_and_each_is_claimed_once_by_its_successor(judged: Judged) -> None:
    assert (judged.spans[STATIC.name].claims, judged.spans[STATIC.name].moves) == (world.PARTITIONS, 0)


@pytest.mark.parametrize("story", [OFFLINE, STATIC_BACK], ids=lambda story: story.name)
def test_offline_nobody_consumes_for_a_while_and_then_everybody_does(judged: Judged, story: Story) -> None:
    gaps = judged.spans[story.name].gaps.values()
    print(f"{story.name}: nobody consumed for {min(gaps):.1f} s, the last partition was without for {max(gaps):.1f} s")
    assert len(gaps) == world.PARTITIONS
    assert 1 < min(gaps) <= max(gaps) < 120
