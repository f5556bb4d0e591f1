"""A plain rolling restart to compare with, then forward into the middle of MoveBrokers, all the way back, and forward again
to the end, under traffic all the time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from demo import metadata, migration, traffic, world
from demo.cluster import Cluster
from demo.screen import Screen
from demo.summary import Gaps, Traffic
from demo.turn_back import TurnBack

HOLDS = ["MoveBrokers", "Finalize"]
"""The first one gives the changes of metadata in dual write the time that they need."""
STRATEGY = "RollingUpdate"
"""The update strategy that the brokers' StatefulSet had, and must have again."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Figures of one run. Times in seconds. `steps` are those of the way back, in its order."""

    rolled_back_from: str
    rollback_seconds: float
    second_seconds: float
    steps: Mapping[str, float]
    missing: frozenset[str]
    strange: frozenset[str]
    modes_between: Mapping[str, str]
    leftovers: tuple[str, ...]
    modes: Mapping[str, str]
    traffic: Traffic
    gaps: Mapping[str, Gaps]
    kills: int

    @property
    def metadata_equal(self) -> bool:
        """Nothing is missing of what was there right before it turned, and nothing came."""
        return not self.missing and not self.strange

    @property
    def good(self) -> bool:
        """Back on ZooKeeper and then on KRaft, with all records and all metadata, and nothing left in between."""
        between = set(self.modes_between.values()) == {"ZooKeeper"} and not self.leftovers
        return between and set(self.modes.values()) == {"KRaft"} and self.metadata_equal and not self.traffic.lost

    def as_json(self) -> dict[str, Any]:
        """The content of build/demo-rollback/summary.json."""
        return {
            "result": "Succeeded" if self.good else "Failed",
            "rolledBackFrom": self.rolled_back_from,
            "rollbackSeconds": round(self.rollback_seconds, 1),
            "rollbackSteps": dict(self.steps),
            "secondMigration": "Succeeded" if set(self.modes.values()) == {"KRaft"} else "Failed",
            "secondMigrationSeconds": round(self.second_seconds, 1),
            "metadataEqual": self.metadata_equal,
            "metadataMissing": sorted(self.missing),
            "metadataStrange": sorted(self.strange),
            "leftovers": list(self.leftovers),
            "acknowledged": self.traffic.acknowledged,
            "lostRecords": self.traffic.lost,
            "duplicates": self.traffic.duplicates,
            "longestGaps": {
                name: {"produceSeconds": gaps.produce, "consumeSeconds": gaps.consume} for name, gaps in self.gaps.items()},
            "brokerModesAfterRollback": dict(self.modes_between),
            "brokerModes": dict(self.modes),
            "operatorKills": self.kills,
        }

    def as_table(self) -> Group:
        """The closing words."""
        table = Table("", "seconds", "produce gap", "consume gap", title="There and back", title_justify="left")
        took = {"rollback": self.rollback_seconds, "second migration": self.second_seconds}
        for name, gaps in self.gaps.items():
            table.add_row(name, f"{took[name]:.0f}" if name in took else "", f"{gaps.produce} s", f"{gaps.consume} s")
        style = "bold green" if self.good else "bold red"
        told = [
            f"rolled back from {self.rolled_back_from}",
            f"metadata equal: {'yes' if self.metadata_equal else 'no'}",
            *(f"missing: {line}" for line in sorted(self.missing)), *(f"strange: {line}" for line in sorted(self.strange)),
            f"left behind: {', '.join(self.leftovers) or 'nothing'}",
            f"records: {self.traffic.acknowledged} acknowledged, {self.traffic.lost} lost,"
            f" {self.traffic.duplicates} duplicates",
        ]
        return Group(table, Text("\n".join(told)), Text(f"result: {'Succeeded' if self.good else 'Failed'}", style=style))


def tell(cluster: Cluster, screen: Screen) -> Summary:
    """The whole story. Raises CommandFailed or MigrationFailed."""
    say = screen.say
    world.remove(cluster)
    world.deploy(cluster, say)
    plain = world.rolling_restart(cluster)
    say(f"a plain rolling restart took {plain[1] - plain[0]:.0f} s")
    metadata.prepare(cluster)
    migration.install_operator(cluster)
    say("operator is ready; kubectl apply --filename sandbox/demo/migration.yaml")
    first, turn = migration.Run(), TurnBack(cluster)
    try:
        migration.follow(
            cluster, first, migration.manifest(holds=HOLDS), screen.show, say, [turn], migration.rolled_back)
        say(f"rolled back in {first.end - turn.turned:.0f} s")
        world.await_in_sync(cluster)
        after = metadata.tell(cluster)
        between, left = world.modes(cluster), leftovers(cluster)
        say("and again: desiredState Running")
        second = migration.Run()
        migration.follow(cluster, second, migration.manifest(desiredState="Running"), screen.show, say)
    finally:
        screen.close()
    world.await_in_sync(cluster)
    say("reading every record again")
    return Summary(
        rolled_back_from=turn.where,
        rollback_seconds=first.end - turn.turned,
        second_seconds=second.end - second.start,
        steps=first.steps(),
        missing=turn.before - after,
        strange=after - turn.before,
        modes_between=between,
        leftovers=left,
        modes=world.modes(cluster),
        traffic=traffic.verify(cluster),
        gaps={
            "plain rolling restart": traffic.gaps(cluster, *plain),
            "first half": traffic.gaps(cluster, first.start, turn.turned),
            "rollback": traffic.gaps(cluster, turn.turned, first.end),
            "second migration": traffic.gaps(cluster, second.start, second.end),
        },
        kills=turn.killed,
    )


def leftovers(cluster: Cluster) -> tuple[str, ...]:
    """Objects of the migration that a rollback should have taken away, and what it should have given back."""
    found = cluster.items(
        "statefulsets,pods,persistentvolumeclaims,secrets,services,poddisruptionbudgets,controllerrevisions")
    marks = ("switchover.dev/migration", "switchover.dev/controllers")
    left = [f"{item['kind']} {item['metadata']['name']}" for item in found
            if any(mark in item["metadata"].get("labels", {}) for mark in marks)]
    kafka = cluster.get("statefulset", "kafka")
    if kafka["spec"]["updateStrategy"]["type"] != STRATEGY:
        left.append("the update strategy OnDelete")
    if "switchover-node-files" in str(kafka["spec"]) or "switchover.dev/claimed-by" in str(kafka["metadata"]):
        left.append("marks in the brokers' StatefulSet")
    return tuple(left)
