"""Pods that take long to come up: the status says what they are at, since when, and when somebody should look."""


import pytest

from simulation.migration_world import HOW_FAR, MigrationWorld
from simulation.moments import at_step, quiet_for, reference, told, waits_for
from simulation.operated import DOCS
from switchover.cluster.coming_up import USUAL_SECONDS
from switchover.engine.windows import utc
from switchover.kubernetes.workloads import Stage


@pytest.mark.parametrize(("step", "coming", "late"), [
    pytest.param("ProvisionControllers", "ControllerComingUp", "ControllerInTrouble", marks=pytest.mark.long),
    ("EnableMigration", "PodComingUp", "PodInTrouble"),
])
@HOW_FAR
def test_an_init_container_that_does_not_end_is_told_by_name_and_then_called_too_long(
        world: MigrationWorld, step: str, coming: str, late: str, whole: bool) -> None:
    if step == "ProvisionControllers":
        world.kubelet.stuck = {f"kafka-controller-{number}" for number in range(3)}
    else:
        at_step(world, "ProvisionControllers")
        world.kubelet.stuck = {f"kafka-{number}" for number in range(3)}
    assert world.live(lambda: waits_for(world, coming) and "runs its init container" in told(world, coming)["message"])
    assert world.step == step
    quiet_for(world, 10)                                    # the other controllers come as far
    first = told(world, coming)["message"]
    starts = dict(world.kafka.starts)
    quiet_for(world, 60)
    assert told(world, coming)["message"] == first, "nothing is told anew while nothing has changed"
    assert world.live(lambda: waits_for(world, late))
    found = told(world, late)
    since = next(utc(world.timeline.now() - seconds) for seconds in range(1000)
                 if utc(world.timeline.now() - seconds) in found["message"])
    assert f"since {since}, longer than the usual {USUAL_SECONDS[Stage.INITIALIZING]:.0f} s" in found["message"]
    assert f"since {since}" in first, "it is the same time that is told"
    assert found["unblocks"].startswith("find out why: kubectl --namespace ")
    assert found["unblocks"].endswith("--container switchover-original")
    assert found["runbookURL"] == f"{DOCS}/runbooks/{late}.md"
    quiet_for(world, 60)
    assert world.kafka.starts == starts, "nobody is evicted for being slow"
    world.kubelet.stuck = set()
    world.goes_on(whole)
    assert not whole or world.end_state() == reference()[0]
