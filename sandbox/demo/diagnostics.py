"""What a person wants to read after a run that failed, as files."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from demo.cluster import Cluster, CommandFailed

LAST_WORDS = 3
"""Lines of its log that a container which ended is quoted with."""


def collect(cluster: Cluster, directory: Path, say: Callable[[str], None] = print) -> None:
    """Write status, events, pods and logs of the namespace to files, and say which containers ended within their pods.

    What cannot be had is said in its place.
    """
    directory.mkdir(parents=True, exist_ok=True)
    questions = {
        "migration.yaml": ("get", "kafkamigrations", "--output", "yaml"),
        "groups.yaml": ("get", "consumergroupmigrations", "--output", "yaml"),
        "events.txt": ("get", "events", "--sort-by", ".lastTimestamp"),
        "pods.txt": ("get", "pods", "--output", "wide"),
        "pods.yaml": ("get", "pods", "--output", "yaml"),
        "statefulsets.yaml": ("get", "statefulsets", "--output", "yaml"),
    }
    for name, arguments in questions.items():
        (directory / name).write_text(_answer(cluster, *arguments))
    try:
        pods = cluster.items("pods")
    except CommandFailed:
        return
    for pod in pods:
        name = pod["metadata"]["name"]
        (directory / f"{name}.log").write_text(_answer(cluster, "logs", name, "--all-containers", "--tail=5000"))
        before = _answer(cluster, "logs", name, "--previous", "--tail=5000")
        if "previous terminated container" not in before:
            (directory / f"{name}.previous.log").write_text(before)
        for ending in endings(pod):
            say(ending)
            for line in before.splitlines()[-LAST_WORDS:]:
                say(f"  {line}")


def endings(pod: Mapping[str, Any]) -> Iterator[str]:
    """Of every container of a pod that ended and was, or will be, started again: how, and when."""
    for status in pod["status"].get("containerStatuses", []):
        for state in (status.get("lastState", {}), status.get("state", {})):
            if (ended := state.get("terminated")) and (status["restartCount"] or ended["exitCode"]):
                yield (f"{pod['metadata']['name']}: container {status['name']} ended with {ended['exitCode']} "
                       f"({ended.get('reason', '')}) at {ended.get('finishedAt')}; restarts: {status['restartCount']}")


def _answer(cluster: Cluster, *arguments: str) -> str:
    try:
        return cluster.kubectl(*arguments)
    except CommandFailed as error:
        return f"{error}\n"
