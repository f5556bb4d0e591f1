"""A reason: why a gate is closed, how urgent that is, and what a person does about it.

Whatever a gate answers but a pass names one. The page that a person opens is made of it, and `switchover explain` prints it.
"""

from dataclasses import dataclass
from enum import StrEnum

COMMANDS = ("kubectl ", "switchover ", "kafka-", "zookeeper-shell")
"""How a line begins that can be pasted."""


class Urgency(StrEnum):
    """How soon somebody must act, in words."""

    NOW = "**now**: something is at risk while it lasts"
    STANDS = "**when you can**: the migration stands until somebody acts, and nothing is at risk meanwhile"
    LOOK = "**when it lasts**: it may pass by itself"
    NONE = "**none**: it passes by itself"


@dataclass(frozen=True, slots=True)
class Subject:
    """What several reasons are about: a page of docs/runbooks by this name, and the command that shows its state."""

    name: str
    title: str
    command: str


@dataclass(frozen=True, slots=True)
class Reason:
    """`name` is the CamelCase word that status and Events show. The texts are Markdown; in them `[OtherReason]` is a link.

    With `prose` the reason has a page of its own beside that of its subject, and says here only what it means.
    """

    subject: Subject
    name: str
    urgency: Urgency
    meaning: str
    look: str = ""
    do: str = ""
    prose: bool = False

    @property
    def runbook(self) -> str:
        """Where its text is, below docs/."""
        return f"runbooks/{self.name}.md" if self.prose else f"runbooks/{self.subject.name}.md#{self.name.lower()}"

    @property
    def text(self) -> str:
        """All that is known of it but its name, as Markdown; at least one line of it can be pasted."""
        parts = [f"Urgency: {self.urgency}.", self.meaning]
        for what, text in (("Look at", self.look), ("Do", self.do)):
            if text:
                gap = "\n\n" if text.startswith("```") else " "
                parts.append(f"**{what}**:{gap}{text}")
        if self.prose:
            parts.append(f"**All of it**: [{self.name}.md]({self.name}.md).")
        if not has_command(self.look + self.do):
            parts.append(f"```\n{self.subject.command}\n```")
        return "\n\n".join(parts)


def has_command(text: str) -> bool:
    """Whether a text gives a command, in backticks or on a line of its own."""
    return any(f"`{word}" in text or f"\n{word}" in text for word in COMMANDS)
