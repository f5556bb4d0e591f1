"""The reasons as Markdown: a page of docs/runbooks for each subject, and what `switchover explain` prints of one."""

import re

from switchover.reasons import REASONS, SUBJECTS
from switchover.reasons.reason import Reason, Subject

MADE = "<!-- Written by `make reference` from operator/switchover/reasons. -->"
REFERENCE = re.compile(r"\[([^][]+)\](?:\[(\w+)\])?(?![(\w])")
"""`[OtherReason]`, or `[words][OtherReason]`."""


def page_of(subject: Subject) -> str:
    """A subject's page: each of its reasons under a heading of its own, with their references at the end."""
    reasons = [each for each in REASONS.values() if each.subject is subject]
    body = "\n\n".join(f"## {each.name}\n\n{each.text}" for each in sorted(reasons, key=lambda each: each.name))
    named = {name for words, name in REFERENCE.findall(body) for name in (words, name) if name in REASONS}
    links = "\n".join(f"[{name}]: {REASONS[name].runbook.removeprefix('runbooks/')}" for name in sorted(named))
    return f"# {subject.title}\n\n{MADE}\n\n{body}\n" + (f"\n{links}\n" if links else "")


def pages() -> dict[str, str]:
    """Every page of a subject by the name of its file."""
    return {f"{subject.name}.md": page_of(subject) for subject in SUBJECTS}


def explained(reason: Reason) -> str:
    """A reason without a page of its own, to be read on a terminal."""
    return f"# {reason.name}\n\n{REFERENCE.sub(_by_name, reason.text)}"


def _by_name(found: re.Match[str]) -> str:
    words, name = found.groups()
    if (name or words) not in REASONS:
        return found[0]
    return words if name is None else f"{words} ({name})"
