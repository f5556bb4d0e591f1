"""Stories of groups as captures have them, one audit over all of them, and what it finds of each.

A `Story` is a group of its own; T + 0 is the begin of the range, and its end is T + UNTIL.
"""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline.audit_bronze import LONG_AGO, SECOND, Captures, T, id_of
from switchover.pipeline.audit.findings import LONGEST, sentence
from switchover.pipeline.audit.job import Range, judge
from switchover.pipeline.config import AuditedGroup, AuditSettings
from switchover.pipeline.outcome import Progress

UNTIL = 100 * SECOND
BAND = 5 * SECOND
HOSTILE = "a\nb\x00\u202e'" + "x" * 65_536
Finding = tuple[str, bool, int | None, int | None, int | None]
"""kind, proven, start, end, amount"""
Audited = tuple[dict[str, list[Finding]], list[Any], Any]
"""What must be found by group, the rows of evidence, the report."""


def tell(c: Captures) -> dict[str, list[Finding]]:
    """All stories, and by group what must be found of it."""
    found: dict[str, list[Finding]] = {}

    c.commits("steady", [0, 10, 10, 25, 40], 1000)
    found["steady"] = []

    c.commits("before the range", [0, 50, 20, 60], -20_000)
    c.commits("before the range", [60, 70], 2000)
    found["before the range"] = []

    # two consumers by assign(): each commits what it has read, in turn
    c.commits("double", [0, 10, 8, 20, 18, 30], 1000)
    found["double"] = [("twice", True, 8, 10, 2), ("twice", True, 18, 20, 2)]

    c.commits("rewind", [0, 100, 40, 70, 130], 1000)
    found["rewind"] = [("twice", True, 40, 100, 60)]

    c.commits("nested", [0, 100, 10, 20, 50, 60], 1000)             # 20 to 50 is one pass on: [10, 60)
    found["nested"] = [("twice", True, 10, 60, 50)]

    c.commits("thrice", [0, 100, 50, 100, 50, 100], 1000)
    found["thrice"] = [("twice", True, 50, 100, 50), ("twice", True, 50, 100, 50)]

    c.commits("set back at the end", [0, 100, 30], 1000)
    found["set back at the end"] = [("rewound", False, 30, 100, 70)]

    c.commits("set back to the unknown", [100, 50, 90], 1000)
    found["set back to the unknown"] = [("rewound", False, 50, 100, 50)]

    c.commits("since before", [0, 100], -50_000)
    c.commits("since before", [60, 80], 1000)
    found["since before"] = [("twice", True, 60, 80, 20)]

    # an offset expires, and the group begins where it was, ahead of it, and behind it
    for name, again, what in (
            ("expired, goes on", [100, 120], []),
            ("expired, ahead", [150, 170], [("gap", False, 100, 150, 50)]),
            ("expired, behind", [80, 110], [("twice", True, 80, 100, 20)])):
        c.commits(name, [0, 100], 1000)
        c.commit(name, None, 5000)
        c.commits(name, again, 10_000)
        found[name] = what

    # a migration's hand-over from ZooKeeper to Kafka: the offset is copied while nobody consumes
    for name, copied, what in (
            ("handed over", [100, 150], []),
            ("handed over too early", [60, 150], [("twice", True, 60, 100, 40)]),
            ("handed over from nowhere", [130, 150], [("gap", False, 100, 130, 30)])):
        for number, offset in enumerate([0, 50, 100]):
            c.offset(name, offset, 1000 * number)
        c.commits(name, copied, 40_000)
        found[name] = what

    # members that write both stores, ZooKeeper first
    for name, behind in (("both stores", 40), ("both stores, skewed", 4000)):
        for number, offset in enumerate([0, 10, 20, 30]):
            c.offset(name, offset, 1000 + number * 1500)
            c.commit(name, offset, 1000 + number * 1500 + behind)
        found[name] = []
    for number, offset in enumerate([0, 10, 20, 30]):
        c.offset("both stores, beyond the band", offset, 1000 + number * 1500)
        c.commit("both stores, beyond the band", offset, 9000 + number * 1500)
    found["both stores, beyond the band"] = [("twice", True, 0, 30, 30)]

    # ZooKeeper goes on to 200, and a commit that Kafka has alone is a little behind, or far
    c.offset("late", 0, 1000)
    c.offset("late", 190, 10_000)
    c.offset("late", 200, 20_000)
    c.commits("late", [195, 210], 22_000)
    found["late"] = [("twice", False, 195, 200, 5)]

    c.offset("deleted node", 0, 1000)
    c.offset("deleted node", 100, 2000)
    c.commits("deleted node", [100, 110], 20_000)
    c.write("/consumers/deleted node/offsets/orders/0", None, 25_000, "delete")
    c.commits("deleted node", [120, 130], 30_000)
    found["deleted node"] = []

    # each store is consumed from on its own, at the same time
    for number in range(8):
        c.offset("two worlds", 500 + number * 10, 10_000 + number * 1000)
        c.commit("two worlds", 105 + number * 10, 10_500 + number * 1000)
    found["two worlds"] = [("rewound", False, 105, 500, 395)]

    for number in range(6):
        c.offset("one world behind", number * 100, 1000 + number * 1000)
    c.commit("one world behind", 0, 20_000)
    c.offset("one world behind", 600, 20_500)
    c.commits("one world behind", [250, 450], 21_000)
    found["one world behind"] = [("twice", True, 0, 450, 450)]

    # retention takes what was not consumed; within the band after it nobody knows
    c.end("short", 90, 200, 30_000)
    c.commits("overtaken", [0, 50], 1000)
    for group in ("overtaken", "just in time", "in the band"):
        c.commit(group, 0, 900, "short")
    c.commit("overtaken", 50, 2000, "short")
    c.commit("overtaken", 95, 60_000, "short")
    c.commit("just in time", 90, 29_000, "short")
    c.commit("in the band", 91, 33_000, "short")
    found["overtaken"] = [("deleted", True, 50, 90, 40)]
    found["just in time"] = []
    found["in the band"] = [("deleted", False, 0, 90, 90)]

    # classic generations: the next one ends the one before it, at the same millisecond too
    c.commits("generations", [0, 10], 1000)
    c.generation("generations", 1, 1000, {"a-id": [0], "b-id": [1]})
    c.generation("generations", 2, 2000, {"b-id": [0, 1]})
    c.generation("generations", 3, 2000, {"a-id": [0], "b-id": [1]})
    found["generations"] = []
    c.commits("bad assignor", [0, 10], 1000)
    c.generation("bad assignor", 1, 1000, {"a-id": [0], "b-id": [0]})
    c.generation("bad assignor", 2, 4000, {"a-id": [0], "b-id": []})
    found["bad assignor"] = [("owners", True, T + 1000, T + 4000, 3000)]

    # a member's client sends an older commit again, after newer ones; nobody else could commit. Long ago it is no excuse
    for name, members, offsets, begin, every, what in (
            ("sent again", {"a-id": [0]}, [0, 100, 200, 150, 300], 1000, 1000, [("twice", False, 150, 200, 50)]),
            ("sent again at the end", {"a-id": [0]}, [0, 100, 200, 150], 1000, 1000, [("rewound", False, 150, 200, 50)]),
            ("set back while empty", {}, [0, 100, 200, 150, 300], 1000, 1000, [("twice", True, 150, 200, 50)]),
            ("owned by nobody", {"a-id": [1]}, [0, 100, 200, 150, 300], 1000, 1000, [("twice", True, 150, 200, 50)]),
            ("a minute late", {"a-id": [0]}, [0, 100, 200, 50, 300], -30_000, 29_000, [("twice", False, 50, 200, 150)]),
            ("later than that", {"a-id": [0]}, [0, 100, 200, 50, 300], -30_000, 31_000, [("twice", True, 50, 200, 150)])):
        c.generation(name, 1, begin - 500, members)
        c.commits(name, offsets, begin, every)
        found[name] = what
    c.generation("left, then set back", 1, 500, {"a-id": [0]})
    c.commits("left, then set back", [0, 100, 200], 1000)
    c.generation("left, then set back", 2, 4000, {})
    c.commits("left, then set back", [150], 5000)
    c.generation("left, then set back", 3, 6000, {"a-id": [0]})
    c.commits("left, then set back", [300], 7000)
    found["left, then set back"] = [("twice", True, 150, 200, 50)]

    # the consumer protocol: what is being given back is still owned
    for name, given_back, what in (
            ("protocol", 2000, []),
            ("protocol, too early", None, [("owners", True, T + 3000, T + UNTIL, UNTIL - 3000)])):
        c.commits(name, [0, 10], 1000)
        c.current(name, "a", 1000, [0, 1])
        c.current(name, "a", 1500, [1], pending=[0])
        if given_back:
            c.current(name, "a", given_back, [1])
        c.current(name, "b", 3000, [0])
        found[name] = what

    c.commits("replaced", [0, 10], 1000)
    c.current("replaced", "a", 1000, [0])
    c.current("replaced", "a again", 3000, [0])
    c.current("replaced", "a", 3000, [])
    found["replaced"] = []

    # an old consumer's node and a KafkaConsumer's assignment
    for name, ends, what in (
            ("one after the other", 9000, []),
            ("skewed clocks", 14_000, [("owners", False, T + 10_000, T + 14_000, 4000)]),
            ("both at once", 30_000, [("owners", True, T + 10_000, T + 30_000, 20_000)])):
        c.commits(name, [0, 10], 1000)
        c.owner(name, "host-1-abc", 1000, ends)
        c.generation(name, 1, 10_000, {"kc-id": [0]})
        found[name] = what

    # coordination: migration-enabled members hold a node in both modes, and Kafka assigns to them in both
    for name, mode, what in (
            ("kafka mode", "kafka", []),
            ("zookeeper mode", "zookeeper", [("owners", True, T + 50_000, T + UNTIL, 50_000)]),
            ("junk mode", "kafka\n", [("owners", True, T + 50_000, T + UNTIL, 50_000)])):
        c.commits(name, [0, 10], 1000)
        c.write(f"/consumers/{name}/migration/ids/{name}_m1", "{}", 500, "create", ephemeral=True)
        c.owner(name, f"{name}_m1", 1000, None)
        c.generation(name, 1, 20_000, {f"{name}_m1-id": [0]})
        c.write(f"/consumers/{name}/migration/mode", mode, 30_000, "create")
        c.generation(name, 2, 50_000, {"kc-id": [0], f"{name}_m1-id": [1]})
        found[name] = what

    # a guard is nobody
    c.commits("guard", [0, 10], 1000)
    c.write("/consumers/guard/owners/orders/0", "guard", 1000, "create")
    c.generation("guard", 1, 2000, {"kc-id": [0]})
    found["guard"] = []

    # junk: none of it is an offset, a partition or a time that anybody can use
    c.commits("junk", [0, 10], 1000)
    c.commit("junk", 2**63 - 1, 3000, "end-of-the-world")
    c.commit("junk", -5, 4000)
    for data in ("", "ten", "-1", "12\n", "99999999999999999999", "\u0663"):
        c.offset("junk", data, 5000)
    c.write("/consumers/junk/offsets/orders/zero", "5", 5000)
    c.write("/consumers/junk/offsets/orders/0/deeper", "5", 5000)
    c.write("/consumers/junk/offsets/orders/0", b"\xff\xfe", 5000)
    found["junk"] = []

    c.commits(HOSTILE, [0, 10, 5, 20], 1000)
    found[HOSTILE] = [("twice", True, 5, 10, 5)]
    return found | tell_of_topics_created_again(c) | tell_of_what_was_not_read(c)


