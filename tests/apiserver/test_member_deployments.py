"""A Deployment rolled batch by batch on a real API server with its controllers: there, back, and what others do meanwhile.

No node runs here: `Roll` writes the pods' status as a kubelet would, at every look.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from apiserver.consumers import FINAL, deployment, perform, read, until, up
from apiserver.kubelet import run_as_kubelet
from patience import Patience
from switchover.answers.clock import WallClock
from switchover.answers.errors import Fenced
from switchover.engine.effects import Patch
from switchover.groups.workloads import autoscalers, change
from switchover.groups.workloads import deployment as recipe
from switchover.kubernetes.client.api_server import ApiServer
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.kubernetes.members import MemberWorkload

TOTAL = 6


@dataclass
class Roll:
    """A Deployment of six pods, and the fewest Ready and the most pods that were seen at any look."""

    server: ApiServer
    workloads: KubernetesWorkloads
    original: MemberWorkload
    fewest: int = TOTAL
    most: int = TOTAL
    uids: set[str] = field(default_factory=set)
    """Of every pod that was ever seen."""
    worth: dict[str, tuple[float, int]] = field(default_factory=dict)
    """Of each pod, as slots.py has it of the group; without it Kubernetes chooses."""

    async def look(self) -> MemberWorkload:
        found = await read(self.workloads)
        self.uids |= {pod.uid for pod in found.pods.values()}
        self.fewest = min(self.fewest, sum(pod.ready for pod in found.pods.values()))
        self.most = max(self.most, len(found.pods))
        for pod in found.pods.values():
            if not pod.ready and not pod.terminating:
                await run_as_kubelet(self.server, pod, container="app")
        return found

    async def write(self, template: Any) -> None:
        """Held, and the template with it."""
        async def effect() -> Patch:
            found = await self.look()
            return change.write(found, "app", template, "the change", *recipe.holding(found))

        await self._tried(effect)

    async def move(self, moved: int, *, in_place: bool = False, rest: bool = True) -> MemberWorkload:
        """As many pods of the template, and back at rest."""
        for _ in Patience(30).looks():
            found = await self.look()
            effects = recipe.roll(found, moved, joined=True, in_place=in_place, worth=self.worth)
            if not effects and recipe.is_moved(found, moved) and (found.paused or not rest):
                return found
            with suppress(Fenced):
                for effect in effects:
                    await perform(self.workloads, effect)
            await asyncio.sleep(0.02)
        raise AssertionError(f"never {moved} moved: {await self.look()}")

    async def rise(self, moved: int) -> None:
        """New pods start, and nobody has left."""
        async def caught_up() -> bool:
            return (await self.look()).caught_up

        await until(caught_up, "its controller has acted on the last change")
        for effect in recipe.roll(await self.look(), moved, joined=True, in_place=False, worth={}):
            await perform(self.workloads, effect)

    async def restore(self) -> MemberWorkload:
        kept = change.original_manifest(self.original, "uid", 1, {})["data"]
        assert recipe.is_whole(await self.look())
        await self._tried(lambda: self._restored(kept))
        after = await up(self.server, self.workloads)
        assert recipe.is_restored(after, kept)
        return after

    async def _restored(self, kept: Any) -> Patch:
        return recipe.restore(await self.look(), kept)

    async def _tried(self, effect: Callable[[], Any]) -> None:
        for _ in Patience(30).looks():
            try:
                await perform(self.workloads, await effect())
            except Fenced:
                await asyncio.sleep(0.05)
            else:
                return
        raise AssertionError("fenced for ever")

    def revisions(self, found: MemberWorkload) -> tuple[int, int]:
        """How many pods are as they were, and how many are not."""
        own = sum(pod.revision == self.original.update_revision for pod in found.pods.values())
        return own, len(found.pods) - own

    async def stands(self, seconds: float = 2.0) -> MemberWorkload:
        """Nothing moves for so long."""
        before = await self.look()
        for _ in range(round(seconds / 0.25)):
            await asyncio.sleep(0.25)
            found = await self.look()
            assert found.sizes == before.sizes
            assert found.pods.keys() == before.pods.keys()
        return found


@pytest.fixture
async def roll(server: ApiServer, apply: Callable[..., None]) -> Roll:
    workloads = KubernetesWorkloads(server, WallClock())
    apply(deployment(TOTAL))
    made = Roll(server, workloads, await up(server, workloads))
    await made.look()
    return made


def wanted(roll: Roll) -> Any:
    return change.changed(roll.original.template, "app", FINAL)


async def test_batch_by_batch_to_its_end_every_pod_is_replaced_once(roll: Roll) -> None:
    await roll.write(wanted(roll))
    held = await roll.stands(1)
    assert (held.update_revision, roll.revisions(held)) == ("", (TOTAL, 0)), "paused: its controller makes no ReplicaSet"
    for moved in (2, 4, 6):
        there = await roll.move(moved)
        assert roll.revisions(there) == (TOTAL - moved, moved)
        assert recipe.is_held(there)
    end = await roll.stands(1)
    assert (roll.fewest, roll.most, len(roll.uids)) == (TOTAL, TOTAL + 2, 2 * TOTAL)
    after = await roll.restore()
    assert after.template == wanted(roll)
    assert after.pods.keys() == end.pods.keys(), "nothing restarts under its own settings"
    assert (await roll.stands(1)).update_strategy == roll.original.update_strategy


@pytest.mark.parametrize("moved", [2, pytest.param(6, marks=pytest.mark.long)])
async def test_the_way_back_replaces_only_what_has_moved(roll: Roll, moved: int) -> None:
    await roll.write(wanted(roll))
    for count in range(2, moved + 1, 2):
        await roll.move(count)
    stayed = {pod.uid for pod in (await roll.look()).pods.values() if pod.revision == roll.original.update_revision}
    await roll.write(roll.original.template)
    turned = await roll.stands(1)
    assert turned.update_revision == roll.original.update_revision, "the ReplicaSet of before is the newest again"
    assert turned.available == 0, "and counts no pod as available any more"
    for back in range(TOTAL - moved + 2, TOTAL + 1, 2):
        await roll.move(back)
    after = await roll.restore()
    assert roll.revisions(after) == (TOTAL, 0)
    assert stayed <= {pod.uid for pod in after.pods.values()}
    assert (roll.fewest, roll.most, len(roll.uids)) == (TOTAL, TOTAL + 2, TOTAL + 2 * moved)


async def test_turned_round_in_the_middle_of_a_rise_nobody_leaves_for_it(roll: Roll) -> None:
    """The ReplicaSet that becomes the newest again is available for a moment: those that are too many may go then."""
    await roll.write(wanted(roll))
    await roll.move(2)
    await roll.rise(4)

    async def risen() -> bool:
        found = await roll.look()
        return recipe.risen(found) == 4 and len(found.ready()) == 4

    await until(risen, "four of the new template run beside four")
    await roll.write(roll.original.template)
    await asyncio.sleep(1)
    turned = await roll.look()
    assert (recipe.risen(turned), recipe.earlier(turned)) in ((4, 4), (6, 2))
    await roll.move(4, rest=recipe.risen(turned) == 4)          # with too many pods it is not paused
    await roll.move(6)
    after = await roll.restore()
    assert (roll.revisions(after), roll.fewest, roll.most) == ((TOTAL, 0), TOTAL, TOTAL + 2)


async def test_in_place_where_a_quota_leaves_no_room(roll: Roll, apply: Callable[..., None]) -> None:
    apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "all"}, "spec": {"hard": {"pods": str(TOTAL)}}})

    async def counted() -> bool:
        quota = await roll.server.get(f"{roll.server.path('v1', 'Pod').rpartition('/')[0]}/resourcequotas/all")
        return (quota.get("status") or {}).get("used") == {"pods": str(TOTAL)}

    await until(counted, "the quota is full")
    await roll.write(wanted(roll))
    await roll.rise(2)

    async def told() -> bool:
        return "exceeded quota" in (await roll.look()).trouble

    await until(told, "the quota that forbids the surge is named")
    assert roll.revisions(await roll.look()) == (TOTAL, 0)
    there = await roll.move(2, in_place=True, rest=False)
    assert roll.revisions(there) == (TOTAL - 2, 2)
    assert roll.most == TOTAL
    assert roll.fewest >= TOTAL - 2


async def test_at_rest_neither_another_template_nor_the_loss_of_the_hold_moves_a_pod(
    roll: Roll, kubectl: Callable[..., Any], namespace: str
) -> None:
    await roll.write(wanted(roll))
    await roll.move(2)
    kubectl("-n", namespace, "set", "env", "deployment/orders", "--containers", "sidecar", "WHO=somebody")
    assert roll.revisions(await roll.stands()) == (TOTAL - 2, 2)
    await roll.write(wanted(roll))
    kubectl("-n", namespace, "set", "env", "deployment/orders", "--containers", "sidecar", "WHO-")
    path = roll.server.path("apps/v1", "Deployment", "orders")
    await roll.server.json_patch(path, [{"op": "replace", "path": "/spec/minReadySeconds", "value": 0}])
    let_go = await roll.stands()
    assert not recipe.is_held(let_go)
    await perform(roll.workloads, recipe.hold_again(let_go))
    assert recipe.is_held(await roll.stands(1))
    await roll.move(6)
    assert (roll.fewest, roll.revisions(await roll.look())) == (TOTAL, (0, TOTAL))


async def test_no_change_goes_over_a_hold_that_somebody_took_off(roll: Roll) -> None:
    await roll.write(wanted(roll))
    before = await roll.move(2)
    path = roll.server.path("apps/v1", "Deployment", "orders")
    await roll.server.json_patch(path, [{"op": "replace", "path": "/spec/minReadySeconds", "value": 0}])
    for stale in (*recipe.roll(before, 4, joined=True, in_place=False, worth={}),
                  change.write(before, "app", roll.original.template, "as it was", *recipe.holding(before))):
        with pytest.raises(Fenced):
            await perform(roll.workloads, stale)


async def test_under_recreate_its_pods_go_batch_by_batch_as_well(server: ApiServer, apply: Callable[..., None]) -> None:
    workloads = KubernetesWorkloads(server, WallClock())
    apply(deployment(TOTAL, strategy={"type": "Recreate"}, minReadySeconds=3))
    roll = Roll(server, workloads, await up(server, workloads))
    await roll.write(wanted(roll))
    await roll.move(2)
    await roll.move(6)
    end = await roll.look()
    after = await roll.restore()
    assert (after.update_strategy, after.min_ready) == ({"type": "Recreate"}, 3)
    assert (await roll.stands()).pods.keys() == end.pods.keys()
    assert roll.fewest == TOTAL


async def test_the_pods_that_are_worth_the_least_leave_first_there_and_back(roll: Roll) -> None:
    """All six run on one node and are of one age, and are named in an order that is none of theirs."""
    names = sorted((await roll.look()).pods)
    there = [names[each] for each in (4, 1, 5, 0, 3, 2)]
    roll.worth = {name: (float(place), 10) for place, name in enumerate(there)}
    await roll.write(wanted(roll))
    for moved in (2, 4):
        found = await roll.move(moved)
        assert {*there[:moved]} == {*there} - found.pods.keys()
    new = sorted(found.pods.keys() - {*there})
    back = [new[each] for each in (2, 0, 3, 1)]
    roll.worth |= {name: (0.0, place) for place, name in enumerate(back)}
    await roll.write(roll.original.template)
    found = await roll.move(4)
    assert {*back[:2]} == {*back} - found.pods.keys()
    assert not any(pod.cost for pod in found.pods.values()), "nobody who stays is marked"
    await roll.move(6)
    await roll.restore()


async def test_marks_of_a_batch_that_is_turned_round_before_it_falls_are_taken_off(roll: Roll) -> None:
    roll.worth = {name: (float(place), 1) for place, name in enumerate(sorted((await roll.look()).pods))}
    await roll.write(wanted(roll))
    marked: list[str] = []
    for _ in Patience(30).looks():
        found = await roll.look()
        marked = [name for name, pod in found.pods.items() if pod.cost]
        if marked:
            break
        with suppress(Fenced):
            for effect in recipe.roll(found, 2, joined=True, in_place=False, worth=roll.worth):
                await perform(roll.workloads, effect)
        await asyncio.sleep(0.02)
    assert sorted(marked) == sorted(roll.worth)[:2]
    await roll.write(roll.original.template)
    await roll.move(6, rest=False)
    after = await roll.restore()
    assert {*roll.worth} == {*after.pods}
    assert not any(pod.cost for pod in after.pods.values())


@pytest.mark.parametrize(("surge", "unavailable"), [
    ("25%", "25%"), pytest.param("100%", "50%", marks=pytest.mark.long)])
async def test_a_strategy_alone_that_somebody_sets_at_rest_is_set_again_and_no_pod_that_moved_is_lost(
    roll: Roll, surge: str, unavailable: str
) -> None:
    await roll.write(wanted(roll))
    await roll.move(2)
    path = roll.server.path("apps/v1", "Deployment", "orders")
    await roll.server.json_patch(path, [{"op": "replace", "path": "/spec/strategy/rollingUpdate",
                                          "value": {"maxSurge": surge, "maxUnavailable": unavailable}}])

    async def shared_out() -> bool:
        found = await roll.look()
        return found.caught_up and sum(found.sizes.values()) > TOTAL and len(found.pods) == sum(found.sizes.values())

    await until(shared_out, "its surge is shared out among the ReplicaSets")
    reset = await roll.look()
    assert recipe.is_held(reset)
    assert not recipe.is_shaped(reset)
    assert recipe.roll(reset, 4, joined=True, in_place=False, worth={}) == (), "nothing before it is set again"
    await perform(roll.workloads, recipe.hold_again(reset))
    again = await roll.stands(1)
    assert recipe.is_shaped(again)
    assert again.sizes == reset.sizes, "no pod comes or goes for it"
    await roll.move(4, rest=False)
    await roll.move(6)
    await roll.restore()
    assert roll.fewest == TOTAL


@pytest.mark.parametrize("limit", [0, pytest.param(1, marks=pytest.mark.long)])
async def test_a_deployment_that_keeps_no_old_replicasets_goes_there_and_back(
    server: ApiServer, apply: Callable[..., None], limit: int
) -> None:
    workloads = KubernetesWorkloads(server, WallClock())
    apply(deployment(TOTAL, revisionHistoryLimit=limit))
    roll = Roll(server, workloads, await up(server, workloads))
    await roll.write(wanted(roll))
    for moved in (2, 6):
        await roll.move(moved)
    await roll.write(roll.original.template)
    for back in (2, 6):
        await roll.move(back)
    after = await roll.restore()
    assert (roll.revisions(after), roll.fewest, len(roll.uids)) == ((TOTAL, 0), TOTAL, 3 * TOTAL)


async def test_an_autoscaler_that_is_woken_in_the_middle_keeps_the_shares_and_the_batches_go_on_once_it_is_put_right(
    roll: Roll, apply: Callable[..., None], kubectl: Callable[..., Any], namespace: str
) -> None:
    """A real HorizontalPodAutoscaler, which needs no metrics to enforce its bounds; KEDA scales by one of its own."""
    await roll.write(wanted(roll))
    await roll.move(2)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "orders"}
    apply({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "orders"},
           "spec": {"scaleTargetRef": target, "minReplicas": 9, "maxReplicas": 9}})

    async def scaled(count: int) -> bool:
        found = await roll.look()
        return found.caught_up and len(found.pods) == sum(found.sizes.values()) == count == found.replicas

    await until(lambda: scaled(9), "woken, it scaled the Deployment", 60, pause=1)
    assert roll.revisions(await roll.look()) == (6, 3)
    [woken] = (await roll.look()).autoscalers
    await perform(roll.workloads, autoscalers.pause(woken))
    kubectl("-n", namespace, "scale", "deployment/orders", "--replicas", str(TOTAL))
    await until(lambda: scaled(TOTAL), "it has as many pods as by the record")
    assert roll.revisions(await roll.stands()) == (4, 2), "and the autoscaler leaves it alone"
    await roll.move(4)
    await roll.move(6)
    after = await roll.restore()
    assert (roll.revisions(after), roll.fewest) == ((0, TOTAL), TOTAL)


async def test_pods_that_a_drain_evicts_come_back_in_their_own_revision_and_the_batch_goes_on(roll: Roll) -> None:
    """At rest, in the middle of a rise, and one that was chosen to leave."""
    async def evicted(*names: str) -> None:
        here = (await roll.look()).pods
        for name in names:
            await roll.workloads.evict(name, here[name].uid)

        async def again() -> bool:
            found = await roll.look()
            ready = [name for name, pod in found.pods.items() if pod.ready]
            return not {*names} & {*found.pods} and len(ready) == sum(found.sizes.values())

        await until(again, f"others are Ready in place of {', '.join(names)}")

    def of(found: MemberWorkload, own: bool) -> list[str]:
        return sorted(name for name, pod in found.pods.items() if (pod.revision == roll.original.update_revision) is own)

    await roll.write(wanted(roll))
    there = await roll.move(2)
    await evicted(*of(there, True)[:2], of(there, False)[0])
    assert roll.revisions(await roll.stands(1)) == (4, 2)
    await roll.rise(4)
    for _ in Patience(30).looks():
        risen = await roll.look()
        if len(of(risen, False)) == 4 and len(risen.ready()) == 4:
            break
        await asyncio.sleep(0.1)
    await evicted(of(risen, True)[0], of(risen, False)[0])
    assert roll.revisions(await roll.stands(1)) == (4, 4)
    chosen = of(await roll.look(), True)
    roll.worth = {name: (float(place), 1) for place, name in enumerate(chosen)}
    for mark in recipe.roll(await roll.look(), 4, joined=True, in_place=False, worth=roll.worth):
        await perform(roll.workloads, mark)
    assert [name for name, pod in (await roll.look()).pods.items() if pod.cost] == chosen[:2]
    await evicted(chosen[0])
    assert roll.revisions(await roll.move(4)) == (2, 4)
    await roll.move(6)
    after = await roll.restore()
    assert (roll.revisions(after), roll.most) == ((0, TOTAL), TOTAL + 2)
