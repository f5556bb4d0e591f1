"""Preflight where ZooKeeper has very many topics."""

import asyncio
from typing import Any

import pytest

from fakes.kafka_ports import SimulatedZooKeeper
from simulation.migration_world import MigrationWorld
from switchover.cluster.observe.observer import Observer
from switchover.zookeeper.nodes import ZooKeeperTopics


def test_no_pass_waits_until_all_topics_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    world = MigrationWorld(monkeypatch)
    world.want("Planned")
    took: list[float] = []
    topics, see = SimulatedZooKeeper.topics, Observer.see

    async def slow(zookeeper: SimulatedZooKeeper) -> ZooKeeperTopics:
        await asyncio.sleep(10)
        return await topics(zookeeper)

    async def timed(*arguments: Any, **how: Any) -> Any:
        begun = world.timeline.now()
        found = await see(*arguments, **how)
        took.append(world.timeline.now() - begun)
        return found

    def unread() -> list[str]:
        return [each["gate"] for each in world.status.get("waitingFor", ()) if each["message"].endswith("being read")]

    monkeypatch.setattr(SimulatedZooKeeper, "topics", slow)
    monkeypatch.setattr(Observer, "see", timed)
    assert world.live(lambda: bool(world.status))
    assert unread() == ["Membership, Topics, TopicsSeen, TopicIds"]
    begun = world.timeline.now()
    assert world.live(lambda: not unread(), limit=30)
    assert world.live(lambda: world.timeline.now() > begun + 120)
    assert len(took) > 10
    assert max(took) <= 2
