"""Brokers that no host name leads to: at their pods' addresses, which go from pod to pod, or behind a load balancer each."""

import pytest

from simulation.migration_world import MigrationWorld
from switchover.api.kafka_migration import NodeMode as Mode

BROKERS = {"kafka-0": 1, "kafka-1": 2, "kafka-2": 3}


@pytest.mark.long
@pytest.mark.parametrize("advertise", ["addresses", "services"])
def test_the_migration_goes_to_the_end(monkeypatch: pytest.MonkeyPatch, advertise: str) -> None:
    world = MigrationWorld(monkeypatch, advertise=advertise)
    had: dict[str, set[str]] = {}

    def remember() -> bool:
        for pod in BROKERS:
            had.setdefault(world.kafka.ip(pod), set()).add(pod)
        return False

    assert world.run_to_the_end(kill_when=remember)
    assert {node["name"]: node["nodeId"] for node in world.status["nodes"] if node["name"] in BROKERS} == BROKERS
    assert {world.kafka.nodes[pod].mode for pod in BROKERS} == {Mode.KRAFT}
    had.pop("", None)                                # of a pod that was not there at the moment of a write
    assert any(len(pods) > 1 for pods in had.values()), "no address became another broker's"


def test_an_operator_that_starts_in_the_middle_finds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """One pod has an address that another one had; the new process takes the way back over both."""
    world = MigrationWorld(monkeypatch, advertise="addresses")
    assert not world.run_to_the_end(kill_when=lambda: ("kafka-1", Mode.MIGRATION) in world.kafka.starts)
    assert world.roll_back()
    assert {node.mode for node in world.kafka.nodes.values()} == {Mode.ZOOKEEPER}
