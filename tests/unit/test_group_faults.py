"""The operator's own pass over a ConsumerGroupMigration, where what it asks of the API server fails: each call, before it
took effect, after it did, or long before it does."""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import jsonpatch
import pytest

import samples
from switchover.answers.errors import Fenced, Unreachable
from switchover.api.consumer_group_migration import ConsumerGroupMigration
from switchover.engine.effects import Apply, Create, DeletePod, Effect, Evict, Patch
from switchover.engine.reconcile import Reconciler
from switchover.groups.picture import Picture
from unit.group_walk import KIND, PLANS, SECONDS, Walk, check_back, check_there, each_plan

BEFORE, APPLIED, LATE = "before", "applied", "late"
LATE_SECONDS = 15.0
CALLS = ("get", "record", "announce", "lease", "effect")
WHY = "the API server answers 500: this test"
Fault = Callable[[str], str]
"""What is to fail of a call: "" for nothing, or its moment."""


class Operated:
    """A walk that the operator makes: its pass, with the ports at the walk's world. It is its own API server, observer and
    clock. `named` counts what `waitingFor` told, and what a pass ended in."""

    namespace = "shop"

    def __init__(self, walk: Walk, fault: Fault) -> None:
        self.walk, self.fault = walk, fault
        self.version, self.holder = 1, ""
        self.late: list[tuple[float, Callable[[], None]]] = []
        self.named: Counter[str] = Counter()
        self.reconciler = Reconciler(KIND, "shop", "operator", self, self, self, self.connect, self, self)

    async def until(self, reached: Callable[[], bool], passes: int = 1500) -> None:
        for _ in range(passes):
            if reached():
                return
            try:
                await self.reconciler.reconcile("to-consumer")
            except Unreachable as error:
                self.named[str(error)] += 1
            self.named.update(each.reason for each in self.walk.migration.status.waiting_for)
            self.walk.world.pass_time(SECONDS)
            due = [act for at, act in self.late if at <= self.now()]
            self.late = [(at, act) for at, act in self.late if at > self.now()]
            for act in due:
                self.arrive(act)
        raise AssertionError(f"never came there: {self.walk.position}\n{self.walk.migration.status.waiting_for}")

    def arrive(self, act: Callable[[], None]) -> None:
        """What comes long after it was given up is answered to nobody."""
        with suppress(Fenced):
            act()

    def asked(self, call: str, act: Callable[[], Any]) -> Any:
        moment = self.fault(call)
        if moment == LATE:
            self.late.append((self.now() + LATE_SECONDS, act))
        if moment == APPLIED:
            act()
        if moment:
            raise Unreachable(WHY)
        return act()

    # --- ports --------------------------------------------------------------------------------------------------------

    def now(self) -> float:
        return self.walk.world.now

    def update(self, *_: Any) -> None: ...

    async def connect(self, _: ConsumerGroupMigration) -> "Operated":
        return self

    async def see(self, picture: Picture, lease_holder: str, *, fresh: bool = True) -> Picture:
        return replace(picture, facts=replace(self.walk.picture().facts, lease_holder=lease_holder))

    async def close(self) -> None: ...

    async def get(self, name: str) -> Mapping[str, Any]:
        def read() -> Mapping[str, Any]:
            found = self.walk.migration.manifest()
            return {**found, "metadata": {**found["metadata"], "resourceVersion": str(self.version), "generation": 1}}

        found: Mapping[str, Any] = self.asked("get", read)
        return found

    async def record(self, name: str, uid: str, resource_version: str, status: Mapping[str, Any]) -> str:
        def write() -> None:
            if resource_version != str(self.version):
                raise Fenced("it is not what was read")
            self.version += 1
            self.walk.migration = KIND.read({**self.walk.migration.manifest(), "status": status})

        self.asked("record", write)
        return str(self.version)

    async def announce(self, *_: Any, **__: Any) -> None:
        self.asked("announce", lambda: None)

    async def holds_lease(self, name: str, holder: str, seconds: int) -> bool:
        return self.holder == holder

    async def hold_lease(self, name: str, holder: str, seconds: int) -> str:
        def hold() -> str:
            self.holder = self.holder or holder
            return self.holder

        found: str = self.asked("lease", hold)
        return found

    async def release_lease(self, name: str, holder: str) -> None: ...

    async def apply(self, manifest: Mapping[str, Any]) -> None:
        self.perform(Apply(manifest))

    async def create(self, manifest: Mapping[str, Any]) -> None:
        self.perform(Create(manifest))

    async def patch(self, api_version: str, kind: str, name: str, operations: Any, subresource: str = "") -> None:
        self.perform(Patch(api_version, kind, name, tuple(operations), "", subresource))

    async def evict(self, pod: str, uid: str) -> None:
        self.perform(Evict(pod, uid))

    async def delete_pod(self, pod: str, uid: str) -> None:
        self.perform(DeletePod(pod, uid))

    def perform(self, effect: Effect) -> None:
        def act() -> None:
            if isinstance(effect, Evict | DeletePod):
                uids = {pod.uid for each in self.walk.world.workloads.values() for pod in each.pods.values()}
                if effect.uid not in uids:
                    return
            if isinstance(effect, Patch) and effect.kind == "Pod" and effect.name not in {
                    name for each in self.walk.world.workloads.values() for name in each.pods}:
                raise Fenced("it is gone")
            if isinstance(effect, Create) and any(effect.manifest == job for job in self.walk.world.jobs):
                raise Fenced("the name is taken")
            try:
                self.walk.world.perform(effect)
            except jsonpatch.JsonPatchTestFailed as error:
                raise Fenced(str(error)) from None

        self.asked("effect", act)


