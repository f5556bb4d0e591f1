"""Clients that have lost every broker."""

import time

from confluent_kafka import Consumer, KafkaException, Producer

SILENT_SECONDS = 20.0
"""Without a record; then the client is asked whether it still knows a broker."""
ANSWER_SECONDS = 5.0


class BrokersLost(Exception):
    """The client knows no broker any more and never will.

    A broker in ZooKeeper mode that has just started may answer that there are no brokers; librdkafka 2.10 to 2.16 then
    drops all of them and asks its bootstrap servers never again (confluentinc/librdkafka#5301).
    """


class Watch:
    """Tells a client that waits for a leader, which goes on by itself, from one that is lost."""

    def __init__(self, client: Producer | Consumer) -> None:
        self._client = client
        self.heard()

    def heard(self) -> None:
        """A record was acknowledged or came."""
        self._at = time.monotonic()

    def check(self) -> None:
        """Ask, after a long silence. Raises BrokersLost."""
        if time.monotonic() - self._at < SILENT_SECONDS:
            return
        try:
            self._client.list_topics(timeout=ANSWER_SECONDS)
        except KafkaException as problem:
            raise BrokersLost(f"no broker answers the client any more ({problem.args[0].name()})") from None
        self.heard()
