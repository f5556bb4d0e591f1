"""Hand-written captures: what the stories of the audit are told with. Times are ms after T."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import md5
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from switchover.pipeline.store import Manifest, Store, new_run
from switchover.pipeline.tables import SCHEMAS

T = 1_700_000_000_000
SECOND = 1000
LONG_AGO = -1000 * SECOND


def id_of(topic: str) -> str:
    """That of a topic of which nothing else is told."""
    return md5(topic.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


class Captures:
    """Rows by table, filed as one capture; a second one without rows closes the range.

    As captures do, they describe each group that has committed (without members of types that are not read), and see each of
    its topics under one id since LONG_AGO, unless something else is told of it. `log`: the partition of `__consumer_offsets`
    in which everything lies from then on.
    """

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {table: [] for table in SCHEMAS}
        self.log = 7
        self._place = 0
        self._zxid = 0x100

    def commit(self, group: str, offset: int | None, at: int, topic: str = "orders", partition: int = 0,
               topic_id: str | None = None) -> None:
        """An offset commit in Kafka, a tombstone where None; `topic_id` as a newer Kafka writes it."""
        self._place += 1
        self.rows["commits"].append({
            "group": group, "topic": topic, "partition": partition, "offset": offset, "leader_epoch": -1,
            "commit_time": None if offset is None else T + at, "record_time": T + at,
            "version": None if offset is None else 4, "topic_id": topic_id, "log_partition": self.log,
            "log_offset": self._place})

    def commits(self, group: str, offsets: Iterable[int], at: int, every: int = 1000, topic: str = "orders",
                topic_id: str | None = None) -> None:
        """Several, one after the other."""
        for number, offset in enumerate(offsets):
            self.commit(group, offset, at + number * every, topic, topic_id=topic_id)

    def write(self, path: str, data: str | bytes | None, at: int, op: str = "setData", ephemeral: bool = False) -> int:
        """A transaction of ZooKeeper; its zxid."""
        self._zxid += 1
        self.rows["transactions"].append({
            "zxid": self._zxid, "index": 0, "time": T + at, "session": 5, "op": op, "path": path,
            "data": data.encode() if isinstance(data, str) else data, "version": 1, "ephemeral": ephemeral})
        return self._zxid

    def offset(self, group: str, offset: int | str, at: int, topic: str = "orders") -> None:
        """An offset in ZooKeeper."""
        self.write(f"/consumers/{group}/offsets/{topic}/0", str(offset), at)

    def owner(self, group: str, owner: str, begins: int, ends: int | None, topic: str = "orders") -> None:
        """An owner node from its creation to the end of its session; None: the last capture finds it still there."""
        path = f"/consumers/{group}/owners/{topic}/0"
        zxid = self.write(path, f"{owner}-0", begins, "create", ephemeral=True)
        if ends is not None:
            self.write(path, None, ends, "closeSession")
            return
        self.rows["znodes"].append({
            "path": path, "data": f"{owner}-0".encode(), "version": 0, "czxid": zxid, "mzxid": zxid, "ctime": T + begins,
            "mtime": T + begins, "session": 5})

    def generation(self, group: str, epoch: int, at: int, members: Mapping[str, Iterable[int] | None],
                   topic: str = "orders") -> None:
        """A classic group's record. Clients are called as their members are without `-id`. None: what is no assignment."""
        self._place += 1
        base = {"group": group, "record": "ClassicGroup", "epoch": epoch, "time": T + at, "tombstone": False,
                "protocol_type": "consumer", "log_partition": self.log, "log_offset": self._place}
        self.rows["ownership"].append(base)
        self.rows["ownership"] += [
            {**base, "member": member, "client_id": member.removesuffix("-id"),
             "assigned": None if partitions is None else [
                 {"topic": topic, "topic_id": None, "partition": each} for each in partitions]}
            for member, partitions in members.items()]

    def current(self, group: str, member: str, at: int, assigned: Iterable[int], pending: Iterable[int] = (),
                topic_id: str | None = None) -> None:
        """What a member of the consumer protocol holds, of `orders` where no id is told."""
        self._place += 1
        held, back = ([{"topic": None, "topic_id": topic_id or id_of("orders"), "partition": each} for each in numbers]
                      for numbers in (assigned, pending))
        self.rows["ownership"].append({
            "group": group, "record": "Current", "member": member, "epoch": 1, "state": 0, "time": T + at,
            "tombstone": False, "assigned": held, "pending": back, "log_partition": self.log, "log_offset": self._place})

    def end(self, topic: str, start: int, end: int, at: int) -> None:
        """Log start and end of partition 0."""
        self.rows["ends"].append({"topic": topic, "partition": 0, "start": start, "end": end, "time": T + at})

    def topic(self, name: str, topic_id: str | None, *seen: int) -> None:
        """Captures saw this topic at these times; without an id: brokers that have none."""
        self.rows["topics"] += [{"topic": name, "topic_id": topic_id, "partitions": 1, "internal": False, "time": T + at}
                                for at in seen or (0,)]

    def group(self, name: str, at: int | None, kind: str = "Classic", members: int = 0) -> None:
        """A capture described this group; None: none did."""
        self.rows["groups"].append({"group": name, "type": kind, "state": "Stable" if members else "Empty", "members": [
            {"member": f"m{number}"} for number in range(members)], "time": T + (LONG_AGO if at is None else at)})

    def file(self, root: Path, until: int, began: int = -SECOND, holes: object = None, cluster: str = "c",
             counts: Mapping[str, int] = MappingProxyType({}), reached: Sequence[Mapping[str, int]] = ()) -> Store:
        """Into a store: a capture that began at `began`, and one at `until` that has everything. `reached`: of each of the
        two, where the next one goes on in `__consumer_offsets`."""
        store = Store(root, cluster)
        before = len(store.manifests())
        for row in self.rows["znodes"]:
            row.setdefault("time", T + until)
        topics, groups = ({row[name] for row in self.rows[table]}
                          for table, name in (("topics", "topic"), ("groups", "group")))
        for name in dict.fromkeys(row["topic"] for table in ("commits", "ends") for row in self.rows[table]):
            if name not in topics:
                self.topic(name, id_of(name), LONG_AGO, until)
        for name in dict.fromkeys(row["group"] for row in self.rows["commits"]):
            if name not in groups:
                self.group(name, until)
        first: dict[str, list[dict[str, Any]]] = {table: [] for table in SCHEMAS}
        for number, (at, rows) in enumerate(((began, first), (until, self.rows))):
            run = new_run()
            files = tuple(store.file(run, table, index, T + at, pa.Table.from_pylist(rows[table], SCHEMAS[table]))
                          for index, table in enumerate(SCHEMAS))
            inputs: dict[str, object] = {"holes": holes} if number and holes else {}
            if reached:
                inputs["offsets"] = {"topicId": "two", "next": dict(reached[number])}
            store.commit(Manifest(
                before + number, run, T + at, T + at + 10, inputs, dict(counts) if number else {}, files=files))
        return store
