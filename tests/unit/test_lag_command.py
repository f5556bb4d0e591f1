"""`switchover lag` on made-up groups: when it has a verdict, what it says, and with which exit code."""

import asyncio
import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from rich.console import Console
from typer.testing import CliRunner

from switchover.answers.errors import Refused, Unreachable
from switchover.cli.command import access_to
from switchover.cli.lag import EXIT_CODES, Question, Report, follow, thresholds_of
from switchover.cli.lag_output import document, progress, table
from switchover.cli.main import app
from switchover.lag.group import Membership, TopicPartition
from switchover.lag.samples import NONE
from switchover.lag.verdicts import Effect
from switchover.lag.window import Asked, Offsets, Reading, Sweep
from switchover.network.credentials import Access

DEFAULT = thresholds_of(15, 8, 120)
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def stable(*owned: TopicPartition) -> Membership:
    return Membership("Stable", {"m": frozenset(owned)})


def _is_dead(found: Membership | str) -> bool:
    return isinstance(found, Membership) and found.state == "Dead"


@dataclass
class World:
    """Groups and how far behind they are; the clock goes on by one poll with each sweep."""

    members: dict[str, Membership | str]
    behind: Mapping[str, Mapping[TopicPartition, int]]
    partitions: Mapping[str, int] = field(default_factory=lambda: {"a": 2, "b": 1})
    failed: dict[str, Reading] = field(default_factory=dict)
    ids: dict[str, UUID] = field(default_factory=dict)
    down: Exception | None = None
    at: float = 1_795_000_000
    sweeps: int = 0

    def now(self) -> float:
        return self.at

    async def groups(self) -> Sequence[str]:
        if self.down is not None:
            raise self.down
        return sorted(name for name, found in self.members.items() if not _is_dead(found))

    async def memberships(self, groups: Iterable[str]) -> Mapping[str, Membership | str]:
        if self.down is not None:
            raise self.down
        return {group: self.members[group] for group in groups}

    async def sweep(self, asked: Mapping[str, Asked]) -> Sweep:
        if self.down is not None:
            raise self.down
        if not asked:
            return Sweep({})
        self.at += 15
        self.sweeps += 1
        end = 1_000_000 + 1000 * self.sweeps
        readings = {group: Reading(
            {each: Offsets(round(self.at * 1000), NONE if lag == NONE else end - lag, end, 0, end)
             for each, lag in self.behind.get(group, {}).items()},
            frozenset(each.topic for each in self.behind.get(group, {}))) for group in asked}
        return Sweep(readings | {group: self.failed[group] for group in asked if group in self.failed}, self.partitions,
                     self.ids)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = asyncio.sleep
    monkeypatch.setattr("switchover.cli.lag.asyncio.sleep", lambda _: sleep(0))


def healthy() -> World:
    return World({"g": stable(A0, A1)}, {"g": {A0: 10, A1: 0}})


async def reports(world: World, count: int, *groups: str, topics: Iterable[str] = ()) -> list[Report]:
    question = Question(Access("kafka:9092"), groups, frozenset(topics), False, DEFAULT)
    found: list[Report] = []
    async with contextlib.aclosing(follow(question, world, world, world)) as followed:
        async for report in followed:
            found.append(report)
            if len(found) == count:
                break
    return found


async def last(world: World, count: int = 9, *groups: str, topics: Iterable[str] = ()) -> Report:
    return (await reports(world, count, *groups, topics=topics))[-1]


def shown(report: Report) -> list[str]:
    console = Console(width=1000)
    with console.capture() as captured:
        console.print(table(report))
    return [line.rstrip() for line in captured.get().splitlines()]


# --- when -----------------------------------------------------------------------------------------------------------------


async def test_it_says_what_is_missing_until_there_is_a_verdict():
    found = await reports(healthy(), 9)
    assert [progress(report) for report in found[:1] + found[7:]] == [
        "needs 8 more samples over 120 s for a verdict", "needs 1 more sample over 15 s for a verdict", ""]
    assert [report.judged for report in found] == [False] * 8 + [True]
    assert [report.effect for report in found[7:]] == [Effect.INCONCLUSIVE, Effect.PASS]


async def test_a_group_that_cannot_be_judged_is_waited_for_one_sample_and_no_longer():
    world = healthy()
    world.failed["g"] = Reading({A0: Offsets(1, 2, 3, 0, 3)}, failed={A1: "moved"})
    found = await reports(world, 10)
    assert [report.judged for report in found[8:]] == [False, True]
    assert progress(found[8]) == "needs 1 more sample over 15 s for a verdict"
    assert EXIT_CODES[found[9].effect] == 3


