"""One KafkaMigration from `kubectl apply` to its end: watched, approved at the hold, killed on the way when asked."""

import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from demo import operator_process, world
from demo.cluster import Cluster
from demo.watch import Watch
from patience import Patience, slowness, stretched
from switchover.cli.display import changes, condition, is_current, seconds, wait_line
from switchover.cli.objects import Resource, status_in

MANIFEST = Path(__file__).with_name("migration.yaml")
CHART = Path(__file__).parents[2] / "helm" / "switchover"
CRDS = Path(__file__).parents[2] / "crds"
OPERATOR_IMAGE = "localhost/switchover/operator:dev"
OPERATOR = "app.kubernetes.io/name=switchover"
MOVED = {"kafka", "kafka-controller"}
"""StatefulSets whose pods the migration replaces."""

STALLED_SECONDS = 90
SILENT_SECONDS = 600
TICK_SECONDS = 0.5


Observer = Callable[[Resource, str], str | None]
"""Gets the resource at every change and the id of the operator's container; what it did, in words."""


class MigrationFailed(Exception):
    """The migration does not get to its end; the message says where it stands."""


@dataclass(slots=True)
class Run:
    """What was seen of one migration. Times in seconds since the epoch, memory in bytes."""

    start: float = 0.0
    end: float = 0.0
    resource: Resource = field(default_factory=dict)
    approval: str = ""
    container: str = ""
    peak_memory: int = 0
    restarts: int = 0
    starts: set[float] = field(default_factory=set)
    """When the operator's processes started."""
    connections: dict[str, int] = field(default_factory=dict)
    """What each ZooKeeper server counted when the migration asked for its end; -1 where it did not tell."""
    remedies: set[tuple[str, str]] = field(default_factory=set)
    """(step, pod) of every restart by which the operator ended a standstill."""
    pods: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    left: dict[str, tuple[str, float]] = field(default_factory=dict)
    """uid of a pod that was told to go -> its name, and when."""
    ready: dict[str, tuple[str, float]] = field(default_factory=dict)
    """uid of a pod -> its name, and when it first was Ready."""

    @property
    def replaced(self) -> int:
        """Pods that took another's place."""
        return sum(len(uids) - 1 for uids in self.pods.values())

    def note_pod(self, pod: dict[str, Any]) -> None:
        """Remember a pod of the moved StatefulSets, or which container is the operator's."""
        metadata = pod["metadata"]
        owners = {owner["name"] for owner in metadata.get("ownerReferences", []) if owner["kind"] == "StatefulSet"}
        if owners & MOVED:
            self.pods[metadata["name"]].add(metadata["uid"])
            name, uid = metadata["name"], metadata["uid"]
            if "deletionTimestamp" in metadata:
                grace = metadata.get("deletionGracePeriodSeconds", 0)
                self.left.setdefault(uid, (name, seconds(metadata["deletionTimestamp"]) - grace))
            for item in pod["status"].get("conditions", []):
                if item["type"] == "Ready" and item["status"] == "True":
                    self.ready.setdefault(uid, (name, seconds(item["lastTransitionTime"])))
        if metadata.get("labels", {}).get("app.kubernetes.io/name") == "switchover":
            self.container = operator_process.container_id(pod)
            for status in pod["status"].get("containerStatuses", []):
                self.restarts = max(self.restarts, status["restartCount"])
                if running := status.get("state", {}).get("running"):
                    self.starts.add(seconds(running["startedAt"]))

    def note_remedies(self) -> None:
        progress = self.resource.get("status", {}).get("progress", {})
        self.remedies |= {(progress["step"], name) for name in progress.get("remediatedNodes", ())}

    def restarts_since(self, start: float) -> list[tuple[str, float]]:
        """(pod, seconds from its end to its successor's first Ready) of every pod replaced since `start`."""
        found = []
        for name, gone in self.left.values():
            after = [at for pod, at in self.ready.values() if pod == name and at >= gone]
            if gone >= start and after:
                found.append((name, min(after) - gone))
        return found

    def steps(self) -> dict[str, float]:
        """Seconds of every step that ended."""
        records = self.resource.get("status", {}).get("steps", [])
        return {record["name"]: float(record.get("seconds", 0)) for record in records if "endTime" in record}

    def windows(self) -> dict[str, tuple[float, float]]:
        """Begin and end of every step that ended, if it took a second at least."""
        ended = [item for item in self.resource.get("status", {}).get("steps", []) if "endTime" in item]
        times = {item["name"]: (seconds(item["startTime"]), seconds(item["endTime"])) for item in ended}
        return {name: (start, end) for name, (start, end) in times.items() if start < end}


def manifest(path: Path = MANIFEST, /, **spec: Any) -> str:
    """A migration as YAML, the demo's unless told, with these fields of its spec instead."""
    found = yaml.safe_load(path.read_text())
    found["spec"] |= spec
    return str(yaml.safe_dump(found))


