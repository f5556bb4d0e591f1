"""A Deployment held and moved, against what its controller does: from any point, either way, whoever dies on the way."""

import random
from copy import deepcopy
from dataclasses import replace
from typing import Any

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchover.core.groups import change, deployment
from switchover.core.groups.change import Unsupported
from switchover.core.groups.workloads import MemberWorkload
from unit.consumers import after, manifest, pod, pods, workload
from unit.deployment_controller import Controller

OLD, NEW = "old", "new"
HELD = deployment.HOLD_SECONDS


def spec(surge: int | str, unavailable: int | str, **more: Any) -> dict[str, Any]:
    return {"replicas": 6, "strategy": {"type": "RollingUpdate", "rollingUpdate": {
        "maxSurge": surge, "maxUnavailable": unavailable}}, **more}


class Paper:
    """A Deployment and its controller; every pod is Ready at once.

    At every tick: no pod of the template leaves, and of its predecessors no more than `asked` has them leave; after a turn
    in the middle of a rise those may go that are too many.
    """

    def __init__(self, total: int = 6) -> None:
        self.controller, self.revision = Controller(), OLD
        self.asked, self.floor = 0, 0
        self.made = manifest(replicas=total)
        self.made["spec"] |= {**spec("25%", "25%"), "replicas": total, "progressDeadlineSeconds": 600}
        self.kept = change.original_manifest(self.seen(), "uid", 1, {})["data"]
        self.fewest, self.risen = total, 0
        self.settle()

    def settle(self, ticks: int = 6) -> None:
        for _ in range(ticks):
            self.controller.tick(self.made["spec"], self.revision)
            self.controller.told(self.controller.sizes)
            total, risen = sum(self.controller.sizes.values()), self.controller.sizes.get(self.revision, 0)
            self.fewest = min(self.fewest, total)
            assert risen >= self.risen, "a pod of the template left"
            stay = min(self.floor, self.made["spec"]["replicas"] - self.asked)
            assert total - risen >= stay, "a predecessor left too early"
            self.risen = risen

    def seen(self) -> MemberWorkload:
        here = self.made["spec"]
        sizes = {revision: size for revision, size in self.controller.sizes.items() if size}
        newest = self.controller.sets.get(self.revision)
        every = [pod(f"{revision}-{number}", revision) for revision, size in sizes.items() for number in range(size)]
        available = 0 if newest is None else newest.available if newest.min_ready == here.get(
            "minReadySeconds", 0) else newest.size
        return workload(
            self.made, pods=pods(*every), update_revision="" if newest is None else self.revision, sizes=sizes,
            available=available, paused=here.get("paused", False), min_ready=here.get("minReadySeconds", 0),
            deadline=here.get("progressDeadlineSeconds"), update_strategy=deepcopy(here["strategy"]))

    def perform(self, effect: Any, ticks: int = 6) -> None:
        self.made = after(self.made, effect)
        self.settle(ticks)

    def write(self, revision: str, ticks: int = 6) -> None:
        """The template, with what holds it; a label tells which it is."""
        seen = self.seen()
        wanted = deepcopy(dict(seen.template))
        wanted["spec"]["containers"][1]["image"] = revision
        effect = change.write(seen, "app", wanted, "the change", *deployment.holding(seen))
        self.made, self.revision = after(self.made, effect), revision
        self.risen = self.controller.sizes.get(revision, 0)
        self.floor = min(sum(self.controller.sizes.values()), self.made["spec"]["replicas"]) - self.risen
        self.asked = 0
        self.settle(ticks)

    def moved(self, count: int, *, in_place: bool = False, ticks: int = 6) -> None:
        self.asked = max(self.asked, count)
        for _ in range(12):
            effect = deployment.roll(self.seen(), count, joined=True, in_place=in_place)
            if effect is None and deployment.is_moved(self.seen(), count):
                return
            if effect is not None:
                self.perform(effect, ticks)
            else:
                self.settle(1)
        raise AssertionError(f"never {count} moved: {self.controller.sizes} {self.made['spec']['strategy']}")


# --- what the controller does (docs/facts/deployments.md) ---------------------------------------------------------------


@pytest.mark.parametrize(("surge", "unavailable", "old", "new"), [
    *((0, count, 6 - count, count) for count in range(1, 7)),
    *((surge, count, 6 - count, min(6, count + surge)) for surge in (1, 2) for count in range(7))])
def test_held_it_has_exactly_as_many_pods_of_each_template_as_its_strategy_says(surge, unavailable, old, new):
    """As seen on a real one: trials 1a and 2."""
    controller = Controller()
    for _ in range(3):
        controller.tick(spec("25%", "25%"), OLD)
        controller.told(controller.sizes)
    for _ in range(9):
        controller.tick(spec(surge, unavailable, minReadySeconds=HELD), NEW)
        controller.told(controller.sizes)
    assert controller.sizes == {OLD: old, NEW: new}


def test_a_template_that_comes_back_lets_pods_of_the_other_fall_at_once_without_a_surge():
    """Trial 5: up to maxUnavailable of them. So nothing falls before its controller says that none is available."""
    controller = Controller()
    for _ in range(3):
        controller.tick(spec("25%", "25%"), OLD)
        controller.told(controller.sizes)
    for _ in range(9):
        controller.tick(spec(0, 3, minReadySeconds=HELD), NEW)
        controller.told(controller.sizes)
    back = deepcopy(controller)
    controller.tick(spec(0, 3, minReadySeconds=HELD), OLD)
    assert controller.sizes == {OLD: 3, NEW: 0}
    back.tick(spec(2, 0, minReadySeconds=HELD), OLD)
    back.told(back.sizes)
    back.tick(spec(2, 0, minReadySeconds=HELD), OLD)
    assert back.sizes == {OLD: 5, NEW: 3}


