"""A Deployment held and moved, against what its controller does: from any point, either way, whoever dies on the way."""

import random
from copy import deepcopy
from dataclasses import replace
from typing import Any

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchover.groups.workloads import change, deployment, leaving
from switchover.groups.workloads.change import Unsupported
from switchover.kubernetes.members import MemberWorkload
from unit.consumers import after, manifest, pod, pods, workload
from unit.deployment_controller import Controller

OLD, NEW = "old", "new"
HELD = deployment.HOLD_SECONDS
WORTH = {f"{revision}-{born}": (float(born * 7 % 5), born) for revision in (OLD, NEW) for born in range(200)}


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
        self.fewest, self.risen = total, 0
        self.names: dict[str, list[str]] = {}
        self.born = 0
        self.marks: dict[str, dict[str, str]] = {}
        self.left: list[str] = []
        self.kept = change.original_manifest(self.seen(), "uid", 1, {})["data"]
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
            self._choose()

    def _choose(self) -> None:
        """As ReplicaSets do: of each the lowest cost leaves first, then the youngest."""
        for revision, size in self.controller.sizes.items():
            here = self.names.setdefault(revision, [])
            for _ in range(len(here) - size):
                gone = min(reversed(here), key=lambda name: int(self.marks.get(name, {}).get(leaving.COST, "0")))
                here.remove(gone)
                self.left.append(gone)
            while len(here) < size:
                self.born += 1
                here.append(f"{revision}-{self.born}")

    def seen(self) -> MemberWorkload:
        here = self.made["spec"]
        sizes = {revision: size for revision, size in self.controller.sizes.items() if size}
        newest = self.controller.sets.get(self.revision)
        every = [pod(name, revision, annotated=name in self.marks, cost=self.marks.get(name, {}).get(leaving.COST, ""))
                 for revision, names in self.names.items() for name in names]
        available = 0 if newest is None else newest.available if newest.min_ready == here.get(
            "minReadySeconds", 0) else newest.size
        return workload(
            self.made, pods=pods(*every), update_revision="" if newest is None else self.revision, sizes=sizes,
            available=available, paused=here.get("paused", False), min_ready=here.get("minReadySeconds", 0),
            deadline=here.get("progressDeadlineSeconds"), update_strategy=deepcopy(here["strategy"]))

    def perform(self, *effects: Any, ticks: int = 6) -> None:
        for effect in effects:
            if effect.kind == "Pod":
                own = {"annotations": self.marks[effect.name]} if effect.name in self.marks else {}
                here = {"metadata": {"uid": f"uid-{effect.name}", "resourceVersion": "", **own}}
                found: Any = jsonpatch.apply_patch(here, [dict(each) for each in effect.operations])
                self.marks[effect.name] = found["metadata"]["annotations"]
            else:
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
            effects = deployment.roll(self.seen(), count, joined=True, in_place=in_place, worth=WORTH)
            if not effects and deployment.is_moved(self.seen(), count):
                return
            if effects:
                self.perform(*effects, ticks=ticks)
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
        effects = deployment.roll(paper.seen(), done, joined=True, in_place=in_place, worth=WORTH)
        if dice.random() < .3 and effects:
            paper.asked = max(paper.asked, done)
            paper.perform(*effects, ticks=dice.randint(0, 2))            # and is turned round, or dies, before it is done
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
    assert deployment.roll(early, 4, joined=True, in_place=True, worth=WORTH) == ()
    assert deployment.roll(replace(early, available=0), 6, joined=True, in_place=True, worth=WORTH)


def test_pods_that_found_no_room_beside_the_others_start_in_their_place():
    """The rise was tried before spec.rollout.surge was set: its ReplicaSet wants pods that a quota forbids."""
    paper = Paper()
    paper.write(NEW)
    paper.perform(*deployment.roll(paper.seen(), 2, joined=True, in_place=False, worth=WORTH))
    without = replace(paper.seen(), pods={name: each for name, each in paper.seen().pods.items() if each.revision == OLD})
    [effect] = deployment.roll(without, 2, joined=True, in_place=True, worth={})
    assert str(effect) == "patch Deployment orders: 2 of 6 pods to its template"
    assert deployment.roll(without, 2, joined=True, in_place=False, worth=WORTH) == ()


