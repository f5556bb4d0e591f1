"""A rollback asked for in the middle of the way to Kafka's coordination, at one point after the other, on real old consumers
in real pods under traffic; each time a new attempt follows, the last one to the end. The oracle judges all of it."""

import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from demo import migration
from demo.cluster import Cluster
from demo.diagnostics import collect
from demo_groups import histories, world
from demo_groups.follow import Told, follow
from demo_zkcc import stories
from demo_zkcc.__main__ import CALM_SECONDS, begin, judge
from demo_zkcc.summary import Judged, Summary
from sandbox.operator_killed import Kill, left_behind, operator_restarts

pytestmark = [pytest.mark.long, pytest.mark.timeout(3000)]

IMAGES = list(stories.IMAGES.values())
OUTPUT = Path(__file__).parents[2] / "build" / "back-from-coordination"
MEMBERS, PARTITIONS = 3, 8
WORKLOAD, AUTOSCALER = "deployment/orders", "hpa/orders"
FIRST, LAST = "ReplaceWithMigrationEnabled", "ReplaceWithKafkaConsumers"
FORWARD = replace(stories.FORWARD, spec={**stories.FORWARD.spec, "desiredState": "Running"})
BACK = replace(FORWARD, end="RolledBack")

Resource = Mapping[str, Any]


def _forward_in(resource: Resource, step: str) -> dict[str, Any] | None:
    progress: dict[str, Any] = resource.get("status", {}).get("progress", {})
    return progress if (progress.get("step"), progress.get("direction")) == (step, "Forward") else None


def after_canary_of(step: str) -> Callable[[Resource], bool]:
    def there(resource: Resource) -> bool:
        progress = _forward_in(resource, step)
        return progress is not None and progress["batch"] - bool(progress.get("batchNodes")) > 0

    return there


def in_toggle(resource: Resource) -> bool:
    """The mode is Kafka's already, and nobody has said yet that all is well."""
    return _forward_in(resource, stories.TOGGLE) is not None and resource["status"].get("group", {}).get("mode") == "kafka"


def as_the_first_kafka_consumers_come(resource: Resource) -> bool:
    return bool((_forward_in(resource, LAST) or {}).get("batchNodes"))


POINTS: dict[str, Callable[[Resource], bool]] = {
    "after the canary of migration-enabled consumers": after_canary_of(FIRST),
    "in the toggle": in_toggle,
    "as the first KafkaConsumers come": as_the_first_kafka_consumers_come,
    "after the canary of KafkaConsumers": after_canary_of(LAST),
}
KILLED = "after the canary of KafkaConsumers"
"""The way back in which the operator is killed, as it is to give the group back to ZooKeeper."""

WITNESS = """
import json
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient
zookeeper = KazooClient("zookeeper:2181")
zookeeper.start(20)
group = "/consumers/orders"
mode = zookeeper.exists(f"{group}/migration/mode") and zookeeper.get(f"{group}/migration/mode")
owners = {number: zookeeper.get(f"{group}/owners/orders/{number}")
          for number in zookeeper.get_children(f"{group}/owners/orders")}
acknowledged = zookeeper.exists(f"{group}/migration/ids") and zookeeper.get_children(f"{group}/migration/ids")
admin = AdminClient({"bootstrap.servers": "kafka:9092"})
groups = admin.list_consumer_groups().result(20).valid
print(json.dumps({
    "mode": mode and [mode[0].decode(), mode[1].version], "registered": zookeeper.get_children(f"{group}/ids"),
    "acknowledged": acknowledged or [], "owned": len(owners),
    "guards": [number for number, (_, stat) in owners.items() if not stat.ephemeralOwner],
    "kafka": [each.state.name for each in groups if each.group_id == "orders"]}))
"""


@dataclass
class Rollback:
    """Everything is wanted back at the first change at which the migration is at this point, as a user asks for it."""

    cluster: Cluster
    there: Callable[[Resource], bool]
    asked: bool = False

    def __call__(self, resource: Resource) -> None:
        if not self.asked and self.there(resource):
            self.asked = True
            self.cluster.kubectl("patch", "cgmig", resource["metadata"]["name"], "--type", "merge",
                                 "--patch", json.dumps({"spec": {"desiredState": "RolledBack"}}))


@dataclass
class Found:
    """What stood there at one time: the specs of the workload and its autoscaler, the images that its pods run, and what
    ZooKeeper and Kafka themselves tell of the group."""

    specs: list[dict[str, Any]]
    images: list[str]
    pods: set[str]
    group: dict[str, Any]
    left: list[str]


def find(cluster: Cluster) -> Found:
    pods = [pod for pod in cluster.items("pods", "--selector", "app=orders") if "deletionTimestamp" not in pod["metadata"]]
    return Found(
        specs=[cluster.get(each)["spec"] for each in (WORKLOAD, AUTOSCALER)],
        images=[pod["spec"]["containers"][0]["image"] for pod in pods],
        pods={pod["metadata"]["name"] for pod in pods},
        group=json.loads(cluster.kubectl("exec", "deployment/orders-producer", "--", "python", "-c", WITNESS)),
        left=left_behind(cluster))


