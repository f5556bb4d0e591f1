"""A reason: why a gate is closed, and how urgent that is. Whatever a gate answers but a pass names one.

What it means, and what a person does about it, is Markdown in docs/runbooks, which `switchover explain` prints.
"""

from dataclasses import dataclass
from enum import StrEnum


class Urgency(StrEnum):
    """How soon somebody must act."""

    NOW = "**now**: something is at risk while it lasts"
    STANDS = "**when you can**: the migration stands until somebody acts, and nothing is at risk meanwhile"
    LOOK = "**when it lasts**: it may pass by itself"
    NONE = "**none**: it passes by itself"

    @property
    def short(self) -> str:
        """As the pages have it: what it means stands once, in docs/runbooks/README.md."""
        return self.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Reason:
    """`name` is the CamelCase word that status and Events show, `subject` the page of docs/runbooks that has its section.

    With `prose` it has a page of its own besides, and the section says only what it means.
    """

    subject: str
    name: str
    urgency: Urgency
    prose: bool = False

    @property
    def runbook(self) -> str:
        """Where its text is, below docs/."""
        return f"runbooks/{self.name}.md" if self.prose else f"runbooks/{self.subject}.md#{self.name.lower()}"
