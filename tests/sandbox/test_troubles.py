"""What can go wrong on real Kafka in real pods, one trouble after the other on one cluster, under traffic.

Every way back ends with the metadata as it was; at the end every acknowledged record is readable.
"""

import contextlib
import json
import shlex
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from demo import metadata, migration, operator_process, rollback, tools, traffic, world
from demo.cluster import Cluster, CommandFailed
from demo.diagnostics import collect
from patience import until
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cli.display import condition
from switchover.cli.objects import Resource

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

OUTPUT = Path(__file__).parents[2] / "build" / "troubles-diagnostics"
CONTROLLERS = ("kafka-controller-0", "kafka-controller-1", "kafka-controller-2")
ZOOKEEPER = "zookeeper:2181"
STRAGGLER = "kafka-2"
STALE = json.dumps({"version": 0, "kraft_controller_id": 3000, "kraft_controller_epoch": 9,
                    "kraft_metadata_offset": 99999, "kraft_metadata_epoch": 9})


@dataclass
class Moment:
    """An observer that acts once, when the migration is there."""

    reached: Callable[[Resource], bool]
    act: Callable[[], object]
    done: float = 0.0

    def __call__(self, resource: Resource, _: str) -> str | None:
        if self.done or not self.reached(resource):
            return None
        self.done = time.time()
        return f"trouble: {self.act() or self.act.__name__}"


def at(step: str, batch: int = 0, direction: str = "Forward", phase: str = "") -> Callable[[Resource], bool]:
    def reached(resource: Resource) -> bool:
        status = resource.get("status", {})
        progress = status.get("progress", {})
        there = progress.get("step") == step and progress.get("direction", "Forward") == direction
        return bool(there and progress.get("batch", 0) >= batch and (not phase or status.get("phase") == phase))

    return reached


@dataclass
class Scene:
    """One cluster in trouble."""

    cluster: Cluster
    before: frozenset[str]
    spec: dict[str, Any] = field(default_factory=dict)

    def manifest(self, **spec: Any) -> str:
        return migration.manifest(desiredState="Running", **spec)

    def follow(self, manifest: str, *observers: migration.Observer,
               ended: Callable[[Resource], bool] | None = None) -> migration.Run:
        run = migration.Run()
        try:
            migration.follow(self.cluster, run, manifest, lambda _: None, print, observers, ended)
        except BaseException:
            collect(self.cluster, OUTPUT)
            raise
        return run

    def want(self, **spec: Any) -> None:
        self.cluster.kubectl("patch", "kmig", "kafka", "--type", "merge", "--patch", json.dumps({"spec": spec}))

    def shell(self, *command: str) -> str:
        """A command of zookeeper-shell."""
        return tools.run(self.cluster, shlex.join(("zookeeper-shell.sh", ZOOKEEPER, *command)))

    def send(self, pod: str, number: signal.Signals) -> None:
        """A new pod takes its time until a container runs."""
        until(lambda: operator_process.kill(operator_process.container_id(self.cluster.get("pod", pod)), number),
              f"{pod} runs a process", pause=0.5)

    def send_all(self, pods: tuple[str, ...], number: signal.Signals) -> None:
        for pod in pods:
            self.send(pod, number)

    def leader(self) -> str:
        """The pod of the controller that leads, by /controller once KRaft holds it, else by what the quorum says."""
        told = tools.run(self.cluster, "kafka-metadata-quorum.sh --bootstrap-controller"
                                       f" {CONTROLLERS[0]}.kafka-controller:9093 describe --status")
        node = int(next(line for line in told.splitlines() if line.startswith("LeaderId")).split()[-1])
        return CONTROLLERS[node - 3000]

    def is_back(self) -> None:
        world.await_in_sync(self.cluster)
        assert world.modes(self.cluster) == dict.fromkeys(world.BROKERS, "ZooKeeper")
        assert rollback.leftovers(self.cluster) == ()
        assert metadata.tell(self.cluster) == self.before

    def acknowledge(self) -> None:
        """The user knows that it turned back by itself."""
        self.want(desiredState="RolledBack")
        until(lambda: not self.cluster.get("kmig", "kafka")["status"]["rollback"].get("failure"),
              "the failure is taken off the record", pause=1)


@pytest.fixture(scope="module")
def scene(cluster: Cluster) -> Iterator[Scene]:
    world.remove(cluster)
    world.deploy(cluster, print)
    metadata.prepare(cluster)
    migration.install_operator(cluster)
    return Scene(cluster, metadata.tell(cluster))


def test_a_leftover_of_an_earlier_attempt_is_refused_before_anything_is_touched(scene: Scene) -> None:
    scene.shell("create", "/migration", STALE)
    generation = scene.cluster.get("statefulset", "kafka")["metadata"]["generation"]
    run = scene.follow(scene.manifest(), ended=lambda resource: condition(resource, "Stalled") == "True")
    assert {finding["code"] for finding in run.resource["status"]["findings"]} >= {"Residue"}
    assert scene.cluster.get("statefulset", "kafka")["metadata"]["generation"] == generation
    assert scene.cluster.items("statefulsets", "--selector", "switchover.dev/migration") == []
    scene.shell("delete", "/migration")


def test_a_stale_node_stops_all_controllers_at_once_and_is_undone(scene: Scene) -> None:
    """Planted behind Preflight: the controllers would delete every topic a few elections later."""
    plant = Moment(at("EnableMigration", phase="AwaitingApproval"), lambda: scene.shell("set", "/migration", STALE))
    run = scene.follow(scene.manifest(holds=["EnableMigration"]), plant, ended=migration.rolled_back)
    assert run.resource["status"]["rollback"]["failure"] == "StaleMigrationNode"
    scene.is_back()
    scene.acknowledge()


