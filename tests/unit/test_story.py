"""What the story of a migration says, and what it never does."""

import json
import logging
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from switchover.answers.errors import Fenced, Refused
from switchover.cli import follow
from switchover.cli.objects import CONSUMER_GROUP_MIGRATION, KAFKA_MIGRATION, Found
from switchover.cluster import effects as cluster
from switchover.cluster.kind import kafka_migrations
from switchover.coordination.mode import Mode
from switchover.engine import effects
from switchover.engine.effects import Effect, Elsewhere
from switchover.engine.gate import Judgement, Streak, Verdict, passed, unknown, wait
from switchover.engine.plan import Decision
from switchover.engine.policy import NOTHING_MORE
from switchover.engine.position import Position
from switchover.engine.reconcile import Reconciler
from switchover.engine.story import LONGEST, MOST, Page, laid_out, next_page
from switchover.groups.coordination import mode as coordination
from switchover.network.addresses import Address
from switchover.reasons.cluster import NODE_UNKNOWN
from switchover.shared.partition import TopicPartition
from tales import STORIES
from unit.group_pictures import workload_of
from unit.group_walk import Walk
from unit.group_world import World

AT = Position(step="Move", entered=1.0, opened=1.0)


def judged(gate: str, verdict: Verdict, *, is_open: bool = False, held: tuple[str, str] = ("", "")) -> Judgement:
    return Judgement(gate, verdict, Streak(verdict.outcome, 1.0, 1), open=is_open, overdue=False, held=held)


def decision(*items: Judgement, stalled: Judgement | None = None) -> Decision:
    return Decision(AT, (), {item.gate: item for item in items}, {}, "", stalled)


def told(before: Page, *items: Judgement, seen: dict[str, str] | None = None,
         stalled: Judgement | None = None) -> tuple[Page, tuple[str, ...]]:
    return next_page(before, AT, seen or {}, decision(*items, stalled=stalled))


SILENT = judged("Quiet", unknown(NODE_UNKNOWN, "broker 1 was not\nheard"))


def test_a_pass_tells_what_is_new_and_nothing_twice():
    healthy, counting = judged("Healthy", passed(), is_open=True), judged("InSync", passed(), held=("1 s", "9 s"))
    page, lines = told(Page(), healthy, counting, SILENT, seen={"n0": "in Old"}, stalled=SILENT)
    assert lines == ("step: Move, forward", "seen: n0 in Old", "open: Healthy", "passing: InSync (9 s)",
                     "unknown: Quiet: NodeUnknown, broker 1 was not heard", "stalled: Quiet")
    same = judged("InSync", passed(), held=("2 s", "9 s"))
    page, lines = told(page, healthy, same, SILENT, seen={"n0": "in Old"}, stalled=SILENT)
    assert lines == ()
    _, lines = told(page, judged("InSync", passed(), is_open=True), seen={"n0": "in New"})
    assert lines == ("seen: n0 in New", "open: InSync")


def test_a_fact_that_was_not_asked_for_meanwhile_is_not_news():
    page, _ = told(Page(), seen={"n0": "in Old"})
    page, _ = told(page)
    assert told(page, seen={"n0": "in Old"})[1] == ()


def test_gates_that_found_the_same_are_told_together():
    _, lines = told(Page(), SILENT, replace(SILENT, gate="Other"), judged("Third", wait(NODE_UNKNOWN, "else", unblocks="")))
    assert lines[1:] == ("unknown: Quiet, Other: NodeUnknown, broker 1 was not heard", "waits: Third: NodeUnknown, else")


def test_whatever_is_found_the_lines_of_a_pass_are_bounded():
    many = [judged(f"Replace/{n}", wait(NODE_UNKNOWN, f"{n} " + "x" * 2 * LONGEST, unblocks="")) for n in range(3 * MOST)]
    _, lines = told(Page(), *many)
    assert len(lines) == MOST + 1
    assert max(map(len, lines)) <= LONGEST + 2
    assert lines[-1] == f"… and {2 * MOST + 1} lines more"


def test_a_line_is_laid_out_below_its_time_and_its_step():
    assert list(laid_out([("1:00", "step: A"), ("1:00", "open: " + "G " * 80), ("1:01", "step: B")])) == [
        "1:00  step: A", "      open: " + ("G " * 54).rstrip(), "          " + ("G " * 26).rstrip(), "", "1:01  step: B"]


# --- secrets ------------------------------------------------------------------------------------------------------------

