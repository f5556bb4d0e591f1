"""Walks along the plans of a group whose coordination moves: there, back from everywhere, and past what may come between."""

import random
from dataclasses import replace

import pytest

import samples
from switchover.coordination.mode import Mode
from switchover.coordination.world import Owner
from switchover.groups.coordination.mode import RemoveGuards, SetMode
from switchover.groups.plan import plan_of
from switchover.shared.partition import TopicPartition
from tales import assert_told
from unit.coordination_walk import CoordinationWalk
from unit.coordination_world import CoordinatedWorld
from unit.group_walk import BACKWARD, FORWARD

D, S = "Deployment", "StatefulSet"
LAST = {"Kafka": "ReplaceWithKafkaConsumers", "ZooKeeper": "ReplaceWithOldConsumers"}
FIRST = "ReplaceWithMigrationEnabled"
ENDS = {"Kafka": "kafka", "ZooKeeper": "old"}
BEGINS = {"Kafka": "old", "ZooKeeper": "kafka"}
each_way = pytest.mark.parametrize("to", ["Kafka", "ZooKeeper"])
each_kind = pytest.mark.parametrize("kind", [D, S])


def walk(to: str = "Kafka", kind: str = D, first: str = "", **spec: object) -> CoordinationWalk:
    return CoordinationWalk(CoordinatedWorld((kind, "orders", 4), first=first or BEGINS[to]), to, kind, **spec)


def at(walked: CoordinationWalk, step: str, batches: int = 0) -> CoordinationWalk:
    """Inside of a step, so many batches on."""
    return walked.until(lambda: walked.position.step == step and walked.position.opened is not None
                        and walked.position.batches_done >= batches)


def passes(walked: CoordinationWalk, count: int) -> CoordinationWalk:
    for _ in range(count):
        walked.step()
    return walked


def check(walked: CoordinationWalk, kind: str, mode: Mode) -> None:
    """Everybody is of that kind, every partition was fetched by one at most at any time, and is by one now."""
    world = walked.paper
    assert {each.kind for each in world.consumers.values()} == {kind}
    assert len(world.consumers) == 4
    assert {world.fetching(each) for each in world.coordinator.partitions} == set(world.consumers)
    assert (world.zookeeper.mode_data or b"zookeeper") == mode.encode()
    check_alone(walked)


def check_alone(walked: CoordinationWalk) -> None:
    assert walked.paper.oracle.broken == []


def modes(walked: CoordinationWalk) -> list[Mode]:
    """What the operator has written, in its order."""
    return [each.mode for each in walked.world.done if isinstance(each, SetMode)]


# --- there and back -----------------------------------------------------------------------------------------------------


@each_kind
@each_way
def test_there(to, kind):
    walked = walk(to, kind).until()
    assert walked.steps == ["Preflight", "Baseline", FIRST, "Toggle", LAST[to], "Settle", "HandOver"]
    assert walked.steps == [step.name for step in plan_of(walked.migration.spec).steps]
    check(walked, ENDS[to], Mode.KAFKA if to == "Kafka" else Mode.ZOOKEEPER)
    assert modes(walked) == ([Mode.KAFKA] if to == "Kafka" else [Mode.KAFKA, Mode.ZOOKEEPER])
    assert walked.fewest >= (4 if kind == D else 3)
    status = walked.migration.status
    assert status.group is not None
    assert (status.phase, status.group.mode, status.group.old_members) == (
        "Succeeded", "kafka" if to == "Kafka" else "zookeeper", 0 if to == "Kafka" else 4)


PLACES = [("Baseline", 0), (FIRST, 0), (FIRST, 1), (FIRST, 2), ("Toggle", 0), ("last", 0), ("last", 1), ("last", 2),
          ("Settle", 0)]


def check_back_and_there_again(to, kind, step, batches):
    walked = at(walk(to, kind), LAST[to] if step == "last" else step, batches)
    walked.wants(desiredState="RolledBack")
    walked.until()
    assert (walked.position.step, walked.position.direction) == ("Preflight", BACKWARD)
    told = walked.paper.zookeeper.mode_data
    check(walked, BEGINS[to], Mode.KAFKA if to == "ZooKeeper" and told else Mode.ZOOKEEPER)
    assert all(not each.made["metadata"].get("annotations") for each in walked.world.workloads.values())
    assert list(walked.world.workloads) == ["orders"]
    walked.wants(desiredState="Running")
    check(walked.until(), ENDS[to], Mode.KAFKA if to == "Kafka" else Mode.ZOOKEEPER)


def test_back_from_some_steps_and_there_again(counted):
    everywhere = [(to, kind, *place) for to in LAST for kind in (D, S) for place in PLACES]
    samples.each(8, everywhere, "places", check_back_and_there_again, counted)