@dataclass
class Walk:
    """All attempts on one group. `found` is what each rollback left."""

    before: Found
    killed: int = 0
    told: dict[str, Told] = field(default_factory=dict)
    found: dict[str, Found] = field(default_factory=dict)
    judged: Judged | None = None


@pytest.fixture(scope="module")
def walk(cluster: Cluster) -> Walk:
    try:
        begin(cluster, print, stories.SMALL)
        cluster.kubectl("autoscale", WORKLOAD, f"--min={MEMBERS}", "--max=6", "--cpu=70%")
        migration.install_operator(cluster)
        time.sleep(CALM_SECONDS)
        walked = Walk(find(cluster))
        for point, there in POINTS.items():
            turn(cluster, walked, point, there)
        walked.told["to the end"] = follow(cluster, FORWARD, print)
        walked.judged = judged(cluster, walked)
        return walked
    except BaseException:
        collect(cluster, OUTPUT / "diagnostics")
        raise


def turn(cluster: Cluster, walked: Walk, point: str, there: Callable[[Resource], bool]) -> None:
    """One attempt until it is taken back."""
    back = Rollback(cluster, there)
    kill = Kill(cluster, BACK, lambda progress: point == KILLED and progress.get("direction") == "Backward"
                and progress.get("step") == stories.TOGGLE)

    def each(resource: Resource) -> None:
        back(resource)
        kill(resource)

    print(f"back {point}")
    walked.told[point] = follow(cluster, BACK, print, each)
    walked.found[point] = find(cluster)
    walked.killed += kill.killed


def judged(cluster: Cluster, walked: Walk) -> Judged:
    """The oracle's word on all of it; what befell the group in each attempt is printed and kept."""
    world.stop_traffic(cluster)
    directory = OUTPUT / "histories"
    shutil.rmtree(directory, ignore_errors=True)
    histories.collect(cluster, directory)
    found = judge(directory, Summary(told=walked.told), PARTITIONS)
    print(*(f"oracle: {line}" for line in found.report.lines()), sep="\n")
    figures = {point: {"seconds": round(told.end - told.start), "longestGap": round(found.spans[point].longest_gap, 2),
                       "duplicates": found.spans[point].duplicates} for point, told in walked.told.items()}
    print(json.dumps(figures, indent=2))
    (OUTPUT / "summary.json").write_text(json.dumps(figures, indent=2) + "\n")
    return found


each_point = pytest.mark.parametrize("point", POINTS)


def test_the_old_consumers_are_a_group_to_begin_with(walk: Walk) -> None:
    assert walk.before.images == [stories.OLD] * MEMBERS
    assert len(walk.before.group["registered"]) == MEMBERS
    assert walk.before.group["mode"] is None


@each_point
def test_the_workload_its_autoscaler_and_the_coordination_are_as_they_were(walk: Walk, point: str) -> None:
    told, found = walk.told[point], walk.found[point]
    assert told.phase == "RolledBack"
    assert told.resource["status"]["attempt"] == 1 + [*POINTS].index(point)
    assert told.resource["status"]["rollback"].get("failure", "") == "", "it was asked for"
    assert (found.specs, found.images, found.left) == (walk.before.specs, walk.before.images, [])
    pods_of_members = {each.removeprefix("orders_").rsplit("-", 2)[0] for each in found.group["registered"]}
    assert pods_of_members == found.pods
    assert found.group["acknowledged"] == []
    assert (found.group["guards"], found.group["owned"], found.group["kafka"]) == ([], PARTITIONS, ["EMPTY"])


def test_the_mode_goes_to_kafka_and_back_once_in_each_attempt_that_came_so_far(walk: Walk) -> None:
    """The versions of the znode count its writes."""
    assert [found.group["mode"] for found in walk.found.values()] == [
        None, ["zookeeper", 1], ["zookeeper", 3], ["zookeeper", 5]]


def test_the_operator_was_killed_on_a_way_back_and_never_ended_by_itself(walk: Walk, cluster: Cluster) -> None:
    assert walk.killed > 0
    assert operator_restarts(cluster) == 1


def test_after_all_of_them_it_succeeds(walk: Walk, cluster: Cluster) -> None:
    status = walk.told["to the end"].resource["status"]
    assert (status["phase"], status["attempt"]) == ("Succeeded", 1 + len(POINTS))
    assert left_behind(cluster) == []
    assert cluster.get(AUTOSCALER)["spec"] == walk.before.specs[1]


def test_the_oracle_finds_nothing_that_we_caused(walk: Walk) -> None:
    assert walk.judged is not None
    report = walk.judged.report
    assert walk.judged.caused_by_us == []
    assert report.losses == []
    assert report.rewinds == []
    assert report.never_owned == []
    assert report.repeated == 0
    assert report.deliveries > 10_000
    assert not [note for note in report.notes if "not judged" in note], report.notes
