"""The settings of a member, from its environment and from a file that counts before it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError

from member.faults import Faults


def in_force(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The variables, and before them those that the file named by SETTINGS has, one a line, NAME=value; it need not exist.

    Raises ValueError for a line that is neither that nor empty.
    """
    named = environment.get("SETTINGS")
    if not named or not (file := Path(named)).exists():
        return environment
    pairs = [line.partition("=") for line in file.read_text().splitlines() if line.strip()]
    if wrong := [name for name, separator, _ in pairs if not separator]:
        raise ValueError(f"{named}: not NAME=value: {wrong[0]!r}")
    return {**environment, **{name.strip(): value.strip() for name, _, value in pairs}}


@dataclass(frozen=True, slots=True)
class Settings:
    """BOOTSTRAP_SERVERS, TOPIC, GROUP, HOSTNAME, HISTORY (a file, or - for standard output), GROUP_PROTOCOL (classic or
    consumer), ASSIGNOR, INSTANCE_ID, COMMIT_INTERVAL (seconds), and what member.faults reads."""

    bootstrap: str
    topic: str
    group: str
    name: str
    history: str
    protocol: str
    assignor: str
    instance: str
    commit_interval: float
    faults: Faults

    @staticmethod
    def of(environment: Mapping[str, str]) -> "Settings":
        """Raises ValueError for a protocol that does not exist, or a number that is none."""
        protocol = environment.get("GROUP_PROTOCOL", "classic")
        if protocol not in ("classic", "consumer"):
            raise ValueError(f"GROUP_PROTOCOL is classic or consumer, not {protocol!r}")
        return Settings(
            bootstrap=environment.get("BOOTSTRAP_SERVERS", "kafka:9092"),
            topic=environment.get("TOPIC", "orders"),
            group=environment.get("GROUP", "orders"),
            name=environment.get("HOSTNAME", "member"),
            history=environment.get("HISTORY", "-"),
            protocol=protocol,
            assignor=environment.get("ASSIGNOR", ""),
            instance=environment.get("INSTANCE_ID", ""),
            commit_interval=float(environment.get("COMMIT_INTERVAL", "1")),
            faults=Faults.planted(environment),
        )

    def words(self) -> str:
        return f"group {self.group}, {self.protocol} protocol, assignor {self.assignor or 'by default'}"

    def client(self, on_error: Callable[[KafkaError], None]) -> dict[str, Any]:
        """What librdkafka is given.

        Under the consumer protocol it refuses session.timeout.ms, heartbeat.interval.ms and partition.assignment.strategy:
        the first two are the brokers', the assignor has a name of its own there (docs/facts/groups.md#clients).
        """
        client: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "client.id": self.name,
            "group.id": self.group,
            "group.protocol": self.protocol,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 10_000,
            "error_cb": on_error,
        }
        if self.instance:
            client["group.instance.id"] = self.instance
        if self.assignor:
            strategy = "group.remote.assignor" if self.protocol == "consumer" else "partition.assignment.strategy"
            client[strategy] = self.assignor
        return client
