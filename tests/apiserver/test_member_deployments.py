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
from switchover.adapters.api_server import ApiServer
from switchover.adapters.clock import WallClock
from switchover.adapters.kubernetes import KubernetesWorkloads
from switchover.core.effects import Patch
from switchover.core.groups import change
from switchover.core.groups import deployment as recipe
from switchover.core.groups.workloads import MemberWorkload
from switchover.ports import Fenced

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
            effect = recipe.roll(found, moved, joined=True, in_place=in_place)
            if effect is None and recipe.is_moved(found, moved) and (found.paused or not rest):
                return found
            if effect is not None:
                with suppress(Fenced):
                    await perform(self.workloads, effect)
            await asyncio.sleep(0.02)
        raise AssertionError(f"never {moved} moved: {await self.look()}")

    async def rise(self, moved: int) -> None:
        """New pods start, and nobody has left."""
        async def caught_up() -> bool:
            return (await self.look()).caught_up

        await until(caught_up, "its controller has acted on the last change")
        await perform(self.workloads, recipe.roll(await self.look(), moved, joined=True, in_place=False))

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
        for _ in range(round(seconds / 0.1)):
            await asyncio.sleep(0.1)
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


@pytest.mark.parametrize("moved", [2, 6])
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
    for stale in (recipe.roll(before, 4, joined=True, in_place=False),
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
