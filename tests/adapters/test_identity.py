"""A broker tells which one it is, and of no other one: asked of two real ones."""

from pathlib import Path

import pytest

from adapters.clusters import kafka_cluster, patient_wire
from switchover.answers.errors import NotListening, Refused

EVERYBODY = (0, 1, 2, 7)


async def test_a_broker_answers_for_itself_alone(tmp_path: Path) -> None:
    """Both are registered and live, and neither sends the question to the other."""
    wire = patient_wire({})
    with kafka_cluster(tmp_path, brokers=(1, 2)) as cluster:
        cluster.start_zookeeper_mode()
        first, second = (cluster.brokers[broker].address for broker in (1, 2))
        own = (await wire.metadata(first)).cluster_id
        assert await wire.identity(first, own, EVERYBODY) == {1}
        assert await wire.identity(second, own, EVERYBODY) == {2}
        assert await wire.identity(first, own, (2, 7)) == frozenset()
        with pytest.raises(Refused, match=f"{first}: is a broker of another cluster"):
            await wire.identity(first, "anotherClusterAAAAAAAA", EVERYBODY)
        cluster.brokers[2].kill()
        with pytest.raises(NotListening):
            await wire.identity(second, own, EVERYBODY)