def any_of(seed: int, share: float) -> Fault:
    """Of all calls such a share fails, each in any way."""
    chance = random.Random(seed)
    return lambda call: chance.choice((BEFORE,) if call == "get" else (BEFORE, APPLIED, LATE)) if (
        chance.random() < share) else ""


@each_plan
async def test_any_call_fails_there_and_back(plan: str) -> None:
    operated = Operated(PLANS[plan](), any_of(samples.SAMPLE, 0.15))
    await operated.until(operated.walk.ended)
    check_there(operated.walk, plan)
    back = Operated(PLANS[plan](), any_of(samples.SAMPLE, 0.15))
    await back.until(lambda: back.walk.position.step == "Settle")
    back.walk.wants(desiredState="RolledBack")
    await back.until(back.walk.ended)
    check_back(back.walk, plan)


@pytest.mark.parametrize("moment", [BEFORE, APPLIED, LATE])
@pytest.mark.parametrize("call", CALLS)
async def test_a_call_that_fails_for_long_is_named_and_it_goes_on(call: str, moment: str) -> None:
    begin: list[float] = []

    def fault(asked: str) -> str:
        if not begin and operated.walk.position.step == "Rollout":
            begin.append(operated.now())
        return moment if asked == call and begin and operated.now() < begin[0] + 90 else ""

    operated = Operated(PLANS["Deployment"](), fault)
    await operated.until(operated.walk.ended)
    check_there(operated.walk, "Deployment")
    reason = {"lease": "LeaseNotHeld", "effect": "EffectFailed", "announce": "Passed"}.get(call, WHY)
    assert reason == "Passed" or operated.named[reason], operated.named


# --- an older status of the same object -----------------------------------------------------------------------------------

Place = tuple[str, bool, int]
WATCHED = 60
"""For so many passes."""


def place(walk: Walk) -> Place:
    at = walk.position
    return at.step, at.opened is not None, at.batch.index if at.batch is not None else 0


_RECORDS: dict[str, dict[Place, Mapping[str, Any]]] = {}


async def records(plan: str) -> dict[Place, Mapping[str, Any]]:
    """The status at each place of a migration."""
    if plan in _RECORDS:
        return _RECORDS[plan]
    operated, found = Operated(PLANS[plan](), lambda call: ""), dict[Place, Mapping[str, Any]]()

    def looked() -> bool:
        found.setdefault(place(operated.walk), operated.walk.migration.manifest()["status"])
        return operated.walk.ended()

    await operated.until(looked)
    _RECORDS[plan] = found
    return found


async def goes_on_from_an_older_record(plan: str, older: Place, now: Place) -> None:
    """Somebody restores a status of before: steps may be walked once more, gated as they were, and it ends as it should."""
    kept, operated = await records(plan), Operated(PLANS[plan](), lambda call: "")
    walk = operated.walk
    await operated.until(lambda: place(walk) == now)
    walk.migration = KIND.read({**walk.migration.manifest(), "status": kept[older]})
    passes = 0

    def watched() -> bool:
        nonlocal passes
        passes += 1
        return passes > WATCHED or walk.ended() or walk.migration.status.phase == "Stalled"

    await operated.until(watched)
    if walk.migration.status.phase == "Stalled":                           # by a name: RecordContradicted, NothingToChange
        walk.migration = KIND.read({**walk.migration.manifest(), "status": kept[now]})
    await operated.until(walk.ended)
    check_there(walk, plan)


async def older_ones(plan: str, count: int, counted: Callable[[str], None]) -> None:
    places = [*await records(plan)]
    pairs = [(older, now) for index, now in enumerate(places) for older in places[:index]]
    chosen = samples.taken(pairs, count)
    counted(samples.told(len(chosen), len(pairs), "older records"))
    for older, now in chosen:
        await goes_on_from_an_older_record(plan, older, now)


@each_plan
async def test_from_some_older_records_it_goes_on(plan: str, counted: Callable[[str], None]) -> None:
    await older_ones(plan, 2, counted)


@pytest.mark.long
@each_plan
async def test_from_each_older_record_it_goes_on(plan: str, counted: Callable[[str], None]) -> None:
    await older_ones(plan, 1000, counted)