CANARY = "canary-5f2c9e"
NODE = TopicPartition("orders", 0)
EVERY_EFFECT: tuple[Effect, ...] = (
    effects.Apply({"kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": CANARY}}),
    effects.Create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": CANARY}}),
    effects.Provide(({"kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": CANARY}},)),
    effects.WriteNodeFiles("s", {"kafka-0": f"sasl.jaas.config={CANARY}"}, {"label": CANARY}),
    effects.Patch("apps/v1", "Deployment", "d", ({"op": "replace", "path": "/env", "value": CANARY},), "changed"),
    effects.Evict("p", "u"), effects.DeletePod("p", "u"), effects.Delete("v1", "Secret", "s"), cluster.RaiseEpoch(2, 1),
    cluster.RaiseVersions({("orders", 0): 1}, 1), cluster.CreateStates({("orders", 0): (1,)}, 1),
    cluster.DeleteZNode("/migration", 1, 1),
    cluster.SetQuota(Address("kafka", 9092), (("user", "bob"),), "producer_byte_rate", 1.0),
    coordination.SetMode("orders", Mode.KAFKA, 1), coordination.RemoveGuards("orders", frozenset({NODE})))


@pytest.mark.parametrize("effect", EVERY_EFFECT, ids=lambda effect: type(effect).__name__)
def test_an_effect_tells_nothing_of_what_it_writes(effect):
    assert CANARY not in f"act: {effect}"


def test_no_effect_is_left_out_of_them():
    every = {*Effect.__args__, *Elsewhere.__subclasses__()} - {Elsewhere}
    assert {type(each).__name__ for each in EVERY_EFFECT} == {each.__name__ for each in every}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_the_story_of_a_group_tells_nothing_of_its_pods_templates(kind):
    world = World((kind, "orders", 2))
    secret = {"name": "PASSWORD", "value": CANARY}
    world.workloads["orders"].spec["template"]["spec"]["containers"][0].setdefault("env", []).append(secret)
    walk = Walk(world, {"workloads": (workload_of(kind, "orders"),), "soakSeconds": 6}).tells()
    walk.until()
    assert CANARY in json.dumps(world.workloads["orders"].spec), "it was there all the time"
    assert walk.story
    assert not [line for _, line in walk.story if CANARY in line]


# --- whose it is --------------------------------------------------------------------------------------------------------


class Says:
    """Whoever is asked for an effect, and says no."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __getattr__(self, _: str):
        async def no(*_: object) -> None:
            raise self.error
        return no


@pytest.mark.parametrize("error", [Refused("exceeded quota"), Fenced("changed meanwhile")], ids=["refused", "fenced"])
@pytest.mark.parametrize("effect", EVERY_EFFECT, ids=lambda effect: type(effect).__name__)
async def test_what_could_not_be_done_stands_in_the_story_of_the_migration(effect, error, caplog):
    caplog.set_level(logging.INFO, "switchover")
    says = Says(error)
    reconciler = Reconciler(kafka_migrations(NOTHING_MORE, ""), "shop", "me", None, says, None, None, None, None)
    migration = SimpleNamespace(metadata=SimpleNamespace(name="kafka"))
    await reconciler._perform(migration, effect, SimpleNamespace(observer=says, refused="", fenced=0))
    log = [json.dumps({"message": each.getMessage(), "story": each.story, "namespace": each.namespace})
           for each in caplog.records]
    found = Found(KAFKA_MIGRATION, {"metadata": {"name": "kafka", "namespace": "shop"}})
    act, *outcome = (line for _, line in follow.story_of(log, found))
    assert act == f"act: {effect}"
    assert [line.endswith(str(error)) for line in outcome] == [True]


# --- where it is kept ---------------------------------------------------------------------------------------------------


def test_of_a_log_the_story_of_the_very_object_is_shown():
    def line(message: str, story: str, namespace: str = "shop") -> str:
        entry = {"timestamp": "2026-11-27T10:00:01.5+00:00", "message": message, "migration": "kafka"}
        return json.dumps({**entry, "namespace": namespace, **({"story": story} if story else {})})

    log = [line("step: Preflight", "kmig/kafka"), line("of the group of that name", "cgmig/kafka"), line("no story", ""),
           line("elsewhere", "kmig/kafka", "bank"), "[2026] switchover [INFO] act: a", "[]", '{"broken', "7",
           line("act: evict pod kafka-0", "kmig/kafka")]
    metadata = {"metadata": {"name": "kafka", "namespace": "shop"}}
    time = "2026-11-27T10:00:01Z"
    assert list(follow.story_of(log, Found(KAFKA_MIGRATION, metadata))) == [
        (time, "step: Preflight"), (time, "act: evict pod kafka-0")]
    assert [line for _, line in follow.story_of(log, Found(CONSUMER_GROUP_MIGRATION, metadata))] == [
        "of the group of that name"]


def test_every_story_is_told_by_a_test():
    layers = (STORIES.parent / layer for layer in ("unit", "simulation"))
    tests = "".join(file.read_text() for layer in layers for file in layer.glob("test_*.py"))
    files = sorted(STORIES.glob("*.txt"))
    assert len(files) >= 20
    assert [file.name for file in files if not re.search(rf'"{re.escape(file.stem)}"', tests)] == []
