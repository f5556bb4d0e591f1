"""What a job is given and what it ends with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


class JobFailed(Exception):
    """A job cannot go on; says in words what is wrong and what helps."""


class BadConfig(JobFailed):
    """The configuration cannot be used."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a job found, in short: `summary` fits a termination message, everything else is in the files of its run.

    `rows` counts what it read. `verdict` and `evidence`, in sentences, are for jobs that judge (audit, drift).
    """

    rows: int
    summary: Mapping[str, Any] = field(default_factory=dict)
    verdict: str = ""
    evidence: Sequence[str] = ()
