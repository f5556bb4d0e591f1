"""An image that makes server.properties of its variables before it starts Kafka, as cp-kafka's entrypoint does."""

from collections.abc import Mapping
from typing import Any

ENTRYPOINT = "/etc/confluent/docker/run"
PREFIX = "KAFKA_"


def variables(properties: Mapping[str, str]) -> list[dict[str, str]]:
    """A container's `env` of which the image makes these properties."""
    return [{"name": PREFIX + key.replace(".", "_").upper(), "value": value} for key, value in properties.items()]


def written(container: Mapping[str, Any]) -> str:
    """The server.properties that the image makes."""
    own = ((item["name"].removeprefix(PREFIX), item["value"]) for item in container.get("env", ())
           if item["name"].startswith(PREFIX) and item["name"] != "KAFKA_HEAP_OPTS")
    return "".join(f"{name.lower().replace('_', '.')}={value}\n" for name, value in own)
