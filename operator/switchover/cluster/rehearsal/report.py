"""What a rehearsal found, as people and the operator read it: it names nodes and keys, and shows no value."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from switchover.api.job_message import LARGEST
from switchover.api.status import Severity
from switchover.shared import foreign_json
from switchover.text.command import command
from switchover.text.visible import in_markdown

VERSION = 1
TREE_DIGEST = "SWITCHOVER_TREE"
"""Variable of the conductor: the digest of the tree that it is to rehearse."""
TO_DUAL_WRITE = "claim to dual write"
"""The part of a rehearsal, among its seconds, of which the migration's copy is made."""


class Stage(StrEnum):
    """Of a rehearsal, in the order in which findings are told."""

    EXPORT = "Export"
    BROKERS = "Brokers"
    CLAIM = "Claim"
    COPY = "Copy"
    SYNC = "Sync"
    IMAGE = "Image"
    CANARY = "Canary"
    ROLLBACK = "Rollback"
    FINALIZE = "Finalize"
    CLASSES = "Classes"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the migration would meet. `reason` has a runbook, `subject` is the znode, where one is known."""

    stage: Stage
    reason: str
    severity: Severity
    message: str
    subject: str = ""
    cure: str = ""


ZOOKEEPER = "ZOOKEEPER_CONNECT"
"""Stands in a cure for the brokers' zookeeper.connect, which a replica does not know. Nothing in that one ends a word."""


def delete(path: str) -> str:
    """The command that deletes a node."""
    return command("zookeeper-shell.sh " + ZOOKEEPER + " delete {}", path)


def get(path: str) -> str:
    """The command that shows a node."""
    return command("zookeeper-shell.sh " + ZOOKEEPER + " get {}", path)


@dataclass(frozen=True, slots=True)
class Report:
    """The result. `digest` is that of the tree, `seconds` what each part took, `more` how many findings were left out,
    `nonce` that of its Job."""

    digest: str
    findings: tuple[Finding, ...] = ()
    znodes: int = 0
    topics: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    more: int = 0
    nonce: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing stands in the way of the migration."""
        return not self.more and all(finding.severity is not Severity.BLOCKER for finding in self.findings)

    def at(self, connect: str) -> "Report":
        """The report with commands for the ensemble that it is about."""
        return replace(self, findings=tuple(
            replace(finding, cure=finding.cure.replace(ZOOKEEPER, connect)) for finding in self.findings))


def as_json(report: Report) -> str:
    """The whole report, on one line."""
    return json.dumps({"version": VERSION, **asdict(report)}, separators=(",", ":"))


def as_message(report: Report) -> str:
    """The report in as many bytes as a termination message has: the last findings go first."""
    kept = list(report.findings)
    while True:
        text = as_json(replace(report, findings=tuple(kept), more=report.more + len(report.findings) - len(kept)))
        if len(text.encode()) <= LARGEST or not kept:
            return text
        kept.pop()


def read(text: str) -> Report:
    """A report as `as_json` writes it. Raises ValueError for what is none."""
    try:
        fields: dict[str, Any] = foreign_json.parsed(text)
        if fields.pop("version") != VERSION:
            raise ValueError("of another version")
        findings = tuple(Finding(**{**each, "stage": Stage(each["stage"]), "severity": Severity(each["severity"])})
                         for each in fields.pop("findings"))
        return Report(findings=findings, **fields)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError("not a report of a rehearsal") from error


def as_markdown(report: Report, name: str) -> str:
    """The report for a change ticket."""
    seconds = ", ".join(f"{part} {taken:.1f} s" for part, taken in report.seconds.items())
    lines = [
        f"# Rehearsal of the migration of {in_markdown(name)}", "",
        f"**{'Passed' if report.passed else 'Not passed'}.** {report.topics} topics, {report.znodes} znodes,"
        f" digest {report.digest}. {seconds}.", ""]
    if report.findings:
        lines += ["| Stage | Finding | Weight | What | Node | What to do |", "|---|---|---|---|---|---|"]
        lines += [f"| {each.stage} | {each.reason} | {each.severity} | {in_markdown(each.message)}"
                  f" | {in_markdown(each.subject)} | {in_markdown(each.cure)} |" for each in report.findings]
    return "\n".join([*lines, ""])


def lines(report: Report) -> Sequence[str]:
    """The report for a terminal."""
    told = [f"{'passed' if report.passed else 'NOT PASSED'}: {report.topics} topics, {report.znodes} znodes,"
            f" digest {report.digest}"]
    told += [f"  {part}: {taken:.1f} s" for part, taken in report.seconds.items()]
    for each in report.findings:
        told.append(f"{each.severity}: {each.reason} ({each.stage}): {each.message}")
        told += [f"  {label}: {text}" for label, text in (("node", each.subject), ("to do", each.cure)) if text]
    if report.more:
        told.append(f"and {report.more} more")
    return told
