"""How long the rest will take: batches at the pace measured so far, and at a stated assumption before there is one.

Nothing here is evidence: no gate of health rests on it. The gate of the windows does, with the slowest batch so far.
"""

from collections.abc import Iterator
from dataclasses import replace

from switchover.answers.observed import Known
from switchover.api.kafka_migration import KafkaMigrationStep as Name
from switchover.api.kafka_migration import NodeMode
from switchover.api.status import Direction
from switchover.cluster import modes, nodes
from switchover.cluster.gates.dual_write import copy_timeout
from switchover.cluster.picture import Picture
from switchover.cluster.step import ClusterStep
from switchover.engine.pace import Pace, under_way, waits_for_a_person
from switchover.engine.plan import Decision, Step
from switchover.engine.position import NodeRecord
from switchover.engine.rollout import BatchSize
from switchover.engine.windows import Work, seconds_until_done

BROKER_SECONDS = 120.0
"""Assumed of a batch of brokers before one was measured: eviction, start, and every replica in sync again."""
CONTROLLER_SECONDS = 60.0
"""Assumed of a controller before one was measured."""


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
    """The nodes on record; before there are any, those that there will be. Empty while their number is not known."""
    controllers = nodes.assign_controllers(picture)
    if picture.position.nodes:
        return {**controllers, **picture.position.nodes}
    if not isinstance(picture.facts.kubernetes, Known):
        return {}
    workloads = [found for found in picture.facts.kubernetes.value.brokers.values() if found is not None]
    brokers = {name: NodeRecord(-1, NodeMode.ZOOKEEPER) for found in workloads for name in found.wanted}
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


def upgrade(picture: Picture, step: str, slowest: bool) -> Iterator[Work]:
    if picture.upgrades:
        yield from _brokers(picture, step, NodeMode.ZOOKEEPER_PINNED, slowest)


def raise_version(picture: Picture, step: str, slowest: bool) -> Iterator[Work]:
    if picture.raises:
        yield from _brokers(picture, step, NodeMode.ZOOKEEPER_RAISED, slowest)


def provision(picture: Picture, step: str, slowest: bool) -> Iterator[Work]:
    # All at once, and they restart nothing.
    yield Work(step, restart_seconds(picture, NodeMode.MIGRATION_CONTROLLER, slowest))


def enable(picture: Picture, step: str, slowest: bool) -> Iterator[Work]:
    left = _left(picture, True, NodeMode.MIGRATION) - 1
    yield from _batches(picture, step, NodeMode.MIGRATION, left, slowest)


def copy(picture: Picture, step: str, slowest: bool) -> Iterator[Work]:
    """The last broker, claim and copy are one: between them no controller of the cluster works."""
    seconds = copy_timeout(picture) if slowest or picture.rehearsed is None else picture.rehearsed
    left = min(1, _left(picture, True, NodeMode.MIGRATION))
    last = [replace(batch, seconds=batch.seconds + seconds)
            for batch in _batches(picture, step, NodeMode.MIGRATION, left, slowest)]
    yield from last or (Work(step, seconds, disrupts=False),)


def move(picture: Picture, step: str, slowest: bool) -> Iterator[Work]:
    yield from _brokers(picture, step, NodeMode.KRAFT, slowest)


def soak(picture: Picture, step: str, slowest: bool) -> Iterator[Work]:
    at = picture.position
    here = at.step == step
    stood = picture.now - at.opened if here and at.opened is not None else 0.0
    if not here or (at.batches_done == 0 and at.batch is None):
        # The rehearsed change of leader.
        yield Work(step, restart_seconds(picture, NodeMode.MIGRATION_CONTROLLER, slowest), 1)
    yield Work(step, max(0.0, picture.spec.soak_seconds - stood), disrupts=False, from_start=True)


def finalize(picture: Picture, step: str, slowest: bool) -> Iterator[Work]:
    """All controllers are one: a quorum is not left half finalized."""
    left = _left(picture, False, NodeMode.KRAFT_CONTROLLER)
    begun = picture.position.step == step and (picture.position.batches_done > 0 or under_way(picture.position))
    yield Work(step, left * restart_seconds(picture, NodeMode.KRAFT_CONTROLLER, slowest), left, disrupts=not begun)


