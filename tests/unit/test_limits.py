"""Who waits for what Kafka answers gives up no earlier than its client, whose words name the broker."""

import asyncio
from collections.abc import Mapping

from simulation.virtual_time import in_virtual_time
from switchover.answers.ask import READ_SECONDS
from switchover.answers.observed import Known
from switchover.cluster.observe.groups import WatchedGroups
from switchover.kafka.limits import ANSWER_SECONDS, LOOK_SECONDS, NODE_SECONDS, ROUND_SECONDS
from switchover.lag.window import Asked, Sweep
from unit.test_watched_groups import GROUP, Cluster


class Slow(Cluster):
    """Each of a sweep's rounds takes as long as it may."""

    async def sweep(self, asked: Mapping[str, Asked]) -> Sweep:
        await asyncio.sleep(4 * ROUND_SECONDS + LOOK_SECONDS - 0.1)
        return await super().sweep(asked)


def test_a_reading_may_take_as_long_as_a_coordinator_is_looked_for_and_asked():
    assert NODE_SECONDS <= 2 * ANSWER_SECONDS <= READ_SECONDS


def test_a_sweep_whose_every_round_meets_a_broker_that_hangs_is_heard_out():
    async def run():
        cluster = Slow()
        found = await WatchedGroups(cluster).seen([GROUP], cluster)
        assert isinstance(found[GROUP.name], Known), found
    in_virtual_time(run())
