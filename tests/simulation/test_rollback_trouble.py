"""Trouble on the way back, and trouble that takes a migration back by itself."""

import base64
import random
from itertools import pairwise
from typing import Any

import pytest

from fakes.api_server import Object
from fakes.kafka_ports import SimulatedZooKeeper
from fakes.kafka_world import Kafka
from simulation.migration_world import CANARY, HOW_FAR, NAME, MigrationWorld
from simulation.moments import opened, quiet_for, reasons, to_batch, to_step
from simulation.test_rollback import LONG, assert_as_before, assert_as_never_turned
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster import rollback
from switchover.cluster.door.mount import VOLUME
from switchover.cluster.gates import rollback as back_gates
from switchover.engine.gate import passed
from switchover.metadata import parity
from switchover.metadata.cluster import Hidden, Scram
from switchover.metadata.parity import MigrationState
from switchover.zookeeper.nodes import MigrationNode, ZooKeeperState

CONTROLLERS_REPLACED = ("POST pods kafka-controller", "DELETE pods kafka-controller")


def modes(world: MigrationWorld) -> dict[str, str]:
    return {pod: node.mode for pod, node in world.kafka.nodes.items()}


def again(world: MigrationWorld) -> None:
    """A person takes notice of the rollback, asks for another attempt, and it comes to the end."""
    world.want("RolledBack")
    assert world.live(lambda: not (world.status.get("rollback") or {}).get("failure"))
    assert world.try_again()
    assert_as_never_turned(world)


# --- what takes it back by itself -------------------------------------------------------------------------------------


@HOW_FAR
def test_a_copy_that_throws_is_undone_after_one_restart_of_the_controllers(world: MigrationWorld, whole: bool) -> None:
    """The watchdog; K9 sees that no broker is restarted in the window."""
    world.kafka.copy_fails = True
    world.jury.memory.limits.without_controller = 300.0
    assert world.live(lambda: opened(world, "CopyMetadata") and world.kafka.tree.claimed)
    assert world.live(lambda: world.status["progress"]["direction"] == "Backward")
    restarted = [write.text.split()[2] for write in world.api.writes if write.text.startswith(CONTROLLERS_REPLACED)]
    assert sorted(restarted) == [f"kafka-controller-{n}" for n in range(3)]
    assert world.live(lambda: world.phase == "RolledBack")
    assert (world.status["rollback"] or {}).get("failure") == "ClaimedNotCopied"
    assert_as_before(world)
    world.kafka.copy_fails = False
    if whole:
        again(world)


@pytest.mark.long
def test_controllers_that_merely_hung_are_restarted_and_the_copy_is_repeated(world: MigrationWorld) -> None:
    hung: list[str] = []

    def finished() -> bool:
        if world.kafka.tree.claimed and world.kafka.state is MigrationState.PRE_MIGRATION and not hung:
            hung.extend(pod for pod, node in world.kafka.nodes.items() if not node.is_broker)
            for pod in hung:
                world.kafka.hang(pod)
        return world.finished

    assert world.live(world.approved_and(finished))
    assert len(hung) == 3
    assert world.status["attempt"] == 1
    assert_as_never_turned(world)


@HOW_FAR
def test_a_stale_migration_node_stops_all_controllers_at_once(world: MigrationWorld, whole: bool) -> None:
    """As left behind by an older quorum: the controllers would delete every topic once their epoch has passed its own."""
    to_batch(world, "CopyMetadata", 1)
    world.kafka.tree.migration = MigrationNode(False, 3000, 5000, 4, 7, world.timeline.now())
    world.jury.memory.limits.without_controller = 180.0
    assert world.live(lambda: world.phase == "RolledBack")
    assert (world.status["rollback"] or {}).get("failure") == "StaleMigrationNode"
    assert len(world.kafka.tree.metadata) == len(world.kafka.wanted) > 0
    assert_as_before(world)
    if whole:
        again(world)


@HOW_FAR
def test_a_step_that_fails_is_taken_back_where_that_is_wanted(world: MigrationWorld, whole: bool) -> None:
    """A broker that cannot start on KRaft crashes for ever: it is brought back, and then all the others."""
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"].update(onFailure="RollBack"))
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"]["gates"].update(stepPatienceSeconds=60))
    world.kafka.refuses = {(f"kafka-{n}", Mode.KRAFT) for n in range(3)}
    world.jury.memory.limits.without_leader = 300.0
    assert world.live(lambda: world.phase == "RolledBack")
    assert (world.status["rollback"] or {}).get("failure")
    assert_as_before(world)
    quiet_for(world, 120)
    world.kafka.refuses.clear()
    if whole:
        again(world)


# --- trouble on the way back ------------------------------------------------------------------------------------------