@pytest.mark.long
@pytest.mark.parametrize(("step", "batches"), PLACES)
@each_kind
@each_way
def test_back_from_every_step_and_there_again(to, kind, step, batches):
    check_back_and_there_again(to, kind, step, batches)


@each_way
def test_an_operator_that_is_killed_again_and_again_comes_there(to):
    chance, walked = random.Random(7), walk(to, gates={"stableSamples": 1, "quietSeconds": 0})

    def killed() -> bool:
        if chance.random() < 0.1:
            walked.forget()
        return False

    check(walked.until(killed, passes=2000), ENDS[to], Mode.KAFKA if to == "Kafka" else Mode.ZOOKEEPER)


@pytest.mark.story
def test_a_group_that_is_migration_enabled_already_is_only_toggled_there_and_back():
    walked = walk(first="enabled").tells().until()
    check(walked, "enabled", Mode.KAFKA)
    assert not [each for each in walked.world.done if "replicas" in str(each)]
    world = walked.paper
    back = CoordinationWalk(world, "ZooKeeper").tells()
    back.say("another ConsumerGroupMigration takes it back")
    check(back.until(), "enabled", Mode.ZOOKEEPER)
    assert_told("toggled", "A group of migration-enabled consumers is toggled to Kafka, and by another migration back.",
                [*walked.story, *back.story])


def test_guards_are_removed_on_the_way_back_when_every_member_follows_zookeeper():
    walked = at(walk(), LAST["Kafka"], 1)
    owners = walked.paper.zookeeper.owners
    assert any(owner.session == 0 for owner in owners.values())
    walked.paper.zookeeper.create_owner(TopicPartition("gone", 0), Owner("guard"))
    walked.wants(desiredState="RolledBack")
    walked.until()
    assert [each for each in walked.world.done if isinstance(each, RemoveGuards)]
    assert all(owner.session for owner in owners.values())
    check(walked, "old", Mode.ZOOKEEPER)


# --- the mode is the operator's -----------------------------------------------------------------------------------------


def junk(world: CoordinatedWorld) -> None:
    world.zookeeper.write_mode(b"kafka\n")


def deleted(world: CoordinatedWorld) -> None:
    world.zookeeper.write_mode(None)


def turned(world: CoordinatedWorld) -> None:
    world.zookeeper.write_mode(b"zookeeper" if world.zookeeper.mode_data == b"kafka" else b"kafka")


SPOILERS, SPOILT = (junk, deleted, turned), (FIRST, "Toggle", "last", "Settle")


def check_restored(to, step, spoil):
    walked = at(walk(to), LAST[to] if step == "last" else step)
    passes(walked, 1)
    spoil(walked.paper)
    check(walked.until(), ENDS[to], Mode.KAFKA if to == "Kafka" else Mode.ZOOKEEPER)


def test_a_mode_that_somebody_else_changes_is_restored(counted):
    every = [(to, step, spoil) for to in LAST for step in SPOILT for spoil in SPOILERS]
    samples.each(6, every, "changes", check_restored, counted)


@pytest.mark.long
@pytest.mark.parametrize("spoil", SPOILERS)
@pytest.mark.parametrize("step", SPOILT)
@each_way
def test_a_mode_that_somebody_else_changes_is_restored_in_each_step(to, step, spoil):
    check_restored(to, step, spoil)


@pytest.mark.parametrize("step", ["Toggle", LAST["Kafka"]])
def test_it_is_restored_while_the_group_stands_before_a_hold(step):
    walked = walk(holds=[step])
    walked.until(lambda: walked.position.step == step)
    passes(walked, 5)
    wanted = walked.paper.zookeeper.mode_data or b"zookeeper"
    turned(walked.paper)
    passes(walked, 8)
    assert walked.position.opened is None
    assert walked.paper.zookeeper.mode_data == wanted
    assert "ModeNodeChanged" in walked.reasons or step == "Toggle"
    check_alone(walked)


def test_a_pause_holds_the_toggle_and_not_what_keeps_consumers_apart():
    walked = at(walk(), "Toggle")
    walked.wants(desiredState="Paused")
    passes(walked, 10)
    assert walked.paper.zookeeper.mode_data == b""
    walked.wants(desiredState="Running")
    walked.until(lambda: walked.paper.zookeeper.mode_data != b"")
    walked.wants(desiredState="Paused")
    name = walked.paper.arrives("old")
    passes(walked, 3)
    assert modes(walked) == [Mode.KAFKA, Mode.ZOOKEEPER]
    walked.paper.goes(name)
    check_alone(walked)


