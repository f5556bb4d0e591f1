"""Clients of Kafka from the jobs' configuration. Nothing here joins a group or commits."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from switchover.answers.errors import Refused
from switchover.pipeline.capture import librdkafka
from switchover.pipeline.client_properties import properties
from switchover.pipeline.outcome import BadConfig

QUIET = 2
"""librdkafka's level "critical": below it, a line on standard error for each attempt to connect. What failed is raised."""


def configuration(bootstrap_servers: str, command_config: Path | str | None) -> dict[str, Any]:
    """librdkafka's configuration. Raises BadConfig for a file that cannot be read or used."""
    try:
        return {"bootstrap.servers": bootstrap_servers, "log_level": QUIET,
                **librdkafka.configuration(properties(command_config))}
    except Refused as error:
        raise BadConfig(str(error)) from None


def reader(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """What a consumer needs that reads planned ranges: no group of its own, no reset, an event at each partition's end.

    Committed records alone: an aborted transactional commit never was one (docs/facts/spark.md#isolation).
    """
    return {
        **configuration, "group.id": "switchover-capture", "enable.auto.commit": False, "enable.auto.offset.store": False,
        "auto.offset.reset": "error", "enable.partition.eof": True, "isolation.level": "read_committed",
        "check.crcs": True, "fetch.max.bytes": 33_554_432, "queued.max.messages.kbytes": 131_072,
    }
