"""The rollout sub-machine that every plan uses: choose the batch, assign, evict, wait for its gates, bake, next.

It moves one thing a pass and never acts on what is not on record: a batch and its assignment are recorded in one pass
and written to the world in a later one, and a pod's uid is recorded before that very pod is evicted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, Self, TypeVar

from switchover.answers.observed import Known, Observed
from switchover.engine.effects import Effect
from switchover.engine.gate import SEEN_AGAIN, Gate, Judge, Verdict, fail, of, wait
from switchover.engine.position import Batch, Position
from switchover.reasons.cluster import MODE_MISMATCH, NODE_UNKNOWN
from switchover.reasons.walk import BAKING, ORDER_UNKNOWN
from switchover.reasons.workloads import POD_COMING_UP, POD_IN_TROUBLE

MAX_EVICTIONS = 2
"""A node that still shows another mode after this many evictions needs a person."""
SETTLE_SECONDS = 10.0
"""A new pod may answer as its predecessor for a moment; only then its answer counts against it. No answer never
does: a pod without a readiness probe is Ready while Kafka starts, which may take minutes."""


class HasPosition(Protocol):
    @property
    def position(self) -> Position: ...
    @property
    def named(self) -> tuple[str, str]:
        """As commands name it: kmig/kafka, and the namespace."""
        ...

    def at(self, position: Position) -> Self: ...


P = TypeVar("P", bound=HasPosition)


@dataclass(frozen=True, slots=True)
class Phase:
    """How far a pod that starts has come, with its name; whether somebody should look, and the command for it."""

    message: str
    in_trouble: bool
    look: str


@dataclass(frozen=True, slots=True)
class Sight:
    """What is seen of one node: its pod, and the mode in which it answers ("" while it does not). `phase` is how far a pod
    has come that is not there yet, where that is known.
    """

    uid: str
    ready: bool
    terminating: bool
    started_at: float | None
    mode: str
    trouble: str = ""
    phase: Phase | None = None


@dataclass(frozen=True, slots=True)
class BatchSize:
    """How many nodes a batch takes and how long it bakes, in seconds."""

    pods: int
    bake: float


@dataclass(frozen=True, slots=True)
class Rollout(Generic[P]):
    """Which nodes go to `mode`, in which order, and under which gates.

    `left` gives the nodes that are not assigned yet, in order; `sight` looks at one; `assign` gives the effects that
    make the recorded assignment true outside (none once it is); `replace` gives the effect that replaces a pod. With
    `restart` a node is replaced even when it already runs in `mode`; without a mode, "", each is in the mode that it has.
    `needs` names the facts that these functions read and that a pass reads only where they are named.
    """

    mode: str
    left: Callable[[P], Observed[Sequence[str]]]
    sight: Callable[[P, str], Observed[Sight]]
    assign: Callable[[P], tuple[Effect, ...]]
    replace: Callable[[P, str, Sight], Effect]
    sizes: Callable[[P], tuple[BatchSize, ...]]
    before: tuple[Gate[P], ...]
    after: tuple[Gate[P], ...]
    restart: bool = False
    needs: tuple[str, ...] = ()

    def owns(self, at: Position) -> bool:
        """Whether the batch on record is one of this rollout."""
        return at.batch is not None and self.mode in ("", at.nodes[at.batch.nodes[0]].assigned)


@dataclass(frozen=True, slots=True)
class Move:
    """One pass of a rollout: a new position to record, or effects, or neither while it waits; or it is complete."""

    position: Position
    effects: tuple[Effect, ...] = ()
    complete: bool = False
    note: str = ""


def roll(rollout: Rollout[P], picture: P, judge: Judge[P], now: float) -> Move:
    """The next move. What it waits for is left with `judge`."""
    at = picture.position
    if at.batch is None:
        return _choose(rollout, picture, judge, now)
    if effects := rollout.assign(picture):
        return Move(at, effects)
    moving = [move for name in at.batch.nodes if (move := _replace(rollout, picture, name, judge, now)) is not None]
    if not moving:
        return _prove(rollout, picture, at.batch, judge, now)
    if at.batch.proven is not None:
        return Move(at.unproven(), note="a node of the batch left its mode")
    return next((move for move in moving if move.position != at or move.effects), Move(at))


def judge_batch(rollout: Rollout[P], picture: P, judge: Judge[P], now: float) -> None:
    """What the nodes of the batch still need, while nothing is moved: one of them may be why."""
    batch = picture.position.batch
    for name in batch.nodes if batch is not None else ():
        _replace(rollout, picture, name, judge, now)


def _choose(rollout: Rollout[P], picture: P, judge: Judge[P], now: float) -> Move:
    at = picture.position
    left = rollout.left(picture)
    if not isinstance(left, Known):
        judge.add("Order", wait(ORDER_UNKNOWN, f"cannot tell which node comes next: {left.why}",
                                unblocks="wait until it answers"))
        return Move(at)
    if not left.value:
        return Move(at, complete=True)
    size = size_of(rollout, picture)
    candidate = at.with_batch(left.value[: size.pods], rollout.mode, now)
    if rollout.restart:
        for name in candidate.batch.nodes if candidate.batch is not None else ():
            seen = rollout.sight(picture, name)
            if not isinstance(seen, Known):
                judge.add(f"Replace/{name}", wait(NODE_UNKNOWN, of(name, seen.why), subject=name, unblocks=SEEN_AGAIN))
                return Move(at)
            record = replace(candidate.nodes[name], evicting=seen.value.uid, evictions=1)
            candidate = candidate.with_node(name, record)
    if judge.all_open(rollout.before, picture.at(candidate)):
        nodes = ", ".join(left.value[: size.pods])
        what = f"{nodes} to mode {rollout.mode}" if rollout.mode else f"restart of {nodes}"
        return Move(candidate, note=f"batch {at.batches_done + 1}: {what}")
    return Move(at)


def size_of(rollout: Rollout[P], picture: P) -> BatchSize:
    """How many nodes the next batch takes; the last size goes on."""
    sizes = rollout.sizes(picture)
    return sizes[min(picture.position.batches_done, len(sizes) - 1)]


def _replace(rollout: Rollout[P], picture: P, name: str, judge: Judge[P], now: float) -> Move | None:
    """What one node of the batch still needs; None when it runs in its assigned mode."""
    at = picture.position
    record = at.nodes[name]
    seen = rollout.sight(picture, name)
    if not isinstance(seen, Known):
        judge.add(f"Replace/{name}", wait(NODE_UNKNOWN, of(name, seen.why), subject=name, unblocks=SEEN_AGAIN))
        return Move(at)
    sight = seen.value
    on_record = sight.uid != "" and sight.uid == record.evicting
    if sight.mode == record.assigned and sight.ready and not sight.terminating and not on_record:
        return None
    settled = sight.ready and sight.mode != "" and sight.started_at is not None and (
        now - sight.started_at > SETTLE_SECONDS)
    coming = sight.uid == "" or sight.terminating or (record.evictions > 0 and not on_record and not settled)
    if coming:
        judge.add(f"Replace/{name}", _coming(name, record.assigned, sight))
        return Move(at)
    if not on_record and record.evictions >= MAX_EVICTIONS:
        judge.add(f"Replace/{name}", fail(
            MODE_MISMATCH, f"{name} was evicted {record.evictions} times, and does not run in its assigned mode"
            + (f": {sight.trouble}" if sight.trouble else ""),
            subject=name, observed=sight.mode or "no answer", threshold=record.assigned,
            unblocks=f"look at the log of {name}; once its fault is repaired, delete the pod"))
        return Move(at)
    if not judge.all_open(rollout.before, picture):
        return Move(at)
    if on_record:
        return Move(at, (rollout.replace(picture, name, sight),))
    recorded = replace(record, evicting=sight.uid, evictions=record.evictions + 1)
    return Move(at.with_node(name, recorded), note=f"evict {name} for mode {record.assigned}")


def _coming(name: str, mode: str, sight: Sight) -> Verdict:
    """What a pod that has not come up still needs. The last container of one that ends exits with 143: that is no fault."""
    observed, phase = sight.mode or "no answer", None if sight.terminating else sight.phase
    if phase is not None and phase.in_trouble:
        return wait(POD_IN_TROUBLE, phase.message, subject=name, observed=observed, threshold=mode,
                    unblocks=f"find out why: {phase.look}")
    message = f"{name} is on its way into mode {mode}"
    if phase is not None:
        message = f"{message}: {phase.message}"
    elif sight.trouble and not sight.terminating:
        message = sight.trouble
    return wait(POD_COMING_UP, message, subject=name, observed=observed, threshold=mode,
                unblocks="wait until the pod starts and answers")


def _prove(rollout: Rollout[P], picture: P, batch: Batch, judge: Judge[P], now: float) -> Move:
    at = picture.position
    everything_open = judge.all_open(rollout.after, picture)
    closed = judge.spoilt(rollout.after)
    nodes = ", ".join(batch.nodes)
    if batch.proven is None:
        if not everything_open:
            return Move(at)
        mode = at.nodes[batch.nodes[0]].assigned
        return Move(replace(at, batch=replace(batch, proven=now)), note=f"{nodes} proven in mode {mode}")
    if closed:                                  # what could not be observed makes the bake longer, not begin again
        return Move(at.unproven(), note=f"gate {closed} closed: the bake of {nodes} begins again")
    bake = size_of(rollout, picture).bake
    if now - batch.proven < bake:
        judge.add("Bake", wait(BAKING, f"{nodes} must stay healthy before the next batch", subject=nodes,
                               observed=f"{now - batch.proven:.0f} s", threshold=f"{bake:.0f} s",
                               unblocks="nothing to do: the bake ends by itself"))
        return Move(at)
    if not everything_open:
        return Move(at)
    return Move(at.batch_done(), note=f"batch {batch.index} done: {nodes}")