def hand_over(picture: Picture, step: str, slowest: bool) -> Iterator[Work]:
    if picture.own_configuration:
        yield from _brokers(picture, step, NodeMode.OWN_KRAFT, slowest)
        yield Work(step, restart_seconds(picture, NodeMode.KRAFT_CONTROLLER, slowest), 1)


def release(picture: Picture, step: str, slowest: bool) -> Iterator[Work]:
    at = picture.position
    stood = picture.now - at.opened if at.step == step and at.opened is not None else 0.0
    yield Work(step, max(0.0, picture.spec.zookeeper_retention_seconds - stood), disrupts=False)
    restarted = at.batches_done + (at.batch is not None) if at.step == step else 0
    if picture.spec.zookeeper.shared:
        return
    if restarted < 1:
        yield Work(step, restart_seconds(picture, NodeMode.KRAFT, slowest) + _sizes(picture)[0].bake, 1)
    if restarted < 2:
        yield Work(step, restart_seconds(picture, NodeMode.KRAFT_CONTROLLER, slowest), 1)


def work_of(picture: Picture, step: Step[Picture], slowest: bool = False) -> tuple[Work, ...]:
    """What is left of one step forward, the batch on record not counted."""
    assert isinstance(step, ClusterStep), "the plan of a KafkaMigration has no others"
    return tuple(step.estimate(picture, step.name, slowest)) if nodes_of(picture) else ()


def ahead(picture: Picture) -> tuple[Work, ...]:
    """What is left until the migration has succeeded; after that, until ZooKeeper may be removed."""
    plan, first = picture.plan, picture.plan.index(picture.position.step) or 0
    steps = plan.steps[first: plan.succeeded] or plan.steps[first:]
    return (*_rest_of_batch(picture), *(work for step in steps for work in work_of(picture, step)))


# --- back ---------------------------------------------------------------------------------------------------------------


def rollback_work(picture: Picture) -> tuple[Work, ...]:
    """What it takes to bring every node from here back to where it came from: one by one, without bakes or windows."""
    at, own = picture.position, picture.controllers
    brokers = [record for name, record in at.nodes.items() if name not in own]
    moved = at.step in picture.plan.names[picture.plan.names.index(Name.MOVE_BROKERS):]
    to_migration = sum(moved and (record.assigned == NodeMode.KRAFT or not record.settled) for record in brokers)
    to_zookeeper = sum(record.assigned != NodeMode.ZOOKEEPER or not record.settled for record in brokers)
    running = sum(record.assigned in modes.RUNNING_CONTROLLERS for name, record in at.nodes.items() if name in own)
    stops = running if picture.high_watermark >= 0 else min(1, running)      # without a claim they are removed together
    return (
        *(Work(Name.MOVE_BROKERS, restart_seconds(picture, NodeMode.MIGRATION), 1) for _ in range(to_migration)),
        *(Work(Name.ENABLE_MIGRATION, restart_seconds(picture, NodeMode.STOPPED), 1) for _ in range(stops)),
        *(Work(Name.ENABLE_MIGRATION, restart_seconds(picture, NodeMode.ZOOKEEPER), 1) for _ in range(to_zookeeper)),
    )


def rollback_seconds(picture: Picture) -> float:
    """How long a rollback takes from here, or the rest of one."""
    return sum(work.seconds for work in rollback_work(picture))


def direction_seconds(picture: Picture) -> float | None:
    """How long it goes on in the direction on record."""
    if picture.position.direction is Direction.BACKWARD:
        return rollback_seconds(picture)
    if not nodes_of(picture):
        return None
    return seconds_until_done(ahead(picture), picture.spec.windows, picture.now)


def remaining(picture: Picture, decision: Decision) -> float | None:
    """Seconds until the end of the direction on record; None while it waits for a person, and while it is not known."""
    if decision.position.finished or waits_for_a_person(decision):
        return None
    return direction_seconds(picture.at(decision.position))