def test_the_toggle_waits_for_a_member_that_does_not_follow():
    walked = at(walk(), "Toggle")
    slow = walked.paper.of("enabled")[0]
    slow.slow = 25.0
    passes(walked, 4)
    assert (walked.position.step, walked.paper.zookeeper.mode_data) == ("Toggle", b"kafka")
    assert "ModeNotFollowed" in walked.reasons
    check(walked.until(), "kafka", Mode.KAFKA)


# --- whoever comes too early, or too late -------------------------------------------------------------------------------


@pytest.mark.story
def test_an_old_consumer_that_arrives_takes_the_group_back_until_it_was_quiet_again():
    walked = at(walk(), "Toggle").tells()
    walked.until(lambda: all(each.member.mode is Mode.KAFKA for each in walked.paper.of("enabled")))
    walked.say("an old consumer arrives")
    name = walked.paper.arrives("old")
    passes(walked, 5)
    assert modes(walked) == [Mode.KAFKA, Mode.ZOOKEEPER]
    assert walked.paper.fetching(walked.paper.coordinator.partitions[-1])
    assert any(name in str(owner.thread) for owner in walked.paper.zookeeper.owners.values()), "it has its share"
    walked.say("it goes")
    walked.paper.goes(name)
    passes(walked, 2)
    assert modes(walked)[-1] == Mode.ZOOKEEPER
    check(walked.until(), "kafka", Mode.KAFKA)
    assert modes(walked) == [Mode.KAFKA, Mode.ZOOKEEPER, Mode.KAFKA]
    assert_told("old-consumer-arrives", "An old consumer starts beside a group that Kafka coordinates.", walked.story)


def test_an_old_consumer_beside_kafka_consumers_stops_the_rollout_and_not_the_mode():
    walked = at(walk(), LAST["Kafka"], 1)
    name = walked.paper.arrives("old")
    position = passes(walked, 10).position
    assert (modes(walked), position.batches_done) == ([Mode.KAFKA], walked.position.batches_done)
    assert "OldConsumerArrived" in walked.reasons
    deleted(walked.paper)
    passes(walked, 2)
    assert walked.paper.zookeeper.mode_data == b"kafka"
    walked.paper.goes(name)
    passes(walked, 1)
    check(walked.until(), "kafka", Mode.KAFKA)


def test_a_kafka_consumer_that_comes_too_early_gets_a_share_of_its_own():
    """P9: nothing in ZooKeeper keeps it off; without old consumers the mode gives way (R11)."""
    walked = walk(holds=["Toggle"])
    walked.until(lambda: walked.position.step == "Toggle")
    passes(walked, 5)
    name = walked.paper.arrives("kafka")
    passes(walked, 5)
    assert walked.paper.zookeeper.mode_data == b"kafka"
    assert {walked.paper.fetching(each) for each in walked.paper.coordinator.partitions} == set(walked.paper.consumers)
    check_alone(walked)
    passes(walked, 5)
    assert modes(walked) == [Mode.KAFKA]
    walked.paper.goes(name)
    passes(walked, 5)
    assert walked.paper.zookeeper.mode_data == b"zookeeper"
    assert "KafkaConsumerTooEarly" not in walked.migration.status.group.model_dump_json()


def test_one_beside_old_consumers_is_told_and_no_batch_begins():
    walked = at(walk(), FIRST, 1)
    name = walked.paper.arrives("kafka")
    done = passes(walked, 10).position.batches_done
    assert "KafkaConsumerTooEarly" in walked.reasons
    passes(walked, 10)
    assert walked.position.batches_done == done
    assert modes(walked) == []
    walked.paper.goes(name)
    walked.until()
    assert {each.kind for each in walked.paper.consumers.values()} == {"kafka"}


def test_a_bridge_that_is_no_migration_enabled_consumer_is_stopped_and_taken_back():
    world = CoordinatedWorld((D, "orders", 4))
    walked = CoordinationWalk(world)
    workloads = [{**each, "bridge": {"env": [{"name": "CONSUMER", "value": "kafka"}, {"name": "X", "value": "1"}]}}
                 for each in walked.wanted["workloads"]]
    walked.wants(workloads=workloads)
    while walked.position.direction is FORWARD:
        walked.step()
    assert walked.position.failure == "KafkaConsumerTooEarly"
    broken = len(world.oracle.broken)
    walked.until(lambda: not world.of("kafka"), passes=3)
    assert world.workloads["orders"].controller.sizes[world.workloads["orders"].revision] == 4
    walked.until(lambda: walked.position.finished)
    assert {each.kind for each in world.consumers.values()} == {"old"}
    assert len(world.oracle.broken) <= broken + 6 * 6


