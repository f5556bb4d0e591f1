"""Slots in a rollout: how each is seen and assigned, how many go together, and in which order."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from switchover.answers.observed import Known, Observed, Unknown
from switchover.api.status import Direction
from switchover.engine.effects import Effect, replacement
from switchover.engine.gate import Gate
from switchover.engine.position import NodeRecord
from switchover.engine.rollout import BatchSize, Rollout, Sight
from switchover.groups.picture import INTERMEDIATE, ORIGINAL, TARGET, Picture
from switchover.groups.workloads import kinds
from switchover.kubernetes.members import MemberWorkload
from switchover.kubernetes.workloads import listed


def assign_slots(picture: Picture) -> Mapping[str, NodeRecord]:
    """A slot for each pod that the workloads want now, which Baseline puts on record."""
    found: dict[str, NodeRecord] = {}
    for workload in picture.spec.workloads:
        source = picture.source(workload.name)
        assert isinstance(source, Known), "the gate that found every workload movable has passed"
        for index in range(listed(source.value.replicas)):
            found[f"{workload.name}/{index}"] = NodeRecord(index, ORIGINAL)
    return found


def assign_all(mode: str) -> Callable[[Picture], Mapping[str, NodeRecord]]:
    """Every slot at once, where all pods are stopped before any is started."""
    return lambda picture: {name: replace(record, assigned=mode) for name, record in picture.position.nodes.items()}


# --- how many, and in which order ---------------------------------------------------------------------------------------


def sizes(picture: Picture) -> tuple[BatchSize, ...]:
    """The batches as the spec asks; a share of the pods is rounded up. The first is the canary."""
    pods = max(1, len(picture.position.nodes))              # none is on record before Baseline
    return tuple(BatchSize(batch.pods or math.ceil(pods * (batch.percent or 0) / 100), float(batch.bake_seconds))
                 for batch in picture.spec.rollout.steps)


def surplus(picture: Picture) -> int:
    """How many members a batch adds until its predecessors leave; none where these leave first."""
    return 0 if picture.in_place else max(size.pods for size in sizes(picture))


def canary_size(picture: Picture) -> tuple[BatchSize, ...]:
    """The canary alone, also where each kind of workload has one of its own."""
    return sizes(picture)[:1]


def sizes_after_canary(picture: Picture) -> tuple[BatchSize, ...]:
    """The batches that follow the canary."""
    return sizes(picture)[1:] or sizes(picture)


def sizes_without_bake(picture: Picture) -> tuple[BatchSize, ...]:
    """In a rollback nothing has to be proved for long."""
    return tuple(BatchSize(size.pods, 0.0) for size in sizes_after_canary(picture))


Left = Callable[[Picture], Observed[Sequence[str]]]


def left(mode: str, only_canary: bool = False) -> Left:
    """The slots that are not in `mode` yet: the highest first, as a StatefulSet replaces them.

    With `only_canary` no more of them than make the first batch of the rollout. Unknown while the template of a workload
    could not be changed yet.
    """

    def find(picture: Picture) -> Observed[Sequence[str]]:
        for workload in picture.spec.workloads:
            if picture.live_mode(workload.name) != mode:
                return Unknown(f"{workload.kind} {workload.name} does not have its {mode.lower()} template yet: it is"
                               " changed when every pod is Ready and of the template before")
        found = [slot for workload in picture.spec.workloads
                 for slot in picture.position.left(reversed(picture.slots(workload.name)), mode)]
        if only_canary:
            found = found[: max(0, sizes(picture)[0].pods - (len(picture.position.nodes) - len(found)))]
        return Known(found, picture.now)

    return find


def moves_left(picture: Picture) -> int:
    """How many pods a rollback still has to replace."""
    passes = {ORIGINAL: 0, INTERMEDIATE: 1, TARGET: 2 if picture.bridged else 1}
    return sum(passes[record.assigned] for record in picture.position.nodes.values())


BATCH_SECONDS = 60.0
"""Assumed of a batch without its bake: pods start, join, and the group settles (4 to 10 s; docs/facts/groups.md#times)."""


def seconds_left(picture: Picture) -> float:
    """How long the batches that are left will take, at that assumption, and the soak."""
    at, spec = picture.position, picture.spec
    if not picture.replaces:
        return BATCH_SECONDS + (spec.soak_seconds if at.direction is Direction.FORWARD else 0)
    if at.direction is Direction.BACKWARD:
        return BATCH_SECONDS * math.ceil(moves_left(picture) / sizes_after_canary(picture)[-1].pods)
    every = len(at.nodes) * (2 if picture.bridged else 1)
    last = sizes(picture)[-1]
    left = max(0, every - moves_left(picture))
    return math.ceil(left / last.pods) * (BATCH_SECONDS + last.bake) + spec.soak_seconds


# --- assigning ----------------------------------------------------------------------------------------------------------


def assign(picture: Picture) -> tuple[Effect, ...]:
    """What makes the pods of each workload in the batch follow the record: one change a pass."""
    names = dict.fromkeys(slot.rpartition("/")[0] for slot in picture.position.batch.nodes) if picture.position.batch else {}
    sources = (source.value for name in names if isinstance(source := picture.source(name), Known))
    return tuple(effect for source in sources for effect in kinds.of(source).roll(picture, source))


# --- seeing -------------------------------------------------------------------------------------------------------------


def sight(picture: Picture, slot: str) -> Observed[Sight]:
    """The pod that fills a slot once it runs in the assigned mode; until then a pod is awaited, and its trouble reported."""
    name = slot.rpartition("/")[0]
    source = picture.source(name)
    if not isinstance(source, Known):
        return source
    mode = picture.position.nodes[slot].assigned
    pod = kinds.of(source.value).pod_in(picture, source.value, slot) if picture.live_mode(name) == mode else None
    seen = _awaited(source.value) if pod is None else Sight(pod.uid, True, False, pod.started_at, mode)
    return Known(seen, source.at)      # one that is coming up would be evicted for not being there


def _awaited(workload: MemberWorkload) -> Sight:
    troubled = [f"{pod.name}: {pod.trouble}" for _, pod in sorted(workload.pods.items()) if pod.trouble]
    surges = ", or set spec.rollout.surge to 0" if kinds.of(workload).rises else ""
    no_room = f"{workload.trouble}; make room{surges}" if workload.trouble else ""
    trouble = no_room or (troubled[0] if troubled else "")
    return Sight("", False, False, None, "", trouble)


# --- where nobody assigns the group any more ---------------------------------------------------------------------------


def to_restart(picture: Picture) -> Observed[Sequence[str]]:
    """One slot."""
    return Known(tuple(sorted(picture.position.nodes))[:1], picture.now)


def one(_: Picture) -> tuple[BatchSize, ...]:
    return (BatchSize(1, 0.0),)


def evict(picture: Picture, slot: str, seen: Sight) -> Effect:
    """Evict the pod that fills a slot."""
    pod = next((pod for _, _, pod in picture.pods() if pod.uid == seen.uid), None)
    return replacement(pod.name if pod is not None else slot, seen.uid, ready=seen.ready)


Gates = tuple[Gate[Picture], ...]


def forward_to(mode: str, *, before: Gates, after: Gates, canary: bool = False,
               after_canary: bool = False) -> Rollout[Picture]:
    """A rollout of slots forward. `canary` is the first batch alone, `after_canary` the rest."""
    of_batches = canary_size if canary else sizes_after_canary if after_canary else sizes
    return Rollout(
        mode=mode, left=left(mode, only_canary=canary), sight=sight, assign=assign,
        replace=evict, sizes=of_batches, before=before, after=after)


def back_to(mode: str, *, after: Gates, before: Gates = ()) -> Rollout[Picture]:
    """A rollout of slots back. It asks for members and not for health: what is not healthy may be why it goes back."""
    return Rollout(
        mode=mode, left=left(mode), sight=sight, assign=assign, replace=evict,
        sizes=sizes_without_bake, before=before, after=after)


def restart_one(*, after: Gates) -> Rollout[Picture]:
    """One pod is replaced where it is."""
    return Rollout(
        mode=ORIGINAL, left=to_restart, sight=sight, assign=assign, replace=evict,
        sizes=one, before=(), after=after, restart=True)