def test_a_raft_epoch_above_zookeepers_is_raised_over_on_the_way_back(scene: Scene) -> None:
    """KAFKA-20488: without it elections are aborted although everything looks healthy."""
    def elections() -> str:
        for _ in range(6):
            scene.send(scene.leader(), signal.SIGKILL)
            time.sleep(12)
        return "six elections"

    run = scene.follow(
        scene.manifest(holds=["EnableMigration"]), Moment(at("EnableMigration", phase="AwaitingApproval"), elections),
        Moment(at("MoveBrokers", 2), lambda: scene.want(desiredState="RolledBack")), ended=migration.rolled_back)
    pods = scene.cluster.items("pods", "--selector", migration.OPERATOR)
    told = scene.cluster.kubectl("logs", pods[0]["metadata"]["name"])
    assert "raise /controller_epoch from" in told, run.resource["status"]["history"]
    scene.is_back()


def test_kills_of_everything_on_the_way_cost_time_and_nothing_else(scene: Scene) -> None:
    """A broker in its own roll, the leading controller in every step, ZooKeeper's leader during the copy, a black hole.

    At last, at the hold before Finalize, a broker that comes back in ZooKeeper mode (KAFKA-20960).
    """
    def black_hole() -> str:
        scene.send_all(world.SERVERS, signal.SIGSTOP)
        time.sleep(20)
        scene.send_all(world.SERVERS, signal.SIGCONT)
        return "ZooKeeper answered nothing for 20 s"

    def zookeeper_leader() -> str:
        for server in world.SERVERS:
            script = "exec 3<>/dev/tcp/127.0.0.1/2181; printf srvr >&3; cat <&3"
            if "Mode: leader" in scene.cluster.kubectl("exec", server, "--", "bash", "-c", script):
                scene.send(server, signal.SIGKILL)
                return f"SIGKILL to {server}, ZooKeeper's leader"
        raise AssertionError("no ZooKeeper server leads")

    def kill_leader() -> str:
        leader = scene.leader()
        scene.send(leader, signal.SIGKILL)
        return f"SIGKILL to {leader}, which leads the quorum"

    def moving() -> str:
        nodes = scene.cluster.get("kmig", "kafka")["status"]["progress"]["batchNodes"]
        time.sleep(6)
        scene.send(nodes[0], signal.SIGKILL)
        return f"SIGKILL to {nodes[0]} in its own roll"

    edits: dict[str, str] = {}

    def keep(mode: str) -> Callable[[], None]:
        def kept() -> None:
            edits[mode] = scene.cluster.get("secret", "kafka-switchover")["data"][STRAGGLER]

        return kept

    def put(mode: str) -> None:
        patch = json.dumps({"data": {STRAGGLER: edits[mode]}})
        scene.cluster.kubectl("patch", "secret", "kafka-switchover", "--type", "merge", "--patch", patch)
        scene.cluster.kubectl("delete", "pod", STRAGGLER, timeout=120)

    def straggle() -> str:
        keep(Mode.KRAFT)()
        put(Mode.MIGRATION)

        def is_back() -> bool:
            with contextlib.suppress(CommandFailed):           # while it starts
                return world.modes(scene.cluster)[STRAGGLER] == "ZooKeeper"
            return False

        until(is_back, f"{STRAGGLER} is back in ZooKeeper mode", 120, pause=2)
        return f"{STRAGGLER} is back in ZooKeeper mode"

    def refused(resource: Resource) -> bool:
        told = [(item["reason"], item.get("subject", "")) for item in resource.get("status", {}).get("waitingFor", ())]
        return at("Finalize")(resource) and straggling.done > 0 and any(
            reason == "BrokerOnZooKeeper" and subject in (STRAGGLER, "broker 2", "broker 3") for reason, subject in told)

    straggling = Moment(at("Finalize", phase="AwaitingApproval"), straggle)
    troubles = [
        Moment(at("DualWrite"), keep(Mode.MIGRATION)), straggling, Moment(refused, lambda: put(Mode.KRAFT)),
        Moment(at("EnableMigration", 1), kill_leader), Moment(at("EnableMigration", 2), moving),
        Moment(at("CopyMetadata", 1), zookeeper_leader), Moment(at("DualWrite"), kill_leader),
        Moment(at("MoveBrokers", 1), moving), Moment(at("MoveBrokers", 2), black_hole),
        Moment(at("MoveBrokers", 3), kill_leader), Moment(at("Soak"), kill_leader),
    ]
    spec = scene.cluster.get("kmig", "kafka")["spec"]
    replayed = [item for item in spec.get("approvals", []) if item["name"] == "EnableMigration"]
    assert replayed, "there is no approval of an earlier attempt to replay"
    void: list[str] = []

    def note(resource: Resource, _: str) -> None:
        void.extend(item["reason"] for item in resource.get("status", {}).get("waitingFor", ()))

    gates = {"groups": [{"name": "orders", "maxStallSeconds": 600}]}
    manifest = scene.manifest(holds=["EnableMigration", "Finalize"], gates=gates, approvals=replayed)
    run = scene.follow(manifest, note, *troubles)
    assert [trouble.done for trouble in troubles if not trouble.done] == []
    assert "ApprovalVoid" in void, "an approval of an earlier attempt must not count"
    assert condition(run.resource, "Succeeded") == "True"
    assert world.modes(scene.cluster) == dict.fromkeys(world.BROKERS, "KRaft")


def test_no_acknowledged_record_is_lost_in_all_of_it(scene: Scene) -> None:
    world.await_in_sync(scene.cluster)
    assert metadata.tell(scene.cluster) == scene.before
    found = traffic.verify(scene.cluster)
    assert found.lost == 0
    assert found.acknowledged > 50_000, "the load did not run: nothing is proved"