def tell_of_topics_created_again(c: Captures) -> dict[str, list[Finding]]:
    """Each in a topic of the group's name: A until it is deleted 17 s after T, and B."""
    found: dict[str, list[Finding]] = {}
    before, after = "aa" * 16, "bb" * 16
    minutes = {before: (LONG_AGO, 0, 15 * SECOND), after: (22 * SECOND, UNTIL)}
    seldom = {before: (LONG_AGO,), after: (60 * SECOND, UNTIL)}

    def created_again(name: str, captures: dict[str, tuple[int, ...]], *, own_ids: bool = False,
                      tombstone: bool = True) -> None:
        a, b = id_of(f"{name} {before}"), id_of(f"{name} {after}")
        for topic_id, times in zip((a, b), captures.values(), strict=True):
            c.topic(name, topic_id, *times)
        c.generation(name, 500, 500, {"m-id": [0]}, name)
        c.commits(name, [10, 500, 1000], 1000, topic=name, topic_id=a if own_ids else None)
        if tombstone:
            c.commit(name, None, 17_000, name)
        c.commits(name, [5, 50, 200], 30_000, topic=name, topic_id=b if own_ids else None)

    undecided = [("twice", False, 10, 200, 190)]
    created_again("seen in between", minutes)
    created_again("seen in between, no tombstone", minutes, tombstone=False)
    created_again("told by the commits", seldom, own_ids=True)
    found |= {name: [] for name in ("seen in between", "seen in between, no tombstone", "told by the commits")}
    created_again("between two captures", seldom)
    created_again("between two captures, no tombstone", seldom, tombstone=False)
    found["between two captures"] = undecided
    found["between two captures, no tombstone"] = [*undecided, ("rewound", False, 5, 1000, 995)]

    # without ids nobody knows, as where brokers are older than 2.8 or topics may not be described
    c.topic("no ids", None, LONG_AGO, UNTIL)
    c.generation("no ids", 1, 500, {"m-id": [0]}, "no ids")
    c.commits("no ids", [10, 500, 1000], 1000, topic="no ids")
    c.commit("no ids", None, 20_000, "no ids")
    c.commits("no ids", [5, 50, 200], 30_000, topic="no ids")
    found["no ids"] = undecided

    # the same topic before and after its offsets expired: really read again
    c.commits("expired and read again", [10, 500, 1000], 1000)
    c.commit("expired and read again", None, 20_000)
    c.commits("expired and read again", [50, 200], 30_000)
    found["expired and read again"] = [("twice", True, 50, 200, 150)]

    # before the first capture nobody knows, from then on one topic is read again
    for name, first, what in (("known from then on", 0, [("twice", True, 300, 400, 100)]),
                              ("known too late", 41_000, [("twice", False, 250, 400, 150)])):
        c.topic(name, id_of(name), first, UNTIL)
        c.commits(name, [0, 200], -90_000, topic=name)
        c.commits(name, [300, 400], 10_000, topic=name)
        c.commits(name, [250, 600], 40_000, topic=name)
        found[name] = what

    # a member that has not come since still holds the old topic
    name = "held from before"
    c.topic(name, before, *minutes[before])
    c.topic(name, after, *minutes[after])
    c.commits(name, [0, 10], 1000, topic=name)
    c.current(name, "a", 1000, [0], topic_id=before)
    c.current(name, "b", 30_000, [0], topic_id=after)
    found[name] = []
    c.commits("held by two", [0, 10], 1000, topic="held by two", topic_id="cc" * 16)
    c.current("held by two", "a", 1000, [0], topic_id="cc" * 16)
    c.current("held by two", "b", 30_000, [0], topic_id="cc" * 16)
    found["held by two"] = [("owners", True, T + 30_000, T + UNTIL, UNTIL - 30_000)]

    # retention takes what lies in the new topic, of which the group has no offset yet; and what it has not read
    for name, offsets, what in (("its offset is of before", [], []), ("retention in the new one", [10], [
            ("deleted", True, 10, 90, 80)])):
        c.topic(name, id_of(f"{name} {before}"), *minutes[before])
        c.topic(name, id_of(f"{name} {after}"), *minutes[after])
        c.commits(name, [0, 50], 1000, topic=name)
        c.commits(name, offsets, 30_000, topic=name)
        c.end(name, 90, 200, 60_000)
        found[name] = what

    # what is left is left of the topic as it is in the end
    name = "drained, of before"
    c.topic(name, "dd" * 16, *minutes[before])
    c.topic(name, "ee" * 16, *minutes[after])
    c.commits(name, [0, 1000], 1000, topic=name)
    c.end(name, 0, 200, UNTIL)
    found[name] = [("left", False, 0, 200, 200)]
    return found


