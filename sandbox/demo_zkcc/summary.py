"""The figures of the demo of old consumers."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from demo_groups.follow import Told
from demo_groups.histories import Span
from demo_zkcc.stories import STORIES, TOGGLE
from history.events import Process
from history.findings import Overlap, Rewind
from history.report import Report
from switchover.cli.objects import status_in, step_record

BASELINE = "baseline"
OLD_CONSUMER = "old consumer"
"""Only a member on the old consumer has this in what it tells of itself as it begins."""

Window = tuple[float, float]
"""Begin and end in seconds since the epoch."""


@dataclass(frozen=True)
class Judged:
    """The oracle's word on all of it. `spans` are those of the baseline and of each story, `old` the old consumers."""

    report: Report
    spans: Mapping[str, Span]
    old: Set[Process]

    @property
    def caused_by_us(self) -> list[Overlap | Rewind]:
        """Overlaps and rewinds in which a migration-enabled consumer or a KafkaConsumer took part."""
        found: list[Overlap | Rewind] = [*self.report.overlaps, *self.report.rewinds]
        return [each for each in found if not self._among_old(each)]

    def among_old(self, window: Window) -> tuple[int, int]:
        """How many overlaps of old consumers with each other began within the window, and how many outside of it."""
        begun = [each.start + self.report.epoch for each in self.report.overlaps if self._among_old(each)]
        within = sum(window[0] <= each <= window[1] for each in begun)
        return within, len(begun) - within

    def rewinds(self) -> tuple[int, int]:
        """How many we caused, and how many are of old consumers among themselves."""
        among_old = sum(map(self._among_old, self.report.rewinds))
        return len(self.report.rewinds) - among_old, among_old

    def _among_old(self, fault: Overlap | Rewind) -> bool:
        took_part = {fault.one.by, fault.other.by} if isinstance(fault, Overlap) else {fault.before.by, fault.after.by}
        return took_part <= self.old


@dataclass
class Summary:
    """What is known so far. `baseline`: when old consumers, alone, were restarted as anybody restarts them."""

    baseline: Window = (0.0, 0.0)
    told: dict[str, Told] = field(default_factory=dict)
    judged: Judged | None = None

    @property
    def windows(self) -> dict[str, Window]:
        return {BASELINE: self.baseline} | {name: (told.start, told.end) for name, told in self.told.items()}

    @property
    def good(self) -> bool:
        """There and back, without a loss, and without an overlap or a rewind but those of old consumers among themselves."""
        return (self.judged is not None and not self.judged.caused_by_us and not self.judged.report.lost
                and set(self.ends().values()) == {"Succeeded"})

    def ends(self) -> dict[str, str]:
        """Of each story, also of one that never began."""
        return {story.name: "Succeeded" if story.name in self.told and self.told[story.name].good else "Failed"
                for story in STORIES}

    def as_json(self) -> dict[str, Any]:
        """For build/demo-zkcc/summary.json; gaps and durations in seconds."""
        known = {"result": "Succeeded" if self.good else "Failed", **self.ends()}
        if self.judged is None:
            return known
        report, spans = self.judged.report, self.judged.spans
        alone, later = self.judged.among_old(self.baseline)
        ours, theirs = self.judged.rewinds()
        return known | {
            "overlapsCausedByUs": len(report.overlaps) - alone - later,
            "overlapsJavaOnlyBaseline": alone,
            "overlapsJavaOnlyInMigration": later,
            "lostRecords": report.lost,
            "rewindsCausedByUs": ours,
            "rewindsJavaOnly": theirs,
            "duplicates": report.repeated,
            "duplicatesIn": {name: span.duplicates for name, span in spans.items()},
            "deliveries": report.deliveries,
            "toggleSeconds": self._toggle("forward"),
            "toggleBackSeconds": self._toggle("back"),
            "longestGap": {name: round(span.longest_gap, 3) for name, span in spans.items()},
            "seconds": {name: round(end - start, 1) for name, (start, end) in self.windows.items()},
        }

    def as_table(self) -> Table:
        """The same for a terminal, once it is judged."""
        assert self.judged is not None
        table = Table(title="make demo-zkcc", title_justify="left")
        for column in ("", "ended as", "seconds", "toggle", "longest gap of a partition", "duplicates"):
            table.add_column(column)
        found = self.as_json()
        toggles = {"forward": found["toggleSeconds"], "back": found["toggleBackSeconds"]}
        for name, span in self.judged.spans.items():
            toggle = f"{toggles[name]:g} s" if name in toggles else ""
            table.add_row(name, found.get(name, ""), f"{found['seconds'][name]:.0f}", toggle, f"{span.longest_gap:.2f} s",
                          str(span.duplicates))
        table.caption = (
            f"{found['deliveries']} deliveries: {found['overlapsCausedByUs']} overlaps caused by us"
            f" ({found['overlapsJavaOnlyBaseline']} of old consumers among themselves in the baseline,"
            f" {found['overlapsJavaOnlyInMigration']} outside of it), {found['lostRecords']} lost,"
            f" {found['rewindsCausedByUs']} rewinds caused by us ({found['rewindsJavaOnly']} of old consumers),"
            f" {found['duplicates']} duplicates")
        return table

    def _toggle(self, story: str) -> float:
        """Seconds from the record of the step until every member followed the new mode and its gates were open."""
        toggled = step_record(status_in(self.told[story].resource)[0], TOGGLE)
        assert toggled is not None
        return float(toggled.seconds or 0)
