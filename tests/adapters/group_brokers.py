"""Brokers of Kafka 4 in several configurations, one after the other."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from adapters import guarded
from adapters.clusters import KRaftNode, node
from switchover.network.addresses import Address

QUICK = "group.consumer.min.heartbeat.interval.ms=1000\ngroup.consumer.heartbeat.interval.ms=1000\n"
"""Members of the consumer protocol hear of a change within a second instead of five."""


def policy(name: str) -> str:
    """The setting by which brokers convert groups online, or do not."""
    return f"group.consumer.migration.policy={name}\n"


@dataclass(frozen=True)
class Broker:
    """A node and its settings; `feature` is a level of group.version that is not its release's. `users`: guarded.py."""

    version: str
    settings: str = ""
    feature: int | None = None
    users: bool = False

    def __str__(self) -> str:
        told = (self.version, *self.settings.split(), "without group.version" if self.feature == 0 else "",
                "with users" if self.users else "")
        return " ".join(filter(None, told))

    def begin(self, server: KRaftNode) -> None:
        server.begin(self.settings + (guarded.settings(server) if self.users else ""),
                     features=None if self.feature is None else {"group.version": self.feature})


Serve = Callable[[Broker], Address]


@contextlib.contextmanager
def one_at_a_time(directories: pytest.TempPathFactory) -> Iterator[Serve]:
    """Serves a broker until another is asked for: tests of one should stand together."""
    running: dict[Broker, Address] = {}
    with contextlib.ExitStack() as last:
        def serve(broker: Broker) -> Address:
            if broker not in running:
                last.close()
                running.clear()
                made = last.enter_context(node(directories.mktemp("broker"), broker.version))
                broker.begin(made)
                running[broker] = made.address
            return running[broker]

        yield serve