def test_no_pod_leaves_before_whoever_follows_takes_part():
    paper = Paper()
    paper.write(NEW)
    paper.perform(*deployment.roll(paper.seen(), 2, joined=True, in_place=False, worth=WORTH))
    assert paper.controller.sizes == {OLD: 6, NEW: 2}
    assert deployment.roll(paper.seen(), 2, joined=False, in_place=False, worth=WORTH) == ()
    ill = replace(paper.seen(), pods={name: replace(each, ready=each.revision == OLD)
                                      for name, each in paper.seen().pods.items()})
    assert deployment.roll(ill, 2, joined=True, in_place=False, worth=WORTH) == ()


def test_whoever_takes_the_hold_off_fences_what_was_decided_before():
    paper = Paper()
    paper.write(NEW)
    paper.moved(2)
    [effect] = deployment.roll(paper.seen(), 4, joined=True, in_place=False, worth=WORTH)
    paper.made["spec"]["minReadySeconds"] = 0
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        after(paper.made, effect)
    assert deployment.roll(paper.seen(), 4, joined=True, in_place=False, worth=WORTH) == (), "not before it is held again"
    paper.perform(deployment.hold_again(paper.seen()))
    paper.moved(4)
    assert paper.controller.sizes == {OLD: 2, NEW: 4}


# --- who leaves first ---------------------------------------------------------------------------------------------------


def worth_the_least(names: Any) -> list[str]:
    return sorted(names, key=WORTH.__getitem__)


@pytest.mark.parametrize("in_place", [False, True])
def test_those_leave_first_whose_partitions_are_worth_the_least_there_and_back(in_place):
    paper = Paper()
    there = worth_the_least(paper.names[OLD])
    paper.write(NEW)
    paper.moved(2, in_place=in_place)
    assert {*paper.left} == {*there[:2]}
    paper.moved(4, in_place=in_place)
    assert {*paper.left} == {*there[:4]}
    back = worth_the_least(paper.names[NEW])
    paper.write(OLD)
    paper.moved(3, in_place=in_place)
    assert {*paper.left} == {*there[:4], back[0]}
    assert not any(pod.cost for pod in paper.seen().pods.values()), "nobody who stays is marked"


def test_whoever_was_marked_and_stays_is_marked_no_longer():
    paper = Paper()
    paper.write(NEW)
    for _ in range(2):                                          # the rise, and the marks
        paper.perform(*deployment.roll(paper.seen(), 2, joined=True, in_place=False, worth=WORTH))
    marked = [name for name, each in paper.seen().pods.items() if leaving.is_marked(each)]
    assert marked == sorted(worth_the_least(paper.names[OLD])[:2])
    paper.write(OLD)
    paper.moved(6)
    assert not any(pod.cost for pod in paper.seen().pods.values())
    assert not {*marked} & {*paper.left}


def test_those_that_are_not_ready_leave_anyway_and_are_not_chosen_beside():
    paper = Paper()
    paper.write(NEW)
    paper.perform(*deployment.roll(paper.seen(), 2, joined=True, in_place=False, worth=WORTH))
    seen = paper.seen()
    ill = worth_the_least(paper.names[OLD])[-1]
    seen = replace(seen, pods={**seen.pods, ill: replace(seen.pods[ill], ready=False)})
    [mark] = deployment.roll(seen, 2, joined=True, in_place=False, worth=WORTH)
    assert (mark.kind, mark.name) == ("Pod", worth_the_least(paper.names[OLD])[0])


@pytest.mark.parametrize("costs", [{"old-1": "5"}, {"old-1": "-2147483647", "old-3": ""}])
def test_whoever_has_costs_of_his_own_chooses_himself(costs):
    paper = Paper()
    paper.marks = {name: {leaving.COST: cost} if cost else {} for name, cost in costs.items()}
    paper.write(NEW)
    paper.moved(4)
    assert paper.marks == {name: {leaving.COST: cost} if cost else {} for name, cost in costs.items()}


def test_where_nobody_can_tell_what_they_are_worth_kubernetes_chooses():
    paper = Paper()
    paper.write(NEW)
    paper.perform(*deployment.roll(paper.seen(), 2, joined=True, in_place=False, worth={}))
    [fall] = deployment.roll(paper.seen(), 2, joined=True, in_place=False, worth={"old-1": (0.0, 1)})
    assert fall.kind == "Deployment"


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
