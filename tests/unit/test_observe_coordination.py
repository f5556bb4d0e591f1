"""What a pass sees of a group whose coordination moves: the greater offset of both stores, and nothing that is stale."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from switchover.answers.errors import Unreachable
from switchover.answers.observed import Known, Unknown
from switchover.coordination.mode import Mode
from switchover.coordination.registration import Registration
from switchover.coordination.world import Owner, World
from switchover.groups.coordination.mode import RemoveGuards, SetMode
from switchover.groups.facts import Stored
from switchover.groups.observe.observer import GroupClients, GroupObserver
from switchover.groups.picture import Picture
from switchover.kafka.group import GroupState
from switchover.lag.window import Asked, Offsets, Reading, Sweep
from switchover.shared.partition import TopicPartition
from unit.group_pictures import BRIDGED, moment, spec_of, value, workload_of
from unit.test_observe_group import PASS_SECONDS, Kafka

P0, P1, P2 = (TopicPartition("orders", number) for number in range(3))
OLD = "orders_orders-0-1795240855786-0a1b2c3d"
ALONE = World(
    registrations={OLD: Registration({"orders": 1})}, topics={"orders": [0, 1, 2]},
    owners={each: Owner(f"{OLD}-0", 7) for each in (P0, P1, P2)})


class Both(Kafka):
    """Kafka, and ZooKeeper: a group that Kafka knows nothing of but old offsets."""

    def __init__(self, picture: Picture) -> None:
        super().__init__(replace(value(picture.facts.group), members=(), state=GroupState.DEAD))
        self.tree = ALONE
        self.down = False
        self.asked: set[str] = set()
        self.done: list[tuple[object, ...]] = []

    async def clients(self) -> GroupClients:
        return GroupClients(self, self, self)  # type: ignore[arg-type]

    async def sweep(self, asked: Mapping[str, Asked]) -> Sweep:
        self.asked = {topic for each in asked.values() for topic in each.topics}
        at = round(self.time * 1000)
        offsets = {P0: Offsets(at, -1, 100, 0, 100), P1: Offsets(at, 90, 100, 0, 100), P2: Offsets(at, 20, 100, 0, 100)}
        return Sweep(dict.fromkeys(asked, Reading(offsets, frozenset({"orders"}))), {"orders": 3})

    async def world(self, group: str) -> World:
        if self.down:
            raise Unreachable("ZooKeeper is down")
        return self.tree

    async def offsets(self, group: str) -> Mapping[TopicPartition, int]:
        if self.down:
            raise Unreachable("ZooKeeper is down")
        return {P0: 50, P1: 60, P2: 101}

    async def missing_rights(self, group: str = "") -> tuple[str, ...]:
        return ()

    async def coordinated(self) -> Mapping[int, int]:
        return {1: 0}

    async def set_mode(self, *arguments: object) -> None:
        self.done.append(arguments)

    async def remove_guards(self, *arguments: object) -> None:
        self.done.append(arguments)


def observing(**spec: Any) -> tuple[GroupObserver, Both, Picture]:
    picture = moment("Preflight", spec=spec_of(
        workload_of(**BRIDGED), coordination={"to": "Kafka"}, zookeeper={"connect": "zookeeper:2181"}, **spec))
    world = Both(picture)
    return GroupObserver(world, world, world, world), world, picture  # type: ignore[arg-type]


async def seen(observer: GroupObserver, world: Both, picture: Picture, passes: int = 1) -> Picture:
    for _ in range(passes):
        world.time += PASS_SECONDS
        picture = await observer.see(replace(picture, now=world.time), "")
    return picture


async def test_a_group_that_only_zookeeper_knows_is_sampled_by_the_greater_offset():
    picture = await seen(*observing())
    assert value(picture.facts.samples)[-1].offsets == {P0: (50, 100), P1: (90, 100), P2: (100, 100)}
    assert value(picture.facts.stores)[-1].offsets == {
        P0: Stored(50, None, 0, 100), P1: Stored(60, 90, 0, 100), P2: Stored(101, 20, 0, 100)}
    assert value(picture.facts.partitions) == {"orders": 3}
    assert value(picture.facts.lag).group.sole_owners


async def test_its_topics_are_those_of_the_registrations():
    observer, world, picture = observing()
    await seen(observer, world, picture)
    assert world.asked == {"orders"}


async def test_an_owner_that_changes_begins_another_epoch():
    observer, world, picture = observing()
    first = value((await seen(observer, world, picture)).facts.samples)[-1].epoch
    world.tree = replace(ALONE, owners={P0: Owner("x-0", 8)})
    assert value((await seen(observer, world, picture)).facts.samples)[-1].epoch != first


async def test_samples_reach_back_once_something_has_begun():
    observer, world, picture = observing()
    for _ in range(3):
        found = await seen(observer, world, picture)
    assert len(value(found.facts.samples)) == 1, "in Preflight nothing looks back"
    begun = replace(picture, position=replace(picture.position, step="Baseline"))
    for _ in range(3):
        found = await seen(observer, world, begun)
    assert len(value(found.facts.samples)) == 4


async def test_it_is_quiet_only_while_somebody_looked_and_saw_no_old_consumer():
    observer, world, picture = observing()
    assert value((await seen(observer, world, picture)).facts.quiet_since) == world.time
    world.tree = replace(ALONE, registrations={})
    before = world.time
    assert value((await seen(observer, world, picture, 3)).facts.quiet_since) == before
    world.down = True
    assert value((await seen(observer, world, picture)).facts.quiet_since) == world.time


async def test_offsets_that_could_not_be_read_lately_are_unknown():
    observer, world, picture = observing()
    await seen(observer, world, picture, 2)
    world.down = True
    assert isinstance((await seen(observer, world, picture)).facts.stores, Known)
    facts = (await seen(observer, world, picture, 4)).facts
    assert isinstance(facts.stores, Unknown)
    assert facts.zookeeper == Unknown("ZooKeeper is down")


async def test_no_more_readings_of_both_stores_are_kept_than_are_watched():
    observer, world, picture = observing(gates={"quietSeconds": 20})
    stores = value((await seen(observer, world, picture, 30)).facts.stores)
    assert 20 <= stores[-1].at - stores[0].at <= 20 + 2 * PASS_SECONDS


async def test_effects_on_zookeeper_are_performed_there():
    observer, world, _ = observing()
    await observer.perform(SetMode("orders", Mode.KAFKA, 3))
    await observer.perform(RemoveGuards("orders", frozenset({P0})))
    assert world.done == [("orders", Mode.KAFKA, 3), ("orders", frozenset({P0}))]
