"""How a rehearsal went: what was seen of the replica, before anybody judges it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from enum import IntEnum

from switchover.metadata.cluster import Difference

# --- log ------------------------------------------------------------------------------------------------------------------
# What the log of a replica's process tells, without any of its lines: these may hold credentials (docs/rehearsal.md).
#
# Of a line come its level, the class that wrote it, the class of an exception, and the names that the tree knows anyway.

LOG4J = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=@%p %c @%m%n
log4j.logger.kafka.request.logger=WARN
log4j.logger.state.change.logger=WARN
log4j.logger.org.apache.kafka.controller.ReplicationControlManager=WARN
"""
"""How the processes write it: `@LEVEL class @message`; what begins otherwise belongs to the line before. The log lies in
memory: a line for each partition was 100 MiB of it at 200,000."""

_LINE = re.compile(r"@(INFO|WARN|ERROR|FATAL) (\S+) @(.*)")
_EXCEPTION = re.compile(r"(?:Caused by: )?(?:[a-z][\w$]*\.)+(\w+(?:Exception|Error))\b")
_NO_CLASS = re.compile(r"Error: Could not find or load main class \S*?(\w+)$")
"""Java's own words, before there is a log: an image of Kafka 4 has no ZooKeeper."""
_WORD = re.compile(r"[^\s\[\](){}'\"`,;:]+")
_TOLD = frozenset({"ERROR", "FATAL"})
_LONGEST = 10_000
"""Characters of a message in which names are looked for."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error that a process told. `names` are those in it that are nodes' names or configurations' keys in the tree."""

    source: str
    exception: str
    names: frozenset[str]

    def __str__(self) -> str:
        return " ".join(filter(None, (self.exception or "an error", f"in {self.source}")))


def troubles(lines: Iterable[str], known: Set[str]) -> tuple[Trouble, ...]:
    """The errors in a log, each once, in their order."""
    found: dict[Trouble, None] = {}
    for source, message, exception in _errors(lines):
        names = frozenset(word for word in map(_bare, _WORD.findall(message[:_LONGEST])) if word in known)
        found[Trouble(source.rpartition(".")[2], exception, names)] = None
    return tuple(found)


def _errors(lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Who told it, its words, and the class of its deepest cause."""
    error: tuple[str, str, str] | None = None
    for line in lines:
        if missing := _NO_CLASS.match(line):
            yield missing[1], "", "ClassNotFound"
        if begun := _LINE.match(line):
            if error is not None:
                yield error
            level, source, message = begun.groups()
            cause = _EXCEPTION.search(message)
            error = (source, message, cause[1] if cause else "") if level in _TOLD else None
        elif error is not None and (cause := _EXCEPTION.match(line)):
            error = (error[0], f"{error[1]}\n{line}", cause[1])
    if error is not None:
        yield error


def _bare(word: str) -> str:
    return word.strip(".!?=")


class Reached(IntEnum):
    """How far the controller got."""

    NOTHING = 0
    CLAIMED = 1
    COPIED = 2
    DUAL_WRITE = 3


@dataclass(frozen=True, slots=True)
class Process:
    """How a process of the replica fared: its exit code, None while it ran on, and the errors that it told."""

    exit_code: int | None = None
    troubles: tuple[Trouble, ...] = ()

    @property
    def cause(self) -> Trouble | None:
        """The error that tells most: the last one with an exception, else the last one."""
        newest = self.troubles[::-1]
        return next((each for each in newest if each.exception), newest[0] if newest else None)


@dataclass(frozen=True, slots=True)
class Canary:
    """A KRaft broker that loaded the replica's image; `topics` are those that it lists, None when it listed none."""

    process: Process
    topics: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Course:
    """What is None was not come to, and what is "" was not in the way."""

    reached: Reached
    controller: Process = Process()
    waited_for: Set[int] = frozenset()
    """Brokers of assignments without which the controller did not claim: the migration would wait for them."""
    refused: Mapping[int, str] = field(default_factory=dict)
    """Registrations that the controller refused: broker -> Kafka's error."""
    differences: tuple[Difference, ...] | None = None
    """The exported tree against the metadata image."""
    unread: str = ""
    """Why the image could not be read."""
    after: Mapping[str, bytes | None] | None = None
    """The replica's tree once dual write had begun."""
    canary: Canary | None = None
    back: str | None = None
    """Why /controller and /migration could not be deleted as a rollback does it; "" when they were."""
    finalized: bool | None = None
    after_finalize: tuple[Difference, ...] | None = None
    ended_by: Mapping[str, Process] = field(default_factory=dict)
    """Settings of the brokers' own that name classes, with which a node on KRaft did not come up -> how it fared."""
