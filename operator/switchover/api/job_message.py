"""What a job of the pipeline ends with, as its pod's termination message: the pipeline writes it, the operator reads it.

The two run from different images, which may be of different releases. A later release may add fields; one that changes what
a field means raises VERSION.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from switchover.shared import foreign_json

NONCE = "SWITCHOVER_NONCE"
"""Variable of a Job's containers. What the Job reports repeats it: what another pod says is no report of this one."""
VERSION = 1
"""A message without a version, as releases before wrote it, is read as version 1."""
LARGEST = 4096
"""Bytes that a kubelet stores of a termination message."""
SHOWN = 300
"""Characters that are shown of a message that is no job's own."""


class Job(StrEnum):
    """The jobs of the pipeline. Each is the module of that name's `job.run(config, progress)`."""

    CAPTURE = "capture"
    INVENTORY = "inventory"
    BASELINE = "baseline"
    AUDIT = "audit"
    DRIFT = "drift"


class Result(StrEnum):
    """Whether a job came to its end."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class AuditVerdict(StrEnum):
    """What an audit ends with."""

    CLEAN = "Clean"
    VIOLATIONS = "Violations"
    INDETERMINATE = "Indeterminate"


@dataclass(frozen=True, slots=True)
class JobMessage:
    """`verdict` is for jobs that judge, "" without one; `reason` is for jobs that cannot go on; `nonce` is the Job's own, ""
    where nobody gave one. `more` are other fields, in the order in which they are written."""

    job: str
    result: Result | None
    verdict: str = ""
    reason: str = ""
    evidence: tuple[str, ...] = ()
    nonce: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)

    def audit_verdict(self) -> AuditVerdict | None:
        """None where there is none. Raises ValueError for one that is not known."""
        try:
            return AuditVerdict(self.verdict) if self.verdict else None
        except ValueError:
            raise ValueError(f"this operator knows no verdict {self.verdict[:40]!r}") from None

    def line(self) -> str:
        """As JSON on one line, whose longest values are shortened from their ends to what a kubelet keeps."""
        own = {"job": self.job, "result": self.result, "verdict": self.verdict, "reason": self.reason,
               "evidence": list(self.evidence), "nonce": self.nonce}
        fields: dict[str, Any] = {"version": VERSION, **{key: value for key, value in own.items() if value}}
        fields |= {key: value for key, value in self.more.items() if value is not None}
        while len((line := json.dumps(fields)).encode()) > LARGEST:
            longest = max(fields, key=lambda key: len(json.dumps(fields[key])))
            value = fields[longest]
            fields[longest] = value[: len(value) // 2] if isinstance(value, (str, list, tuple)) else "…"
        return line


def read(text: str) -> JobMessage:
    """The message that a job left. What no job wrote, such as the last line of a log, is the reason of one without a result.

    Raises ValueError for a version that is not known: its fields may mean something else.
    """
    try:
        content = foreign_json.parsed(text)
    except ValueError:
        content = None
    if not isinstance(content, Mapping):
        return JobMessage("", None, reason=text.strip()[-SHOWN:])
    if (version := content.get("version", VERSION)) != VERSION:
        raise ValueError(f"it is of version {str(version)[:20]!r}, and this operator reads version {VERSION}")
    evidence = content.get("evidence")
    result = content.get("result")
    return JobMessage(
        job=str(content.get("job") or ""), result=Result(result) if result in list(Result) else None,
        verdict=str(content.get("verdict") or ""), reason=str(content.get("reason") or ""),
        evidence=tuple(str(each) for each in evidence) if isinstance(evidence, list) else (),
        nonce=str(content.get("nonce") or ""))
