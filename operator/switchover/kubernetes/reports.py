"""What containers of ours report as termination messages: `cluster/door` has them written, here they are read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import javaproperties

DISKS, REACH = "switchover-disks", "switchover-reach"
"""The names of init containers."""
_DISKS = re.compile(r"disks 1 (\d+) (\d+) (\d+) (\d+)")
_REACH, _MISSED = re.compile(r"reach [12] (\d+)"), re.compile(r"([\w.:\[\]%-]{1,300})( silent)?", re.ASCII)
_TRIAL = re.compile(r"trial 2 (\d+) (\S+)")


@dataclass(frozen=True, slots=True)
class DiskReport:
    """What a broker's pod found on its volumes when it started. Of each finding a few examples are named."""

    directories: int                  # log directories: those that have a meta.properties
    partitions: int                   # partition directories in them
    formatted: int                    # log directories with a meta.properties of another version than 0
    nameless: int                     # partition directories without partition.metadata
    formatted_directories: tuple[str, ...] = ()
    nameless_directories: tuple[str, ...] = ()


def disks(message: str) -> DiskReport | None:
    """The report on disks in a termination message; None for one that is none, or not whole."""
    first, *findings = message.rstrip("\n").split("\n")
    counted = _DISKS.fullmatch(first)
    if counted is None:
        return None
    found: dict[str, list[str]] = {"formatted": [], "nameless": []}
    for finding in findings:
        kind, _, path = finding.partition(" ")
        if kind not in found:
            return None
        found[kind].append(path)
    directories, partitions, formatted, nameless = (int(number) for number in counted.groups())
    return DiskReport(directories, partitions, formatted, nameless, tuple(found["formatted"]), tuple(found["nameless"]))


def unreached(message: str) -> Mapping[str, bool] | None:
    """The addresses that gave no answer, in a termination message, and whether each took the connection; None for one that
    is no report, or not whole.

    An older report (`reach 1`) names those that took no connection, and nobody was asked anything.
    """
    first, *lines = message.rstrip("\n").split("\n")
    head, missed = _REACH.fullmatch(first), [_MISSED.fullmatch(line) for line in sorted(lines)]
    found = {each[1]: each[2] is not None for each in missed if each is not None}
    return found if head is not None and len(found) == len(lines) <= int(head[1]) else None


def started_with(message: str, nonce: str) -> Mapping[str, str] | None:
    """What Kafka would be started with, of the keys that were asked for; None for a message that is no report of the Job
    with this nonce, or not whole."""
    first, _, rest = message.partition("\n")
    head = _TRIAL.fullmatch(first)
    try:
        found: Mapping[str, str] = javaproperties.loads(rest)
    except ValueError:
        return None
    return found if head is not None and head[2] == nonce and len(found) == int(head[1]) else None
