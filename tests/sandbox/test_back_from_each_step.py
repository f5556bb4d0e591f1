"""Back from every step, each time forward again on the same cluster, and at last to the end; all under traffic.

Its figures stand in docs/measurements.md: how long each way back took, against the restarts in it.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from demo import metadata, migration, rollback, traffic, world
from demo.cluster import Cluster
from demo.diagnostics import collect
from demo.summary import Gaps, Traffic
from switchover.cli.display import condition
from switchover.cli.objects import Resource

pytestmark = [pytest.mark.long, pytest.mark.timeout(5400)]

OUTPUT = Path(__file__).parents[2] / "build" / "back-from-each-step"
STEPS = ("ProvisionControllers", "EnableMigration", "CopyMetadata", "DualWrite", "MoveBrokers", "Soak", "Finalize")


@dataclass
class BackFrom:
    """Everything is wanted back as soon as a step has begun; before Finalize, at its hold."""

    cluster: Cluster
    step: str
    turned: float = 0.0

    def __call__(self, resource: Resource, _: str) -> str | None:
        progress = resource.get("status", {}).get("progress", {})
        there = progress.get("step") == self.step and resource["status"]["phase"] in ("Running", "AwaitingApproval")
        begun = "openTime" in progress or condition(resource, "AwaitingApproval") == "True"
        if self.turned or not (there and begun):
            return None
        self.turned = time.time()
        patch = json.dumps({"spec": {"desiredState": "RolledBack"}})
        self.cluster.kubectl("patch", "kmig", "kafka", "--type", "merge", "--patch", patch)
        return f"everything back from {self.step}"


@dataclass
class Back:
    """One way back. Times in seconds; `restarts` of the pods in it."""

    step: str
    took: float
    restarts: list[tuple[str, float]]
    gaps: Gaps
    modes: dict[str, str]
    leftovers: tuple[str, ...]
    metadata: frozenset[str]
    attempt: int

    def as_json(self) -> dict[str, Any]:
        restarted = sum(took for _, took in self.restarts)
        return {"rollbackSeconds": round(self.took, 1), "restarts": len(self.restarts),
                "restartSeconds": round(restarted, 1), "produceGap": self.gaps.produce, "consumeGap": self.gaps.consume}


@dataclass
class Story:
    backs: list[Back]
    before: frozenset[str]
    last: migration.Run
    traffic: Traffic
    modes: dict[str, str]


@pytest.fixture(scope="module")
def story(cluster: Cluster) -> Iterator[Story]:
    """Seven ways back, then the migration to its end."""
    world.remove(cluster)
    world.deploy(cluster, print)
    metadata.prepare(cluster)
    migration.install_operator(cluster)
    before = metadata.tell(cluster)
    manifest = migration.manifest(desiredState="Running")
    backs: list[Back] = []
    try:
        for step in STEPS:
            backs.append(there_and_back(cluster, manifest, step))
            print(step, json.dumps(backs[-1].as_json()))
        last = migration.Run()
        migration.follow(cluster, last, manifest, lambda _: None, print)
        world.await_in_sync(cluster)
        OUTPUT.mkdir(parents=True, exist_ok=True)
        figures = {back.step: back.as_json() for back in backs}
        (OUTPUT / "summary.json").write_text(json.dumps(figures, indent=2) + "\n")
        yield Story(backs, before, last, traffic.verify(cluster), world.modes(cluster))
    except BaseException:
        collect(cluster, OUTPUT / "diagnostics")
        raise


def there_and_back(cluster: Cluster, manifest: str, step: str) -> Back:
    run, back = migration.Run(), BackFrom(cluster, step)
    migration.follow(cluster, run, manifest, lambda _: None, print, [back],
                     lambda resource: back.turned > 0 and migration.rolled_back(resource))
    world.await_in_sync(cluster)
    return Back(step, run.end - back.turned, run.restarts_since(back.turned), traffic.gaps(cluster, back.turned, run.end),
                world.modes(cluster), rollback.leftovers(cluster), metadata.tell(cluster), run.resource["status"]["attempt"])


def test_each_way_back_ends_on_plain_zookeeper_with_nothing_left(story: Story) -> None:
    assert [back.step for back in story.backs] == list(STEPS)
    assert [back.attempt for back in story.backs] == list(range(1, len(STEPS) + 1))
    for back in story.backs:
        assert back.modes == dict.fromkeys(world.BROKERS, "ZooKeeper"), back.step
        assert back.leftovers == (), back.step
        assert back.metadata == story.before, back.step


def test_after_all_of_them_it_succeeds(story: Story) -> None:
    assert condition(story.last.resource, "Succeeded") == "True"
    assert story.modes == dict.fromkeys(world.BROKERS, "KRaft")
    assert story.last.resource["status"]["attempt"] == len(STEPS) + 1


def test_no_acknowledged_record_is_lost(story: Story) -> None:
    assert story.traffic.lost == 0
    assert story.traffic.acknowledged > 50_000, "the load did not run: nothing is proved"