def many_elections(world: MigrationWorld) -> None:
    """In the middle of MoveBrokers the quorum's epoch has run ahead; the last leader rewrote every partition's state."""
    to_batch(world, "MoveBrokers", 2)
    assert world.kafka.log is not None
    world.kafka.log.epoch += 7
    world.kafka.crash(next(pod for pod, node in world.kafka.nodes.items() if node.node_id == world.kafka.leader))
    begin = world.timeline.now()
    assert world.live(lambda: world.timeline.now() > begin + 30)
    assert world.kafka.tree.partition_epoch > world.kafka.tree.controller_epoch


@pytest.mark.long
def test_elections_work_after_many_elections_of_the_quorum(world: MigrationWorld) -> None:
    """KAFKA-20488: the epoch is raised before ZooKeeper rules; without it the next broker that stops has no successor."""
    many_elections(world)
    assert world.roll_back()
    assert [write for write in world.api.writes if "/controller_epoch" in write.text]
    assert_as_before(world)


@pytest.mark.long
def test_passes_go_on_while_many_states_are_read(world: MigrationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    many_elections(world)
    world.kafka.tree.reading_states = 100.0
    looks: list[float] = []
    state = SimulatedZooKeeper.state

    async def seen(zookeeper: SimulatedZooKeeper) -> ZooKeeperState:
        looks.append(world.timeline.now())
        return await state(zookeeper)

    monkeypatch.setattr(SimulatedZooKeeper, "state", seen)
    assert world.roll_back()
    assert max(later - before for before, later in pairwise(looks)) < 30
    assert [write for write in world.api.writes if "/controller_epoch" in write.text]
    assert_as_before(world)


@pytest.mark.long
def test_without_the_raise_the_jury_cries(world: MigrationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    many_elections(world)
    monkeypatch.setattr(rollback, "RaiseEpoch", lambda epoch, expected: rollback.DeleteZNode("/migration", -1, -1))
    monkeypatch.setattr(world.kafka.tree, "delete", forgetful_delete(world))
    world.jury.excused.add("K7")
    with pytest.raises(AssertionError, match=r"K9: .* has no living leader"):
        world.roll_back()


def leaders_evicted(world: MigrationWorld, since: int) -> list[str]:
    return [write.text for write in world.api.writes[since:] if "eviction" in write.text and "controller" in write.text]


@pytest.mark.long
@pytest.mark.parametrize("goes_on", [True, False])
def test_a_leader_that_writes_nothing_to_zookeeper_any_more_is_made_to_hand_on(
        world: MigrationWorld, goes_on: bool) -> None:
    """In the middle of a batch, forward or right after it turned; lag of a group meanwhile restarts nobody."""
    to_batch(world, "MoveBrokers", 2)
    world.jury.memory.limits.dual_write_age = 200.0
    world.kafka.stuck_since, before = world.kafka.leader_since, len(world.api.writes)
    if not goes_on:
        assert world.roll_back()
        assert len(leaders_evicted(world, before)) == 1 + 3, "and each once to stop"
        assert_as_before(world)
        return
    assert world.live(world.approved_and(lambda: world.step == "Soak"))
    assert len(leaders_evicted(world, before)) == 1
    assert world.live(world.approved_and(lambda: world.finished))
    assert world.phase == "Succeeded"


NEW_SALT = {"scram": {("alice", "SCRAM-SHA-512"): Scram(8192, Hidden("of an entry script"))}}


@pytest.mark.parametrize("goes_on", [pytest.param(True, marks=LONG), False])
def test_a_credential_that_an_entry_script_wrote_past_dual_write_is_written_anew_by_another_leader(
        world: MigrationWorld, goes_on: bool) -> None:
    to_batch(world, "MoveBrokers", 2)
    world.kafka.planted, before = dict(NEW_SALT), len(world.api.writes)
    if goes_on:
        assert world.live(world.approved_and(lambda: world.step == "Soak"))
        assert len(leaders_evicted(world, before)) == 1
    else:
        assert world.roll_back()
        assert len(leaders_evicted(world, before)) == 1 + 3, "and each once to stop"
        assert_as_before(world)
    assert world.kafka.planted == {}


@pytest.mark.long
def test_each_leader_tries_it_once(world: MigrationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something writes that credential again and again: the controllers are not restarted for ever."""
    to_batch(world, "MoveBrokers", 2)
    monkeypatch.setattr(Kafka, "planted", property(lambda _: NEW_SALT, lambda _, value: None), raising=False)
    before = len(world.api.writes)
    begin = world.timeline.now()
    assert world.live(lambda: world.timeline.now() > begin + 900)
    assert (world.step, reasons(world)) == ("MoveBrokers", {"MetadataDiffers"})
    evicted = leaders_evicted(world, before)
    assert 1 < len(evicted) == len(set(evicted)) <= 3


def several_changes_in_one_write(world: MigrationWorld) -> None:
    """In dual write a partition changed three times, and ZooKeeper was told of the last alone."""
    to_batch(world, "MoveBrokers", 2)
    world.kafka.tree.behind = {("orders", 0): 2}


@pytest.mark.long
def test_a_leader_that_knows_more_changes_than_zookeeper_counted_is_believed_again(world: MigrationWorld) -> None:
    several_changes_in_one_write(world)
    assert world.roll_back()
    assert [write for write in world.api.writes if "/brokers/topics/orders/partitions/0/state" in write.text]
    assert_as_before(world)


@pytest.mark.long
def test_without_that_the_jury_cries(
        world: MigrationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    several_changes_in_one_write(world)
    monkeypatch.setattr(parity, "behind", lambda zookeeper, kraft: ())
    with pytest.raises(AssertionError, match=r"K7: /controller is deleted while the states of .*orders"):
        world.roll_back()


def forgetful_delete(world: MigrationWorld) -> Any:
    """Deletes whatever it is asked to, both nodes at once."""

    def delete(path: str, version: int, controller_epoch: int) -> None:
        world.kafka.tree.migration = world.kafka.tree.controller = None

    return delete


def test_metadata_that_never_reached_zookeeper_is_not_given_up(world: MigrationWorld) -> None:
    """Changes are made all the time, and dual write is slow: the way back waits until it is through."""
    to_step(world, "Soak")
    world.kafka.write_seconds = (5.0, 20.0)
    world.want("RolledBack")

    def changing() -> bool:
        if opened(world, "DualWrite") and world.kafka.rules == "KRaft":
            world.kafka.change("config orders", f"retention.ms={int(world.timeline.now())}")
        return world.phase == "RolledBack"

    assert world.live(changing)
    assert_as_before(world)


def test_one_record_that_has_not_reached_zookeeper_when_the_controllers_have_stopped_is_not_given_up(
        world: MigrationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accepted at the last moment at which anything is, while ZooKeeper is slow: the controllers are started again."""
    to_step(world, "DualWrite")
    stop, begun = world.kafka._stop, list[int]()

    def stops(pod: str, now: float) -> None:
        running = [node for node in world.kafka.nodes.values() if node.mode == Mode.MIGRATION_CONTROLLER]
        if pod.startswith("kafka-controller") and len(running) == 2 and not begun:
            begun.append(len(world.api.writes))
            world.kafka.write_seconds = (15.0, 15.0)
            assert world.kafka.change("config orders", "retention.ms=1")
        stop(pod, now)

    monkeypatch.setattr(world.kafka, "_stop", stops)
    assert world.roll_back()
    assert len(leaders_evicted(world, begun[0])) > 3, "all of them were started again, and stopped again"
    assert world.kafka.tree.metadata["config orders"] == "retention.ms=1"
    assert_as_before(world)


@pytest.mark.long
def test_a_change_that_is_lost_makes_the_jury_cry(world: MigrationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    to_step(world, "DualWrite")
    monkeypatch.setattr(back_gates, "check_dual_write", lambda picture: passed())
    monkeypatch.setattr(back_gates, "check_parity", lambda picture: passed())
    monkeypatch.setattr(rollback, "is_behind", lambda picture, state: False)
    world.kafka.write_seconds = (600.0, 600.0)
    assert world.kafka.change("config orders", "retention.ms=1")
    with pytest.raises(AssertionError, match="K10: metadata: config orders"):
        world.roll_back()


@pytest.mark.long
@pytest.mark.parametrize("step", ["MoveBrokers", "EnableMigration"])
def test_zookeeper_out_of_sight_stops_the_way_back(world: MigrationWorld, step: str) -> None:
    to_step(world, "Soak")
    world.want("RolledBack")
    assert not world.live(lambda: False, kill_when=lambda: opened(world, step))
    world.kafka.zookeeper_hidden = True
    world.jury.memory.limits.without_controller = 600.0
    assert world.live(lambda: bool(world.status.get("waitingFor")))
    begin = world.timeline.now()
    assert world.live(lambda: world.timeline.now() > begin + 60)
    quiet_for(world, 60)
    assert world.status["waitingFor"]
    world.kafka.zookeeper_hidden = False
    assert world.roll_back()
    assert_as_before(world)


@LONG
@pytest.mark.parametrize("seed", range(4))
def test_two_operators_at_once(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    world = MigrationWorld(monkeypatch, seed)
    to_batch(world, "MoveBrokers", 2)
    world.want("RolledBack")
    assert world.live(lambda: world.phase == "RolledBack", identities=("one", "another"))
    assert_as_before(world)


def standing_still(effect: int, seconds: float) -> Any:
    effects = 0

    def stopped_before(method: str, path: str) -> float:
        nonlocal effects
        kind = path.rpartition("/namespaces/sim/")[2].split("/")[0]
        if kind in ("kafkamigrations", "leases", "events"):
            return 0.0
        effects += 1
        return seconds if effects == effect else 0.0

    return stopped_before


@pytest.mark.long
@pytest.mark.parametrize("effect", range(20, 40))
def test_an_operator_that_slept_through_a_whole_attempt_does_no_harm(world: MigrationWorld, effect: int) -> None:
    """It wakes up in the next attempt, right before an effect of the way back: claims bear the same names again."""
    to_batch(world, "MoveBrokers", 1)
    world.want("RolledBack")
    asked = False

    def until() -> bool:
        nonlocal asked
        if world.phase == "RolledBack" and not asked:
            asked = True
            world.want("Running")
        return asked and world.finished and world.status["attempt"] == 2

    assert world.live(world.approved_and(until), identities=("one", "another"), stopped_before=standing_still(effect, 260.0))
    assert_as_never_turned(world)


@pytest.mark.long
@pytest.mark.parametrize("moment", ["MoveBrokers", "EnableMigration"])
def test_a_template_put_back_on_the_way_back(world: MigrationWorld, moment: str) -> None:
    """A GitOps tool applies the user's own template, strategy and all: no pod is rolled by Kubernetes, and it goes on."""
    to_step(world, "Soak")
    world.want("RolledBack")
    assert not world.live(lambda: False, kill_when=lambda: opened(world, moment) and world.status["progress"]["batch"] > 0)
    before = world.api.objects["statefulsets", "kafka"]
    ours = {"template": before["spec"]["template"]}

    def revert(found: Object) -> None:
        """What an apply leaves that knows every mount but ours."""
        container = found["spec"]["template"]["spec"]["containers"][0]
        container["volumeMounts"] = [mount for mount in container["volumeMounts"] if mount["name"] != VOLUME]

    world.api.edit("statefulsets", "kafka", revert)
    if world.api.objects["statefulsets", "kafka"]["spec"]["template"] != ours["template"]:
        assert world.live(lambda: "RevertedByGitOps" in reasons(world) or world.phase == "RolledBack")
    if world.phase != "RolledBack":
        world.api.edit("statefulsets", "kafka", lambda found: found["spec"].update(ours))
    assert world.roll_back()
    assert_as_before(world)


def test_no_secret_stays_behind(world: MigrationWorld) -> None:
    """The canary stands in the user's own file, and in no Secret of ours; these are gone with everything else."""
    to_batch(world, "MoveBrokers", 2)
    secrets = [base64.b64decode(text).decode() for found in world.api.of("secrets") for text in found["data"].values()]
    assert any(text.startswith("mode B\n") for text in secrets)
    assert not any(CANARY in text for text in secrets)
    assert world.roll_back()
    assert list(world.api.of("secrets")) == []


# --- there and back, and back again -----------------------------------------------------------------------------------


@pytest.mark.long
def test_a_wish_to_go_on_that_comes_too_late_to_turn_is_heard_at_the_end(world: MigrationWorld) -> None:
    to_step(world, "MoveBrokers")
    world.want("RolledBack")
    assert not world.live(lambda: False, kill_when=lambda: opened(world, "EnableMigration"))
    world.want("Running")
    assert world.live(world.approved_and(lambda: world.finished and world.phase == "Succeeded"))
    assert world.status["attempt"] == 2
    assert_as_never_turned(world)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 40))
def test_turning_round_and_round(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Minds are changed at random moments, the operator dies at random, and metadata changes; then it comes to an end."""
    chance = random.Random(seed)
    world = MigrationWorld(monkeypatch, seed, lag=chance.uniform(0.0, 5.0))
    for turn in range(8):
        until = world.timeline.now() + chance.uniform(1.0, 150.0)
        world.live(world.approved_and(lambda until=until: world.timeline.now() > until, only=("MoveBrokers",)))
        world.want(chance.choice(["Running", "RolledBack", "RolledBack", "Paused"]))
        if chance.random() < 0.5:
            world.kafka.change("config orders", f"retention.ms={turn}")
    if chance.random() < 0.5:
        assert world.roll_back()
        assert_as_before(world)
    world.want("Running")
    assert world.live(world.approved_and(lambda: world.finished and world.phase == "Succeeded"))
    assert_as_never_turned(world)


def test_a_claim_that_stays_is_named(world: MigrationWorld) -> None:
    """Somebody else holds it with a finalizer: the way back says so instead of deleting in silence for ever."""
    to_step(world, "EnableMigration")
    name = "data-kafka-controller-1"
    world.kubelet.held = {name}
    world.want("RolledBack")
    assert world.live(lambda: any(name in item["subject"] for item in world.status.get("waitingFor") or ()), limit=300)
    world.kubelet.held = set()
    assert world.roll_back()
    assert_as_before(world)
