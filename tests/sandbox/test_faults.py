"""Links, a node and a disk that fail under a migration of real pods: each is named while it lasts, and it goes on by itself.

One story each: `pytest -m long tests/sandbox/test_faults.py -k links` (or node, or disk).
"""

import time
from contextlib import AbstractContextManager

import pytest

from demo import metadata, migration, traffic, world
from demo.cluster import Cluster
from demo.proofs import broker_mode
from patience import until
from sandbox.conftest import STATE
from sandbox.faults import cut_off, fill, node_lost, small_disk
from sandbox.quick import PATIENT, QUICK
from sandbox.test_troubles import CONTROLLERS, Moment, Scene, at
from switchover.cli.display import condition
from switchover.cli.objects import Resource

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

@pytest.fixture
def scene(cluster: Cluster) -> Scene:
    """The demo's cluster, new for each story."""
    world.remove(cluster)
    world.deploy(cluster, print)
    metadata.prepare(cluster)
    migration.install_operator(cluster)
    return Scene(cluster, metadata.tell(cluster))


def waiting(scene: Scene) -> list[str]:
    """What it waits for now, by name, culprit and message."""
    status = scene.cluster.get("kmig", "kafka").get("status", {})
    return [f"{item['reason']} {item.get('subject', '')}: {item['message']}" for item in status.get("waitingFor", ())]


def is_named(scene: Scene, reason: str, culprit: str) -> str:
    """Back once it says this of the culprit, with its words."""
    found: list[str] = []

    def said() -> bool:
        found[:] = [line for line in waiting(scene) if line.startswith(reason) and culprit in line]
        return bool(found)

    until(said, lambda: f"{reason} is said of {culprit}, but {waiting(scene)}", 120, pause=1)
    return found[0]


def goes_on(scene: Scene, *troubles: Moment) -> None:
    """To the end, and nothing is lost."""
    run = scene.follow(scene.manifest(**QUICK | {"gates": PATIENT}), *troubles)
    assert [trouble for trouble in troubles if not trouble.done] == []
    assert condition(run.resource, "Succeeded") == "True"
    world.await_in_sync(scene.cluster)
    assert world.modes(scene.cluster) == dict.fromkeys(world.BROKERS, "KRaft")
    assert metadata.tell(scene.cluster) == scene.before
    assert traffic.verify(scene.cluster).lost == 0


def named(scene: Scene, fault: AbstractContextManager[object], reason: str, culprit: str) -> str:
    """Keep the fault until it is said."""
    with fault:
        return is_named(scene, reason, culprit)


def test_links_between_controllers_brokers_and_zookeeper_are_cut(scene: Scene) -> None:
    def brokers_from_zookeeper() -> str:
        """The others serve on, which questions of ours must not keep them from."""
        [moved] = scene.cluster.get("kmig", "kafka")["status"]["progress"]["batchNodes"]
        others = sorted({*world.BROKERS} - {moved})
        with cut_off(scene.cluster, world.BROKERS, world.SERVERS):
            words = is_named(scene, "BrokerLostZooKeeper", ", ".join(name.rpartition("-")[2] for name in others))
            time.sleep(60)                             # in which each question would have taken a thread
            for other in others:
                assert broker_mode(scene.cluster, other, world.BROKER_PORT) == "ZooKeeper"
        return words

    def controllers_from_zookeeper() -> str:
        """For longer than until the first of them is restarted, which ends nothing."""
        with cut_off(scene.cluster, CONTROLLERS, world.SERVERS):
            words = is_named(scene, "DualWriteStuck", "the leading controller, kafka-controller-")
            until(lambda: scene.cluster.get("kmig", "kafka")["status"]["progress"].get("remediatedNodes"),
                  "a controller is restarted", 180, pause=1)
        return words

    def controllers_from_brokers() -> str:
        cut = cut_off(scene.cluster, CONTROLLERS, world.BROKERS)
        return named(scene, cut, "BrokerFenced", "the controllers fence every broker")

    goes_on(
        scene, Moment(at("EnableMigration", 1), brokers_from_zookeeper), Moment(at("DualWrite"), controllers_from_zookeeper),
        Moment(at("MoveBrokers", 1), controllers_from_brokers))


def test_a_node_is_lost_with_its_pods_and_comes_back(scene: Scene) -> None:
    [operator] = scene.cluster.items("pods", "--selector", migration.OPERATOR)
    nodes = {scene.cluster.get("pod", broker)["spec"]["nodeName"]: broker for broker in world.BROKERS}
    node = max({*nodes} - {"node-0", operator["spec"]["nodeName"]})           # node 0 has the control plane
    broker = nodes[node]

    def another_moves(resource: Resource) -> bool:
        moving = resource.get("status", {}).get("progress", {}).get("batchNodes") or [broker]
        return at("MoveBrokers", 1)(resource) and moving != [broker]

    def lost() -> str:
        return f"{node}: {named(scene, node_lost(STATE, node), 'BrokerFenced', broker)}"

    goes_on(scene, Moment(another_moves, lost))


def test_the_disk_of_a_controller_is_full_until_somebody_makes_room(scene: Scene) -> None:
    def full() -> str:
        pod = next(each for each in CONTROLLERS if each != scene.leader())
        with small_disk(scene.cluster, STATE, pod) as filler:
            scene.cluster.kubectl("wait", "--for=condition=Ready", f"pod/{pod}", "--timeout=180s", timeout=200)
            fill(filler)
            return is_named(scene, "VoterBehind", f"pod {pod}")

    goes_on(scene, Moment(at("DualWrite"), full))
