"""`switchover consume`: the migration-enabled consumer from the command line, for trying out."""

import base64
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Message, TopicPartition

from switchover.consumer.migration_consumer import BadConfiguration, MigrationConsumer
from switchover.runtime.signals import on_signals
from switchover.text import properties_file

PROGRESS = 5.0
"""Seconds between two lines that say how it goes."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be consumed: exactly one of them."""

    topics: Sequence[str]
    whitelist: str
    blacklist: str
    streams: int


def configuration(file: Path | None, pairs: Sequence[str]) -> Mapping[str, Any]:
    """Of a file of properties and KEY=VALUE pairs, which win. Raises BadConfiguration for what is none."""
    found: dict[str, Any] = {}
    if file is not None:
        try:
            found |= properties_file.read(file)
        except properties_file.Unreadable as error:
            raise BadConfiguration(str(error)) from None
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise BadConfiguration(f"-X {pair!r} is not KEY=VALUE")
        found[key] = value
    return found


def consume(given: Mapping[str, Any], wanted: Wanted) -> Iterator[tuple[str, bool]]:
    """Lines, and whether each is a record's; until SIGTERM or SIGINT, then what closing says.

    Raises BadConfiguration, and at the start Unreachable when ZooKeeper does not answer, and ForeignMembers.
    """
    stop = on_signals()
    events: list[str] = []

    def says(word: str) -> Any:
        return lambda _, places: events.append(f"{word} {_names(places)}")

    consumer = MigrationConsumer(given)
    yield f"consumer id {consumer.consumer_id}", False
    try:
        consumer.subscribe(wanted.topics, whitelist=wanted.whitelist, blacklist=wanted.blacklist, streams=wanted.streams,
                           on_assign=says("assigned"), on_revoke=says("revoked"), on_lost=says("lost"))
        due = time.monotonic() + PROGRESS
        while not stop.is_set():
            message = consumer.poll(0.2)
            yield from ((line, False) for line in events)
            events.clear()
            if message is not None:
                yield record(message)
            if time.monotonic() >= due:
                due += PROGRESS
                yield progress(consumer.metrics()), False
    finally:
        consumer.close()
    yield from ((line, False) for line in events)


def record(message: Message) -> tuple[str, bool]:
    """A record as a line of JSON, or what Kafka said instead of one."""
    if (error := message.error()) is not None:
        return f"Kafka: {error.str()}", False
    return json.dumps({"topic": message.topic(), "partition": message.partition(), "offset": message.offset(),
                       "key": _text(message.key()), "value": _text(message.value())}), True


def progress(metrics: Mapping[str, float]) -> str:
    """The figures in one line."""
    return ", ".join(f"{name} {value:g}" for name, value in metrics.items())


def _names(places: Sequence[TopicPartition]) -> str:
    return ", ".join(f"{each.topic}-{each.partition} at {each.offset}" for each in places)


def _text(data: bytes | None) -> str | None:
    """Text, or base64 where it is none."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode()
