"""Kafka's tools in the demo: in their own pod, again until the cluster takes it, and for as long as the machine needs."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from demo import metadata, tools, world
from demo.cluster import Cluster, CommandFailed, run
from demo.watch import Watch


@dataclass(frozen=True)
class Refusing(Cluster):
    """Refuses so many commands, as a cluster with a broker that is not registered does; then takes them."""

    namespace: str = "demo"
    environment: Mapping[str, str] = field(default_factory=dict)
    refusals: int = 0
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def kubectl(self, *arguments: str, feed: str | None = None, timeout: float = 60) -> str:
        self.asked.append(arguments)
        if len(self.asked) <= self.refusals:
            raise CommandFailed("InvalidReplicationFactorException: 3 replicas, but only 2 brokers are registered")
        return "Topic: orders\tPartitionCount: 6"


def test_what_a_cluster_does_not_take_yet_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools.time, "sleep", lambda _: None)
    cluster = Refusing(refusals=3)
    metadata.change(cluster)
    assert len(cluster.asked) == 4
    assert len(set(cluster.asked)) == 1, "the whole script each time"


def test_what_is_asked_again_bears_it() -> None:
    """What the first time did is no error the second time."""
    assert "--create --if-not-exists --topic" in metadata.CHANGE
    assert "--delete --if-exists --topic" in metadata.CHANGE
    grows = next(line for line in metadata.CHANGE.splitlines() if "PartitionCount: 5" in line)
    assert grows.endswith("||"), "Kafka refuses to give a topic the partitions that it has"


def test_what_is_never_taken_is_told_with_the_last_refusal() -> None:
    with pytest.raises(CommandFailed, match="only 2 brokers"):
        tools.run(Refusing(refusals=10**6), "kafka-topics.sh", seconds=0.05, pause=0.01)


def test_no_tool_runs_within_a_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed with 137: broker and tool together went over the container's limit of memory."""
    monkeypatch.setattr(world.time, "sleep", lambda _: None)
    cluster = Refusing()
    metadata.tell(cluster)
    metadata.prepare(cluster)
    assert {asked[:2] for asked in cluster.asked} == {("exec", "deployment/tools")}


def test_a_command_has_its_seconds_of_a_quiet_machine() -> None:
    assert run(sys.executable, "-c", "print(input())", env={}, feed="taken\n") == "taken\n"
    with pytest.raises(CommandFailed, match="no end after"):
        run(sys.executable, "-c", "import time; time.sleep(60)", env={}, timeout=0.2)


def test_what_ends_a_watch_is_no_object_of_it(tmp_path: Path) -> None:
    (tmp_path / "kubectl").write_text(
        '#!/bin/sh\nprintf \'{\\n  "kind": "Status",\\n  "status": "Failure"\\n}\\n{\\n  "kind": "Pod"\\n}\\n\'\n')
    (tmp_path / "kubectl").chmod(0o755)
    with Watch(Cluster("kafka", {"PATH": f"{tmp_path}:{os.environ['PATH']}"}), "pods") as watch:
        assert watch.next(60) == {"kind": "Pod"}
