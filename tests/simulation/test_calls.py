"""Events that call for people: each once, whatever time passes, and by whichever operator."""

from collections import Counter

from fakes.api_server import Object
from simulation.migration_world import MigrationWorld
from simulation.moments import before_finalize, quiet_for, until_step, waits_for
from switchover.cluster.door.mount import VOLUME
from switchover.engine.calls import News


def called(world: MigrationWorld) -> Counter[tuple[str, str]]:
    """How often each Event was written, but those of moves."""
    return Counter((event["type"], event["reason"]) for event in world.api.of("events") if event["reason"] != "Moved")


def test_a_hold_and_the_end_are_told_once_and_nobody_is_warned(world: MigrationWorld) -> None:
    before_finalize(world)
    quiet_for(world, 400)
    assert called(world) == {("Normal", "AwaitingApproval"): 1}
    assert world.news == [News.HELD]
    assert world.run_to_the_end()
    told = called(world)
    assert told.pop(("Normal", "AwaitingApproval")) == 2, "of Finalize and of HandOver"
    assert told == {("Normal", "Succeeded"): 1}
    assert world.news == [News.HELD, News.SUCCEEDED, News.HELD]


def test_drift_that_stalls_it_warns_once_while_it_lasts(world: MigrationWorld) -> None:
    until_step(world, "MoveBrokers", 1)

    def revert(found: Object) -> None:
        container = found["spec"]["template"]["spec"]["containers"][0]
        container["volumeMounts"] = [mount for mount in container["volumeMounts"] if mount["name"] != VOLUME]

    world.api.edit("statefulsets", "kafka", revert)
    assert world.live(lambda: waits_for(world, "RevertedByGitOps"))
    quiet_for(world, 300)
    told = called(world)
    assert (told["Warning", "Stalled"], told["Warning", "RevertedByGitOps"]) == (1, 1)
    assert world.news == [News.STALLED]
