"""What two runbooks tell a person to do about a node of Kafka 3.9.2 that waits for an answer it will never get."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from demo.cluster import Cluster
from patience import Patience
from switchover.cli.steps import Resource

PATIENCE_SECONDS = 75
"""A follower that can be taken back is within seconds, and so is a controller that can register."""


@dataclass
class Cure:
    """Restarts such a node, although the operator could not know that it may: it names it and waits, as it must.

    OutOfSync: a leader that lost its AlterPartition while the controller changed from ZooKeeper's to KRaft's, while every
    broker's pod is Ready. ControllerNotReady: a controller that could not reach the leader at first, and never registers.
    `restarted` has the pods that were deleted here.
    """

    cluster: Cluster
    restarted: list[str] = field(default_factory=list)
    _waits: tuple[str, str] = ("", "")
    _patience: Patience = field(default_factory=lambda: Patience(PATIENCE_SECONDS))

    def __call__(self, resource: Resource) -> str | None:
        """What it did about the migration as it stands, in words. Raises CommandFailed."""
        found = (waits_of(item) for item in resource.get("status", {}).get("waitingFor", []))
        waits = next((each for each in found if each is not None), ("", ""))
        if waits != self._waits:
            self._waits, self._patience = waits, Patience(PATIENCE_SECONDS)
        reason, nodes = waits
        if not nodes or not self._patience.over or not self._brokers_ready():
            return None
        first = int(re.split(r"\D+", nodes)[0])
        pod = next(node["name"] for node in resource["status"]["nodes"] if node["nodeId"] == first)
        self.cluster.kubectl("delete", "pod", pod, "--wait=false")
        self.restarted.append(pod)
        self._waits = ("", "")
        return f"the runbook of {reason}: {pod} waits for an answer that it will never get, and is restarted by hand"

    def _brokers_ready(self) -> bool:
        pods = self.cluster.items("pods", "--selector", "app=kafka")
        ready = [item["status"] for pod in pods for item in pod["status"].get("conditions", []) if item["type"] == "Ready"]
        return len(pods) == 3 and ready == ["True"] * 3


def waits_of(item: Mapping[str, Any]) -> tuple[str, str] | None:
    """The reason, and the ids of the nodes that its runbook is about; None where it is none of these runbooks."""
    where, words = {
        "OutOfSync": ("observed", r"leaders (\d.*)"), "ControllerNotReady": ("subject", r"controller (\d+)"),
    }.get(item["reason"], ("", ""))
    found = re.search(words, str(item.get(where, ""))) if words else None
    return (item["reason"], found[1]) if found is not None else None
