"""SIGKILL to the operator while it moves a group, and what it must not leave behind all the same."""

from collections.abc import Callable, Mapping
from typing import Any

from demo import migration, operator_process
from demo.cluster import Cluster
from demo_groups.stories import Story


class Kill:
    """Once, at the first change of the story's migration at which `moment` says so of status.progress."""

    def __init__(self, cluster: Cluster, story: Story, moment: Callable[[Mapping[str, Any]], bool]) -> None:
        self._cluster, self._name, self._moment = cluster, story.manifest()["metadata"]["name"], moment
        self.killed = 0

    def __call__(self, resource: Mapping[str, Any]) -> None:
        progress = resource.get("status", {}).get("progress", {})
        if resource["metadata"]["name"] == self._name and not self.killed and self._moment(progress):
            [pod] = self._cluster.items("pods", "--selector", migration.OPERATOR)
            self.killed = operator_process.kill(operator_process.container_id(pod))


def operator_restarts(cluster: Cluster) -> int:
    """Of the operator's containers."""
    [pod] = cluster.items("pods", "--selector", migration.OPERATOR)
    return sum(status["restartCount"] for status in pod["status"]["containerStatuses"])


def left_behind(cluster: Cluster) -> list[str]:
    """Deployments that are still held, or still claimed."""
    return [item["metadata"]["name"] for item in cluster.items("deployments")
            if item["spec"].get("paused") or item["spec"].get("minReadySeconds")
            or "switchover.dev/claimed-by" in item["metadata"].get("annotations", {})]
