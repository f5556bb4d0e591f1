"""`make demo-pipeline`: a wave plan, a baseline, audits and a drift report of real migrations, by jobs in pods.

The first world is Kafka 3.9 on ZooKeeper: old consumers in Java move to Kafka's coordination, then the cluster to KRaft. The
second is Kafka 4.4: a group in Python moves to the consumer protocol.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from demo import migration
from demo.cluster import Cluster, CommandFailed
from demo.run import BUILD, run
from demo.screen import Screen
from demo_groups import world
from demo_groups.follow import follow
from demo_pipeline import jobs
from demo_pipeline.stories import FOUR, NINE, coordination, images, protocol
from demo_pipeline.summary import Summary
from switchover.cli.objects import Resource

OUTPUT = BUILD / "demo-pipeline"
EXECUTORS = ("--launcher", "SparkOnKubernetes", "--service-account", "spark-driver", "--executors", "1",
             "--cpu", "100m")
HISTORY = 20
"""Captures that a baseline is made of: minutes here, days elsewhere."""
TWICE_SECONDS = 40

Say = Callable[[str], None]


def main() -> int:
    """0 only when every verdict is what it must be."""
    summary = Summary()
    return run("make demo-pipeline", OUTPUT, lambda cluster, screen: tell(cluster, summary, screen), images(),
               summary.so_far)


def tell(cluster: Cluster, summary: Summary, screen: Screen) -> Summary:
    """Both worlds, one after the other. Raises CommandFailed, MigrationFailed and StoryFailed."""
    on_zookeeper(cluster, summary, screen)
    on_kafka_4(cluster, summary, screen.say)
    return summary


def on_zookeeper(cluster: Cluster, summary: Summary, screen: Screen) -> None:
    """Inventory, the old consumers' migration with its audit, the planted mistake, the cluster's migration with drift."""
    say = screen.say
    begin(cluster, summary, say, NINE, captures=2)
    inventory(cluster, summary, say)
    migrate(cluster, summary, coordination(), say)
    find_twice(cluster, summary, say)

    def at_the_hold(resource: Resource, _: str) -> str | None:
        if resource.get("status", {}).get("phase") != "AwaitingApproval" or summary.drift:
            return None
        ran = jobs.run(cluster, "drift", NINE / "pipeline.yaml", say)
        summary.ran.append(ran)
        summary.drift = ran.told
        return f"drift: {ran.told.get('driftPersistent')} persistent differences"

    found = migration.Run()
    try:
        migration.follow(cluster, found, migration.manifest(), screen.show, say, [at_the_hold])
    finally:
        screen.close()
        summary.migrations["kafka"] = str(found.resource.get("status", {}).get("phase", ""))


def on_kafka_4(cluster: Cluster, summary: Summary, say: Say) -> None:
    """A baseline, and the migration of a group by it, with its audit."""
    begin(cluster, summary, say, FOUR, captures=HISTORY)
    ran = jobs.run(cluster, "baseline", FOUR / "pipeline.yaml", say, options=EXECUTORS)
    summary.ran.append(ran)
    written = jobs.read(cluster, "runs/baseline/*/*/configmaps/*.yaml")
    found = {yaml.safe_load(text)["metadata"]["name"]: text for text in written.values()}
    for text in found.values():
        cluster.kubectl("apply", "--filename", "-", feed=text)
    name = next((name for name in found if "orders" in name), None)
    if name is None:
        raise CommandFailed(f"the baseline has no ConfigMap of group orders, only {sorted(found)}")
    say(f"baseline: ConfigMaps {', '.join(sorted(found))} applied")
    resource = migrate(cluster, summary, protocol(name), say)
    used = resource["status"].get("group", {}).get("baseline", "")
    summary.baseline_used = used.startswith(f"{name} ")
    say(f"the lag gate judged by {used}")


def begin(cluster: Cluster, summary: Summary, say: Say, manifests: Path, captures: int) -> None:
    """A fresh world with the operator in it; back once there are so many captures. Raises CommandFailed."""
    say("what runs is removed, then Kafka, producers and members start")
    world.remove(cluster)
    world.deploy(cluster, say, manifests)
    cluster.kubectl("rollout", "status", "deployment/capture", timeout=180)
    migration.install_operator(cluster)
    say("operator is ready")
    say(f"capture: waiting for {captures} captures")
    found = jobs.await_captures(cluster, captures)
    manifest: dict[str, Any] = yaml.safe_load(next(iter(found.values())))
    rows = sum(file["rows"] for file in manifest["files"])
    seconds = (manifest["ended"] - manifest["began"]) / 1000
    summary.ran.append(jobs.Ran("capture", {"rows": rows, "seconds": seconds}, seconds))
    say(f"capture: number {captures} has {rows} rows and took {seconds:.1f} s")


def inventory(cluster: Cluster, summary: Summary, say: Say) -> None:
    """The waves, and the API server's word on them. Raises CommandFailed."""
    ran = jobs.run(cluster, "inventory", NINE / "pipeline.yaml", say)
    summary.ran.append(ran)
    waves = jobs.read(cluster, "runs/inventory/*/*/waves/*.yaml")
    for path, text in waves.items():
        answer = cluster.kubectl("apply", "--dry-run=server", "--filename", "-", feed=text)
        say(f"{Path(path).name}: {answer.strip()}")
        (OUTPUT / Path(path).name).write_text(text)
    summary.waves = len(waves)
    summary.waves_accepted = bool(waves)
    for text in jobs.read(cluster, "runs/inventory/*/*/report.html").values():
        (OUTPUT / "inventory.html").write_text(text)


def migrate(cluster: Cluster, summary: Summary, story: Any, say: Say) -> dict[str, Any]:
    """A group's migration whose end is gated by its audit. Raises StoryFailed."""
    told = follow(cluster, story, say)
    summary.migrations[story.name] = told.phase
    name = next(job["metadata"]["name"] for job in cluster.items("jobs", "--selector", "switchover.dev/job=audit")
                if story.name.lower() in job["metadata"]["name"])
    message = jobs.termination(cluster, name)
    summary.audits[story.name] = str(message.get("verdict"))
    summary.ran.append(jobs.Ran("audit", message, float(message.get("seconds", 0))))
    return told.resource


def find_twice(cluster: Cluster, summary: Summary, say: Say) -> None:
    """Audit the group whose two consumers know nothing of each other. Raises CommandFailed."""
    since = int((time.time() - TWICE_SECONDS) * 1000)
    config = jobs.with_sections(NINE / "pipeline.yaml", OUTPUT / "twice.yaml",
                                audit={"groups": [{"name": "twice"}], "since": since, "capture": False})
    ran = jobs.run(cluster, "audit", config, say, "audit-twice")
    summary.ran.append(ran)
    summary.planted = str(ran.told.get("verdict"))
    summary.evidence = tuple(ran.told.get("evidence", ()))


if __name__ == "__main__":
    sys.exit(main())