async def test_a_verdict_does_not_wait_for_the_gate_but_fails_with_it():
    world = World({"g": stable(A0, A1), "h": stable(B0)}, {"g": {A0: 0, A1: 0}, "h": {B0: 0}})
    found = await last(world)
    assert (found.effect, found.groups[0].assessment.gate.effect) == (Effect.PASS, Effect.HOLD)
    standing = dict(world.behind)
    effects = []
    for sweeps in range(9, 13):
        at_stand = World(world.members, standing)
        at_stand.behind = Still(at_stand)
        effects.append((await last(at_stand, sweeps)).effect)
    assert effects == [Effect.HOLD, Effect.HOLD, Effect.FAIL, Effect.FAIL]


class Still(dict[str, Mapping[TopicPartition, int]]):
    """h committed once and never again."""

    def __init__(self, world: World) -> None:
        self._world = world

    def get(self, key: str, default: object = None) -> Mapping[TopicPartition, int]:    # type: ignore[override]
        return {B0: 500 + 1000 * self._world.sweeps} if key == "h" else {A0: 0, A1: 0}


# --- what -----------------------------------------------------------------------------------------------------------------


async def test_the_table_names_the_worst_group_first_and_says_why():
    world = World(
        {"g": stable(A0, A1), "gone": Membership("Empty", {}), "none": Membership("Empty", {})},
        {"g": {A0: 10, A1: 0}, "gone": {B0: 200_000}})
    report = await last(world)
    header, first, second, *words, at = shown(report)
    assert header.split() == ["GROUP", "STATE", "MEMBERS", "PARTITIONS", "LAG", "TIME", "LAG", "VERDICT"]
    assert first.split() == ["gone", "Empty", "0", "1", "200000", ">", "120", "s", "HOLD"]
    assert second.split() == ["g", "Stable", "1", "2", "10", "0", "s", "PASS"]
    assert words[0] == "gone: it is not stable"
    assert words[1].startswith("gone: b-0 is BEHIND: lag 200000, the oldest uncommitted record is at least 120 s old")
    assert at == "at 2026-11-18T11:08:55.000+00:00"
    assert EXIT_CODES[report.effect] == 3


async def test_only_the_worst_partitions_have_words_and_json_has_all():
    owned = [TopicPartition("a", number) for number in range(6)]
    world = World({"g": stable(*owned)}, {"g": {each: 70_000 + each.partition for each in owned}}, {"a": 6})
    report = await last(world)
    words = shown(report)[2:-1]
    assert [line.split()[1] for line in words[:3]] == ["a-5", "a-4", "a-3"]
    assert words[3] == "g: and 3 partitions more that do not pass (--output json has all)"
    [group] = json.loads(document(report))["groups"]
    assert [each["partition"] for each in group["partitions"]] == list(range(6))
    assert {key: value for key, value in group["partitions"][2].items() if key != "says"} == {
        "topic": "a", "partition": 2, "verdict": "BEHIND", "effect": "HOLD", "committed": 938_998, "end": 1_009_000,
        "logStart": 0, "lag": 70_002, "timeLagMs": 120_000, "timeLagCensored": True}


async def test_json_says_null_for_what_is_not_known():
    world = World({"g": stable(A0, A1)}, {"g": {A0: NONE}})
    world.failed = {}
    [group] = json.loads(document(await last(world, 1)))["groups"]
    first, second = group["partitions"]
    assert (first["committed"], first["lag"], first["timeLagMs"]) == (None, 1_001_000, None)
    assert (second["verdict"], second["lag"], second["committed"], second["end"]) == ("UNKNOWN", None, None, None)
    assert second["says"] == "a-1 is UNKNOWN: it is subscribed to, and nothing was sampled"
    assert group["sampledAt"] is None


async def test_what_could_not_be_read_is_said_once_for_all_partitions_of_a_reason():
    world = healthy()
    world.failed["g"] = Reading(failed={A0: "the leader has moved", A1: "the leader has moved", B0: "of no interest",
                                        "b": "not allowed"})
    words = shown(await last(world))
    assert "g: not read, the leader has moved: a-0, a-1" in words
    assert "g: not read, not allowed: b" in words
    assert not any("no interest" in line for line in words)


async def test_no_name_is_a_command_to_the_terminal_or_markup():
    world = World({"[red]\x1b[2Jg": stable(A0, A1)}, {"[red]\x1b[2Jg": {A0: 0, A1: 0}})
    text = "\n".join(shown(await last(world)))
    assert r"[red]\x1b[2Jg" in text
    assert "\x1b" not in text


