"""The inventory on bronze that tests write: against Python and DuckDB, with hostile content, and the whole job."""

import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pyspark.sql import SparkSession

from switchover.api.consumer_group_migration import ConsumerGroupMigration
from switchover.pipeline.bronze import read
from switchover.pipeline.config import Config
from switchover.pipeline.inventory import features, job
from switchover.pipeline.inventory.readiness import Coordination, Group, Storage
from switchover.pipeline.outcome import JobFailed, Progress
from switchover.pipeline.store import Manifest, Store
from switchover.pipeline.tables import SCHEMAS

Row = dict[str, Any]
T0 = 1_795_392_000_000
HOSTILE = ("line\nfeed", "\x00", "\u202egnp.exe", "x" * 65_536, "<script>", "{group}")


class Capture:
    """Rows of one capture, by table; `time` is when it was."""

    def __init__(self, time: int = T0) -> None:
        self.time = time
        self.rows: defaultdict[str, list[Row]] = defaultdict(list)
        self._offset = time

    def commit(self, group: str, topic: str, partition: int, offset: int | None, time: int | None = None) -> None:
        """The next record of the log; an offset of None is a tombstone."""
        self._offset += 1
        self.rows["commits"].append({
            "group": group, "topic": topic, "partition": partition, "offset": offset, "log_partition": 0,
            "commit_time": None if offset is None else self.time if time is None else time, "log_offset": self._offset})

    def end(self, topic: str, partition: int, start: int, end: int) -> None:
        self.rows["ends"].append({"topic": topic, "partition": partition, "start": start, "end": end, "time": self.time})

    def node(self, path: str, data: bytes | None = None, mtime: int | None = None) -> None:
        self.rows["znodes"].append({"path": path, "data": data, "mtime": self.time if mtime is None else mtime,
                                    "session": 0, "time": self.time})

    def group(self, name: str, *assigned: tuple[str, int], kind: str = "Classic", state: str = "Stable") -> None:
        """As the Admin API describes it; one member for each partition assigned."""
        self.rows["groups"].append({"group": name, "type": kind, "state": state, "time": self.time, "members": [
            {"member": f"m{index}", "assigned": [{"topic": topic, "partition": partition}]}
            for index, (topic, partition) in enumerate(assigned)]})

    def record(self, group: str, protocol_type: str = "consumer", strategy: str = "range") -> None:
        """A classic group's own."""
        self._offset += 1
        self.rows["ownership"].append({
            "group": group, "record": "ClassicGroup", "time": self.time, "tombstone": False, "protocol_type": protocol_type,
            "protocol": strategy, "log_partition": 0, "log_offset": self._offset})

    def topic(self, name: str, topic_id: str | None = None, policy: str | None = "delete") -> None:
        """As the brokers describe it."""
        self.rows["topics"].append(
            {"topic": name, "topic_id": topic_id or name, "cleanup_policy": policy, "time": self.time})


def filed(root: Path, *captures: Capture, notes: Sequence[str] = ()) -> Store:
    store = Store(root, "shop")
    for number, capture in enumerate(captures):
        run = f"run-{number}"
        files = [store.file(run, table, 0, capture.time, pa.Table.from_pylist(capture.rows[table], schema))
                 for table, schema in SCHEMAS.items()]
        store.commit(Manifest(number, run, capture.time - 1000, capture.time, notes=tuple(notes), files=tuple(files)))
    return store


def collected(spark: SparkSession, store: Store) -> dict[str, Group]:
    return {group.name: group for group in features.collect(spark, store)}


# --- against Python and SQL ---------------------------------------------------------------------------------------------


