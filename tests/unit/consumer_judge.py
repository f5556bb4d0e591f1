"""What a group of consumers must not do, asked at each record that is handed out and at each offset that is written: Z1, Z2,
Z5, Z6, Z8 and Z12 of docs/testing.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from switchover.shared.partition import TopicPartition

if TYPE_CHECKING:
    from unit.consumer_world import Servers

ME = "g_me"


class Judge:
    """Partitions begin at 0. `story` is what happened, by the time and the thread, `broken` what
    must not have happened, where the application says what it is handed."""

    def __init__(self, servers: Servers) -> None:
        self._servers, self._scheduler, self._began = servers, servers.scheduler, servers.scheduler.now
        self.story: list[str] = []
        self.broken: list[str] = []
        self._next: Counter[TopicPartition] = Counter()             # what is handed out next, by whoever
        self._answered: Counter[TopicPartition] = Counter()         # the last commit that our application was answered for
        self._whose: dict[TopicPartition, str] = {}
        self._begun: dict[TopicPartition, int] = {}                 # ours, and nothing of it is handed out
        self._again: set[TopicPartition] = set()                    # may be handed out again from its last commit on

    def says(self, what: str) -> None:
        self.story.append(f"{self._scheduler.now - self._began:7.2f} s  {self._scheduler.current.name}: {what}")

    def _breaks(self, rule: str, what: str) -> None:
        self.says(f"BROKEN {rule}: {what}")
        self.broken.append(f"{rule}: {what}")

    # --- records ------------------------------------------------------------------------------------------------------

    def assigned(self, begun: Mapping[TopicPartition, int]) -> None:
        """Ours, from here on."""
        self._begun |= begun

    def handed(self, partition: TopicPartition, offset: int, who: str) -> None:
        servers = self._servers
        if who == ME:
            if (begun := self._begun.pop(partition, None)) is not None:
                self.begins(partition, begun, ME)
            owner = servers.owners.get(partition)
            if owner is None or not owner.thread.startswith(ME) or owner.session not in servers.sessions:
                self._breaks("Z2, Z8", f"{partition}@{offset} is handed out, and {owner} owns it")
        if self._whose.get(partition) != who:
            self._breaks("Z1", f"{who} hands out {partition}@{offset}, which {self._whose.get(partition)} has")
        if offset != self._next[partition]:
            self._breaks("Z5", f"{who} hands out {partition}@{offset}, next was {self._next[partition]}")
        self._next[partition] = offset + 1

    def begins(self, partition: TopicPartition, start: int, who: str) -> None:
        due = self._next[partition]
        self.says(f"{who} begins {partition} at {start}")
        if start > due:
            self._breaks("Z5", f"{who} begins {partition} at {start}, next was {due}: records are lost")
        if start < due and partition not in self._again:
            self._breaks("Z6", f"{who} begins {partition} at {start}, next was {due}: records are handed out twice")
        self._again.discard(partition)
        self._next[partition], self._whose[partition] = start, who

    def gives(self, partition: TopicPartition) -> None:
        """Its owner has, in order."""
        self._whose.pop(partition, None)
        self._begun.pop(partition, None)

    def left(self, partitions: Iterable[TopicPartition]) -> None:
        """Without a last commit: a session has ended, or the application went back, or failed."""
        self._again.update(partitions)

    # --- offsets ------------------------------------------------------------------------------------------------------

    def written(self, store: str, offsets: Mapping[TopicPartition, int]) -> None:
        for partition, offset in offsets.items():
            if offset < self._answered[partition]:
                self._breaks("Z12", f"{store} gets {offset} of {partition}, {self._answered[partition]} was answered")
            if offset > self._next[partition]:
                self._breaks("Z5", f"{store} gets {offset} of {partition}, handed out was up to {self._next[partition]}")

    def goes_back(self, partition: TopicPartition, offset: int) -> None:
        """The application commits an earlier offset."""
        self.says(f"the application commits {offset} of {partition}, back")
        self._answered[partition] = min(offset, self._answered[partition])
        self.left([partition])

    def answered(self, offsets: Mapping[TopicPartition, int]) -> None:
        for partition, offset in offsets.items():
            if self._whose.get(partition) == ME:
                self._answered[partition] = max(offset, self._answered[partition])
