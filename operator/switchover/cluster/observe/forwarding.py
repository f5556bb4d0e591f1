"""Which brokers pass on to the controller what they are asked: each is asked what only the controller can answer."""

from collections.abc import Mapping

from switchover.answers.clock import Clock
from switchover.answers.observed import NOT_ASKED, Known, Observed
from switchover.cluster.observe.each_node import ask_each
from switchover.kafka.node import NodeAnswer
from switchover.kafka.ports import KafkaNodes
from switchover.network.addresses import Address

EVERY_SECONDS = 10.0
"""One that passes nothing on keeps each question in its memory until it ends."""


class ForwardingWatch:
    """Keeps since when each broker has not."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: Known[Mapping[int, float]] | None = None

    def forget(self) -> Observed[Mapping[int, float]]:
        """Nobody asks any more."""
        self._last = None
        return NOT_ASKED

    async def look(self, client: KafkaNodes, brokers: Mapping[int, Address | None],
                   answers: Mapping[int, Observed[NodeAnswer]]) -> Observed[Mapping[int, float]]:
        """Broker -> since when, of those that answer at all. An answer that refuses us has come from the controller as
        well."""
        now, last = self._clock.now(), self._last
        if last is not None and now - last.at < EVERY_SECONDS:
            return last
        there = {broker_id: address for broker_id, address in brokers.items() if isinstance(answers.get(broker_id), Known)}
        passed_on = await ask_each(there, lambda address, _: client.ask_controller(address), self._clock)
        since = last.value if last is not None else {}
        self._last = Known({broker_id: since.get(broker_id, now) for broker_id, answer in passed_on.items()
                            if not isinstance(answer, Known) and not answer.refused}, now)
        return self._last
