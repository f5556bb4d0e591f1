"""What init containers of ours report as termination messages: `cluster/door` has them written, here they are read."""

import re
from dataclasses import dataclass

DISKS, REACH = "switchover-disks", "switchover-reach"
"""The containers' names."""
_DISKS = re.compile(r"disks 1 (\d+) (\d+) (\d+) (\d+)")
_REACH, _ADDRESS = re.compile(r"reach 1 (\d+)"), re.compile(r"[\w.:\[\]%-]{1,300}", re.ASCII)


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


def unreached(message: str) -> tuple[str, ...] | None:
    """The addresses that were not reached, in a termination message; None for one that is no report, or not whole."""
    first, *missed = message.rstrip("\n").split("\n")
    told = _REACH.fullmatch(first)
    whole = told is not None and len(missed) <= int(told[1]) and all(map(_ADDRESS.fullmatch, missed))
    return tuple(sorted(missed)) if whole else None