def fleet(dice: random.Random, groups: int) -> list[Capture]:
    """Two captures of groups that commit to Kafka, to ZooKeeper or to both, with deletions and ends that are missing."""
    captures = [Capture(T0), Capture(T0 + 3_600_000)]
    places = [(f"t{topic}", partition) for topic in range(12) for partition in range(3)]
    for place in places:
        if dice.random() < 0.9:
            start, end = dice.randrange(500), dice.randrange(500, 2000)
            captures[0].end(*place, start, end)
            captures[1].end(*place, dice.choice([start, end]), end + dice.randrange(1000))
    for number in range(groups):
        name = f"g{number:04}"
        for place in dice.sample(places, dice.randrange(1, 5)):
            stores = dice.choice(["k", "z", "kz"])
            for capture in captures if "k" in stores else ():
                for _ in range(dice.randrange(4)):
                    capture.commit(name, *place, None if dice.random() < 0.2 else dice.randrange(2500),
                                   capture.time - dice.randrange(1000, 100_000))
            for capture in captures if "z" in stores else ():
                if dice.random() < 0.8:
                    data = dice.choice([b"12", b"1700", b"none", b"", b"1.5", b"\xff\xfe", None, b"9" * 40])
                    capture.node(f"/consumers/{name}/offsets/{place[0]}/{place[1]}", data,
                                 capture.time - dice.randrange(1000, 100_000))
        for capture in captures:
            if dice.random() < 0.7:
                capture.group(name, *dice.sample(places, dice.randrange(3)))
            for member in range(dice.randrange(3)):
                capture.node(f"/consumers/{name}/ids/{member}", b'{"pattern":"white_list"}')
    return captures


def number(data: bytes | None) -> int | None:
    return int(data) if data is not None and re.fullmatch(rb"[0-9]{1,18}", data) else None


def expected(captures: Sequence[Capture]) -> dict[str, tuple[Any, ...]]:
    """Walked through, one group after the other: what `told` tells of a group."""
    ends = {(row["topic"], row["partition"]): row for capture in captures for row in capture.rows["ends"]}
    log: defaultdict[tuple[str, str, int], list[Row]] = defaultdict(list)
    for capture in captures:
        for row in capture.rows["commits"]:
            log[row["group"], row["topic"], row["partition"]].append(row)
    kafka = {key: rows[-1] for key, rows in log.items() if rows[-1]["offset"] is not None}
    zookeeper: dict[tuple[str, str, int], tuple[int, int]] = {}
    members: defaultdict[str, int] = defaultdict(int)
    topics: defaultdict[str, set[str]] = defaultdict(set)
    names = set()
    for row in captures[-1].rows["znodes"]:
        match row["path"].split("/")[2:]:
            case [group, "ids", _]:
                members[group] += 1
                names.add(group)
            case [group, "offsets", topic, partition]:
                names.add(group)
                topics[group].add(topic)
                offset = number(row["data"])
                if offset is not None:
                    zookeeper[group, topic, int(partition)] = (offset, row["mtime"])
    described = {row["group"]: row for row in captures[-1].rows["groups"]}
    names |= {key[0] for key in kafka} | set(described)
    found = {}
    for name in names:
        keys = {key for key in {*kafka, *zookeeper} if key[0] == name}
        lags, lost, times = [], 0, []
        for key in keys:
            each = [(kafka[key]["commit_time"], 1, kafka[key]["offset"])] if key in kafka else []
            each += [(zookeeper[key][1], 0, zookeeper[key][0])] if key in zookeeper else []
            time, _, offset = max(each)
            times.append(time)
            end = ends.get(key[1:])
            if end is not None:
                lags.append(max(end["end"] - offset, 0))
                lost += offset < end["start"]
        joined = described.get(name, {"members": []})["members"]
        all_topics = topics[name] | {key[1] for key in keys} | {each["topic"] for one in joined for each in one["assigned"]}
        found[name] = (tuple(sorted(all_topics)), len(keys), sum(lags) if lags else None, lost, max(times, default=None),
                       both(any(key in kafka for key in keys), any(key in zookeeper for key in keys)),
                       both(bool(joined), members[name] > 0), max(len(joined), members[name]))
    return found


def both(kafka: bool, zookeeper: bool) -> str:
    return {(True, True): "Both", (True, False): "Kafka", (False, True): "ZooKeeper", (False, False): "None"}[
        kafka, zookeeper]