def install_operator(cluster: Cluster) -> None:
    """`helm install`, back once the operator is ready. Raises CommandFailed."""
    repository, _, tag = OPERATOR_IMAGE.rpartition(":")
    cluster.kubectl("apply", "--server-side", "--filename", str(CRDS))      # of the cluster: several worlds may share it
    values = (f"image.repository={repository},image.tag={tag},allow.images={{localhost/*}},allow.claims={{pipeline}},"
              "crds.install=false")
    cluster.helm("install", "switchover", str(CHART), "--set", values, "--wait", "--timeout", f"{stretched(120):.0f}s")


def follow(
    cluster: Cluster,
    run: Run,
    applied: str,
    show: Callable[[Resource], None],
    say: Callable[[str], None],
    observers: Sequence[Observer] = (),
    ended: Callable[[Resource], bool] | None = None,
) -> None:
    """Apply a migration (YAML) and follow it to its end, filling `run`. Raises MigrationFailed, with `run` as far as it got.

    It has `ended` when it succeeded and nothing of the cluster uses ZooKeeper any more, unless told otherwise. `show`
    gets the resource at every change and every half second; `say` gets one line for each change. Holds are approved as
    they come, and ZooKeeper is stopped when it is asked away. Nothing else is done by hand.
    """
    run.start = time.time()
    with Watch(cluster, "pods") as pods:
        cluster.kubectl("apply", "--filename", "-", feed=applied)
        with Watch(cluster, "kafkamigration", yaml.safe_load(applied)["metadata"]["name"]) as migrations:
            silence = Patience(SILENT_SECONDS)
            while True:
                found = migrations.next(TICK_SECONDS)
                for pod in pods.drain():
                    run.note_pod(pod)
                run.peak_memory = max(run.peak_memory, operator_process.peak_memory(run.container))
                if found is not None:
                    for line in changes(run.resource or None, found):
                        say(line)
                        silence = Patience(SILENT_SECONDS)
                    run.resource = found
                    run.note_remedies()
                    for observer in observers:
                        if words := observer(found, run.container):
                            say(words)
                    _approve(cluster, run, say)
                    _stop_zookeeper(cluster, run, say)
                if run.resource:
                    show(run.resource)
                    if is_current(run.resource) and (ended or succeeded)(run.resource):
                        run.end = time.time()
                        return
                    _check(run.resource, time.time(), silence)


def rolled_back(resource: Resource) -> bool:
    """Every step is taken back."""
    return bool(resource.get("status", {}).get("phase") == "RolledBack")


def succeeded(resource: Resource) -> bool:
    """Succeeded, and everything after it done: nothing of the cluster uses ZooKeeper any more."""
    return condition(resource, "Succeeded") == "True" and condition(resource, "ZooKeeperRemovable") == "True"


def _check(resource: Resource, now: float, silence: Patience) -> None:
    status = resource.get("status", {})
    for item in status.get("conditions", []):
        if item["type"] == "Stalled" and item["status"] == "True":
            since = now - seconds(item["lastTransitionTime"])
            if since > STALLED_SECONDS * slowness():
                raise MigrationFailed(f"Stalled for {since:.0f} s, {item['reason']}: {item['message']}{_waits(resource)}")
    if silence.over:
        step = status.get("progress", {}).get("step", "the start")
        raise MigrationFailed(f"nothing has changed for {silence} in {step}{_waits(resource)}")


def _waits(resource: Resource) -> str:
    return "".join(f"\n  waits for {wait_line(item)}" for item in status_in(resource)[0].waiting_for)


def _approve(cluster: Cluster, run: Run, say: Callable[[str], None]) -> None:
    """Give the approval once the migration stands at a hold, by the command that a person would type."""
    status = run.resource.get("status", {})
    step, plan = status.get("progress", {}).get("step"), status.get("planHash", "")
    if condition(run.resource, "AwaitingApproval") != "True" or run.approval == f"{step}/{plan}":
        return
    run.approval = f"{step}/{plan}"
    given = [item for item in run.resource["spec"].get("approvals", []) if item["name"] != step]
    approval = {"name": step, "planHash": plan, "approver": cluster.user(), "reason": "make demo"}
    patch = json.dumps({"spec": {"approvals": [*given, approval]}})
    name = run.resource["metadata"]["name"]
    say(f"approving: kubectl --namespace {cluster.namespace} patch kmig {name} --type merge --patch '{patch}'")
    cluster.kubectl("patch", "kmig", name, "--type", "merge", "--patch", patch)


def _stop_zookeeper(cluster: Cluster, run: Run, say: Callable[[str], None]) -> None:
    """Scale ZooKeeper to 0 once the migration asks for it, by the commands that it names."""
    waiting = run.resource.get("status", {}).get("waitingFor", [])
    asked = next((item["unblocks"] for item in waiting if item["reason"] == "ZooKeeperRuns"), "")
    if not asked or run.connections:
        return
    run.connections = world.connections(cluster)
    commands = re.findall(r"kubectl --namespace \S+ (scale statefulset/[^\s/A-Z]+ --replicas=0)", asked)
    if not commands:
        raise MigrationFailed(f"ZooKeeper is asked away without a command that can be run: {asked}")
    for command in commands:
        say(f"stopping ZooKeeper: kubectl {command}")
        cluster.kubectl(*command.split())
