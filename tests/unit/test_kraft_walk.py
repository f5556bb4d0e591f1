"""Walks along the whole plan of a KafkaMigration, pass after pass, over a cluster on paper."""

import copy
import functools
import random
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import pytest

from switchover.api.kafka_migration import HandOver
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.status import Direction
from switchover.cluster import modes, names
from switchover.cluster.door.mount import VOLUME
from switchover.cluster.effects import DeleteZNode, RaiseEpoch, RaiseVersions
from switchover.cluster.facts import Facts
from switchover.cluster.picture import Picture
from switchover.cluster.plan import PLAN
from switchover.engine.effects import Apply, DeletePod, Effect, Evict, Patch
from switchover.engine.gate import Streak
from switchover.engine.plan import Decision, decide
from switchover.engine.position import Position
from switchover.kubernetes.reports import DiskReport
from switchover.metadata.image import MigrationState
from switchover.outside.observed import Unknown
from unit.pictures import (
    BROKERS,
    CONTROLLERS,
    NOW,
    UID,
    UPGRADED,
    Cluster,
    spec_of,
    spoil_pod,
    stateful_set,
    three,
    with_fact,
)
from unit.small_plan import BACKWARD, FORWARD, intent

STEPS = [step.name for step in PLAN.steps]
REHEARSED = "kafka-controller-0"
"""The leader, which is restarted once more in the soak."""
PROOF = ("kafka-2", "kafka-controller-1")
"""The broker that leads least and a controller that does not lead: they are restarted while ZooKeeper is stopped."""
LONG = ("Soak", "ReleaseZooKeeper")
"""Steps that are mostly waiting: their time passes faster here."""


