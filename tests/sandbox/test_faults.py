"""Links, a node and a disk that fail under a migration of real pods: each is named while it lasts, and it goes on by itself.

One story each: `pytest -m long tests/sandbox/test_faults.py -k links` (or node, or disk).
"""

from collections.abc import Callable, Set
from contextlib import AbstractContextManager

import pytest

from demo import metadata, migration, traffic, world
from demo.cluster import Cluster
from patience import until
from sandbox.conftest import STATE
from sandbox.faults import cut_off, fill, node_lost, small_disk
from sandbox.quick import QUICK
from sandbox.test_troubles import CONTROLLERS, Moment, Scene, at
from switchover.cli.tree import condition

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

BROKER_GONE = {"BrokerSilent", "BrokerFenced", "BrokersUnknown", "BrokersOutOfReach", "OutOfSync", "WouldLoseInSyncReplicas",
               "NoWitness", "NodeUnknown", "NotRegistered", "ObserverBehind", "PodComingUp", "PodInTrouble", "NodeCordoned"}
CONTROLLER_GONE = {"ControllerSilent", "ControllerInTrouble", "ControllerComingUp", "VoterBehind", "QuorumUnknown",
                   "MetadataLogUnknown"}
DUAL_WRITE_STANDS = {"DualWriteStuck", "DualWriteBehind", "DualWriteStandsStill", "MetadataDiffers", "ParityUnsettled"}
ZOOKEEPER_GONE = {"ZooKeeperUnknown", "NoController", "ZooKeeperRegistration"}


@pytest.fixture
def scene(cluster: Cluster) -> Scene:
    """The demo's cluster, new for each story."""
    world.remove(cluster)
    world.deploy(cluster, print)
    metadata.prepare(cluster)
    migration.install_operator(cluster)
    return Scene(cluster, metadata.tell(cluster))


def reasons(scene: Scene) -> set[str]:
    """What it waits for now."""
    status = scene.cluster.get("kmig", "kafka").get("status", {})
    return {item["reason"] for item in status.get("waitingFor", ())}


def named(scene: Scene, fault: AbstractContextManager[object], expected: Set[str]) -> str:
    """Keep the fault until it is told by a name of these."""
    with fault:
        until(lambda: reasons(scene) & expected, lambda: f"one of {sorted(expected)} is told, but {reasons(scene)}", 240,
              pause=1)
        told = reasons(scene) & expected
    return f"told by {', '.join(sorted(told))}"


def goes_on(scene: Scene, *troubles: Moment) -> None:
    """To the end, and nothing is lost."""
    gates = {"groups": [{"name": "orders", "maxStallSeconds": 600}]}
    run = scene.follow(scene.manifest(**QUICK, gates=gates), *troubles)
    assert [trouble for trouble in troubles if not trouble.done] == []
    assert condition(run.resource, "Succeeded") == "True"
    world.await_in_sync(scene.cluster)
    assert world.modes(scene.cluster) == dict.fromkeys(world.BROKERS, "KRaft")
    assert metadata.tell(scene.cluster) == scene.before
    assert traffic.verify(scene.cluster).lost == 0


def test_links_between_controllers_brokers_and_zookeeper_are_cut(scene: Scene) -> None:
    def cut(pods: tuple[str, ...], others: tuple[str, ...], expected: Set[str]) -> Callable[[], str]:
        return lambda: named(scene, cut_off(scene.cluster, pods, others), expected)

    goes_on(
        scene,
        Moment(at("DualWrite"), cut(CONTROLLERS, world.SERVERS, DUAL_WRITE_STANDS)),
        Moment(at("MoveBrokers", 1), cut(CONTROLLERS, world.BROKERS, BROKER_GONE | CONTROLLER_GONE)),
        Moment(at("EnableMigration", 1), cut(world.BROKERS, world.SERVERS, BROKER_GONE | ZOOKEEPER_GONE)))


def test_a_node_is_lost_with_its_pods_and_comes_back(scene: Scene) -> None:
    def lost() -> str:
        [operator] = scene.cluster.items("pods", "--selector", migration.OPERATOR)
        used = {scene.cluster.get("pod", broker)["spec"]["nodeName"] for broker in world.BROKERS}
        node = max(used - {"node-0", operator["spec"]["nodeName"]})            # node 0 has the control plane
        return f"{node}: {named(scene, node_lost(STATE, node), BROKER_GONE | CONTROLLER_GONE)}"

    goes_on(scene, Moment(at("MoveBrokers", 1), lost))


def test_the_disk_of_a_controller_is_full_until_somebody_makes_room(scene: Scene) -> None:
    def full() -> str:
        pod = next(each for each in CONTROLLERS if each != scene.leader())
        with small_disk(scene.cluster, STATE, pod) as filler:
            scene.cluster.kubectl("wait", "--for=condition=Ready", f"pod/{pod}", "--timeout=180s", timeout=200)
            fill(filler)
            try:
                until(lambda: reasons(scene) & CONTROLLER_GONE,
                      lambda: f"one of {sorted(CONTROLLER_GONE)} is told, but {reasons(scene)}", 240, pause=1)
                return f"{pod}: told by {', '.join(sorted(reasons(scene) & CONTROLLER_GONE))}"
            finally:
                filler.unlink()

    goes_on(scene, Moment(at("DualWrite"), full))
