"""The figures of the demo of consumer groups."""

from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from demo_groups.follow import Told
from history.report import Report

NAMES = ("protocolUpgrade", "refusedCanary", "stalledCanary", "assignmentStrategy", "downgrade")


@dataclass
class Summary:
    """What was seen of each story, and what the oracle says of each group over all of them."""

    told: dict[str, Told] = field(default_factory=dict)
    gaps: dict[str, float] = field(default_factory=dict)
    reports: dict[str, Report] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Every story came to its end, and no group saw an overlap, a rewind or a loss."""
        return all(told.good for told in self.told.values()) and not any(report.faults for report in self.reports.values())

    def as_json(self) -> dict[str, Any]:
        """For build/demo-groups/summary.json; gaps and durations in seconds."""
        reports = self.reports.values()
        return {
            "result": "Succeeded" if self.good else "Failed",
            "overlaps": sum(len(report.overlaps) for report in reports),
            "rewinds": sum(len(report.rewinds) for report in reports),
            "lostRecords": sum(report.lost for report in reports),
            "duplicates": sum(report.repeated for report in reports),
            "deliveries": sum(report.deliveries for report in reports),
            "stories": {name: self.told[name].phase for name in NAMES if name in self.told},
            "seconds": {name: round(told.end - told.start, 1) for name, told in self.told.items()},
            "longestGap": {name: round(gap, 3) for name, gap in self.gaps.items()},
            "reasons": {name: sorted(told.reasons) for name, told in self.told.items() if told.story.because},
        }

    def as_table(self) -> Table:
        """The same for a terminal."""
        table = Table(title="make demo-groups", title_justify="left")
        for column in ("story", "ended as", "seconds", "longest gap of a partition"):
            table.add_column(column)
        for name, told in self.told.items():
            table.add_row(name, told.phase, f"{told.end - told.start:.0f}", f"{self.gaps.get(name, 0.0):.2f} s")
        found = self.as_json()
        table.caption = (f"{found['deliveries']} deliveries: {found['overlaps']} overlaps, {found['lostRecords']} lost,"
                         f" {found['rewinds']} rewinds, {found['duplicates']} duplicates")
        return table
