"""What a person wants to read after a run that failed, as files."""

from pathlib import Path

from demo.cluster import Cluster, CommandFailed


def collect(cluster: Cluster, directory: Path) -> None:
    """Write status, events, pods and logs of the namespace to files; what cannot be had is said in its place."""
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
        pods = [pod["metadata"]["name"] for pod in cluster.items("pods")]
    except CommandFailed:
        return
    for pod in pods:
        (directory / f"{pod}.log").write_text(_answer(cluster, "logs", pod, "--all-containers", "--tail=5000"))
        before = _answer(cluster, "logs", pod, "--previous", "--tail=5000")
        if "previous terminated container" not in before:
            (directory / f"{pod}.previous.log").write_text(before)


def _answer(cluster: Cluster, *arguments: str) -> str:
    try:
        return cluster.kubectl(*arguments)
    except CommandFailed as error:
        return f"{error}\n"
