"""A consumer group in a time of its own, whose members write their histories by the real recorder."""

import io
from collections.abc import Callable, Iterable

from history.checker import check
from history.events import NO_OFFSET, Event, Partition, parsed
from history.recorder import Recorder
from history.report import Report

TOPIC = "orders"
BOOT = "boot-1"


class Story:
    """The clock, the files, and what the brokers know: committed offsets."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.files: list[io.BytesIO] = []
        self.committed: dict[int, int] = {}
        self.producer = self.member("producer")

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def member(self, name: str, instance: str = "", clock: str = BOOT, words: str = "") -> "Member":
        """A new run of a member."""
        self.wait(0.001)
        file = io.BytesIO()
        self.files.append(file)
        return Member(self, name, instance, Recorder(
            file, name, instance=instance, words=words, clock=clock, mono=lambda: self.now, wall=lambda: self.now + 1.7e9))

    def produce(self, partition: int, *offsets: int) -> None:
        for offset in offsets:
            self.wait(0.001)
            self.producer.recorder.acknowledged(TOPIC, partition, offset)
        self.producer.recorder.flush()

    def events(self) -> list[Event]:
        lines = [parsed(line) for file in self.files for line in file.getvalue().splitlines()]
        return sorted(lines, key=lambda event: event.mono)

    def report(self, expected: Iterable[int] = ()) -> Report:
        return check(self.events(), [Partition(TOPIC, number) for number in expected])


class Member:
    """One run of a member; a killed one is just not called any more."""

    def __init__(self, story: Story, name: str, instance: str, recorder: Recorder) -> None:
        self.story, self.name, self.instance, self.recorder = story, name, instance, recorder

    def claim(self, *partitions: int) -> None:
        for partition in partitions:
            self.story.wait(0.001)
            self.recorder.claim(TOPIC, partition, self.story.now, self.story.committed.get(partition, NO_OFFSET))

    def deliver(self, partition: int, *offsets: int) -> None:
        for offset in offsets:
            self.story.wait(0.001)
            self.recorder.delivered(TOPIC, partition, offset)
        self.recorder.tick()

    def commit(self, partition: int, offset: int) -> None:
        since = self.recorder.flush()
        self.story.committed[partition] = offset
        self.story.wait(0.002)
        self.recorder.commit(TOPIC, partition, since, offset)

    def release(self, *partitions: int) -> None:
        for partition in partitions:
            self.story.wait(0.001)
            self.recorder.release(TOPIC, partition)

    def lose(self, *partitions: int) -> None:
        for partition in partitions:
            self.story.wait(0.001)
            self.recorder.lost(TOPIC, partition)


def endings(member: Member) -> dict[str, Callable[[], None]]:
    """What can end a holding of partition 0, by its event."""
    return {"release": lambda: member.release(0), "lost": lambda: member.lose(0), "stop": member.recorder.stop,
            "fenced": lambda: member.recorder.fenced("another has the instance id")}


def ten_each() -> Story:
    """Ten acknowledged records in each of two partitions."""
    story = Story()
    for partition in (0, 1):
        story.produce(partition, *range(10))
    return story


def lines(story: Story, word: str) -> list[str]:
    return [line for line in story.report().lines() if line.startswith(word)]