class Walk:
    """Decides and performs, pass after pass, and keeps the order of all that happened."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.spec = spec_of(rollout={"steps": [{"pods": 1, "bakeSeconds": 5}]})
        self.position = Position(step="Preflight", entered=NOW)
        self.streaks: dict[str, Streak] = {}
        self.steps = ["Preflight"]
        self.assigned: list[tuple[str, str]] = []
        self.modes_seen: list[tuple[Mode, ...]] = []

    def picture(self) -> Picture:
        return self.cluster.picture(self.position, self.spec)

    def step(self, approved: bool = True, picture: Picture | None = None, direction: Direction = FORWARD) -> Decision:
        """One pass, over what is there or over what `picture` shows of it."""
        wanted = replace(intent(direction), approved=frozenset({"Finalize", "HandOver"} if approved else ()), patience=1e9)
        decision = decide(PLAN, picture or self.picture(), wanted, self.streaks, self.cluster.now)
        for name, record in decision.position.nodes.items():
            before = self.position.nodes.get(name)
            if before is None or before.assigned != record.assigned:
                self.assigned.append((name, record.assigned))
        for effect in decision.effects:
            self.check(effect)
            self.cluster.perform(effect)
        if any(item.verdict.reason == "ZooKeeperRuns" for item in decision.judged.values()):
            self.cluster.connections = None                    # what a person does who is asked
        self.streaks, self.position = dict(decision.streaks), decision.position
        if self.position.step != self.steps[-1]:
            self.steps.append(self.position.step)
        seen = (node.mode for node in self.cluster.brokers.values())
        self.modes_seen.append(tuple(sorted(seen, key=modes.BROKERS.index)))
        self.cluster.pass_time(600.0 if self.position.step in LONG else 1.0)
        return decision

    def check(self, effect: Effect) -> None:
        brake = isinstance(effect, Patch) and effect.operations[1:] == (
            {"op": "replace", "path": "/spec/updateStrategy", "value": {"type": "OnDelete"}},)
        assert self.position.opened is not None or brake, "the brake alone takes back what others did"
        if isinstance(effect, Evict | DeletePod):
            assert self.position.batch is not None
            assert self.position.nodes[effect.pod].evicting == effect.uid
        if isinstance(effect, Apply):
            assert "ownerReferences" not in str(effect.manifest)

    def until(self, step: str = "the end") -> None:
        self.go(lambda: self.position.step == step)

    def go(self, reached: Callable[[], bool], direction: Direction = FORWARD) -> None:
        """Walk until that or to the end that is wanted."""
        for _ in range(800):
            if reached() or (self.position.finished and self.position.direction is direction):
                return
            decision = self.step(direction=direction)
            assert decision.stalled is None, decision.stalled
        raise AssertionError(f"never came there: {self.position}")


def changes(seen: list[tuple[Mode, ...]]) -> list[tuple[Mode, ...]]:
    """Each of a row of equal items once."""
    return [item for index, item in enumerate(seen) if index == 0 or item != seen[index - 1]]


def one_by_one(*through: Mode) -> list[tuple[Mode, ...]]:
    """What is seen of three brokers that go from mode to mode, one after the other."""
    return [three(through[0]), *((before,) * (3 - done) + (after,) * done
                                 for before, after in pairwise(through) for done in (1, 2, 3))]


@pytest.fixture(scope="module")
def walked() -> Walk:
    walk = Walk()
    walk.until()
    return walk


def test_the_walk_goes_through_every_step_in_its_order(walked):
    assert walked.steps == STEPS
    assert walked.position.finished


def test_every_node_ends_in_kraft(walked):
    assert walked.modes_seen[-1] == three(Mode.KRAFT)
    assert {node.mode for node in walked.cluster.controllers.values()} == {Mode.KRAFT_CONTROLLER}
    assert walked.cluster.state is MigrationState.POST_MIGRATION


def test_brokers_never_run_on_zookeeper_and_on_kraft_at_the_same_time(walked):
    assert changes(walked.modes_seen) == one_by_one(Mode.ZOOKEEPER, Mode.MIGRATION, Mode.KRAFT)


def test_each_node_is_replaced_once_a_mode_and_not_more(walked):
    assert sorted(walked.cluster.replaced[:-2]) == sorted([*BROKERS, *BROKERS, *CONTROLLERS, REHEARSED])
    assert tuple(walked.cluster.replaced[-2:]) == PROOF


def test_the_zookeeper_controllers_broker_is_the_last_to_migration_and_the_leader_the_last_to_finalize(walked):
    assert [name for name, mode in walked.assigned if mode == Mode.MIGRATION] == ["kafka-1", "kafka-0", "kafka-2"]
    assert [name for name, mode in walked.assigned if mode == Mode.KRAFT_CONTROLLER][-1] == "kafka-controller-1", (
        "the rehearsal made the second one the leader")


def test_nothing_that_is_created_names_an_owner_or_a_namespace(walked):
    for manifest in walked.cluster.applied:
        assert "ownerReferences" not in str(manifest)
        assert "namespace" not in manifest["metadata"]
        if manifest["metadata"]["name"] != "kafka":
            assert names.labels("to-kraft").items() <= manifest["metadata"]["labels"].items()


def test_the_walk_stands_before_finalize_until_it_is_approved():
    walk = Walk()
    walk.until("Finalize")
    for _ in range(20):
        decision = walk.step(approved=False)
        assert decision.effects == ()
    assert walk.position.opened is None
    assert "Approval" in decision.judged
    assert {node.mode for node in walk.cluster.controllers.values()} == {Mode.MIGRATION_CONTROLLER}
    walk.until("HandOver")
    assert walk.cluster.state is MigrationState.POST_MIGRATION


def test_an_operator_that_dies_in_every_pass_takes_longer_and_does_the_same():
    walk = Walk()
    for _ in range(60):
        walk.step()
        if walk.position.step == "EnableMigration":
            break
    for _ in range(30):
        walk.streaks = {}
        walk.step()
    assert walk.cluster.replaced == ["kafka-1"]
    assert walk.position.batch is not None
    assert walk.position.batch.proven is None, "gates that want several samples never open"
    walk.until()
    assert sorted(walk.cluster.replaced) == sorted([*BROKERS, *BROKERS, *CONTROLLERS, REHEARSED, *PROOF])


def without_our_mounts(manifest: dict[str, Any]) -> None:
    """What an apply leaves that knows every mount but ours."""
    container = manifest["spec"]["template"]["spec"]["containers"][0]
    container["volumeMounts"] = [each for each in container["volumeMounts"] if each["name"] != VOLUME]


def test_a_template_changed_back_in_the_middle_stops_evictions_and_says_so():
    walk = Walk()
    walk.until("MoveBrokers")
    without_our_mounts(walk.cluster.manifest)
    before = list(walk.cluster.replaced)
    for _ in range(50):
        decision = walk.step()
    assert walk.cluster.replaced == before
    assert decision.stalled is not None
    assert decision.stalled.verdict.reason == "RevertedByGitOps"


OWN = {"hand_over": HandOver.OWN_CONFIGURATION}


def brought(walk: Walk, merged: bool, **strategy: Any) -> None:
    """The user's own KRaft settings in their file, and a template that says so as a chart's does.

    An apply leaves in the StatefulSet what the manifest has not, that is all of ours; `kubectl replace` leaves nothing.
    """
    walk.cluster.kraft = True
    spec = walk.cluster.manifest["spec"]
    theirs = copy.deepcopy(spec["template"]) if merged else stateful_set()["spec"]["template"]
    theirs["metadata"]["annotations"] = {"checksum/configuration": "of the new file"}
    walk.cluster.manifest["spec"] |= {"template": theirs, **strategy}
    walk.cluster.manifest["metadata"]["generation"] += 1


def at_hand_over(**changes: Any) -> Walk:
    """Before its approval, with these fields of the spec changed by then."""
    walk = Walk()
    walk.until("HandOver")
    walk.spec = walk.spec.model_copy(update=changes)
    return walk


@pytest.mark.parametrize("merged", [True, False], ids=["applied", "replaced"])
@pytest.mark.parametrize("strategy", [{}, {"updateStrategy": {"type": "RollingUpdate"}}], ids=["held", "rolling"])
def test_brokers_go_over_to_a_configuration_of_the_users_own_and_nothing_of_ours_stays(merged, strategy):
    """A chart's upgrade brings its own strategy, too: no pod is replaced by it."""
    walk = at_hand_over(**OWN)
    before = list(walk.cluster.replaced)
    brought(walk, merged, **strategy)
    for _ in range(30):
        decision = walk.step(approved=False)
    assert walk.cluster.replaced == before
    assert decision.judged["GitHasTheTemplate"].verdict.reason == "OwnTemplate"
    assert walk.cluster.manifest["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert ("switchover" in str(walk.cluster.manifest["spec"])) == merged, "nothing is taken out before the approval"
    walk.until()
    assert sorted(walk.cluster.replaced[len(before):]) == sorted([*BROKERS, "kafka-controller-1", *PROOF])
    assert walk.cluster.replaced[-3] == "kafka-controller-1", "after the brokers, by what was changed for them"
    assert {walk.position.nodes[name].assigned for name in BROKERS} == {Mode.OWN_KRAFT}
    assert {node.marker for node in walk.cluster.brokers.values()} == {""}
    assert set(walk.cluster.files) == {"kafka-controller-switchover"}
    assert (walk.cluster.original, walk.cluster.claimed_by) == (None, "")
    assert walk.cluster.manifest["spec"]["updateStrategy"] == stateful_set()["spec"]["updateStrategy"]
    assert "switchover" not in str(walk.cluster.manifest)
    theirs = stateful_set()["spec"]["template"]
    theirs["metadata"]["annotations"] = {"checksum/configuration": "of the new file"}
    assert walk.cluster.manifest["spec"]["template"] == theirs, "to the last word: the next apply restarts nothing"


@pytest.mark.parametrize("changes", [OWN, {}], ids=["asked for", "not asked for"])
def test_a_template_that_says_zookeeper_still_is_rolled_to_by_nobody(changes):
    walk = at_hand_over(**changes)
    before = list(walk.cluster.replaced)
    walk.cluster.manifest["spec"] |= {"template": stateful_set()["spec"]["template"]}
    walk.cluster.manifest["metadata"]["generation"] += 1
    for _ in range(30):
        decision = walk.step()
    assert walk.cluster.replaced == before
    assert ("TemplateNotBrought" if changes else "WouldRestart") in {
        judged.verdict.reason for judged in decision.judged.values()}


def test_before_the_user_has_brought_a_template_an_approval_hands_nothing_over():
    walk = at_hand_over(**OWN)
    for _ in range(30):
        decision = walk.step()
    assert walk.position.opened is None
    assert decision.judged["OnlyOursWouldRestart"].verdict.reason == "TemplateNotBrought"
    assert walk.cluster.claimed_by == UID


@pytest.mark.parametrize("merged", [True, False], ids=["applied", "replaced"])
def test_a_template_of_the_users_own_is_not_rolled_to_unless_asked_for(merged):
    """With the export in Git they change what they like after HandOver."""
    walk = at_hand_over()
    before = list(walk.cluster.replaced)
    brought(walk, merged)
    for _ in range(30):
        decision = walk.step()
    assert walk.cluster.replaced == before
    (verdict,) = {judged.verdict for judged in decision.judged.values() if judged.verdict.reason == "WouldRestart"}
    assert '{"spec":{"handOver":"OwnConfiguration"}}' in verdict.unblocks


def test_a_canary_that_does_not_come_back_on_kraft_is_the_last_to_go():
    walk = at_hand_over(**OWN)
    before = list(walk.cluster.replaced)
    brought(walk, merged=True)
    walk.cluster.kraft = False
    for _ in range(200):
        decision = walk.step()
    assert len(set(walk.cluster.replaced[len(before):])) == 1
    assert decision.stalled is not None
    assert decision.stalled.verdict.reason == "ModeMismatch"


@pytest.mark.parametrize("paused", [False, True])
def test_a_strategy_changed_back_with_the_template_is_taken_back_at_once_also_in_a_pause(paused):
    walk = Walk()
    walk.go(opened("MoveBrokers")(walk))
    ours = copy.deepcopy(walk.cluster.manifest["spec"]["template"])
    without_our_mounts(walk.cluster.manifest)
    walk.cluster.manifest["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
    decision = decide(PLAN, walk.picture(), intent(FORWARD, paused=paused), walk.streaks, walk.cluster.now)
    assert [str(effect) for effect in decision.effects] == [
        "patch StatefulSet kafka: pods replaced by eviction only, again"]
    walk.cluster.perform(decision.effects[0])
    assert walk.cluster.manifest["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert walk.step().stalled.verdict.reason == "RevertedByGitOps"
    walk.cluster.manifest["spec"]["template"] = ours
    walk.until()


def test_a_strategy_alone_that_restarts_nothing_is_told_and_not_fought_over():
    walk = Walk()
    walk.go(opened("MoveBrokers")(walk))
    walk.cluster.manifest["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
    decision = walk.step()
    assert decision.effects == ()
    assert decision.stalled.verdict.reason == "RevertedByGitOps"


def test_paused_anywhere_the_walk_stands_still():
    walk = Walk()
    for _ in range(400):
        paused = decide(PLAN, walk.picture(), intent(FORWARD, paused=True), {}, walk.cluster.now)
        assert (paused.position, paused.effects) == (walk.position, ())
        walk.step()
        if walk.position.finished:
            break
    assert walk.position.finished


def test_wanted_back_from_anywhere_it_goes_back_or_says_why_not():
    walk = Walk()
    for _ in range(400):
        at = walk.position
        decision = decide(PLAN, walk.picture(), intent(BACKWARD), {}, walk.cluster.now)
        assert decision.effects == ()
        if PLAN.can_go_back(at):
            assert decision.position.direction is BACKWARD
        elif not at.finished:
            assert decision.position == at
            assert decision.judged["Undo"].verdict.outcome == "Fail"
        walk.step()
        if walk.position.finished:
            break
    assert walk.position.finished


def test_a_cluster_of_which_nothing_is_known_is_never_touched():
    walk = Walk()
    for _ in range(400):
        blind = replace(walk.picture(), facts=Facts())
        decision = decide(PLAN, blind, replace(intent(), approved=frozenset({"Finalize"})), {}, walk.cluster.now)
        assert decision.effects == ()
        assert (decision.position.step, decision.position.batch) == (walk.position.step, walk.position.batch)
        walk.step()
        if walk.position.finished:
            break
    assert walk.position.finished


# --- the way back -------------------------------------------------------------------------------------------------------

UNDOABLE = STEPS[: STEPS.index("Finalize")]


def opened(step: str) -> Callable[[Walk], Callable[[], bool]]:
    return lambda walk: lambda: walk.position.step == step and walk.position.opened is not None


def in_batch(step: str, index: int) -> Callable[[Walk], Callable[[], bool]]:
    """The batch is assigned; its pod may still run in the old mode."""
    return lambda walk: lambda: (walk.position.step == step and walk.position.batch is not None
                                 and walk.position.batch.index == index)


def replaced_in_batch(step: str, index: int) -> Callable[[Walk], Callable[[], bool]]:
    return lambda walk: lambda: in_batch(step, index)(walk)() and all(
        walk.cluster.brokers[name].mode == walk.position.nodes[name].assigned for name in walk.position.batch.nodes)


MOMENTS = {
    **{f"{step} opened": opened(step) for step in UNDOABLE},
    **{f"batch {index} of {step} {what}": moment(step, index)
       for step, batches in (("EnableMigration", 2), ("CopyMetadata", 1), ("MoveBrokers", 3))
       for index in range(1, batches + 1) for what, moment in (("assigned", in_batch), ("moved", replaced_in_batch))},
}


def check_back_at_the_start(walk: Walk) -> None:
    cluster = walk.cluster
    assert walk.position.finished
    assert {node.mode for node in cluster.brokers.values()} == {Mode.ZOOKEEPER}
    assert cluster.manifest["spec"] == stateful_set()["spec"], "not the user's own template and strategy"
    assert (cluster.controllers, cluster.claims, cluster.files, cluster.original) == ({}, (), {}, None)
    assert (cluster.taken, cluster.migration_node, cluster.claimed_by) == (False, False, "")


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
    walk.cluster.partition_epoch = walk.cluster.controller_epoch
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


# --- brokers whose protocol version is too old --------------------------------------------------------------------------


def too_old() -> Walk:
    walk = Walk()
    walk.cluster = Cluster(protocol="3.5")
    return walk


def test_the_protocol_version_is_raised_before_there_is_anything_to_migrate_to():
    walk = too_old()
    walk.until("ProvisionControllers")
    assert walk.modes_seen[-1] == three(Mode.ZOOKEEPER_RAISED)
    assert [name for name, mode in walk.assigned if mode == Mode.ZOOKEEPER_RAISED] == ["kafka-1", "kafka-0", "kafka-2"]
    assert walk.cluster.controllers == {}
    assert walk.cluster.claimed_by == UID
    walk.until()
    assert changes(walk.modes_seen) == one_by_one(Mode.ZOOKEEPER, Mode.ZOOKEEPER_RAISED, Mode.MIGRATION, Mode.KRAFT)
    assert sorted(walk.cluster.replaced) == sorted([*BROKERS, *BROKERS, *BROKERS, *CONTROLLERS, REHEARSED, *PROOF])


def test_a_version_that_will_do_is_left_alone(walked):
    assert not [seen for seen in walked.modes_seen if Mode.ZOOKEEPER_RAISED in seen]
    assert [step for step in walked.steps if step == "RaiseProtocolVersion"], "it is walked through"


def older(protocol: str) -> Walk:
    """Brokers of an older Kafka, and the image that they are upgraded to."""
    walk = Walk()
    walk.cluster = Cluster(protocol=protocol, old=True)
    walk.spec = spec_of(rollout={"steps": [{"pods": 1, "bakeSeconds": 5}]}, upgrade={"image": UPGRADED})
    return walk


@pytest.mark.parametrize(("protocol", "through"), [
    ("3.8", [Mode.ZOOKEEPER, Mode.ZOOKEEPER_PINNED, Mode.MIGRATION, Mode.KRAFT]),
    ("3.4", [Mode.ZOOKEEPER, Mode.ZOOKEEPER_PINNED, Mode.ZOOKEEPER_RAISED, Mode.MIGRATION, Mode.KRAFT])])
def test_an_older_kafka_is_upgraded_before_anything_else(protocol, through):
    walk = older(protocol)
    walk.until("RaiseProtocolVersion")
    assert walk.cluster.controllers == {}
    walk.until()
    assert changes(walk.modes_seen) == one_by_one(*through)
    restarts = [*BROKERS] * (len(through) - 1)
    assert sorted(walk.cluster.replaced) == sorted([*restarts, *CONTROLLERS, REHEARSED, *PROOF])


UPGRADING = {
    "opened": opened("UpgradeBrokers"),
    **{f"batch {index} {what}": moment("UpgradeBrokers", index)
       for index in (1, 3) for what, moment in (("assigned", in_batch), ("moved", replaced_in_batch))},
    "raised": replaced_in_batch("RaiseProtocolVersion", 2),
    "the first to Migration": replaced_in_batch("EnableMigration", 1),
    "the first to KRaft": replaced_in_batch("MoveBrokers", 1),
}


@pytest.mark.parametrize("moment", UPGRADING)
def test_the_way_back_ends_at_the_older_kafka(moment):
    walk = older("3.4")
    walk.go(UPGRADING[moment](walk))
    assert not walk.position.finished
    walk.go(lambda: False, BACKWARD)
    check_back_at_the_start(walk)
    assert {node.mode for node in walk.cluster.brokers.values()} == {Mode.ZOOKEEPER}


RAISED = {
    "opened": opened("RaiseProtocolVersion"),
    **{f"batch {index} {what}": moment("RaiseProtocolVersion", index)
       for index in (1, 3) for what, moment in (("assigned", in_batch), ("moved", replaced_in_batch))},
    "controllers": opened("ProvisionControllers"),
    "the first to Migration": replaced_in_batch("EnableMigration", 1),
    "all in Migration": opened("DualWrite"),
    "the first to KRaft": replaced_in_batch("MoveBrokers", 1),
}


@pytest.mark.parametrize("moment", RAISED)
def test_the_way_back_ends_at_the_old_version(moment):
    walk = too_old()
    walk.go(RAISED[moment](walk))
    assert not walk.position.finished
    before = len(walk.cluster.replaced)
    walk.go(lambda: False, BACKWARD)
    check_back_at_the_start(walk)
    restarts = [pod for pod in walk.cluster.replaced[before:] if pod in BROKERS]
    assert max((restarts.count(pod) for pod in restarts), default=0) <= 2
    walk.until()
    assert walk.position.attempt == 2
    assert {node.mode for node in walk.cluster.brokers.values()} == {Mode.KRAFT}


def test_no_file_that_a_broker_mounts_is_removed_before_it_runs_on_its_own_again():
    walk = too_old()
    walk.until("EnableMigration")
    walk.go(lambda: walk.position.step == "RaiseProtocolVersion", BACKWARD)
    while any(node.mode == Mode.ZOOKEEPER_RAISED for node in walk.cluster.brokers.values()):
        assert walk.cluster.files["kafka-switchover"]
        assert walk.cluster.original is not None
        walk.step(direction=BACKWARD)
    walk.go(lambda: False, BACKWARD)
    check_back_at_the_start(walk)


def test_once_the_templates_are_given_back_nobody_turns_round():
    walk = too_old()
    walk.go(in_batch("RaiseProtocolVersion", 2)(walk))
    walk.go(lambda: walk.position.direction is BACKWARD and walk.position.batch is not None, BACKWARD)
    for _ in range(200):
        walk.step(direction=FORWARD)
        if walk.position.finished:
            break
    check_back_at_the_start(walk)


# --- an environment that fails at random --------------------------------------------------------------------------------


def dimmed(picture: Picture, chance: random.Random) -> Picture:
    """The same picture, of which now and then a reading failed."""
    lost = {}
    for field in fields(Facts):
        known = getattr(picture.facts, field.name)
        if chance.random() < 0.005:
            unknown = Unknown("no answer within 3 s")
            lost[field.name] = {key: unknown if chance.random() < 0.5 else item for key, item in known.items()} if (
                isinstance(known, dict)) else unknown
    return replace(picture, facts=replace(picture.facts, **lost))


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(n, marks=pytest.mark.long) for n in range(3, 8))])
def test_readings_that_fail_and_an_operator_that_dies_cost_time_and_nothing_else(seed, walked):
    chance, walk = random.Random(seed), Walk()
    for _ in range(3000):
        if chance.random() < 0.02:
            walk.streaks = {}
        walk.step(picture=dimmed(walk.picture(), chance))
        if walk.position.finished:
            break
    assert walk.position.finished, walk.position
    assert walk.steps == STEPS
    assert changes(walk.modes_seen) == changes(walked.modes_seen)
    assert sorted(walk.cluster.replaced) == sorted(walked.cluster.replaced)
    assert walk.cluster.files == walked.cluster.files
    assert walk.cluster.manifest == walked.cluster.manifest


# --- ZooKeeper's end ----------------------------------------------------------------------------------------------------


@functools.cache
def released() -> Walk:
    walk = Walk()
    walk.until("ReleaseZooKeeper")
    return walk


def test_no_broker_is_restarted_before_zookeeper_is_stopped():
    walk = copy.deepcopy(released())
    before = list(walk.cluster.replaced)
    for _ in range(50):
        walk.cluster.connections = 0
        decision = walk.step()
    assert (walk.position.batch, walk.position.finished, walk.cluster.replaced) == (None, False, before)
    found = decision.judged["ZooKeeperStopped"].verdict
    assert found.reason == "ZooKeeperRuns"
    assert "kubectl --namespace kafka scale statefulset/NAME --replicas=0, where NAME" in found.unblocks
    assert decision.stalled is None, "a person may take the time they want"


def test_a_restart_with_zookeeper_back_proves_nothing_and_is_done_again():
    walk = copy.deepcopy(released())
    before = len(walk.cluster.replaced)
    walk.go(lambda: len(walk.cluster.replaced) > before)
    walk.cluster.connections = 0
    decision = walk.step()
    assert (walk.position.batch, walk.position.batches_done) == (None, 0)
    assert decision.note == "batch 1 is void: kafka-2 must be restarted again"
    assert all(record.settled for record in walk.position.nodes.values())
    walk.go(lambda: walk.position.finished)
    assert walk.cluster.replaced[-3:] == ["kafka-2", *PROOF]
    assert walk.position.batches_done == 2


def test_it_is_void_in_a_pause_too():
    walk = copy.deepcopy(released())
    walk.go(lambda: walk.position.batch is not None)
    walk.cluster.connections = 0
    decision = decide(PLAN, walk.picture(), intent(FORWARD, paused=True), walk.streaks, walk.cluster.now)
    assert decision.position.batch is None


def test_while_a_broker_is_down_zookeeper_is_not_asked_away():
    walk = copy.deepcopy(released())
    walk.step()
    walk.cluster.pass_time(1e6)
    for _ in range(5):
        picture = spoil_pod(walk.picture(), "kafka-1", ready=False, trouble="CrashLoopBackOff")
        decision = walk.step(picture=picture)
    assert walk.cluster.connections == 0
    found = decision.judged["ZooKeeperStopped"].verdict
    assert (found.reason, found.message) == ("BrokerSilent", "CrashLoopBackOff")


def test_a_zookeeper_that_does_not_answer_is_not_taken_for_stopped():
    walk = copy.deepcopy(released())
    for _ in range(50):
        silent = with_fact(walk.picture(), "zookeeper_connections", {"zookeeper:2181": Unknown("no answer within 10 s")})
        walk.step(picture=silent)
    assert (walk.position.step, walk.position.batch, walk.position.finished) == ("ReleaseZooKeeper", None, False)


def test_a_shared_zookeeper_is_not_asked_away():
    walk = copy.deepcopy(released())
    walk.spec = spec_of(zookeeper={"connect": "zookeeper:2181", "shared": True})
    before, walk.cluster.connections = list(walk.cluster.replaced), 12
    walk.until()
    assert (walk.position.finished, walk.position.batches_done, walk.cluster.connections) == (True, 0, 12)
    assert walk.cluster.replaced == before
