"""The histories of all pods that ever were members or producers, and the oracle's word on them."""

import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from demo.cluster import Cluster, CommandFailed
from demo_groups import world
from history.checker import check
from history.events import Event, Kind, Partition, Process
from history.gaps import Waiting
from history.ranges import Range, Ranges
from history.reader import Reading
from history.report import Report
from patience import stretched


def collect(cluster: Cluster, directory: Path) -> None:
    """Fetch what was written since the namespace was made. Raises CommandFailed."""
    directory.mkdir(parents=True, exist_ok=True)
    created = cluster.get("namespace", cluster.namespace)["metadata"]["creationTimestamp"]
    for pod in cluster.items("pods", "--selector", "app=histories"):
        command = ("kubectl", "--namespace", cluster.namespace, "exec", pod["metadata"]["name"], "--", "tar", "--create",
                   "--newer-mtime", created, "--directory", "/node/histories", ".")
        done = subprocess.run(
            command, env=dict(cluster.environment), capture_output=True, timeout=stretched(120), check=False)
        if done.returncode:
            raise CommandFailed(f"{' '.join(command)}: {done.stderr.decode(errors='replace').strip()}")
        unpack = ("tar", "--extract", "--no-overwrite-dir", "--directory", str(directory))
        subprocess.run(unpack, input=done.stdout, check=True)


def judge(directory: Path, group: str, partitions: int = world.PARTITIONS) -> Report:
    """The oracle's report on one group, whose topic has the group's name. Raises ValueError where nothing can be judged."""
    expected = [Partition(group, number) for number in range(partitions)]
    reading = _reading(directory, group)
    report = check(reading.events(), expected)
    report.notes += reading.notes()
    return report


def started(directory: Path, group: str) -> dict[Process, str]:
    """What each process told of itself as it began; a container that is restarted is another one."""
    return {event.by: event.words for event in _reading(directory, group).events() if event.kind is Kind.START}


@dataclass
class Span:
    """What befell a group between two wall-clock times."""

    gaps: dict[Partition, float] = field(default_factory=dict)
    """The longest time in which a partition had a record and nobody delivered, in seconds; 0.0 for none."""
    claims: int = 0
    """How often a member was given a partition."""
    moves: int = 0
    """How often it was one that another pod had before; a StatefulSet's pod that is made anew is the same one."""
    deliveries: int = 0
    duplicates: int = 0
    """Records that were delivered and had been before."""
    stood: float = 0.0
    """Seconds in which a partition had a record and nobody delivered, of all partitions together."""
    pods: int = 0
    """Members that were first given a partition."""

    @property
    def longest_gap(self) -> float:
        return max(self.gaps.values(), default=0.0)


def between(directory: Path, group: str, start: float, end: float) -> Span:
    """What the histories tell of that time."""
    offset, last, stories, span = None, 0.0, dict[Partition, Waiting](), Span()
    members = set[str]()
    owners, delivered = dict[Partition, str](), defaultdict[Partition, Ranges](Ranges)
    for event in _reading(directory, group).events():
        offset = event.wall - event.mono if offset is None else offset
        last = event.mono
        if event.mono > end - offset:
            break
        within = event.mono > start - offset
        if event.kind is Kind.CLAIM:
            before = owners.get(event.partition, event.by.member)
            owners[event.partition] = event.by.member
            span.claims += within
            span.pods += within and event.by.member not in members
            members.add(event.by.member)
            span.moves += within and before != event.by.member
        if event.kind is Kind.DELIVERED:
            again = [each for one in event.ranges for each in delivered[event.partition].add(*one)]
            span.deliveries += within * _count(event.ranges)
            span.duplicates += within * _count(again)
        if event.kind in (Kind.CLAIM, Kind.ACKNOWLEDGED, Kind.DELIVERED):
            _feed(stories.setdefault(event.partition, Waiting(start - offset)), event)
    for partition, waiting in stories.items():
        gap = waiting.longest(partition, last)
        span.gaps[partition] = gap.seconds if gap is not None else 0.0
        span.stood += waiting.stood
    return span


def _count(ranges: Iterable[Range]) -> int:
    return sum(last - first + 1 for first, last in ranges)


def _feed(waiting: Waiting, event: Event) -> None:
    match event.kind:
        case Kind.CLAIM:
            waiting.claim(event)
        case Kind.ACKNOWLEDGED:
            waiting.acknowledge(event)
        case _:
            waiting.deliver(event)


def _reading(directory: Path, group: str) -> Reading:
    return Reading(_files(directory, group))


def _files(directory: Path, group: str) -> Iterator[Path]:
    """All files of a group begin with its name, the producer's too."""
    return iter(sorted(directory.glob(f"{group}-*.jsonl")))
