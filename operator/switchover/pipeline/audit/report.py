"""The verdict and what people read of it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from switchover.api.job_message import AuditVerdict
from switchover.pipeline.audit.coverage import moment, shown

SHOWN = 5
"""Sentences of evidence in the outcome."""
LONGEST = 200
"""Characters of each."""


@dataclass(frozen=True, slots=True)
class Report:
    """All that was found. `violations`, `undecided`: number of findings by kind; `sentences`: the gravest ones in words.

    `records_twice`: sum over all violations; `records_doubled`: how many different records that are.
    """

    cluster: str
    groups: Sequence[str]
    since: int
    until: int
    guard_band: int
    rows: int = 0
    violations: Mapping[str, int] = field(default_factory=dict)
    undecided: Mapping[str, int] = field(default_factory=dict)
    records_twice: int = 0
    records_doubled: int = 0
    sentences: Sequence[str] = ()
    doubts: Sequence[str] = ()
    notes: Sequence[str] = ()
    collisions: int = 0
    hand_overs: int = 0
    longest_hand_over: int = 0

    @property
    def verdict(self) -> AuditVerdict:
        """Violations whatever is missing; Clean only where nothing is missing and nothing undecided."""
        if self.violations:
            return AuditVerdict.VIOLATIONS
        return AuditVerdict.INDETERMINATE if self.undecided or self.doubts else AuditVerdict.CLEAN

    def evidence(self) -> list[str]:
        """At most SHOWN sentences: what made the verdict first."""
        told = [*self.sentences, *self.doubts] if self.violations else [*self.doubts, *self.sentences]
        return [each if len(each) <= LONGEST else each[: LONGEST - 1] + "…" for each in told[:SHOWN]]

    def summary(self) -> dict[str, Any]:
        """Figures for the termination message."""
        return {
            "violations": sum(self.violations.values()),
            "undecided": sum(self.undecided.values()) + len(self.doubts), "recordsTwice": self.records_twice,
            "recordsDoubled": self.records_doubled, "longestHandOverMs": self.longest_hand_over}

    def manifest(self) -> dict[str, Any]:
        """For `manifest.json` of the run."""
        return {
            "verdict": str(self.verdict), "groups": list(self.groups), "since": self.since, "until": self.until,
            "guardBandMs": self.guard_band, "rows": self.rows, "violations": dict(self.violations),
            "undecided": dict(self.undecided), "recordsTwice": self.records_twice, "recordsDoubled": self.records_doubled,
            "hashCollisions": self.collisions, "handOvers": self.hand_overs, "longestHandOverMs": self.longest_hand_over,
            "evidence": self.evidence(), "doubts": list(self.doubts), "notes": list(self.notes)}

    def text(self) -> str:
        """The report for people."""
        lines = [
            f"Audit of cluster {self.cluster}: {self.verdict}", "",
            f"from      {moment(self.since)}", f"until     {moment(self.until)}",
            f"groups    {', '.join(map(shown, self.groups))}",
            f"band      {self.guard_band} ms between the clocks of ZooKeeper and Kafka", f"read      {self.rows} rows", ""]
        lines += _part("Violations", [f"{count} x {kind}" for kind, count in sorted(self.violations.items())])
        lines += _part("Undecided", [f"{count} x {kind}" for kind, count in sorted(self.undecided.items())])
        if self.records_twice:
            lines += [f"{self.records_doubled} records were consumed more than once, {self.records_twice} times in all.", ""]
        lines += _part("The gravest (all of them: evidence.parquet)", self.sentences)
        lines += _part("What is missing for a proof", self.doubts)
        lines += _part("Notes", self.notes)
        if self.hand_overs:
            lines += [f"Nobody owned a partition {self.hand_overs} times between two owners, "
                      f"{self.longest_hand_over} ms at most (hand_overs.parquet).", ""]
        return "\n".join(lines) + "\n"


def _part(title: str, items: Sequence[str]) -> list[str]:
    return [title, *(f"  {item}" for item in items), ""] if items else []