# --- the recipe ---------------------------------------------------------------------------------------------------------


@settings(max_examples=600)
@given(total=st.integers(1, 8), seed=st.integers(0, 10**6), in_place=st.booleans())
def test_batches_of_any_size_and_turns_anywhere_end_as_they_should(total, seed, in_place):
    """Also with a controller that has acted on nothing yet, or on half of it, when the next thing is decided."""
    dice, paper = random.Random(seed), Paper(total)
    goal, done = NEW, 0
    paper.write(NEW)
    for _ in range(dice.randint(1, 12)):
        if dice.random() < .3:
            goal, done = OLD if goal == NEW else NEW, total - done                     # as the record has it
            paper.write(goal, dice.randint(0, 3))
            continue
        done = min(total, done + dice.randint(1, total))
        if dice.random() < .3 and (effect := deployment.roll(paper.seen(), done, joined=True, in_place=in_place)):
            paper.asked = max(paper.asked, done)
            paper.perform(effect, dice.randint(0, 2))            # and is turned round, or dies, before it is done
        else:
            paper.moved(done, in_place=in_place, ticks=dice.randint(0, 6))
    paper.moved(total, in_place=in_place)
    paper.settle()
    assert deployment.is_whole(paper.seen())
    if not in_place:
        assert paper.fewest == total
    paper.perform(deployment.restore(paper.seen(), paper.kept))
    assert deployment.is_restored(paper.seen(), paper.kept)
    assert paper.controller.sizes[goal] == total


def test_the_users_own_settings_come_back_as_they_were():
    paper = Paper()
    before = deepcopy(paper.made["spec"])
    paper.write(NEW)
    for count in (2, 4, 6):
        paper.moved(count)
    paper.perform(deployment.restore(paper.seen(), paper.kept))
    assert {**paper.made["spec"], "template": None} == {**before, "template": None}


def test_nothing_falls_before_its_controller_has_counted_under_the_hold():
    paper = Paper()
    paper.write(NEW)
    paper.moved(2)
    paper.write(OLD, ticks=0)
    early = replace(paper.seen(), available=4)
    assert deployment.roll(early, 4, joined=True, in_place=True) is None
    assert deployment.roll(replace(early, available=0), 6, joined=True, in_place=True) is not None


def test_pods_that_found_no_room_beside_the_others_start_in_their_place():
    """The rise was tried before spec.rollout.surge was set: its ReplicaSet wants pods that a quota forbids."""
    paper = Paper()
    paper.write(NEW)
    paper.perform(deployment.roll(paper.seen(), 2, joined=True, in_place=False))
    without = replace(paper.seen(), pods={name: each for name, each in paper.seen().pods.items() if each.revision == OLD})
    effect = deployment.roll(without, 2, joined=True, in_place=True)
    assert str(effect) == "patch Deployment orders: 2 of 6 pods to its template"
    assert deployment.roll(without, 2, joined=True, in_place=False) is None


def test_no_pod_leaves_before_whoever_follows_takes_part():
    paper = Paper()
    paper.write(NEW)
    rise = deployment.roll(paper.seen(), 2, joined=True, in_place=False)
    paper.perform(rise)
    assert paper.controller.sizes == {OLD: 6, NEW: 2}
    assert deployment.roll(paper.seen(), 2, joined=False, in_place=False) is None
    ill = replace(paper.seen(), pods={name: replace(each, ready=each.revision == OLD)
                                      for name, each in paper.seen().pods.items()})
    assert deployment.roll(ill, 2, joined=True, in_place=False) is None


def test_whoever_takes_the_hold_off_fences_what_was_decided_before():
    paper = Paper()
    paper.write(NEW)
    paper.moved(2)
    effect = deployment.roll(paper.seen(), 4, joined=True, in_place=False)
    paper.made["spec"]["minReadySeconds"] = 0
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        after(paper.made, effect)
    assert deployment.roll(paper.seen(), 4, joined=True, in_place=False) is None, "not before it is held again"
    paper.perform(deployment.hold_again(paper.seen()))
    paper.moved(4)
    assert paper.controller.sizes == {OLD: 2, NEW: 4}


# --- what cannot be rolled ----------------------------------------------------------------------------------------------


CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "tmp", "emptyDir": {}}]}
PORT = {"initContainers": [{"name": "proxy", "ports": [{"containerPort": 80, "hostPort": 8080}]}]}


@pytest.mark.parametrize(("pod_spec", "facts", "words"), [
    (CLAIM, {"claims": {"data": ("ReadWriteOnce",)}}, "PersistentVolumeClaim data is ReadWriteOnce"),
    (CLAIM, {"claims": {"data": ("ReadWriteOncePod",)}}, "or set spec.rollout.surge to 0"),
    (CLAIM, {}, "names PersistentVolumeClaim data, which does not exist"),
    (PORT, {}, "container proxy takes port 8080 of its node"),
])
def test_what_leaves_no_room_for_a_surge_is_refused_in_words(pod_spec, facts, words):
    found = workload(manifest(**pod_spec), **facts)
    with pytest.raises(Unsupported, match=words):
        deployment.check_movable(found, in_place=False)
    deployment.check_movable(found, in_place=True)


@pytest.mark.parametrize("modes", [("ReadWriteMany",), ("ReadWriteOnce", "ReadOnlyMany")])
def test_a_claim_that_can_be_shared_leaves_room(modes):
    deployment.check_movable(workload(manifest(**CLAIM), claims={"data": modes}), in_place=False)
