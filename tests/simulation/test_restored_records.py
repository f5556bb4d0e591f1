"""An older record of the same object: its status alone is put back, or etcd is restored to an earlier moment.

Nothing goes back on the word of such a record. A step that what is seen contradicts stands by name, and goes on by the
command that is printed, or once the newest status is put back.
"""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

import samples
from fakes.api_server import Object, copied
from fakes.kafka_world import PROTOCOL, mode_of
from simulation.migration_world import LOOKS, NAME, SPEC, MigrationWorld, live_to_the_end
from simulation.moments import on_the_way, quiet_for, reference
from simulation.pasting import commands, paste_for
from simulation.test_defects import stalled
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster import modes
from switchover.cluster.door.mount import SCRIPT_KEY

ORDER = {mode: place for sort in (modes.BROKERS, (Mode.STOPPED, *modes.RUNNING_CONTROLLERS))
         for place, mode in enumerate(sort)}
"""How far on its way a node is."""
Place = tuple[str, bool, int]
OF_THE_CLUSTER = {f"K{number}" for number in range(1, 12)}
"""The rules of a cluster that a restore of etcd breaks before an operator sees it: the kubelets start pods as they were."""
LEADER_FIRST = {"K9"}
"""The rule that a restore breaks whose record has a batch: since all pods have started anew, its controller may lead."""
STARTED_SECONDS = 90.0
"""Until every pod that a restore starts anew is Ready."""
SECONDS = 60.0
"""For so long an older record is watched that nothing contradicts."""


@dataclass(frozen=True)
class Snapshot:
    """What the API server had when a place was reached first: ZooKeeper's StatefulSet, too."""

    place: Place
    status: Mapping[str, Any]
    objects: Mapping[tuple[str, str], Object]
    zookeeper_stopped: bool


def place(world: MigrationWorld) -> Place:
    progress = world.status.get("progress") or {}
    return progress.get("step", ""), "openTime" in progress, progress.get("batch") or 0


_SEEN: dict[Place, Snapshot] = {}


def note(world: MigrationWorld) -> None:
    if world.status.get("planHash") and place(world) not in _SEEN:
        _SEEN[place(world)] = Snapshot(
            place(world), copied(world.status), copied(dict(world.api.objects)), world.kafka.zookeeper_stopped)


LOOKS.append(note)


def snapshots() -> tuple[Snapshot, ...]:
    """Of the life that nothing disturbs, in their order."""
    live_to_the_end()
    return tuple(_SEEN.values())


def reached(world: MigrationWorld, wanted: Place) -> None:
    def run() -> None:
        assert world.live(world.approved_and(lambda: place(world) == wanted))

    world.get_to(("place", *wanted), run)


def put_back(world: MigrationWorld, status: Mapping[str, Any]) -> None:
    """Somebody writes a status of before; the jury takes it for what is on record."""
    world.say(f"the status is one of {status['progress']['step']}")
    world.api.edit("kafkamigrations", NAME, lambda found: found.update(status=copied(status)))
    recorded = world.jury.memory.recorded
    assert recorded is not None
    world.jury.memory.recorded = replace(recorded, status=world.status)


def modes_of_edits(world: MigrationWorld) -> dict[str, str]:
    given = {"zookeeper.connect": SPEC["zookeeper"]["connect"], PROTOCOL: "3.9"}
    return {pod: mode_of(base64.b64decode(text).decode(), given) for secret in world.api.of("secrets")
            for pod, text in (secret.get("data") or {}).items() if pod != SCRIPT_KEY}


def modes_of_processes(world: MigrationWorld) -> dict[str, str]:
    return {pod: node.mode for pod, node in world.kafka.nodes.items()}


def nothing_goes_back(world: MigrationWorld) -> None:
    """Until it stands by name, or for a while: no edits and no process of a mode that is left, and nothing is deleted but a
    rehearsal, which no record of before it knows.

    A node that has other edits and has not started by them has left nothing: the Secret alone may have been changed. What is
    kept of a StatefulSet may be written again while no pod needs it.
    """
    edits, processes = modes_of_edits(world), modes_of_processes(world)
    left = {pod: min(mode, processes.get(pod, mode), key=ORDER.__getitem__) for pod, mode in edits.items()}
    objects = {key for key, found in world.api.objects.items()
               if key[0] not in ("events", "pods", "jobs") and "ownerReferences" not in found["metadata"]}
    begin = world.timeline.now()

    def judged() -> bool:
        for then, now in ((left, modes_of_edits(world)), (processes, modes_of_processes(world))):
            back = {pod: (then[pod], mode) for pod, mode in now.items() if pod in then and ORDER[mode] < ORDER[then[pod]]}
            assert not back, back
        gone = objects - {*world.api.objects}
        assert all(resource == "controllerrevisions" for resource, _ in gone), gone
        return bool(stalled(world).get("status") == "True" or world.finished or world.timeline.now() > begin + SECONDS)

    assert world.live(world.approved_and(judged))
    assert objects <= {*world.api.objects}


