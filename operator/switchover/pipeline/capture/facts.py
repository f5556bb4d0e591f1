"""What the brokers say now of topics, their ends and groups: rows of `topics`, `ends` and `groups`."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.admin._topic import TopicDescription

from switchover.pipeline.capture.plan import TOPIC, Log
from switchover.pipeline.outcome import BadConfig, JobFailed
from switchover.pipeline.tables import ENDS, GROUPS, TOPICS

SECONDS = 30.0
"""How long one request may take."""
TOGETHER = 500
"""Topics or groups of one request."""
STATES = {
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance", ConsumerGroupState.COMPLETING_REBALANCING:
    "CompletingRebalance", ConsumerGroupState.STABLE: "Stable", ConsumerGroupState.DEAD: "Dead",
    ConsumerGroupState.EMPTY: "Empty",
}
"""As the brokers name them; of others (Assigning and Reconciling of the consumer protocol) librdkafka keeps no name."""


class Cluster:
    """One AdminClient and what it says. Every method raises JobFailed."""

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        try:
            self._client = AdminClient(dict(configuration))
        except KafkaException as error:
            raise BadConfig(f"kafka: {error.args[0].str()}") from None

    def log(self) -> Log | None:
        """`__consumer_offsets`; None while there is none, since nobody has committed yet.

        It is asked for by name: a list of all topics leaves out those that we have no right to see.
        """
        described, failed = self._described([TOPIC])
        if TOPIC in failed:
            denied = failed[TOPIC].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
            raise JobFailed(f"topic {TOPIC}: {failed[TOPIC].str()}; " + (
                "a capture needs the rights Describe and Read on it" if denied else
                "look whether the brokers of kafka.bootstrapServers are there"))
        if TOPIC not in described:
            return None
        numbers = [each.id for each in described[TOPIC].partitions]
        ends = self._offsets([(TOPIC, number) for number in numbers])
        if missing := [number for number in range(max(numbers) + 1) if (TOPIC, number) not in ends]:
            raise JobFailed(f"{TOPIC} has partitions whose ends no broker answers for: {missing}; look at their leaders")
        return Log(_id(described[TOPIC]), {number: ends[TOPIC, number] for number in numbers})

    def topics(self, now: int) -> tuple[pa.Table, list[str]]:
        """Rows of `topics`, internal ones too, and what is not known of some. One that is deleted meanwhile is left out."""
        listed = self._asked("the list of topics", lambda: self._client.list_topics(timeout=SECONDS)).topics
        described, failed = self._described(sorted(listed))
        configured, unconfigured = self._configured(sorted(described))
        return pa.Table.from_pylist([{
            "topic": name, "topic_id": _id(seen), "partitions": len(seen.partitions), "internal": seen.is_internal,
            **configured.get(name, {}), "time": now} for name, seen in described.items()], TOPICS), [
            f"topic {name[:100]!r} is not described: {why.str()}" for name, why in failed.items()] + [
            f"topic {name[:100]!r}: its configuration is not known: {why.str()}" for name, why in unconfigured.items()]

    def ends(self, topics: pa.Table, now: int) -> pa.Table:
        """Rows of `ends`, of every partition that has a leader."""
        wanted = [(row["topic"], number) for row in topics.to_pylist() if not row["internal"]
                  for number in range(row["partitions"])]
        return pa.Table.from_pylist([{"topic": topic, "partition": number, "start": start, "end": end, "time": now}
                                     for (topic, number), (start, end) in sorted(self._offsets(wanted).items())], ENDS)

    def groups(self, now: int) -> tuple[pa.Table, list[str]]:
        """Rows of `groups`, and the groups that could not be described, each with its reason."""
        listed = self._asked("the list of groups", self._client.list_consumer_groups(request_timeout=SECONDS).result)
        if listed.errors:
            raise JobFailed(f"a broker does not list its groups: {listed.errors[0]}; look at that broker")
        rows, failed = [], []
        for names in _parts(sorted({group.group_id for group in listed.valid})):
            for name, future in self._client.describe_consumer_groups(names, request_timeout=SECONDS).items():
                try:
                    rows.append(_group(future.result(), now))
                except KafkaException as error:
                    failed.append(f"group {name[:100]!r} is not described: {error.args[0].str()}")
        return pa.Table.from_pylist(rows, GROUPS), failed

    def _offsets(self, partitions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], tuple[int, int]]:
        """Log start and high watermark; partitions that no broker answers for are left out."""
        found: list[dict[tuple[str, int], int]] = []
        for spec in (OffsetSpec.earliest(), OffsetSpec.latest()):     # type: ignore[no-untyped-call]
            offsets: dict[tuple[str, int], int] = {}
            for part in _parts(partitions):
                asked = {TopicPartition(topic, number): spec for topic, number in part}
                for each, future in self._client.list_offsets(asked, request_timeout=SECONDS).items():
                    try:
                        offsets[each.topic, each.partition] = future.result().offset
                    except KafkaException:
                        continue                       # without a leader; whoever needs it misses it by name
            found.append(offsets)
        starts, ends = found
        return {key: (starts[key], ends[key]) for key in starts.keys() & ends.keys()}

    def _described(self, names: Sequence[str]) -> tuple[dict[str, TopicDescription], dict[str, KafkaError]]:
        """The topics that there are, by name, and why others are not described."""
        found, failed = dict[str, TopicDescription](), dict[str, KafkaError]()
        for part in _parts(names):
            for name, future in self._client.describe_topics(TopicCollection(part), request_timeout=SECONDS).items():
                try:
                    found[name] = future.result()
                except KafkaException as error:
                    if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                        failed[name] = error.args[0]
        return found, failed

    def _configured(self, names: Sequence[str]) -> tuple[dict[str, dict[str, Any]], dict[str, KafkaError]]:
        """Columns by topic, and why others have none."""
        found, failed = dict[str, dict[str, Any]](), dict[str, KafkaError]()
        for part in _parts(names):
            asked = [ConfigResource(ResourceType.TOPIC, name) for name in part]
            for resource, future in self._client.describe_configs(asked, request_timeout=SECONDS).items():
                try:
                    values = future.result()
                    found[resource.name] = {"retention_ms": int(values["retention.ms"].value),
                                            "cleanup_policy": values["cleanup.policy"].value}
                except KafkaException as error:
                    if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                        failed[resource.name] = error.args[0]
        return found, failed

    @staticmethod
    def _asked(what: str, ask: Any) -> Any:
        try:
            return ask()
        except KafkaException as error:
            raise JobFailed(f"{what}: {error.args[0].str()}") from None


def now() -> int:
    """ms since the epoch."""
    return int(time.time() * 1000)


def _parts(items: Sequence[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(items), TOGETHER):
        yield list(items[start:start + TOGETHER])


def _id(seen: TopicDescription) -> str | None:
    """32 hex digits; None where the brokers have no ids (before 2.8)."""
    known: Any = seen.topic_id
    number = (known.get_most_significant_bits() & 2**64 - 1) << 64 | known.get_least_significant_bits() & 2**64 - 1
    return f"{number:032x}" if number else None


def _group(seen: Any, now: int) -> dict[str, Any]:
    return {
        "group": seen.group_id, "type": seen.type.name.capitalize() if seen.type is not None else None,
        "state": STATES.get(seen.state),
        "assignor": seen.partition_assignor or None,
        "coordinator": seen.coordinator.id if seen.coordinator is not None else None,
        "members": [{
            "member": each.member_id, "instance": each.group_instance_id, "client_id": each.client_id, "host": each.host,
            "assigned": [{"topic": one.topic, "topic_id": None, "partition": one.partition}
                         for one in each.assignment.topic_partitions],
        } for each in seen.members],
        "time": now,
    }