def told(group: Group) -> tuple[Any, ...]:
    return (group.topics, group.partitions, group.lag, group.lost, group.last_commit, group.storage, group.coordination,
            group.members)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_groups_are_those_that_a_walk_finds(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    captures = fleet(random.Random(seed), 120)
    found = collected(spark, filed(tmp_path, *captures))
    assert {name: told(group) for name, group in found.items()} == expected(captures)
    assert {group.storage for group in found.values()} == set(Storage)
    assert {group.coordination for group in found.values()} == set(Coordination)


def test_lag_and_rates_are_those_that_sql_finds(spark: SparkSession, tmp_path: Path) -> None:
    dice = random.Random(3)
    captures = [Capture(T0 + hour * 3_600_000) for hour in range(3)]
    for place in [(f"t{topic}", partition) for topic in range(20) for partition in range(2)]:
        for capture, end in zip(captures, sorted(dice.sample(range(5000), 3)), strict=True):
            capture.end(*place, 0, end)
            if place[1] == 0:
                capture.topic(place[0])
    for name in (f"g{index:03}" for index in range(200)):
        topic = f"t{dice.randrange(20)}"
        for capture in captures:
            capture.commit(name, topic, dice.randrange(2), dice.randrange(4000), capture.time - dice.randrange(60_000))
    store = filed(tmp_path, *captures)
    with duckdb.connect() as connection:
        rows = connection.execute("""
            WITH c AS (SELECT "group", topic, partition,
                              arg_max("offset", log_offset) AS o1, arg_min("offset", log_offset) AS o0,
                              arg_max(commit_time, log_offset) AS t1, min(commit_time) AS t0, count(*) AS n
                       FROM read_parquet($commits) GROUP BY ALL),
                 e AS (SELECT topic, partition, arg_max("end", time) AS e1, arg_min("end", time) AS e0,
                              max(time) - min(time) AS span, arg_max("start", time) AS s1
                       FROM read_parquet($ends) GROUP BY ALL)
            SELECT "group", sum(greatest(e1 - o1, 0)),
                   sum(((e1 - e0) / span - (o1 - o0) / nullif(t1 - t0, 0)) * 3600000),
                   min((o1 - s1) / (e1 - s1)), avg((t1 - t0) / nullif(n - 1, 0))
            FROM c JOIN e USING (topic, partition) GROUP BY ALL""",
            {"commits": store.files("commits"), "ends": store.files("ends")}).fetchall()
    found = collected(spark, store)
    assert len(rows) == len(found) == 200
    assert sum(row[2] is not None for row in rows) > 100
    for name, lag, growth, headroom, interval in rows:
        group = found[name]
        assert group.lag == lag
        assert group.growth == pytest.approx(growth)
        assert group.headroom == pytest.approx(headroom)
        assert group.commit_interval == pytest.approx(interval)


# --- single cases -------------------------------------------------------------------------------------------------------


def test_what_is_odd_about_groups(spark: SparkSession, tmp_path: Path) -> None:
    first, last = Capture(T0), Capture(T0 + 60_000)
    for topic in ("orders", *HOSTILE):
        last.end(topic, 0, 100, 1000)
        last.topic(topic)
    for name in HOSTILE:
        last.commit(name, name, 0, 900)
        last.group(name, (name, 0))
    first.commit("deleted", "orders", 0, 500)
    last.commit("deleted", "orders", 0, None)
    first.commit("again", "orders", 0, 500)
    first.commit("again", "orders", 0, None)
    last.commit("again", "orders", 0, 600)
    last.commit("rewound", "orders", 0, 900, T0 + 50_000)
    last.commit("rewound", "orders", 0, 400, T0 + 40_000)      # its broker's clock was behind: the log's order counts
    last.commit("ahead", "orders", 0, 5000)
    last.commit("lost", "orders", 0, 99)
    last.group("idle", state="Empty")
    last.commit("dual", "orders", 0, 700, T0 + 10_000)
    last.node("/consumers/dual/offsets/orders/0", b"800", T0 + 20_000)
    last.node("/consumers/dual/ids/a", b'{"pattern":"static"}')
    for name, pattern in (("white", "white_list"), ("black", "black_list")):
        last.node(f"/consumers/{name}/ids/a", f'{{"version":1,"subscription":{{".*":1}},"pattern":"{pattern}"}}'.encode())
        last.node(f"/consumers/{name}/owners/orders/0", b"a-0")
    for partition, data in enumerate([b"none", b"", b"\xff", None, b"1.5", b"9" * 30, b"0x10"]):
        last.node(f"/consumers/words/offsets/orders/{partition}", data)
    last.node("/consumers/words/ids/a", b"\xff no JSON")
    first.node("/consumers/gone/offsets/orders/0", b"12")
    found = collected(spark, filed(tmp_path, first, last))

    for name in HOSTILE:
        assert told(found[name])[:4] == ((name,), 1, 100, 0)
    assert {"deleted", "gone"}.isdisjoint(found)
    assert (found["again"].lag, found["rewound"].lag, found["ahead"].lag) == (400, 600, 0)
    assert found["ahead"].headroom == pytest.approx(4900 / 900)
    assert (found["lost"].lost, found["again"].lost) == (1, 0)
    assert told(found["idle"]) == ((), 0, None, 0, None, Storage.NONE, Coordination.NONE, 0)
    assert (found["idle"].protocol, found["idle"].state) == ("Classic", "Empty")
    assert (found["dual"].storage, found["dual"].coordination) == (Storage.BOTH, Coordination.ZOOKEEPER)
    assert found["dual"].lag == 200
    assert [found[name].subscription for name in ("dual", "white", "black", "words")] == [
        "static", "white_list", "black_list", ""]
    assert found["white"].topics == ("orders",)
    assert (found["words"].partitions, found["words"].storage, found["words"].members) == (0, Storage.NONE, 1)


def test_rebalances_are_told_by_the_day(spark: SparkSession, tmp_path: Path) -> None:
    capture = Capture()
    for epoch in range(5, 12):
        capture.rows["ownership"].append(
            {"group": "busy", "record": "ClassicGroup", "epoch": epoch, "time": T0 + epoch * 1_200_000})
    capture.rows["ownership"].append({"group": "new", "record": "Epoch", "epoch": 1, "time": T0})
    capture.rows["ownership"].append({"group": "new", "record": "Member", "epoch": 90, "time": T0})
    found = collected(spark, filed(tmp_path, capture))
    assert found["busy"].rebalances == pytest.approx(6 * 12)      # six in two hours
    assert found["new"].rebalances == 0


def test_what_was_committed_to_a_topic_of_before_tells_nothing_of_the_one_that_has_its_name_now(
        spark: SparkSession, tmp_path: Path) -> None:
    first, last = Capture(T0), Capture(T0 + 3_600_000)
    for topic in ("again", "told", "same", "nameless"):
        first.end(topic, 0, 500, 2000)
        last.end(topic, 0, 0, 200)
        first.topic(topic, f"{topic} 1")
        last.topic(topic, f"{topic} {1 if topic == 'same' else 2}")
    for capture in (first, last):
        for row in capture.rows["topics"]:
            row["topic_id"] = None if row["topic"] == "nameless" else row["topic_id"]
    for topic in ("again", "same", "nameless"):
        first.commit(topic, topic, 0, 1500)
    first.commit("read again", "again", 0, 1500)
    last.commit("read again", "again", 0, 50, T0 + 3_600_000 + 6000)
    for number, name in enumerate(("of before", "of now")):
        last.commit(name, "told", 0, 70, T0 + 1_800_000)
        last.rows["commits"][-1]["topic_id"] = f"told {number + 1}"
    first.node("/consumers/old/offsets/again/0", b"700")
    last.rows["znodes"] = first.rows["znodes"]
    found = collected(spark, filed(tmp_path, first, last))
    assert {name: (group.lag, group.headroom, group.lost) for name, group in found.items()} == {
        "again": (None, None, 0), "old": (None, None, 0), "of before": (None, None, 0),
        "read again": (150, 0.25, 0), "of now": (130, 0.35, 0),
        "same": (0, 7.5, 0), "nameless": (0, 7.5, 0)}                # without ids nobody knows better
    assert (found["again"].topics, found["again"].storage) == (("again",), Storage.KAFKA)
    assert found["read again"].growth is None


@pytest.mark.parametrize(("policy", "headroom"), [
    ("delete", 0.05), ("compact,delete", 0.05), ("compact, delete", 0.05), ("compact", None), (None, None)])
def test_head_room_is_that_of_topics_from_which_retention_deletes(
        spark: SparkSession, tmp_path: Path, policy: str | None, headroom: float | None) -> None:
    capture = Capture()
    capture.end("orders", 0, 100, 1100)
    capture.topic("orders", policy=policy)
    capture.commit("orders", "orders", 0, 150)
    assert collected(spark, filed(tmp_path, capture))["orders"].headroom == headroom


def test_what_was_cleaned_up_since_is_not_told_any_more(spark: SparkSession, tmp_path: Path) -> None:
    before = Capture()
    before.node("/consumers/old/ids/one", b"{}")
    before.node("/consumers/old/offsets/orders/0", b"12")
    before.group("gone", ("orders", 0))
    assert set(collected(spark, filed(tmp_path / "before", before))) == {"gone", "old"}
    assert collected(spark, filed(tmp_path / "after", before, Capture(T0 + 60_000))) == {}


def test_the_plan_leaves_nothing_to_python_and_shuffles_seldom(spark: SparkSession, tmp_path: Path) -> None:
    store = filed(tmp_path, *fleet(random.Random(4), 5))
    each = features.partitions(*(read(spark, store, table) for table in ("commits", "znodes", "ends", "topics")))
    plan = each._jdf.queryExecution().executedPlan().toString()
    assert "FullOuter" in plan
    assert "EvalPython" not in plan
    assert len(re.findall(r"\bExchange hashpartitioning", plan)) <= 6


# --- the job ------------------------------------------------------------------------------------------------------------


def settings(store: Path, **inventory: Any) -> Config:
    return Config.model_validate({
        "cluster": "shop", "store": store, "kafka": {"bootstrapServers": "kafka:9092"},
        "zookeeper": {"connect": "zookeeper:2181"}, "inventory": inventory})


WORKLOADS = ({"groups": "billing-*", "name": "{group}", "container": "app",
              "template": {"env": [{"name": "GROUP_PROTOCOL", "value": "consumer"}]}},
             {"groups": "old", "name": "old", "container": "app", "bridge": {"image": "enabled:1"}})


def small(root: Path, notes: Sequence[str] = ()) -> Store:
    """Four groups on two topics that share nothing, one of ZooKeeper's, and hostile ones."""
    capture = Capture()
    for topic in ("orders", "paid", "old", *HOSTILE):
        capture.end(topic, 0, 0, 100)
    for name, topic in [("billing-a", "orders"), ("billing-b", "orders"), ("billing-c", "paid"), ("audit", "paid"),
                        *((name, name) for name in HOSTILE)]:
        capture.commit(name, topic, 0, 90)
        capture.group(name, (topic, 0))
        capture.record(name)
    capture.node("/consumers/old/offsets/old/0", b"50")
    capture.node("/consumers/old/ids/a", b'{"pattern":"static"}')
    return filed(root, capture, notes=notes)


def left(store: Store) -> Mapping[str, bytes]:
    latest = store.latest("inventory")
    assert latest is not None
    return {str(path.relative_to(latest)): path.read_bytes() for path in sorted(latest.rglob("*")) if path.is_file()}


def test_a_run_leaves_groups_waves_and_a_report(spark: SparkSession, tmp_path: Path) -> None:
    store = small(tmp_path, notes=("transactions 7 to 9 are gone: <purged>",))
    config = settings(tmp_path, workloads=WORKLOADS, max_groups=2)
    outcome = job.run(config, Progress())
    files = left(store)
    assert (outcome.rows, outcome.summary["groups"], outcome.summary["ready"]) == (11, 11, 11)
    assert outcome.summary["withoutWorkload"] == 7
    assert {"groups.parquet", "waves.parquet", "report.html", "manifest.json"} < set(files)

    waves = {row["number"]: row for row in pq.read_table(pa.BufferReader(files["waves.parquet"])).to_pylist()}
    assert sorted(name for row in waves.values() for name in row["groups"]) == sorted(
        ["billing-a", "billing-b", "billing-c", "audit", "old", *HOSTILE])
    groups = {row["name"]: row for row in pq.read_table(pa.BufferReader(files["groups.parquet"])).to_pylist()}
    assert groups["billing-a"]["wave"] == groups["billing-b"]["wave"]
    assert groups["billing-c"]["wave"] == groups["audit"]["wave"]
    assert (groups["old"]["lag"], groups["old"]["coordination"], groups["old"]["score"]) == (50, "ZooKeeper", 100)

    made = {}
    for path, content in files.items():
        if path.startswith("waves/"):
            for document in yaml.safe_load_all(content):
                found = ConsumerGroupMigration.model_validate(document)
                made[found.spec.group] = found
                assert document["metadata"]["labels"]["switchover.dev/wave"] == str(int(Path(path).stem))
                assert found.metadata.labels["switchover.dev/wave"] == str(groups[found.spec.group]["wave"])
    assert set(made) == {"billing-a", "billing-b", "billing-c", "old"}
    assert {each.spec.desired_state for each in made.values()} == {"Planned"}
    assert made["old"].spec.coordination is not None

    page = files["report.html"].decode()
    assert "transactions 7 to 9 are gone: &lt;purged&gt;" in page
    assert "transactions 7 to 9 are gone" in files["manifest.json"].decode()
    assert "7 of these have no manifest" in page
    assert "<script" not in page
    assert "\u202e" not in page

    job.run(config, Progress())
    again = left(store)
    for path in files.keys() - {"manifest.json", "report.html"}:
        assert again[path] == files[path], path
    assert again.keys() == files.keys()


def test_connect_schema_registry_and_streams_are_not_migrated(spark: SparkSession, tmp_path: Path) -> None:
    """The first two are no groups of consumers, so captures do not describe them: their records are all that is known."""
    capture = Capture()
    capture.end("orders", 0, 0, 100)
    for name in ("orders", "billing-app", "streams by its own protocol"):
        capture.commit(name, "orders", 0, 90)
    for name in ("orders", "billing-app"):
        capture.group(name, ("orders", 0))
    capture.record("orders")
    capture.record("billing-app", strategy="stream")
    capture.record("connect-cluster", "connect", "sessioned")
    capture.record("schema-registry", "sr", "v0")
    everyone = {"groups": "*", "name": "app", "container": "app"}
    store = filed(tmp_path, capture)
    outcome = job.run(settings(tmp_path, workloads=(everyone,)), Progress())
    files = left(store)
    groups = {row["name"]: row for row in pq.read_table(pa.BufferReader(files["groups.parquet"])).to_pylist()}
    assert {name: row["score"] for name, row in groups.items()} == {
        "orders": 100, "billing-app": 0, "streams by its own protocol": 0, "connect-cluster": 0, "schema-registry": 0}
    assert "is a Kafka Streams application" in groups["billing-app"]["terms"][0]
    assert "has the protocol type connect" in groups["connect-cluster"]["terms"][0]
    assert "has the protocol type sr" in groups["schema-registry"]["terms"][0]
    assert "what kind of group it is is not known" in groups["streams by its own protocol"]["terms"][0]
    assert outcome.summary["ready"] == 1
    made = [yaml.safe_load(text) for text in files["waves/0001.yaml"].decode().split("---\n")[1:]]
    assert [each["spec"]["group"] for each in made] == ["orders"]


def test_groups_that_are_not_wanted_are_left_out_and_cut_topics_part_the_rest(spark: SparkSession, tmp_path: Path) -> None:
    store = small(tmp_path)
    chosen = settings(tmp_path, include=("billing-*", "audit"), exclude=("billing-c",), cut_topics=("ord*",), max_groups=1)
    job.run(chosen, Progress())
    rows = pq.read_table(pa.BufferReader(left(store)["waves.parquet"])).to_pylist()
    assert sorted(row["groups"] for row in rows) == [["audit"], ["billing-a"], ["billing-b"]]
    assert not any(path.startswith("waves/") for path in left(store))


def test_a_group_that_makes_no_manifest_stops_no_other(
        spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = small(tmp_path)
    everyone = {"groups": "*", "name": "{group}", "container": "app", "bridge": {"image": "enabled:1"}}
    outcome = job.run(settings(tmp_path, workloads=(everyone,), max_groups=100), Progress())
    made = [yaml.safe_load(text) for text in left(store)["waves/0001.yaml"].decode().split("---\n")[1:]]
    assert {each["spec"]["group"] for each in made} == {"billing-a", "billing-b", "billing-c", "audit", "old"}
    assert outcome.summary["withoutWorkload"] == len(HOSTILE)
    said = capsys.readouterr().out
    assert r"no valid migration of group 'line\nfeed': spec.workloads.0.name: must be the name of a workload" in said
    assert max(map(len, said.splitlines())) < 400
    assert len(yaml.safe_load(left(store)["manifest.json"])["refused"]) == len(HOSTILE)


def test_an_empty_store_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(JobFailed, match="nothing was captured of cluster shop: run `switchover pipeline capture`"):
        job.run(settings(tmp_path), Progress())
    assert not (tmp_path / "runs").exists()
