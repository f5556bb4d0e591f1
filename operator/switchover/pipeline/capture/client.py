"""Clients of Kafka from the jobs' configuration, as librdkafka wants it. Nothing here joins a group or commits.

Certificates and keys are PEM only, as text (KIP-651): a file or a JKS store named in the Secret would not exist in the pod.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from switchover.answers.errors import Refused
from switchover.network import sasl
from switchover.network.credentials import KAFKA
from switchover.pipeline.config import properties
from switchover.pipeline.outcome import BadConfig

_SAME = ("security.protocol", "sasl.mechanism", "ssl.key.password", "client.id")
_RENAMED = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}


def as_librdkafka(properties: Mapping[str, str]) -> dict[str, str]:
    """The same connection in librdkafka's settings; `zookeeper.*` is passed over. Refused names what is not supported."""
    converted: dict[str, str] = {}
    for key, value in properties.items():
        if key in _SAME:
            converted[key] = value
        elif key in _RENAMED:
            converted[_RENAMED[key]] = value
        elif key == "ssl.endpoint.identification.algorithm":
            converted[key] = value or "none"
        elif key in ("ssl.truststore.type", "ssl.keystore.type"):
            if value != "PEM":
                raise Refused(f"{key} {value} is not supported; convert the store and give its PEM text")
        elif key in ("ssl.truststore.location", "ssl.keystore.location"):
            raise Refused(f"{key} names a file; give the PEM text itself, in ssl.truststore.certificates, "
                          "ssl.keystore.certificate.chain and ssl.keystore.key")
        elif key not in ("sasl.jaas.config", KAFKA) and not key.startswith("zookeeper."):
            raise Refused(f"the Kafka credentials have {key}, which Switchover does not support")
    if properties.get("security.protocol", "").upper().startswith("SASL"):
        found = sasl.credentials(properties)
        converted |= {"sasl.username": found.username, "sasl.password": found.password}
    return converted


QUIET = 2
"""librdkafka's level "critical": below it, a line on standard error for each attempt to connect. What failed is raised."""


def configuration(bootstrap_servers: str, command_config: Path | str | None) -> dict[str, Any]:
    """librdkafka's configuration. Raises BadConfig for a file that cannot be read or used."""
    try:
        return {"bootstrap.servers": bootstrap_servers, "log_level": QUIET,
                **as_librdkafka(properties(command_config))}
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