def do_what_is_printed(world: MigrationWorld) -> bool:
    """Run the command that puts something on record, if one is printed."""
    if not [*commands(world, "RecordContradicted")]:
        return False
    paste_for(world, "RecordContradicted", "--subresource=status")
    return True


def put_right(world: MigrationWorld, newest: Mapping[str, Any]) -> None:
    """By what is printed, as often as something is; else by the newest status."""
    while stalled(world).get("status") == "True":
        before = stalled(world)["message"]
        if not do_what_is_printed(world):
            put_back(world, newest)
        assert world.live(lambda: stalled(world).get("message") != before)  # noqa: B023 - it is asked in this turn alone


def is_put_back(older: int, now: int, *, whole: bool = True) -> None:
    """The status alone is an older one."""
    with pytest.MonkeyPatch.context() as patch:
        world = MigrationWorld(patch)
        reached(world, snapshots()[now].place)
        newest = world.status
        put_back(world, snapshots()[older].status)
        nothing_goes_back(world)
        if stalled(world).get("status") == "True":
            assert stalled(world)["reason"] == "RecordContradicted", stalled(world)
            put_right(world, newest)
        world.goes_on(whole)
        assert not whole or world.end_state().kafka == reference()[0].kafka


CLAIMED = ("DualWrite", "MoveBrokers", "Soak")


def phase(at: Place) -> int:
    """Before KRaft's claim, under it, and from the first controller on that has finalized."""
    step, _, batch = at
    if step in CLAIMED or (step == "Finalize" and batch < 2):
        return 1
    return 2 if step in ("Finalize", "HandOver", "ReleaseZooKeeper") else 0


def is_restored(older: int, now: int, *, whole: bool = True) -> None:
    """etcd is: every object is of before, and every pod that was replaced since is started anew, as it was then."""
    with pytest.MonkeyPatch.context() as patch:
        world, kept = MigrationWorld(patch), snapshots()[older]
        reached(world, snapshots()[now].place)
        before = dict(world.api.objects)
        world.api.objects = copied(dict(kept.objects))
        world.kubelet.restored(before)
        world.kafka.zookeeper_stopped = kept.zookeeper_stopped
        rules, world.jury.excused = world.jury.excused, OF_THE_CLUSTER
        put_back(world, kept.status)
        world.timeline.wait(STARTED_SECONDS)                          # what follows from it while no operator lives
        world.advance()
        if phase(kept.place) == phase(snapshots()[now].place):
            world.jury.excused = rules | (LEADER_FIRST if kept.status["progress"].get("batchNodes") else set())
        nothing_goes_back(world)
        if stalled(world).get("status") == "True":
            assert stalled(world)["reason"] == "RecordContradicted", stalled(world)
            if not do_what_is_printed(world):
                moves = world.moves
                assert phase(kept.place) < phase(snapshots()[now].place), "nothing else is in the way"
                quiet_for(world, SECONDS)
                assert world.moves == moves
                return
        world.goes_on(whole)
        assert not whole or world.end_state().kafka == reference()[0].kafka


PAIRS = [(("MoveBrokers", True, 1), ("Soak", True, 0)), (("Finalize", True, 0), ("Finalize", True, 3)),
         pytest.param(("EnableMigration", True, 1), ("CopyMetadata", True, 1), marks=pytest.mark.long)]
"""Each of another kind of node, and each was obeyed: edits of a mode that the nodes had left were written."""


@pytest.mark.case("RecordContradicted")
@pytest.mark.parametrize(("older", "now"), PAIRS)
def test_an_older_status_takes_nothing_back(older: Place, now: Place) -> None:
    places = [each.place for each in snapshots()]
    is_put_back(places.index(older), places.index(now), whole=False)


RESTORED = [(("MoveBrokers", True, 1), ("MoveBrokers", True, 3)), (("Soak", True, 0), ("HandOver", False, 0)),
            (("EnableMigration", True, 1), ("MoveBrokers", True, 2))]
"""Within the time that KRaft has claimed the cluster; from behind Finalize; and from behind the claim."""


for _, _now in (*PAIRS[:2], *RESTORED):
    on_the_way(("place", *_now))(lambda world, now=_now: place(world) == now)                       # type: ignore[misc]


@pytest.mark.parametrize(("older", "now"), RESTORED)
def test_a_restored_etcd_takes_nothing_back(older: Place, now: Place) -> None:
    places = [each.place for each in snapshots()]
    is_restored(places.index(older), places.index(now), whole=False)


def quarter(share: int) -> list[tuple[int, int]]:
    """Of all pairs of an earlier and a later moment."""
    return [(older, now) for now in range(len(snapshots())) for older in range(now)][share::4]


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("share", range(4))
def test_etcd_restored_to_each_moment(share: int, counted: Callable[[str], None]) -> None:
    pairs = quarter(share)
    samples.each(len(pairs), pairs, "restored objects", is_restored, counted)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("share", range(4))
def test_each_older_status_at_each_moment(share: int, counted: Callable[[str], None]) -> None:
    pairs = quarter(share)
    samples.each(len(pairs), pairs, "older records", is_put_back, counted)