@pytest.mark.parametrize("kind", [D, S])
def test_no_way_back_to_zookeeper_while_a_kafka_consumer_is_left(kind):
    walked = at(walk(kind=kind), LAST["Kafka"], 1)
    name = walked.paper.arrives("kafka")
    walked.wants(desiredState="RolledBack")
    walked.until(lambda: walked.position.step == "Toggle")
    passes(walked, 10)
    assert (walked.position.opened, modes(walked)) == (None, [Mode.KAFKA])
    assert "KafkaConsumersLeft" in walked.reasons
    walked.paper.goes(name)
    check(walked.until(), "old", Mode.ZOOKEEPER)


def test_a_member_that_lost_its_session_in_zookeeper_alone_is_no_kafka_consumer():
    """A pod that was killed is in Kafka's group for longer than in ZooKeeper."""
    walked = walk(holds=["Toggle"])
    walked.until(lambda: walked.position.step == "Toggle")
    lost = walked.paper.of("enabled")[0]
    tree = walked.paper.tree

    def without() -> object:
        found = tree()
        return replace(found, **{directory: {name: each for name, each in getattr(found, directory).items()
                                             if name != lost.name} for directory in ("registrations", "acknowledgements")})

    walked.paper.tree = without                        # type: ignore[method-assign, assignment]
    passes(walked, 5)
    assert "KafkaConsumerTooEarly" not in walked.reasons
    assert modes(walked) == []


# --- offsets ------------------------------------------------------------------------------------------------------------


def test_no_old_consumer_starts_where_zookeepers_offsets_are_behind():
    walked = at(walk(), LAST["Kafka"], 1)
    walked.wants(desiredState="RolledBack")
    walked.until(lambda: walked.position.step == FIRST)
    for each in walked.paper.of("enabled"):
        each.znodes.commit = lambda offsets: frozenset()
    passes(walked, 10)
    assert "ZooKeeperOffsetsBehind" in walked.reasons
    assert not walked.paper.of("old")
    for each in walked.paper.of("enabled"):
        del each.znodes.commit
    check(walked.until(), "old", Mode.ZOOKEEPER)


def test_no_kafka_consumer_starts_where_kafka_has_no_offset():
    walked = walk(holds=[LAST["Kafka"]])
    walked.until(lambda: walked.position.step == LAST["Kafka"])
    first = walked.paper.coordinator.partitions[0]
    stored = walked.paper.stored
    walked.paper.stored = lambda: {                     # type: ignore[method-assign]
        each: replace(found, kafka=None if each == first else found.kafka) for each, found in stored().items()}
    walked.wants(holds=[])
    passes(walked, 10)
    assert "KafkaOffsetsBehind" in walked.reasons
    assert not walked.paper.of("kafka")
    walked.paper.stored = stored                        # type: ignore[method-assign]
    check(walked.until(), "kafka", Mode.KAFKA)


# --- and all of it at any time ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(n, marks=pytest.mark.long) for n in range(4, 40))])
def test_whatever_happens_in_whatever_order_nobody_fetches_beside_another_and_it_ends(seed):
    """Whoever changes the mode, old consumers that come and go, an operator that is killed, a user of two minds.

    Nothing keeps an old consumer off a KafkaConsumer's partition that no migration-enabled one has held: none comes then.
    """
    chance = random.Random(seed)
    to, kind = chance.choice(["Kafka", "ZooKeeper"]), chance.choice([D, S])
    walked = walk(to, kind, gates={"stableSamples": 1, "quietSeconds": 3})
    guests: list[str] = []

    def come_and_go() -> None:
        if guests:
            walked.paper.goes(guests.pop())
        else:
            guests.append(walked.paper.arrives("old"))

    def change_of_mind() -> None:
        wants = chance.choice(["Running", "RolledBack", "Paused"])
        walked.wants(desiredState=wants)

    for _ in range(150):
        if walked.position.step not in ("Preflight", "Baseline", "HandOver") and chance.random() < 0.15:
            unguarded = walked.paper.of("kafka") and (to == "ZooKeeper" or not walked.paper.of("enabled"))
            may = [junk, deleted, turned, walked.forget, change_of_mind, *(() if unguarded else (come_and_go,))]
            event = chance.choice(may)
            event(walked.paper) if event in (junk, deleted, turned) else event()
        walked.step()
        check_alone(walked)
    for guest in guests:
        walked.paper.goes(guest)
    walked.wants(desiredState="Running")
    for _ in range(600):
        if walked.ended():
            break
        walked.step()
        check_alone(walked)
    check(walked, ENDS[to], Mode.KAFKA if to == "Kafka" else Mode.ZOOKEEPER)