async def test_topics_limit_what_a_group_is_judged_by():
    world = World({"g": stable(A0, A1, B0), "h": stable(B0)}, {"g": {A0: 0, A1: 0, B0: 10**6}, "h": {B0: 0}})
    [only] = (await last(world, topics=["a"])).groups
    assert (only.name, only.assessment.group.expected, only.effect) == ("g", {A0, A1}, Effect.PASS)
    assert (await last(world)).groups[0].effect is Effect.HOLD


# --- trouble --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("world", "groups", "topics", "error", "words"), [
    (World({}, {}), (), (), Refused, "no consumer group at kafka:9092, or none that our user may see"),
    (World({"x": Membership("Dead", {})}, {}), ("x",), (), Refused, "group x does not exist at kafka:9092"),
    (World({"x": Membership("Empty", {})}, {}), (), (), Refused, "no consumer group at kafka:9092 has anything to consume"),
    (World({"x": stable(A0)}, {}), (), ("b",), Refused, "has anything to consume of b"),
    (World({"x": stable(A0)}, {}, failed={"x": Reading(why="denied")}), (), (), Unreachable, "group x: denied"),
    (World({"x": stable(A0)}, {}, down=Unreachable("nobody answers")), (), (), Unreachable, "nobody answers"),
    (World({"x": stable(A0)}, {}, down=Refused("who are you")), ("x",), (), Refused, "who are you"),
])
async def test_a_first_sweep_that_reads_nothing_says_why(world, groups, topics, error, words):
    with pytest.raises(error, match=words):
        await last(world, 1, *groups, topics=topics)


async def test_later_trouble_is_inconclusive_with_its_words_and_heals():
    world = healthy()
    question = Question(Access("kafka:9092"), (), frozenset(), False, DEFAULT)
    async with contextlib.aclosing(follow(question, world, world, world)) as followed:
        async def ahead(count: int) -> Report:
            for _ in range(count):
                report = await anext(followed)
            return report

        assert (await ahead(10)).effect is Effect.PASS
        world.down = Unreachable("nobody answers")
        blind = await ahead(1)
        assert blind.effect is Effect.INCONCLUSIVE
        words = shown(blind)
        assert "g: its members are not known: nobody answers" in words
        assert "g: its offsets could not be read: nobody answers" in words
        assert words[1].split()[:4] == ["g", "?", "1", "2"]
        world.down = None
        assert (await ahead(1)).effect is Effect.PASS
        world.members["g"] = "coordinator gone"
        assert (await ahead(1)).effect is Effect.INCONCLUSIVE


def test_hold_and_inconclusive_have_one_code_and_usage_another():
    assert EXIT_CODES == {Effect.PASS: 0, Effect.FAIL: 1, Effect.HOLD: 3, Effect.INCONCLUSIVE: 3}


@pytest.mark.parametrize(("arguments", "words"), [
    (("nonsense",), "server 'nonsense' is not of the form HOST:PORT"),
    (("kafka:9092", "--every", "75"), "--samples 8 with --every 75 take longer than the 300 s that the window is sure"),
    (("kafka:9092", "--span", "550"), "--every, --samples and --span do not fit: a window of 600000 ms"),
    (("kafka:9092", "--command-config", "/nowhere"), "cannot read /nowhere: No such file or directory"),
])
def test_bad_options_are_told_in_a_line(arguments, words):
    done = CliRunner().invoke(app, ["lag", "--bootstrap-server", *arguments])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"switchover: {words}")
    assert len(done.stderr.splitlines()) == 1


def test_client_properties_are_read_as_java_does(tmp_path: Path):
    file = tmp_path / "client.properties"
    file.write_text("# mine\nsecurity.protocol = SASL_SSL\nsasl.jaas.config: a \\\n  b=\"c\";\n")
    assert access_to("kafka:9092", file).properties == {"security.protocol": "SASL_SSL", "sasl.jaas.config": 'a b="c";'}
    assert access_to("kafka:9092", None).properties == {}
    file.write_text("key=\\u12")
    with pytest.raises(Refused, match=r"client\.properties is not a file of properties"):
        access_to("kafka:9092", file)


def test_a_rhythm_of_ones_own():
    assert thresholds_of(1, 3, 2) == replace(DEFAULT, poll=1000, min_samples=3, min_span=2000)


# --- what one sample proves -----------------------------------------------------------------------------------------------


async def once(world: World) -> Report:
    question = Question(Access("kafka:9092"), (), frozenset(), False, thresholds_of(15, 8, 120, once=True))
    async with contextlib.aclosing(follow(question, world, world, world)) as followed:
        return await anext(followed)