def tell_of_what_was_not_read(c: Captures) -> dict[str, list[Finding]]:
    """A commit that goes back once, as a second consumer makes it, or a member's client that sends an older one again."""
    names = ("described by none", "of another type", "members without a record", "an assignment nobody can read")
    for name in names:
        c.commits(name, [10, 100, 95, 300], 1000)
    c.group("described by none", None)
    c.group("of another type", 50_000, kind="Unknown")
    c.group("of another type", UNTIL)
    c.group("members without a record", 50_000, members=2)
    c.generation("an assignment nobody can read", 1, 500, {"m-id": None})
    return {name: [("twice", False, 95, 100, 5)] for name in names}


@pytest.fixture(scope="module")
def audited(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    captures = Captures()
    expected = tell(captures)
    store = captures.file(tmp_path_factory.mktemp("store"), UNTIL)
    settings = AuditSettings(since=T, groups=tuple(
        AuditedGroup(name=name, expected="Drained" if name.startswith("drained") else None) for name in expected))
    report = judge(spark, store, settings, Range(T, T + UNTIL, BAND), Progress())
    latest = store.latest("audit")
    assert latest is not None
    rows = spark.read.parquet(str(latest / "evidence.parquet")).collect()
    return expected, rows, report


def test_every_story_ends_as_it_must(audited: Audited) -> None:
    expected, rows, _ = audited
    found: dict[str, list[Finding]] = {name: [] for name in expected}
    for row in rows:
        found[row["group"]].append((row["kind"], row["proven"], row["start"], row["end"], row["amount"]))
    wrong = {name[:30]: (found[name], expected[name]) for name in expected
             if sorted(found[name]) != sorted(expected[name])}
    assert wrong == {}


def test_the_report_counts_them_and_speaks_briefly(audited: Audited) -> None:
    expected, _, report = audited
    proven = [each for story in expected.values() for each in story if each[1]]
    assert report.verdict == "Violations"
    assert sum(report.violations.values()) == len(proven)
    assert report.records_twice == sum(amount for kind, _, _, _, amount in proven if kind == "twice")
    assert report.records_doubled == report.records_twice - 50      # of `thrice` 50 were counted before
    assert report.collisions == 0
    assert len(report.evidence()) == 5
    assert all(len(each) <= LONGEST for each in report.evidence())


def test_sentences_are_short_and_escaped(audited: Audited) -> None:
    _, rows, _ = audited
    told = [sentence(row) for row in rows]
    assert max(map(len, told)) <= LONGEST
    assert all(each.isprintable() and each.isascii() for each in told)
    hostile = [each for each in told if r"a\nb\x00\u202e" in each]
    assert len(hostile) == 1
    assert "5 records [5, 10) consumed twice" in hostile[0]
    assert any("owned by host-1-abc and by kc-id at once for 20000 ms" in each for each in told)
