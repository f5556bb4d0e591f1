"""What the brokers say now of topics, their ends and groups: rows of `topics`, `ends` and `groups`."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourceType

from switchover.pipeline.capture.plan import TOPIC, Log
from switchover.pipeline.job import JobFailed
from switchover.pipeline.tables import ENDS, GROUPS, TOPICS

SECONDS = 30.0
"""How long one request may take."""
TOGETHER = 500
"""Topics or groups of one request."""
INTERNAL = frozenset({TOPIC, "__transaction_state"})


class Cluster:
    """One AdminClient and what it told. Every method raises JobFailed in words."""

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        self._client = AdminClient(dict(configuration))

    def topics(self, now: int) -> pa.Table:
        """Rows of `topics`, internal ones too."""
        listed = self._asked("the list of topics", lambda: self._client.list_topics(timeout=SECONDS)).topics
        described = self._described(sorted(listed))
        configured = self._configured(sorted(listed))
        return pa.Table.from_pylist([{
            "topic": name, "topic_id": described[name], "partitions": len(listed[name].partitions),
            "internal": name in INTERNAL, **configured[name], "time": now} for name in sorted(listed)], TOPICS)

    def log(self, topics: pa.Table) -> Log | None:
        """`__consumer_offsets`; None while there is none, since nobody has committed yet."""
        found = [row for row in topics.to_pylist() if row["topic"] == TOPIC]
        if not found:
            return None
        numbers = range(found[0]["partitions"])
        ends = self._offsets([(TOPIC, number) for number in numbers])
        if missing := [number for number in numbers if (TOPIC, number) not in ends]:
            raise JobFailed(f"{TOPIC} has partitions whose ends nobody tells: {missing}; look at their leaders")
        return Log(found[0]["topic_id"], {number: ends[TOPIC, number] for number in numbers})

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
        for names in _parts(sorted(group.group_id for group in listed.valid)):
            for name, future in self._client.describe_consumer_groups(names, request_timeout=SECONDS).items():
                try:
                    rows.append(_group(future.result(), now))
                except KafkaException as error:
                    failed.append(f"group {name!r} is not described: {error.args[0].str()}")
        return pa.Table.from_pylist(rows, GROUPS), failed

    def _offsets(self, partitions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], tuple[int, int]]:
        """Log start and high watermark; partitions that nobody tells of are left out."""
        found: list[dict[tuple[str, int], int]] = []
        for spec in (OffsetSpec.earliest(), OffsetSpec.latest()):     # type: ignore[no-untyped-call]
            told: dict[tuple[str, int], int] = {}
            for part in _parts(partitions):
                asked = {TopicPartition(topic, number): spec for topic, number in part}
                for each, future in self._client.list_offsets(asked, request_timeout=SECONDS).items():
                    try:
                        told[each.topic, each.partition] = future.result().offset
                    except KafkaException:
                        continue                       # without a leader; whoever needs it misses it by name
            found.append(told)
        starts, ends = found
        return {key: (starts[key], ends[key]) for key in starts.keys() & ends.keys()}

    def _described(self, names: Sequence[str]) -> dict[str, str | None]:
        """Topic ids as 32 hex digits; None where the brokers have none."""
        ids: dict[str, str | None] = {}
        for part in _parts(names):
            for name, future in self._client.describe_topics(TopicCollection(list(part)), request_timeout=SECONDS).items():
                told = self._asked(f"topic {name}", future.result).topic_id
                number = (told.get_most_significant_bits() & 2**64 - 1) << 64 | told.get_least_significant_bits() & 2**64 - 1
                ids[name] = f"{number:032x}" if number else None
        return ids

    def _configured(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for part in _parts(names):
            asked = [ConfigResource(ResourceType.TOPIC, name) for name in part]
            for resource, future in self._client.describe_configs(asked, request_timeout=SECONDS).items():
                told = self._asked(f"the configuration of topic {resource.name}", future.result)
                found[resource.name] = {"retention_ms": int(told["retention.ms"].value),
                                        "cleanup_policy": told["cleanup.policy"].value}
        return found

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


def _group(told: Any, now: int) -> dict[str, Any]:
    return {
        "group": told.group_id, "type": told.type.name.capitalize() if told.type is not None else None,
        "state": "".join(word.capitalize() for word in told.state.name.split("_")),
        "protocol_type": None, "assignor": told.partition_assignor or None,
        "coordinator": told.coordinator.id if told.coordinator is not None else None,
        "members": [{
            "member": each.member_id, "instance": each.group_instance_id, "client_id": each.client_id, "host": each.host,
            "assigned": [{"topic": one.topic, "topic_id": None, "partition": one.partition}
                         for one in each.assignment.topic_partitions],
        } for each in told.members],
        "time": now,
    }
