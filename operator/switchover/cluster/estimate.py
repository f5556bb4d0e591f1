"""How long what is left will take: batches at the pace measured so far, and at a stated assumption before there is one.

Nothing here is evidence: no gate of health rests on it. The gate of the windows does, with the slowest batch so far.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from switchover.api.kafka_migration import KafkaMigrationStep as Step
from switchover.api.kafka_migration import NodeMode
from switchover.api.meta import Window
from switchover.api.status import Direction
from switchover.cluster import modes, nodes
from switchover.cluster.gates.dual_write import copy_timeout
from switchover.cluster.picture import Picture
from switchover.engine.pace import Pace, under_way, waits_for_a_person
from switchover.engine.plan import Decision
from switchover.engine.position import NodeRecord
from switchover.engine.rollout import BatchSize
from switchover.engine.windows import first_fit
from switchover.outside.observed import Known

BROKER_SECONDS = 120.0
"""Assumed of a batch of brokers before one was measured: eviction, start, and every replica in sync again."""
CONTROLLER_SECONDS = 60.0
"""Assumed of a controller before one was measured."""
STEPS = tuple(step.value for step in Step)
SUCCEEDED = STEPS.index(Step.FINALIZE) + 1


@dataclass(frozen=True, slots=True)
class Work:
    """Something that starts once and then ends by itself. What `disrupts` starts within a window only.

    With `from_start` its time is counted from the beginning of its step, and not from the end of what comes before.
    """

    step: str
    seconds: float
    restarts: int = 0
    disrupts: bool = True
    from_start: bool = False


# --- restarts -----------------------------------------------------------------------------------------------------------


def measured(picture: Picture, mode: str) -> Pace | None:
    """The pace of a mode, or of another mode of the same kind of node: a restart is a restart."""
    kin = modes.BROKERS if mode in modes.BROKERS else modes.CONTROLLERS
    others = [picture.paces[other] for other in kin if other in picture.paces]
    return picture.paces.get(mode) or max(others, key=lambda pace: pace.slowest, default=None)


def restart_seconds(picture: Picture, mode: str, slowest: bool = False) -> float:
    """From the first eviction of a batch until its gates have passed."""
    if (pace := measured(picture, mode)) is not None:
        return pace.slowest if slowest else pace.average
    return BROKER_SECONDS if mode in modes.BROKERS else CONTROLLER_SECONDS


def _sizes(picture: Picture) -> tuple[BatchSize, ...]:
    return nodes.sizes(picture.at(replace(picture.position, nodes=nodes_of(picture))))


def _batches(picture: Picture, step: str, mode: str, left: int, slowest: bool) -> Iterator[Work]:
    """Batches of so many brokers; those of the step on record go on where it is."""
    at = picture.position
    index = 0 if step != at.step else at.batches_done + (at.batch is not None)
    sizes = _sizes(picture)
    while left > 0:
        size = sizes[min(index, len(sizes) - 1)]
        taken = min(left, size.pods)
        yield Work(step, restart_seconds(picture, mode, slowest) + size.bake, taken)
        left, index = left - taken, index + 1


def _rest_of_batch(picture: Picture) -> Iterator[Work]:
    """What is left of the batch on record, which has begun."""
    at = picture.position
    if at.batch is None:
        return
    mode = at.nodes[at.batch.nodes[0]].assigned
    sizes = _sizes(picture)
    bakes = at.direction is Direction.FORWARD and mode in modes.BROKERS
    bake = sizes[min(at.batches_done, len(sizes) - 1)].bake if bakes else 0.0
    if at.batch.proven is not None:
        seconds = max(0.0, bake - (picture.now - at.batch.proven))
    else:
        seconds = max(0.0, restart_seconds(picture, mode) - (picture.now - at.batch.started)) + bake
    yield Work(at.step, seconds, len(at.batch.nodes), disrupts=not under_way(at))


# --- nodes --------------------------------------------------------------------------------------------------------------


def nodes_of(picture: Picture) -> dict[str, NodeRecord]:
    """The nodes on record; before there are any, those that there will be. Empty while nobody can tell how many."""
    controllers = {name: NodeRecord(node_id, NodeMode.MIGRATION_CONTROLLER) for name, node_id in picture.controllers.items()}
    if picture.position.nodes:
        return {**controllers, **picture.position.nodes}
    if not isinstance(picture.facts.kubernetes, Known):
        return {}
    workloads = [found for found in picture.facts.kubernetes.value.brokers.values() if found is not None]
    brokers = {f"{found.name}-{ordinal}": NodeRecord(-1, NodeMode.ZOOKEEPER)
               for found in workloads for ordinal in range(found.replicas)}
    return {**brokers, **controllers} if brokers else {}


def _left(picture: Picture, brokers: bool, mode: NodeMode) -> int:
    """How many nodes are neither settled in the mode, or in one that comes after it, nor on their way there in the batch on
    record."""
    own, batch, kin = picture.controllers, picture.batch, modes.BROKERS if brokers else modes.RUNNING_CONTROLLERS
    there = kin[kin.index(mode):]
    return sum((name not in own) == brokers
               and not (record.assigned in there and (record.settled or name in batch))
               for name, record in nodes_of(picture).items())


def _brokers(picture: Picture, step: str, mode: NodeMode, slowest: bool) -> Iterator[Work]:
    """Batches of all brokers that are left."""
    return _batches(picture, step, mode, _left(picture, True, mode), slowest)


# --- forward ------------------------------------------------------------------------------------------------------------


def _upgrade(picture: Picture, slowest: bool) -> Iterator[Work]:
    if picture.upgrades:
        yield from _brokers(picture, Step.UPGRADE_BROKERS, NodeMode.ZOOKEEPER_PINNED, slowest)


def _raise(picture: Picture, slowest: bool) -> Iterator[Work]:
    if picture.raises:
        yield from _brokers(picture, Step.RAISE_PROTOCOL_VERSION, NodeMode.ZOOKEEPER_RAISED, slowest)


def _provision(picture: Picture, slowest: bool) -> Iterator[Work]:
    # All at once, and they restart nothing.
    yield Work(Step.PROVISION_CONTROLLERS, restart_seconds(picture, NodeMode.MIGRATION_CONTROLLER, slowest))


def _enable(picture: Picture, slowest: bool) -> Iterator[Work]:
    left = _left(picture, True, NodeMode.MIGRATION) - 1
    yield from _batches(picture, Step.ENABLE_MIGRATION, NodeMode.MIGRATION, left, slowest)


def _copy(picture: Picture, slowest: bool) -> Iterator[Work]:
    """The last broker, claim and copy are one: between them no controller of the cluster works."""
    seconds = copy_timeout(picture) if slowest or picture.rehearsed is None else picture.rehearsed
    left = min(1, _left(picture, True, NodeMode.MIGRATION))
    last = [replace(batch, seconds=batch.seconds + seconds)
            for batch in _batches(picture, Step.COPY_METADATA, NodeMode.MIGRATION, left, slowest)]
    yield from last or (Work(Step.COPY_METADATA, seconds, disrupts=False),)


def _move(picture: Picture, slowest: bool) -> Iterator[Work]:
    yield from _brokers(picture, Step.MOVE_BROKERS, NodeMode.KRAFT, slowest)


def _soak(picture: Picture, slowest: bool) -> Iterator[Work]:
    at = picture.position
    here = at.step == Step.SOAK
    stood = picture.now - at.opened if here and at.opened is not None else 0.0
    if not here or (at.batches_done == 0 and at.batch is None):
        # The rehearsed change of leader.
        yield Work(Step.SOAK, restart_seconds(picture, NodeMode.MIGRATION_CONTROLLER, slowest), 1)
    yield Work(Step.SOAK, max(0.0, picture.spec.soak_seconds - stood), disrupts=False, from_start=True)


def _finalize(picture: Picture, slowest: bool) -> Iterator[Work]:
    """All controllers are one: a quorum is not left half finalized."""
    left = _left(picture, False, NodeMode.KRAFT_CONTROLLER)
    begun = picture.position.step == Step.FINALIZE and (picture.position.batches_done > 0 or under_way(picture.position))
    yield Work(Step.FINALIZE, left * restart_seconds(picture, NodeMode.KRAFT_CONTROLLER, slowest), left, disrupts=not begun)


def _hand_over(picture: Picture, slowest: bool) -> Iterator[Work]:
    if picture.own_configuration:
        yield from _brokers(picture, Step.HAND_OVER, NodeMode.OWN_KRAFT, slowest)
        yield Work(Step.HAND_OVER, restart_seconds(picture, NodeMode.KRAFT_CONTROLLER, slowest), 1)


def _release(picture: Picture, slowest: bool) -> Iterator[Work]:
    at = picture.position
    stood = picture.now - at.opened if at.step == Step.RELEASE_ZOOKEEPER and at.opened is not None else 0.0
    yield Work(Step.RELEASE_ZOOKEEPER, max(0.0, picture.spec.zookeeper_retention_seconds - stood), disrupts=False)
    restarted = at.batches_done + (at.batch is not None) if at.step == Step.RELEASE_ZOOKEEPER else 0
    if picture.spec.zookeeper.shared:
        return
    if restarted < 1:
        yield Work(Step.RELEASE_ZOOKEEPER, restart_seconds(picture, NodeMode.KRAFT, slowest) + _sizes(picture)[0].bake, 1)
    if restarted < 2:
        yield Work(Step.RELEASE_ZOOKEEPER, restart_seconds(picture, NodeMode.KRAFT_CONTROLLER, slowest), 1)


WORK: dict[str, Callable[[Picture, bool], Iterator[Work]]] = {
    Step.UPGRADE_BROKERS: _upgrade, Step.RAISE_PROTOCOL_VERSION: _raise, Step.PROVISION_CONTROLLERS: _provision,
    Step.ENABLE_MIGRATION: _enable, Step.COPY_METADATA: _copy, Step.MOVE_BROKERS: _move, Step.SOAK: _soak,
    Step.FINALIZE: _finalize, Step.HAND_OVER: _hand_over, Step.RELEASE_ZOOKEEPER: _release}
"""Steps that take longer than the moments their gates want."""


def work_of(picture: Picture, step: str, slowest: bool = False) -> tuple[Work, ...]:
    """What is left of one step on the way forward, the batch on record not counted."""
    return tuple(WORK[step](picture, slowest)) if step in WORK and nodes_of(picture) else ()


def ahead(picture: Picture) -> tuple[Work, ...]:
    """What is left until the migration has succeeded; after that, until ZooKeeper may be removed."""
    first = STEPS.index(picture.position.step) if picture.position.step in STEPS else 0
    steps = STEPS[first: SUCCEEDED] or STEPS[first:]
    return (*_rest_of_batch(picture), *(work for step in steps for work in work_of(picture, step)))


def seconds_until_done(work: Sequence[Work], windows: Sequence[Window], now: float) -> float | None:
    """How long it takes, with the times in which windows are closed; None when something fits into none of them."""
    at, begun, step, stretch = now, now, "", None
    for each in work:
        if each.step != step:
            step, begun = each.step, at
        if windows and each.disrupts:
            if stretch is None or at + each.seconds > stretch.closes:
                stretch = first_fit(windows, at, each.seconds)
            if stretch is None:
                return None
            at = max(at, stretch.opens)
        at = max(at, begun + each.seconds) if each.from_start else at + each.seconds
    return at - now


# --- back ---------------------------------------------------------------------------------------------------------------


def way_back(picture: Picture) -> tuple[Work, ...]:
    """What it takes to bring every node from here back to where it came from: one by one, without bakes or windows."""
    at, own = picture.position, picture.controllers
    brokers = [record for name, record in at.nodes.items() if name not in own]
    moved = at.step in STEPS[STEPS.index(Step.MOVE_BROKERS):]
    to_migration = sum(moved and (record.assigned == NodeMode.KRAFT or not record.settled) for record in brokers)
    to_zookeeper = sum(record.assigned != NodeMode.ZOOKEEPER or not record.settled for record in brokers)
    running = sum(record.assigned in modes.RUNNING_CONTROLLERS for name, record in at.nodes.items() if name in own)
    stops = running if picture.high_watermark >= 0 else min(1, running)      # without a claim they are removed together
    return (
        *(Work(Step.MOVE_BROKERS, restart_seconds(picture, NodeMode.MIGRATION), 1) for _ in range(to_migration)),
        *(Work(Step.ENABLE_MIGRATION, restart_seconds(picture, NodeMode.STOPPED), 1) for _ in range(stops)),
        *(Work(Step.ENABLE_MIGRATION, restart_seconds(picture, NodeMode.ZOOKEEPER), 1) for _ in range(to_zookeeper)),
    )


def rollback_seconds(picture: Picture) -> float:
    """How long the way back takes from here, or on it."""
    return sum(work.seconds for work in way_back(picture))


def direction_seconds(picture: Picture) -> float | None:
    """How long it goes on in the direction on record."""
    if picture.position.direction is Direction.BACKWARD:
        return rollback_seconds(picture)
    if not nodes_of(picture):
        return None
    return seconds_until_done(ahead(picture), picture.spec.windows, picture.now)


def remaining(picture: Picture, decision: Decision) -> float | None:
    """Seconds until the end of the direction on record; None while a person is waited for, and while nobody can tell."""
    if decision.position.finished or waits_for_a_person(decision):
        return None
    return direction_seconds(picture.at(decision.position))
