"""A cluster's history, made up by a dice, as captures would have filed it and as the operator would have seen it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pyarrow as pa

from switchover.lag.group import TopicPartition
from switchover.lag.samples import NONE
from switchover.lag.window import Offsets
from switchover.pipeline.store import Manifest, Store
from switchover.pipeline.tables import SCHEMAS

T0 = 1_795_392_000_000
"""A Monday at 00:00 UTC, in ms."""


AHEAD_MS = 3000
"""A capture sees topics before it reads any of their ends."""


@dataclass
class Commit:
    time: int
    offset: int | None


@dataclass
class Place:
    """One partition: its end at each sweep (None: not read), and a group's commits in the order of the log."""

    ends: list[tuple[int, int, int] | None] = field(default_factory=list)     # time, start, end
    commits: list[Commit] = field(default_factory=list)


@dataclass
class World:
    """The history of some groups."""

    now: list[int]
    groups: Mapping[str, Mapping[TopicPartition, Place]]
    ids: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Of each topic that is described, its id at each sweep."""

    def filed(self, root: Path, cluster: str = "shop", *, zookeeper: bool = False) -> Store:
        """As the store of a capture per sweep; all commits lie in the last one, in Kafka or in ZooKeeper."""
        store = Store(root, cluster)
        for number, now in enumerate(self.now):
            places = {each: place for group in self.groups.values() for each, place in group.items()}
            ends = [{"topic": each.topic, "partition": each.partition, "time": place.ends[number][0],
                     "start": place.ends[number][1], "end": place.ends[number][2]}
                    for each, place in places.items() if place.ends[number] is not None]
            run = f"20261122T{number:06}-abcd-{number}"
            topics = [{"topic": topic, "topic_id": ids[number], "time": now - AHEAD_MS} for topic, ids in self.ids.items()]
            files = [store.file(run, table, 0, now, _rows(table, rows))
                     for table, rows in (("ends", ends), ("topics", topics))]
            if number == len(self.now) - 1:
                tables = {"znodes": self._nodes(), "transactions": self._transactions()} if zookeeper else {
                    "commits": self._commits()}
                files += [store.file(run, table, 0, now, _rows(table, list(rows))) for table, rows in tables.items()]
            store.commit(Manifest(number, run, now - 1000, now, files=tuple(files)))
        return store

    def _commits(self):
        for group, places in self.groups.items():
            for each, place in places.items():
                for position, commit in enumerate(place.commits):
                    yield {"group": group, "topic": each.topic, "partition": each.partition, "offset": commit.offset,
                           "leader_epoch": -1, "commit_time": None if commit.offset is None else commit.time,
                           "record_time": commit.time, "version": 3, "log_partition": 0, "log_offset": position * 3}

    def _transactions(self):
        """One for each commit, and what the rest of the tree looks like."""
        zxid = 0
        for group, places in self.groups.items():
            for each, place in places.items():
                for version, commit in enumerate(place.commits):
                    zxid += 1
                    yield {"zxid": zxid, "index": 0, "time": commit.time, "session": 1, "ephemeral": False,
                           "op": "setData" if version else "create", "version": version,
                           "path": f"/consumers/{group}/offsets/{each.topic}/{each.partition}",
                           "data": str(commit.offset).encode()}
            yield {"zxid": zxid + 1, "index": 0, "time": self.now[0], "session": 1, "ephemeral": True, "op": "create",
                   "version": 0, "path": f"/consumers/{group}/ids/one", "data": b"{}"}
            yield {"zxid": zxid + 1, "index": 0, "time": self.now[0], "session": 1, "op": "closeSession"}

    def _nodes(self):
        """The last of them as the tree has it."""
        last = {each["path"]: each for each in self._transactions() if each["op"] in ("create", "setData")}
        for each in last.values():
            yield {"path": each["path"], "data": each["data"], "version": each["version"], "czxid": 1, "mzxid": each["zxid"],
                   "ctime": 1, "mtime": each["time"], "session": 0, "time": self.now[-1]}

    def seen(self, group: str, number: int) -> dict[TopicPartition, Offsets]:
        """What a sweep of the operator would have read; nothing of a partition before its first commit."""
        found = {}
        for each, place in self.groups[group].items():
            if place.ends[number] is None:
                continue
            time, start, end = place.ends[number]
            earlier = [commit for commit in place.commits if commit.time <= time]
            if earlier:
                committed = NONE if earlier[-1].offset is None else earlier[-1].offset
                found[each] = Offsets(time, committed, end, start, end)
        return found


def _rows(table: str, rows: Sequence[Mapping[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMAS[table])


def made_up(dice: Random, sweeps: int, poll: int, groups: int = 3, partitions: int = 3) -> World:
    """Groups that are healthy, lag, stand, rewind, begin late, and forget their offsets."""
    now, at = [], T0
    for _ in range(sweeps):
        at += poll + dice.randint(-poll // 10, poll // 10)
        now.append(at)
    made = {
        f"group-{number}": {TopicPartition(f"topic-{number}", each): _place(dice, now, poll) for each in range(partitions)}
        for number in range(groups)}
    places = [place for group in made.values() for place in group.values()]
    for number, at in enumerate(now):                      # one is always read: the sweep is of its capture
        places[0].ends[number] = places[0].ends[number] or (at, 0, places[0].ends[number - 1][2])
    return World([max(place.ends[number][0] for place in places if place.ends[number]) for number in range(sweeps)], made)


def _place(dice: Random, now: Sequence[int], poll: int) -> Place:
    place, end, committed = Place(), 1000, 900
    begins = dice.choice((0, 0, 0, len(now) // 3))
    regime, before = "well", now[0] - poll
    for number, at in enumerate(now):
        if dice.random() < .1:
            regime = dice.choice(("well", "well", "well", "behind", "stands", "quiet", "back"))
        time = at - dice.randint(0, poll // 20)
        arrived = 0 if regime == "quiet" else dice.randint(0, 2000)
        moments = sorted(dice.sample(range(before + 1, time), 3))
        for index, moment in enumerate(moments):
            reached = end + arrived * (moment - before) // (time - before)
            if regime == "stands" and index:
                continue
            target = {"behind": max(committed, reached - 1500), "back": max(committed - 200, 0)}.get(regime, reached)
            committed = committed if regime == "stands" else max(target, 0)
            offset = None if dice.random() < .01 else committed
            if number >= begins:
                place.commits.append(Commit(moment, offset))
        end, before = end + arrived, time
        place.ends.append(None if number and dice.random() < .03 else (time, 0, end))
    return place
