"""The way back of a KafkaMigration, from every step and every batch, and there again."""


import pytest

from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster.effects import DeleteZNode, RaiseEpoch, RaiseVersions
from switchover.cluster.plan import PLAN
from switchover.engine.effects import DeletePod, Evict
from switchover.engine.plan import decide
from switchover.kubernetes.reports import DiskReport
from switchover.metadata.parity import MigrationState
from unit.kraft_walk import STEPS, Walk, check_back_at_the_start, in_batch, opened, replaced_in_batch
from unit.pictures import BROKERS, CONTROLLERS, spoil_pod
from unit.small_plan import BACKWARD, FORWARD, intent

UNDOABLE = STEPS[: STEPS.index("Finalize")]
MOMENTS = {
    **{f"{step} opened": opened(step) for step in UNDOABLE},
    **{f"batch {index} of {step} {what}": moment(step, index)
       for step, batches in (("EnableMigration", 2), ("CopyMetadata", 1), ("MoveBrokers", 3))
       for index in range(1, batches + 1) for what, moment in (("assigned", in_batch), ("moved", replaced_in_batch))},
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_from_everywhere_there_is_a_way_back_and_then_forward_again(moment):
    walk = Walk()
    walk.go(MOMENTS[moment](walk))
    assert not walk.position.finished, "it never came there"
    before = len(walk.cluster.replaced)
    walk.go(lambda: False, BACKWARD)
    check_back_at_the_start(walk)
    restarts = [pod for pod in walk.cluster.replaced[before:] if pod in BROKERS]
    assert max((restarts.count(pod) for pod in restarts), default=0) <= 2
    assert not [seen for seen in walk.modes_seen if Mode.ZOOKEEPER in seen and Mode.KRAFT in seen]
    walk.until()
    assert walk.position.attempt == 2
    assert {node.mode for node in walk.cluster.brokers.values()} == {Mode.KRAFT}
    assert walk.cluster.state is MigrationState.POST_MIGRATION


def test_the_way_back_from_kraft_keeps_its_order():
    walk = Walk()
    walk.until("Soak")
    begun = len(walk.cluster.done)
    walk.go(lambda: False, BACKWARD)
    told = []
    for effect in walk.cluster.done[begun:]:
        match effect:
            case Evict(pod, _) | DeletePod(pod, _):
                told.append(pod)
            case RaiseEpoch() | DeleteZNode():
                told.append(str(effect))
    raised = "raise /controller_epoch from 6 to 8"
    assert told[3:-3] == ["kafka-controller-1", "kafka-controller-2", "kafka-controller-0", raised,
                          "delete /migration (version 40)", "delete /controller (version 0)"]
    assert sorted(told[:3]) == sorted(told[-3:]) == sorted(BROKERS)


def test_a_formatted_log_directory_stops_the_way_back_while_kraft_still_rules():
    walk = Walk()
    walk.until("Soak")
    for _ in range(300):
        walk.step(picture=spoil_pod(walk.picture(), "kafka-1", disks=DiskReport(1, 3, 1, 0, ("/data",))), direction=BACKWARD)
    assert walk.position.step == "DualWrite"
    assert {node.mode for node in walk.cluster.brokers.values()} == {Mode.MIGRATION}
    assert {node.mode for node in walk.cluster.controllers.values()} == {Mode.MIGRATION_CONTROLLER}
    walk.go(lambda: False, BACKWARD)
    check_back_at_the_start(walk)


def test_a_claim_that_does_not_come_is_cured_by_one_restart_of_the_controllers():
    walk = Walk()
    walk.cluster.driver_stuck = True
    walk.go(lambda: all(node.mode == Mode.MIGRATION for node in walk.cluster.brokers.values()))
    before = len(walk.cluster.replaced)
    for _ in range(300):
        walk.step()
        if walk.position.step == "MoveBrokers":
            break
    assert walk.position.step == "MoveBrokers"
    assert sorted(walk.cluster.replaced[before:])[-3:] == sorted(CONTROLLERS), "each once"


def test_an_epoch_that_is_high_enough_is_left_alone():
    walk = Walk()
    walk.until("DualWrite")
    walk.cluster.controller_epoch = walk.cluster.partition_epoch = 9
    walk.go(lambda: False, BACKWARD)
    assert not [effect for effect in walk.cluster.done if isinstance(effect, RaiseEpoch)]
    check_back_at_the_start(walk)


def test_states_that_are_behind_are_raised_before_the_first_controller_stops():
    walk = Walk()
    walk.until("DualWrite")
    walk.cluster.behind = {("orders", 1): 12}
    walk.go(lambda: any(node.mode == Mode.STOPPED for node in walk.cluster.controllers.values()), BACKWARD)
    raised = [effect for effect in walk.cluster.done if isinstance(effect, RaiseVersions)]
    assert raised == [RaiseVersions({("orders", 1): 12}, walk.cluster.controller_epoch)]
    walk.go(lambda: False, BACKWARD)
    check_back_at_the_start(walk)


def test_controllers_that_stop_before_everything_was_written_are_started_again():
    walk = Walk()
    walk.until("DualWrite")
    walk.go(lambda: all(node.mode == Mode.STOPPED for node in walk.cluster.controllers.values()), BACKWARD)
    walk.cluster.offset -= 100
    walk.go(lambda: all(node.mode == Mode.MIGRATION_CONTROLLER for node in walk.cluster.controllers.values()), BACKWARD)
    assert walk.cluster.taken, "the claim was ended although metadata is missing in ZooKeeper"
    walk.cluster.offset += 100
    walk.go(lambda: False, BACKWARD)
    check_back_at_the_start(walk)


def test_without_a_claim_the_controllers_are_removed_and_nothing_is_written_to_zookeeper_but_their_own_node():
    walk = Walk()
    walk.until("CopyMetadata")
    walk.go(lambda: False, BACKWARD)
    assert [str(effect) for effect in walk.cluster.done if isinstance(effect, DeleteZNode | RaiseEpoch)] == [
        "delete /migration (version 0)"]
    assert not [pod for pod in walk.cluster.replaced if pod in CONTROLLERS]


def test_once_zookeeper_is_being_given_back_nobody_turns_round_again():
    walk = Walk()
    walk.until("DualWrite")
    walk.go(lambda: walk.position.step == "EnableMigration", BACKWARD)
    for _ in range(200):
        walk.step(direction=FORWARD)
        if walk.position.finished:
            break
    check_back_at_the_start(walk)


def test_between_kraft_and_zookeeper_a_pause_waits():
    walk = Walk()
    walk.until("DualWrite")
    walk.go(lambda: walk.cluster.taken and walk.position.nodes["kafka-controller-1"].assigned == Mode.STOPPED, BACKWARD)
    for _ in range(100):
        decision = decide(PLAN, walk.picture(), intent(BACKWARD, paused=True), walk.streaks, walk.cluster.now)
        for effect in decision.effects:
            walk.cluster.perform(effect)
        walk.streaks, walk.position = dict(decision.streaks), decision.position
        walk.cluster.pass_time(1.0)
    assert not walk.cluster.taken
    assert {node.mode for node in walk.cluster.brokers.values()} == {Mode.MIGRATION}, "and then it stands"
