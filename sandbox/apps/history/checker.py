"""Judges a history. Pure: events in, a report out; what the events mean is in events.py."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from history.commits import Commits
from history.deliveries import Deliveries
from history.events import Event, Kind, Partition, Process
from history.findings import Loss
from history.gaps import Waiting
from history.holdings import Holdings
from history.ranges import Ranges
from history.report import Report

ENDS = {Kind.RELEASE, Kind.LOST, Kind.FENCED, Kind.STOP}


@dataclass
class _Story:
    """All that is remembered of one partition."""

    commits: Commits
    holdings: Holdings = field(default_factory=Holdings)
    deliveries: Deliveries = field(default_factory=Deliveries)
    waiting: Waiting = field(default_factory=Waiting)
    acknowledged: Ranges = field(default_factory=Ranges)
    held: Ranges | None = None


def check(events: Iterable[Event], expected: Iterable[Partition] = ()) -> Report:
    """The report on events of one group, in the order of their monotonic time.

    Lost is what `acknowledged` events name, a commit has passed and nobody delivered; where a `held` event tells what
    the log still has, a record that compaction or retention took away is not lost. Partitions in `expected` must have
    an owner at some time, as must all that the events name. Markers of transactions are never acknowledged. The last
    gap ends with the last event: stop producers before consumers, or what nobody was left to deliver counts as waiting.

    Raises ValueError where nothing can be judged: no event, times out of order, or clocks of several machines.
    """
    judge = _Judge()
    for partition in expected:
        judge.story(partition)
    for event in events:
        judge.note(event)
    return judge.report()


class _Judge:
    def __init__(self) -> None:
        self._stories: dict[Partition, _Story] = {}
        self._begun: dict[Process, bool] = {}
        self._clock = ""
        self._epoch: float | None = None
        self._now = float("-inf")

    def story(self, partition: Partition) -> _Story:
        if partition not in self._stories:
            self._stories[partition] = _Story(Commits(partition))
        return self._stories[partition]

    def note(self, event: Event) -> None:
        if event.mono < self._now:
            raise ValueError(f"{event.kind} of {event.by} is not in the order of time")
        self._now = event.mono
        if self._epoch is None:
            self._epoch = event.wall - event.mono
        self._begun.setdefault(event.by, event.kind is Kind.START)
        match event.kind:
            case Kind.START:
                if self._clock and event.clock != self._clock:
                    raise ValueError(f"{event.by} ran on another machine, or before a reboot: its times cannot be compared")
                self._clock = event.clock
            case Kind.ERROR:
                pass
            case Kind.FENCED | Kind.STOP:
                for story in self._stories.values():
                    story.holdings.end(event.by, event.kind)
            case _:
                self._note_in(self.story(event.partition), event)

    @staticmethod
    def _note_in(story: _Story, event: Event) -> None:
        match event.kind:
            case Kind.CLAIM:
                story.holdings.claim(event.by)
                story.waiting.claim(event)
                story.commits.known(event)
            case Kind.DELIVERED:
                story.holdings.deliver(event)
                story.deliveries.deliver(event)
                story.waiting.deliver(event)
            case Kind.COMMIT:
                story.commits.known(event)
            case Kind.RELEASE | Kind.LOST:
                story.holdings.end(event.by, event.kind)
            case Kind.ACKNOWLEDGED:
                story.waiting.acknowledge(event)
                for first, last in event.ranges:
                    story.acknowledged.add(first, last)
            case Kind.HELD:
                story.held = Ranges(event.ranges)
            case Kind.RESET:
                story.commits.reset(event)

    def report(self) -> Report:
        if self._epoch is None:
            raise ValueError("there is no event: nothing is proved")
        report = Report(self._epoch, sorted(self._begun), len(self._stories))
        for by in sorted(by for by, begun in self._begun.items() if not begun):
            report.notes.append(f"the history of {by} does not begin with its start: not all of it is here")
        unproved: list[Partition] = []
        for partition, story in sorted(self._stories.items()):
            self._judge(partition, story, report)
            if story.deliveries.records and not story.acknowledged:
                unproved.append(partition)
        if unproved:
            report.notes.append(f"nothing acknowledged, so losses and gaps are not judged: {', '.join(map(str, unproved))}")
        report.gaps.sort(key=lambda gap: -gap.seconds)
        return report

    def _judge(self, partition: Partition, story: _Story, report: Report) -> None:
        report.deliveries += story.deliveries.records
        report.overlaps += story.holdings.overlaps(partition)
        report.rewinds += story.commits.rewinds
        if not story.holdings.claimed:
            report.never_owned.append(partition)
        if (duplicates := story.deliveries.duplicates(partition)) is not None:
            report.duplicates.append(duplicates)
        if (gap := story.waiting.longest(partition, self._now)) is not None:
            report.gaps.append(gap)
        for holding in story.holdings.delivering():
            if holding.after_end:
                report.notes.append(f"delivered without holding it, {partition}: {holding.words()}")
        missed = story.acknowledged - story.deliveries.offsets
        if story.held is not None:
            missed = missed & story.held
        lost = missed & story.commits.passed
        if lost:
            report.losses.append(Loss(partition, lost, story.commits.passing(next(iter(lost))[0])))
        if ahead := _from(missed - lost, story.commits.start):
            report.notes.append(f"not judged: {len(ahead)} records of {partition}, neither delivered nor passed")


def _from(offsets: Ranges, start: int) -> Ranges:
    return Ranges((max(first, start), last) for first, last in offsets)
