"""A migration that rolls back by itself: who is called, what is said of it, and how it begins again."""

from collections.abc import Callable
from typing import Any

import jsonpatch
import pytest

from fakes.api_server import Object
from simulation.migration_world import NAME, MigrationWorld
from simulation.moments import opened
from simulation.pasting import paste_for
from simulation.test_rollback import assert_as_before
from switchover.answers.errors import Refused
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cli import acts
from switchover.cli.acts import Act
from switchover.cli.display import tree
from switchover.cli.objects import KAFKA_MIGRATION, Found
from switchover.engine.calls import News

KMIG = f"kmig/{NAME}"
AGAIN = f"switchover retry {KMIG} --namespace sim"


def found(world: MigrationWorld) -> Found:
    return Found(KAFKA_MIGRATION, world.migration)


def act(world: MigrationWorld, act: Act) -> list[str]:
    """What the command says, and its own patch of the object."""
    said = found(world)
    acts.refuse(said, act)
    words = list(acts.lines(said, act))
    patch = acts.retry_patch(said.resource) if act is Act.RETRY else acts.desired_patch(said.resource, act)
    changed: Object = jsonpatch.apply_patch(dict(said.resource), list(patch))
    world.api.edit("kafkamigrations", NAME, lambda found: found.update(metadata=changed["metadata"], spec=changed["spec"]))
    world.witness.wish()
    return words


def refused(world: MigrationWorld, what: Act) -> str:
    with pytest.raises(Refused) as why:
        acts.refuse(found(world), what)
    return str(why.value)


def broken(world: MigrationWorld) -> None:
    """No broker starts with the migration flag, and a step that fails is to be taken back."""
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"].update(onFailure="RollBack"))
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"]["gates"].update(stepPatienceSeconds=60))
    world.kafka.refuses = {(f"kafka-{n}", Mode.MIGRATION) for n in range(3)}


def turned(world: MigrationWorld) -> None:
    """It has begun to roll back by itself."""

    def run() -> None:
        broken(world)
        assert world.live(lambda: world.phase == "RollingBack")

    world.get_to(("rolls back by itself",), run)


def rolled_back(world: MigrationWorld) -> None:
    """And is rolled back."""

    def run() -> None:
        turned(world)
        assert world.live(lambda: world.phase == "RolledBack")

    world.get_to(("rolled back by itself",), run)


def condition(world: MigrationWorld, kind: str) -> dict[str, Any]:
    return next((each for each in world.status.get("conditions", ()) if each["type"] == kind), {})


def metric(world: MigrationWorld, name: str, **labels: str) -> float | None:
    (registry,) = world.metrics
    return registry.get_sample_value(f"switchover_{name}", {"migration": world.migration["metadata"]["uid"], **labels})


def seen(world: MigrationWorld, until: Callable[[], bool]) -> Callable[[], bool]:
    """Until something is so; meanwhile nobody is told that it is ready, or that somebody must act."""

    def watching() -> bool:
        assert condition(world, "Ready")["status"] == "False"
        assert condition(world, "Stalled")["status"] == "False"
        return until()

    return watching


def test_it_calls_when_it_begins_to_roll_back_and_says_why_and_from_where(world: MigrationWorld) -> None:
    turned(world)
    rollback = world.status["rollback"]
    assert (rollback["failureStep"], rollback["failureGate"]) == ("EnableMigration", "Replace/kafka-1")
    assert rollback["failure"] == "PodInTrouble"
    assert world.news == [News.ROLLING_BACK], "it is not stalled: it does something about it"
    (event,) = (each for each in world.api.of("events") if each["reason"] == "AutomaticRollback")
    assert event["type"] == "Warning"
    assert event["message"].startswith("automatically from EnableMigration because of PodInTrouble: Replace/kafka-1: ")
    (move,) = (each for each in world.status["history"] if each["reason"] == "AutomaticRollback")
    assert (move["from"], move["direction"]) == ("EnableMigration/1", "Backward")
    assert {each["direction"] for each in world.status["history"] if each["time"] < move["time"]} == {"Forward"}

    def told() -> bool:
        if world.phase == "RollingBack":
            assert metric(world, "automatic_rollback", reason="PodInTrouble", runbook="runbooks/PodInTrouble.md") == 1
            assert metric(world, "stalled", reason="PodInTrouble", runbook="runbooks/PodInTrouble.md") is None
            assert world.status["summary"].startswith(
                "rolling back automatically from EnableMigration because of PodInTrouble: ")
        return world.phase == "RolledBack" and len(world.news) > 1       # the status is written first

    before = world.timeline.now()
    assert world.live(lambda: world.timeline.now() > before + 5)
    assert world.live(told)
    assert world.news == [News.ROLLING_BACK, News.STALLED]
    assert metric(world, "stalled", reason="PodInTrouble", runbook="runbooks/PodInTrouble.md") == 1
    assert metric(world, "automatic_rollback", reason="PodInTrouble", runbook="runbooks/PodInTrouble.md") == 1
    assert_as_before(world)


