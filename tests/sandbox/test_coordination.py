"""Real old consumers in real pods on a Kafka 3.9 with ZooKeeper: their group moves to Kafka's coordination, through pods of
both kinds at once and a toggle, and all the way back to Java. The oracle judges the histories of all pods."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from demo import tools
from demo.cluster import Cluster
from demo.diagnostics import collect
from demo_groups import histories
from demo_zkcc import stories
from demo_zkcc.__main__ import begin, there_and_back
from demo_zkcc.summary import Summary
from sandbox.operator_killed import Kill, left_behind, operator_restarts

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

IMAGES = list(stories.IMAGES.values())
OUTPUT = Path(__file__).parents[2] / "build" / "coordination-diagnostics"
MEMBERS, PARTITIONS = 3, 8


@dataclass
class Seen:
    """What status.group told on the way, of each migration by its name: the mode, and how many members are old consumers."""

    kill: Kill
    groups: dict[str, list[tuple[str, int]]] = field(default_factory=dict)

    def __call__(self, resource: Mapping[str, Any]) -> None:
        group = resource.get("status", {}).get("group")
        if group is not None:
            told = group.get("mode", ""), group.get("oldMembers", 0)
            self.groups.setdefault(resource["metadata"]["name"], []).append(told)
        self.kill(resource)


@pytest.fixture(scope="module")
def seen(cluster: Cluster) -> Seen:
    """The operator is killed once, in the middle of the toggle."""
    return Seen(Kill(cluster, stories.FORWARD, lambda progress: progress.get("step") == stories.TOGGLE))


@pytest.fixture(scope="module")
def summary(cluster: Cluster, seen: Seen) -> Summary:
    try:
        begin(cluster, print, stories.SMALL)
        return there_and_back(cluster, Summary(), print, OUTPUT / "histories", PARTITIONS, seen)
    except Exception:
        collect(cluster, OUTPUT)
        raise


def test_the_group_goes_there_and_back(summary: Summary) -> None:
    assert summary.ends() == {"forward": "Succeeded", "back": "Succeeded"}


@pytest.mark.usefixtures("summary")
def test_on_the_way_old_and_migration_enabled_members_are_one_group(seen: Seen) -> None:
    for name in ("forward", "back"):
        mixed = [old for mode, old in seen.groups[name] if mode == "zookeeper" and 0 < old < MEMBERS]
        assert mixed, f"{name}: {seen.groups[name]}"
        assert {mode for mode, _ in seen.groups[name]} >= {"zookeeper", "kafka"}
        assert ("zookeeper", MEMBERS) in seen.groups[name]


@pytest.mark.usefixtures("summary")
def test_the_operator_was_killed_in_the_toggle_and_never_ended_by_itself(seen: Seen, cluster: Cluster) -> None:
    assert seen.kill.killed > 0
    assert operator_restarts(cluster) == 1


def test_the_oracle_finds_nothing_that_we_caused(summary: Summary) -> None:
    assert summary.judged is not None
    report = summary.judged.report
    assert summary.judged.caused_by_us == []
    assert report.losses == []
    assert report.never_owned == []
    assert report.deliveries > 10_000
    assert not [note for note in report.notes if "not judged" in note], report.notes


def test_all_three_kinds_of_consumer_took_part(summary: Summary) -> None:
    words = list(histories.started(OUTPUT / "histories", stories.GROUP).values())
    assert sum("old consumer" in each for each in words) >= 2 * MEMBERS
    assert sum("migration-enabled" in each for each in words) >= 2 * MEMBERS
    assert sum("classic protocol" in each for each in words) >= MEMBERS
    assert summary.good


def test_zookeeper_rules_in_the_end_and_nothing_is_left_beside_the_workload(summary: Summary, cluster: Cluster) -> None:
    assert summary.told["back"].good
    mode = tools.run(cluster, "zookeeper-shell.sh zookeeper:2181 get /consumers/orders/migration/mode")
    assert "zookeeper" in mode.splitlines()
    assert left_behind(cluster) == []