async def test_one_sample_tells_what_it_proves_and_what_needs_time():
    c0 = TopicPartition("c", 0)
    world = World(
        {"busy": stable(A0, A1), "drained": stable(A0, A1), "lost": stable(c0), "new": stable(B0)},
        {"busy": {A0: 0, A1: 500}, "drained": {A0: 0, A1: 0}, "new": {B0: NONE}}, {"a": 2, "b": 1, "c": 1})
    world.failed["lost"] = Reading({c0: Offsets(round((world.at + 15) * 1000), 5, 90, 10, 90)}, frozenset({"c"}))
    report = await once(world)
    assert report.judged
    assert {group.name: group.effect for group in report.groups} == {
        "lost": Effect.FAIL, "busy": Effect.INCONCLUSIVE, "new": Effect.HOLD, "drained": Effect.PASS}
    words = shown(report)
    assert "busy: a-1 is UNKNOWN: not judged yet: lag 500, and one sample does not show whether it is worked off" in words
    assert any(line.startswith("lost: c-0 is LOST: the log starts at 10") for line in words)
    assert any(line.startswith("new: b-0 is UNCOMMITTED") for line in words)
    busy = next(group for group in json.loads(document(report))["groups"] if group["group"] == "busy")
    assert [each["verdict"] for each in busy["partitions"]] == ["OK", "UNKNOWN"]
    assert EXIT_CODES[report.effect] == 1


async def test_one_sample_proves_nothing_of_a_commit_beyond_the_end():
    world = healthy()
    world.failed["g"] = Reading({each: Offsets(round((world.at + 15) * 1000), 7, 5, 0, 5) for each in (A0, A1)})
    report = await once(world)
    assert report.effect is Effect.INCONCLUSIVE
    assert any("not judged yet: the committed offset 7 is beyond the high watermark (end 5)" in line
               for line in shown(report))


async def test_without_once_nothing_is_told_of_one_sample():
    [report] = await reports(healthy(), 1)
    assert (report.judged, report.effect) == (False, Effect.INCONCLUSIVE)


def test_once_and_watch_exclude_each_other():
    done = CliRunner().invoke(app, ["lag", "--bootstrap-server", "kafka:9092", "--once", "--watch"])
    assert (done.exit_code, done.stderr) == (2, "switchover: --once looks once, and --watch goes on: give one of them\n")


# --- what goes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [(), ("g", "h")], ids=["all", "named"])
async def test_a_group_that_is_gone_is_told_for_as_long_as_it_is(asked: tuple[str, ...]):
    world = World({"g": stable(A0, A1), "h": stable(B0)}, {"g": {A0: 0, A1: 0}, "h": {B0: 0}})
    question = Question(Access("kafka:9092"), asked, frozenset(), False, DEFAULT)
    async with contextlib.aclosing(follow(question, world, world, world)) as followed:
        for _ in range(10):
            assert not any(group.gone for group in (await anext(followed)).groups)
        members, world.members["h"] = world.members["h"], Membership("Dead", {})
        behind, world.behind = world.behind, {"g": {A0: 0, A1: 0}}
        for _ in range(3):
            report = await anext(followed)
            [gone] = [group for group in report.groups if group.gone]
            assert (gone.name, gone.effect, report.effect) == ("h", Effect.INCONCLUSIVE, Effect.INCONCLUSIVE)
            assert [line[:44] for line in shown(report) if line.startswith("h: ")] == [
                "h: it is gone: it was there before, and the "]
        world.members["h"], world.behind = members, behind
        assert not any(group.gone for group in (await anext(followed)).groups)


@pytest.mark.parametrize("left", [stable(A0, A1), Membership("Empty", {}), Membership("Dead", {})],
                         ids=["it goes on", "its offsets went with the topic", "it went with the topic"])
async def test_a_topic_that_was_made_anew_is_told_and_its_group_not_dropped(left: Membership):
    world = World({"g": stable(A0, A1), "h": stable(B0)}, {"g": {A0: 0, A1: 0}, "h": {B0: 0}})
    world.ids = {"a": uuid4(), "b": uuid4()}
    question = Question(Access("kafka:9092"), (), frozenset(), False, DEFAULT)
    async with contextlib.aclosing(follow(question, world, world, world)) as followed:
        for _ in range(9):
            assert not any(group.remade for group in (await anext(followed)).groups)
        world.members["g"], world.ids = left, world.ids | {"a": uuid4()}
        world.behind = {"g": {} if left.state != "Stable" else {A0: 0, A1: 0}, "h": {B0: 0}}
        told = []
        for _ in range(41):
            report = await anext(followed)
            told.append([group.name for group in report.groups if group.remade])
            assert {group.name for group in report.groups} == {"g", "h"}
            assert report.effect is (Effect.PASS if left.state == "Stable" else Effect.INCONCLUSIVE)
            if told[-1]:
                assert any("g: topic a was deleted and created again" in line for line in shown(report))
    assert told == [["g"]] * 40 + [[]], "for as long as the window has samples of the one before"
