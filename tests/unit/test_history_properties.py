"""Any lawful history has no fault, and any one fault planted in it is found, and nothing else is."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from history.events import Kind, Partition
from history.findings import Loss, Overlap, Rewind
from unit.group_story import TOPIC, Member, Story

PARTITIONS = 3


class Group:
    """A lawful group: each action keeps the rules of the coordinator. Every number chooses among what is possible."""

    def __init__(self) -> None:
        self.story = Story()
        self.records: dict[int, list[int]] = {p: [] for p in range(PARTITIONS)}
        self.end = dict.fromkeys(range(PARTITIONS), 0)
        self.owner: dict[int, Member] = {}
        self.position: dict[int, int] = {}
        self.members = [self.story.member(name, instance=name) for name in ("a", "b")]

    # --- actions ---

    def produce(self, number: int) -> None:
        partition, count = number % PARTITIONS, 1 + number % 7
        offsets = range(self.end[partition], self.end[partition] + count)
        self.end[partition] += count
        self.records[partition] += offsets
        self.story.produce(partition, *offsets)

    def marker(self, number: int) -> None:
        """A transaction ends: an offset without a record."""
        self.end[number % PARTITIONS] += 1

    def wait(self, number: int) -> None:
        self.story.wait(number / 40)
        for member in self.members:
            member.recorder.tick()

    def deliver(self, number: int) -> None:
        partition = number % PARTITIONS
        if partition in self.owner:
            due = [offset for offset in self.records[partition] if offset >= self.position[partition]][:1 + number % 11]
            self.owner[partition].deliver(partition, *due)
            if due:
                self.position[partition] = due[-1] + 1

    def commit(self, number: int) -> None:
        partition = number % PARTITIONS
        if partition in self.owner:
            self.owner[partition].commit(partition, self.position[partition])

    def claim(self, number: int) -> None:
        partition = number % PARTITIONS
        if partition not in self.owner:
            self._gives(partition, self.members[number % len(self.members)])

    def hand_over(self, number: int) -> None:
        partition = number % PARTITIONS
        if partition in self.owner:
            self.commit(partition)
            self.owner.pop(partition).release(partition)
            self._gives(partition, self.members[number % len(self.members)])

    def lose(self, number: int) -> None:
        """The member learns it late: another has delivered before it writes so."""
        partition = number % PARTITIONS
        if partition in self.owner:
            former = self.owner.pop(partition)
            former.recorder.tick()
            self.claim(number // PARTITIONS * PARTITIONS + partition)
            if self.owner[partition] is not former:
                self.deliver(number // PARTITIONS * PARTITIONS + partition)
                former.lose(partition)

    def freeze(self, number: int) -> None:
        """A commit is accepted, its sender stands still, others go on, and then it reads the answer."""
        partition = number % PARTITIONS
        if partition not in self.owner:
            return
        former, offset = self.owner.pop(partition), self.position[partition]
        since = former.recorder.flush()
        self.story.committed[partition] = offset
        other = next(member for member in self.members if member is not former)
        self.story.wait(50)
        self._gives(partition, other)
        self.deliver(partition + PARTITIONS)
        self.commit(partition)
        former.recorder.commit(TOPIC, partition, since, offset)
        former.lose(partition)

    def kill(self, number: int) -> None:
        """SIGKILL; the member comes back under its instance id, as a new run, with nothing or with what it had."""
        at = number % len(self.members)
        dead = self.members[at]
        self.members[at] = back = self.story.member(dead.name, instance=dead.instance)
        for partition in [p for p, owner in self.owner.items() if owner is dead]:
            del self.owner[partition]
            if number % 2:
                self._gives(partition, back)

    def reset(self, number: int) -> None:
        """Everybody releases, and a tool moves the group to some offset."""
        partition = number % PARTITIONS
        if partition in self.owner:
            self.owner.pop(partition).release(partition)
        offset = number % (self.end[partition] + 1)
        self.story.wait(0.001)
        self.story.producer.recorder.reset(TOPIC, partition, offset)
        self.story.committed[partition] = offset

    def finish(self) -> None:
        """All that is there is delivered and committed by somebody."""
        for partition in range(PARTITIONS):
            self.produce(partition)
            self.claim(partition)
            while any(offset >= self.position[partition] for offset in self.records[partition]):
                self.deliver(partition + 9)
            self.commit(partition)
            self.owner.pop(partition).release(partition)
        for member in self.members:
            member.recorder.stop()

    # --- faults ---

    def double(self, number: int) -> None:
        partition = number % PARTITIONS
        self._ready(partition)
        owner = self.owner[partition]
        other = next(member for member in self.members if member is not owner)
        self.deliver(partition)
        other.deliver(partition, self.records[partition][0])
        other.recorder.flush()
        self.deliver(partition)
        owner.recorder.flush()  # or SIGKILL right after could take it from the history, as documented

    def skip(self, number: int) -> None:
        partition = number % PARTITIONS
        self._ready(partition)
        self.position[partition] = self.end[partition]
        self.commit(partition)

    def rewind(self, number: int) -> None:
        partition = number % PARTITIONS
        self._ready(partition)
        while self.position[partition] < self.end[partition]:
            self.deliver(partition)
        self.commit(partition)
        self.position[partition] = number % self.end[partition]
        self.commit(partition)

    def _ready(self, partition: int) -> None:
        """Owned, with fresh records in it, and none of them delivered."""
        self.claim(partition)
        self.produce(partition)
        self.produce(partition + PARTITIONS)

    def _gives(self, partition: int, member: Member) -> None:
        self.owner[partition] = member
        self.position[partition] = self.story.committed.get(partition, 0)
        member.claim(partition)


LAWFUL = ["produce", "produce", "deliver", "deliver", "commit", "claim", "wait", "marker", "hand_over", "lose", "freeze",
          "kill"]
ACTIONS = st.lists(st.tuples(st.sampled_from(LAWFUL), st.integers(0, 99)), max_size=40)
WITH_RESETS = st.lists(st.tuples(st.sampled_from([*LAWFUL, "reset"]), st.integers(0, 99)), max_size=60)


def play(group: Group, actions: list[tuple[str, int]]) -> None:
    for name, number in actions:
        group.story.wait(0.001)
        getattr(group, name)(number)


@settings(max_examples=300)
@given(WITH_RESETS)
def test_a_lawful_history_has_no_fault(actions: list[tuple[str, int]]) -> None:
    group = Group()
    play(group, actions)
    group.finish()
    report = group.story.report(expected=range(PARTITIONS))
    assert list(report.lines())[:-1] == [line for line in report.lines() if line.startswith(("duplicates", "gap"))]
    counts = Counter((event.partition, offset) for event in group.story.events() if event.kind is Kind.DELIVERED
                     for first, last in event.ranges for offset in range(first, last + 1))
    assert sum(each.records for each in report.duplicates) == counts.total() - len(counts)
    assert report.deliveries == counts.total()


@settings(max_examples=200)
@pytest.mark.parametrize(("fault", "kind"), [("double", Overlap), ("skip", Loss), ("rewind", Rewind)])
@given(before=WITH_RESETS, number=st.integers(0, 99), after=ACTIONS)
def test_one_planted_fault_is_found_and_nothing_else(fault, kind, before, number, after) -> None:
    group = Group()
    play(group, before)
    getattr(group, fault)(number)
    play(group, after)
    group.finish()
    found = group.story.report().faults
    assert {type(each) for each in found} == {kind}
    assert {each.partition for each in found} == {Partition(TOPIC, number % PARTITIONS)}
    if kind is not Overlap:
        assert len(found) == 1
