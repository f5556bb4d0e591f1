"""What the demo found out: as JSON for machines and as a table for people. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

AIM = 1.0
BOUND = 1.5
"""Gap ratios: what is aimed at, and what is still accepted (issue 3, "Done when")."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """The longest time, in seconds, in which one partition had no acknowledged (delivered) record."""

    produce: float
    consume: float


@dataclass(frozen=True, slots=True)
class Traffic:
    """Records of the whole run, by a full second reading of the topic."""

    acknowledged: int
    lost: int
    duplicates: int


@dataclass(frozen=True, slots=True)
class Summary:
    """Figures of one run of the demo. Times in seconds, memory in bytes.

    `modes` says of each broker what its ApiVersions show; `zookeeper_connections` is what each ZooKeeper server
    counted besides the asker before it was stopped, -1 where it did not answer.
    """

    result: str
    seconds: float
    steps: Mapping[str, float]
    pods_replaced: int
    traffic: Traffic
    migration: Gaps
    step_gaps: Mapping[str, Gaps]
    plain: Sequence[Gaps]
    plain_seconds: Sequence[float]
    modes: Mapping[str, str]
    zookeeper_connections: Mapping[str, int]
    kills: Sequence[str]
    operator_restarts: int
    operator_peak_memory: int
    decision_latency: Mapping[str, float]

    @property
    def plain_longest(self) -> Gaps:
        """The longer ones of the plain rolling restarts."""
        return Gaps(max(gaps.produce for gaps in self.plain), max(gaps.consume for gaps in self.plain))

    @property
    def ratio(self) -> Gaps:
        """Gaps of the migration ÷ those of the plain rolling restarts."""
        return Gaps(
            round(self.migration.produce / self.plain_longest.produce, 2),
            round(self.migration.consume / self.plain_longest.consume, 2),
        )

    @property
    def good(self) -> bool:
        """Succeeded, and no acknowledged record is missing."""
        return self.result == "Succeeded" and self.traffic.lost == 0

    def as_json(self) -> dict[str, Any]:
        """The content of build/demo/summary.json."""
        return {
            "result": self.result,
            "lostRecords": self.traffic.lost,
            "duplicates": self.traffic.duplicates,
            "acknowledged": self.traffic.acknowledged,
            "longestProduceGapSeconds": self.migration.produce,
            "longestConsumeGapSeconds": self.migration.consume,
            "gapRatio": {"produce": self.ratio.produce, "consume": self.ratio.consume},
            "steps": dict(self.steps),
            "stepGaps": {name: {"produce": gaps.produce, "consume": gaps.consume} for name, gaps in self.step_gaps.items()},
            "totalSeconds": round(self.seconds, 1),
            "podsReplaced": self.pods_replaced,
            "plainRestarts": [
                {
                    "seconds": round(took, 1),
                    "longestProduceGapSeconds": plain.produce,
                    "longestConsumeGapSeconds": plain.consume,
                }
                for took, plain in zip(self.plain_seconds, self.plain, strict=True)
            ],
            "brokerModes": dict(self.modes),
            "zookeeperConnections": dict(self.zookeeper_connections),
            "operatorKills": list(self.kills),
            "operatorRestarts": self.operator_restarts,
            "operatorPeakMemoryBytes": self.operator_peak_memory,
            "decisionLatencySeconds": dict(self.decision_latency),
        }

    def as_table(self) -> Group:
        """The closing words of the demo."""
        steps = Table("step", "seconds", "produce gap", "consume gap", title="Steps", title_justify="left")
        for name, took in self.steps.items():
            gaps = self.step_gaps.get(name)
            steps.add_row(name, f"{took:.0f}", *((f"{gaps.produce} s", f"{gaps.consume} s") if gaps else ()))
        steps.add_section()
        longest = (f"{self.migration.produce} s", f"{self.migration.consume} s")
        steps.add_row("migration in all", f"{self.seconds:.0f}", *longest)

        compared = Table("longest gap of one partition", "produce", "consume", title="Gaps", title_justify="left")
        for number, (took, plain) in enumerate(zip(self.plain_seconds, self.plain, strict=True), start=1):
            compared.add_row(f"plain rolling restart {number} ({took:.0f} s)", f"{plain.produce} s", f"{plain.consume} s")
        moved = f"migration ({self.pods_replaced} pods replaced)"
        compared.add_row(moved, *longest)
        compared.add_section()
        compared.add_row(f"ratio (at most {BOUND}, aim {AIM})", _ratio(self.ratio.produce), _ratio(self.ratio.consume))

        records = Table("records", "", title="Traffic", title_justify="left")
        records.add_row("acknowledged", f"{self.traffic.acknowledged}")
        records.add_row("lost", Text(str(self.traffic.lost), style="bold red" if self.traffic.lost else "bold green"))
        records.add_row("duplicates", f"{self.traffic.duplicates}")
        return Group(steps, compared, records, Text("\n".join(self.proofs()), no_wrap=True, overflow="ignore"))

    def proofs(self) -> list[str]:
        """One line for each thing that the claim of a finished migration rests on."""
        return [
            *(f"ApiVersions of {broker}: {mode}" for broker, mode in self.modes.items()),
            *(
                f"connections to {server}: {'no answer' if count < 0 else count}"
                for server, count in self.zookeeper_connections.items()
            ),
            f"operator: killed {len(self.kills)} times, restarted {self.operator_restarts} times,"
            f" peak memory {self.operator_peak_memory / 2**20:.0f} MiB",
            f"result: {self.result}",
        ]


def _ratio(value: float) -> Text:
    return Text(str(value), style="green" if value <= AIM else "yellow" if value <= BOUND else "bold red")
