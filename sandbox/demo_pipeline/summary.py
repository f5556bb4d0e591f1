"""The figures of the pipeline's demo."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from demo_pipeline.jobs import Ran
from switchover.api.job_message import Job

TOLD = ("verdict", "groups", "waves", "driftPersistent")
"""What of a job's outcome stands in the table."""


@dataclass
class Summary:
    """What is known so far. `migrations`: phase at the end by name; `audits`: verdict of each real migration by its name."""

    waves: int = 0
    waves_accepted: bool = False
    baseline_used: bool = False
    migrations: dict[str, str] = field(default_factory=dict)
    audits: dict[str, str] = field(default_factory=dict)
    planted: str = ""
    """The verdict on the group that consumes twice."""
    evidence: tuple[str, ...] = ()
    drift: Mapping[str, Any] = field(default_factory=dict)
    ran: list[Ran] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """The worst of the real migrations; Indeterminate while there is none."""
        found = set(self.audits.values())
        return "Violations" if "Violations" in found else "Clean" if found == {"Clean"} else "Indeterminate"

    @property
    def drift_persistent(self) -> int | None:
        return self.drift.get("driftPersistent")

    @property
    def good(self) -> bool:
        return (self.waves_accepted and self.waves > 0 and self.baseline_used and self.verdict == "Clean"
                and self.planted == "Violations" and self.drift_persistent == 0
                and len(self.migrations) == 3 and set(self.migrations.values()) == {"Succeeded"}
                and {each.job for each in self.ran} == set(Job))

    def so_far(self) -> dict[str, Any]:
        """For build/demo-pipeline/summary.json, as far as it got."""
        return {
            "wavesAccepted": self.waves_accepted,
            "waves": self.waves,
            "baselineUsed": self.baseline_used,
            "auditVerdict": self.verdict,
            "audits": dict(self.audits),
            "auditFoundPlantedDouble": self.planted == "Violations",
            "plantedEvidence": list(self.evidence),
            "driftPersistent": self.drift_persistent,
            "migrations": dict(self.migrations),
            "jobs": [{"job": each.job, **each.as_json()} for each in self.ran],
        }

    def as_json(self) -> dict[str, Any]:
        return {"result": "Succeeded" if self.good else "Failed", **self.so_far()}

    def as_table(self) -> Table:
        """The same for a terminal."""
        table = Table("job", "rows", "seconds", "found", title="make demo-pipeline", title_justify="left")
        for each in self.ran:
            found = {key: each.told[key] for key in TOLD if key in each.told}
            table.add_row(each.job, str(each.told.get("rows", "")), f"{each.seconds:.0f}",
                          ", ".join(f"{key} {value}" for key, value in found.items()))
        table.caption = (f"waves accepted: {self.waves_accepted}; audit of the migrations: {self.verdict}; "
                         f"of the group that consumes twice: {self.planted}; drift: {self.drift_persistent}")
        return table