@pytest.mark.case("PodInTrouble")
def test_every_command_says_what_happened_and_one_begins_again(world: MigrationWorld) -> None:
    rolled_back(world)
    why = "has rolled back automatically from EnableMigration because of PodInTrouble: Replace/kafka-1: "
    (waits,) = world.status["waitingFor"]
    assert waits["unblocks"] == f"repair the cause, then begin attempt 2: {AGAIN}"
    assert waits["unblocks"] in world.status["summary"]
    assert refused(world, Act.RESUME).startswith(f"{KMIG} {why}")
    assert refused(world, Act.RESUME).endswith(f"resume changes nothing; {AGAIN} begins attempt 2")
    said = list(acts.lines(found(world), Act.ROLLBACK))
    assert said[1].startswith(f"it {why}")
    assert said[1].endswith(f"; nothing begins again before {AGAIN}")
    drawn = str(tree(world.migration, world.timeline.now()).label)
    assert drawn.endswith("rollback done")
    world.kafka.refuses.clear()
    words = paste_for(world, "PodInTrouble")
    assert f"\nit {why}" in words
    assert "\nattempt 2 begins with Preflight; no approval is carried over\n" in words
    assert world.live(lambda: opened(world, "MoveBrokers"))
    assert world.status["attempt"] == 2
    assert world.status["rollback"].get("failure", "") == ""
    assert metric(world, "automatic_rollback", reason="PodInTrouble", runbook="runbooks/PodInTrouble.md") is None
    assert refused(world, Act.RETRY).startswith(f"{KMIG} is not rolled back: it stands at MoveBrokers")


def test_another_attempt_begins_after_a_rollback_that_is_still_under_way(world: MigrationWorld) -> None:
    turned(world)
    assert refused(world, Act.RESUME).startswith(
        f"{KMIG} is rolling back automatically from EnableMigration because of PodInTrouble: ")
    words = act(world, Act.RETRY)
    assert words[1].endswith(", and stands at EnableMigration")
    assert words[2] == "once every step is rolled back, attempt 2 begins with Preflight; no approval is carried over"
    assert "attempt 2 begins by itself after that" in refused(world, Act.RETRY)
    world.kafka.refuses.clear()
    assert world.live(seen(world, lambda: world.status["summary"].endswith("; then attempt 2 begins")))
    assert world.live(seen(world, lambda: world.status["attempt"] == 2 and world.step == "EnableMigration"))
    assert world.news == [News.ROLLING_BACK], "nobody need act, and nobody is told that it is done"


def test_a_retry_counts_once(world: MigrationWorld) -> None:
    """The same trouble again takes the second attempt back, and there it stays; also for an operator that has just begun."""
    rolled_back(world)
    act(world, Act.RETRY)
    assert world.live(lambda: world.status["attempt"] == 2 and world.phase == "RolledBack")
    before = world.timeline.now()
    assert world.live(lambda: world.timeline.now() > before + 300)
    assert (world.status["attempt"], condition(world, "Stalled")["status"]) == (2, "True")


def test_after_a_rollback_that_was_wished_it_begins_again_too(world: MigrationWorld) -> None:
    assert world.live(lambda: opened(world, "ProvisionControllers"))
    act(world, Act.ROLLBACK)
    assert world.live(lambda: world.phase == "RollingBack")
    assert act(world, Act.RETRY)[1] == "it is rolling back, and stands at ProvisionControllers"
    assert world.live(seen(world, lambda: world.status["attempt"] == 2 and world.step == "EnableMigration"))
    act(world, Act.ROLLBACK)
    assert world.live(lambda: world.phase == "RolledBack")
    assert act(world, Act.RETRY)[1] == "it has rolled back"
    assert world.live(lambda: world.status["attempt"] == 3 and world.step == "EnableMigration")


def test_a_rollback_that_is_wished_after_all_wins(world: MigrationWorld) -> None:
    turned(world)
    act(world, Act.RETRY)
    act(world, Act.ROLLBACK)
    assert world.live(lambda: world.phase == "RolledBack" and condition(world, "Ready")["status"] == "True")
    assert world.status["attempt"] == 1
