"""Each broker of a large cluster tells the ids of very many topics."""

import asyncio
from typing import Any, cast

from fakes.clock import Clock
from switchover.answers.errors import Unreachable
from switchover.answers.observed import Known, Unknown
from switchover.cluster.observe.preflight import TOGETHER, Examiner
from switchover.kafka.node import TopicIds
from switchover.network.addresses import Address


class Brokers:
    def __init__(self) -> None:
        self.asked = self.most = 0

    async def topic_ids(self, _: Address, broker_id: int) -> TopicIds:
        self.asked += 1
        self.most = max(self.most, self.asked)
        await asyncio.sleep(0)
        self.asked -= 1
        if broker_id == 7:
            raise Unreachable("no answer")
        return TopicIds({"orders": str(broker_id)})


async def test_a_few_are_asked_at_a_time_and_each_once() -> None:
    nodes, nothing = Brokers(), cast(Any, None)
    examiner = Examiner(nothing, cast(Any, nodes), nothing, cast(Any, Clock()))
    told = await examiner._all_topic_ids({broker: Address("kafka", 9000 + broker) for broker in range(10)})
    assert nodes.most == TOGETHER
    assert [each.value.served["orders"] if isinstance(each, Known) else type(each) for each in told.values()] == [
        *"0123456", Unknown, *"89"]
