"""Preflight where there are very many topics."""

import asyncio
from typing import Any

import pytest

from fakes.kafka_ports import SimulatedNodes, SimulatedZooKeeper
from simulation.migration_world import MigrationWorld
from switchover.cluster.observe.observer import Observer


@pytest.mark.parametrize(("port", "reading", "gates"), [
    (SimulatedZooKeeper, "topics", "Membership, Topics, TopicsSeen, TopicIds"),
    (SimulatedNodes, "topic_ids", "TopicIds"),
])
def test_no_pass_waits_until_all_topics_are_read(
        monkeypatch: pytest.MonkeyPatch, port: type, reading: str, gates: str) -> None:
    world = MigrationWorld(monkeypatch)
    world.want("Planned")
    took: list[float] = []
    read, see = getattr(port, reading), Observer.see

    async def slow(*arguments: Any) -> Any:
        await asyncio.sleep(10)
        return await read(*arguments)

    async def timed(*arguments: Any, **how: Any) -> Any:
        begun = world.timeline.now()
        found = await see(*arguments, **how)
        took.append(world.timeline.now() - begun)
        return found

    def unread() -> list[str]:
        return [each["gate"] for each in world.status.get("waitingFor", ()) if each["message"].endswith("being read")]

    monkeypatch.setattr(port, reading, slow)
    monkeypatch.setattr(Observer, "see", timed)
    assert world.live(lambda: bool(world.status))
    assert unread() == [gates]
    begun = world.timeline.now()
    assert world.live(lambda: not unread(), limit=30)
    assert world.live(lambda: world.timeline.now() > begun + 120)
    assert len(took) > 10
    assert max(took) <= 2
