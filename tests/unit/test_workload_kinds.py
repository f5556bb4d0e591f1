"""A kind of workload is one class: one that the product does not know goes through a group's walk, there and back."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from switchover.api.consumer_group_migration import WorkloadKind
from switchover.engine.effects import Effect, Patch
from switchover.groups.picture import Picture
from switchover.groups.workloads import change, kinds
from switchover.groups.workloads.member_kind import MemberKind
from switchover.kubernetes import members
from switchover.kubernetes.client.member_workloads import READ
from switchover.kubernetes.json_patch import unchanged
from switchover.kubernetes.members import MemberPod, MemberWorkload
from unit.group_pictures import workload_of
from unit.group_walk import QUICK, Walk, check_left_alone, check_there
from unit.group_world import Workload, World

pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")      # of a kind that the API does not have

KIND = "CloneSet"
VERSION = "apps.kruise.io/v1alpha1"


def partition(source: MemberWorkload) -> int:
    return int(source.update_strategy["rollingUpdate"]["partition"])


def replaced(source: MemberWorkload, strategy: Mapping[str, Any], purpose: str) -> Patch:
    return change.patch(source, [unchanged(source.generation),
                                 {"op": "replace", "path": "/spec/updateStrategy", "value": strategy}], purpose)


def keeping(source: MemberWorkload, pods: int) -> Patch:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": pods}}
    return replaced(source, strategy, f"{pods} of {source.replicas} pods stay")


class CloneSets(MemberKind):
    """As OpenKruise has it: so many pods as its partition says are of the template before, whichever these are."""

    def is_whole(self, source: MemberWorkload) -> bool:
        return not source.predecessors

    def own_marks(self, pod: MemberPod) -> tuple[str, ...]:
        return (pod.name,)

    def write(self, picture: Picture, source: MemberWorkload, wanted: Mapping[str, Any], purpose: str) -> Iterator[Effect]:
        if partition(source) < source.replicas:
            yield keeping(source, source.replicas)
        else:
            yield change.write(source, picture.workload(source.name).container, wanted, purpose)

    def roll(self, picture: Picture, source: MemberWorkload) -> Iterator[Effect]:
        stay = source.replicas - picture.assigned(source.name, picture.moved_to)
        if picture.live_mode(source.name) == picture.moved_to and partition(source) != stay:
            yield keeping(source, stay)

    def pod_in(self, picture: Picture, source: MemberWorkload, slot: str) -> MemberPod | None:
        alike = picture.alike(source.name, picture.position.nodes[slot].assigned)
        ready = source.ready()
        return source.pods[ready[alike[slot]]] if len(ready) >= len(alike) else None

    def can_undo(self, source: MemberWorkload) -> bool:
        return False

    def is_restored(self, source: MemberWorkload, original: Mapping[str, Any]) -> bool:
        return bool(source.update_strategy == original["updateStrategy"])

    def restore(self, source: MemberWorkload, original: Mapping[str, Any]) -> Iterator[Effect]:
        if self.is_whole(source):
            yield replaced(source, original["updateStrategy"], "update strategy as it was")


class Clones(World):
    """A world with its controller: one pod ends, another comes in its place, while there are more than stay."""

    def _order(self, workload: Workload) -> None:
        before = [pod for pod in workload.alive if pod.revision != workload.revision]
        if len(workload.pods) < workload.spec["replicas"]:
            workload.count += 1
            old = len(before) < workload.spec["updateStrategy"]["rollingUpdate"]["partition"]
            made = self.templates.get(workload.current, workload.spec["template"]) if old else workload.spec["template"]
            self._make(workload, f"{workload.made['metadata']['name']}-{workload.count:03d}", made)
        elif not before:
            workload.current = workload.revision
        elif all(pod.ready for pod in workload.pods.values()) \
                and len(before) > workload.spec["updateStrategy"]["rollingUpdate"]["partition"]:
            self._end(before[0])

    @staticmethod
    def _newest(workload: Workload) -> str:
        return workload.revision


@pytest.fixture
def walk(monkeypatch: pytest.MonkeyPatch) -> Walk:
    """Of one workload, whose kind nothing of the product names; the API takes it only once it does."""
    monkeypatch.setitem(kinds.KINDS, KIND, CloneSets())
    monkeypatch.setitem(members.KINDS, KIND, (VERSION, "clonesets"))             # type: ignore[arg-type]
    found = Walk(Clones((KIND, "orders", 4)), {"workloads": (workload_of("StatefulSet"),), **QUICK})
    of_kind(found)
    return found


def of_kind(walk: Walk) -> None:
    """Which nothing checks any more."""
    spec = walk.migration.spec
    workloads = tuple(each.model_copy(update={"kind": KIND}) for each in spec.workloads)
    walk.migration = walk.migration.evolve(spec=spec.model_copy(update={"workloads": workloads}))


def test_a_new_kind_goes_the_whole_way(walk: Walk) -> None:
    check_there(walk.until(), "StatefulSet")
    patched = [effect for effect in walk.world.done if isinstance(effect, Patch) and effect.kind == KIND]
    assert {effect.api_version for effect in patched} == {VERSION}
    assert [effect.purpose for effect in patched] == [
        "claimed", "4 of 4 pods stay", "target template", "2 of 4 pods stay", "0 of 4 pods stay", "claimed no longer"]


def test_a_new_kind_goes_back_from_the_middle(walk: Walk) -> None:
    before = Clones((KIND, "orders", 4)).workloads["orders"].spec
    walk.until(lambda: walk.position.step == "Rollout" and walk.position.batches_done == 1)
    walk.wants(desiredState="RolledBack")
    of_kind(walk)
    walk.until()
    assert (walk.position.step, walk.world.workloads["orders"].spec) == ("Preflight", before)
    check_left_alone(walk)


def test_each_kind_that_a_user_may_name_is_read_and_moved() -> None:
    assert {*WorkloadKind} == kinds.KINDS.keys() == members.KINDS.keys() == READ.keys()
