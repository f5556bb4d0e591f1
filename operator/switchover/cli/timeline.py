"""The stays of a migration in its steps, there and back, as its status has them. Pure."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from switchover.api.status import Direction, MigrationStatus, Transition
from switchover.api.status import MoveKind as Kind
from switchover.engine.status import HISTORY_KEPT

ENDS = ("Completed", "RolledBack")
"""Places in the history that are no steps: the ends of the plan."""
TURNS = (Kind.TURNED, Kind.AUTOMATIC_ROLLBACK)
TROUBLES = (Kind.STEP_WAITS_AGAIN, Kind.BATCH_VOID, Kind.BAKE_RESTARTED)
OLDER = (
    (r"turned backward at ", Kind.TURNED, Direction.BACKWARD), (r"turned forward at ", Kind.TURNED, Direction.FORWARD),
    (r"rolls back automatically from ", Kind.AUTOMATIC_ROLLBACK, Direction.BACKWARD),
    (r"[^ ]+ begins\b", Kind.STEP_BEGUN, Direction.FORWARD), (r"taking [^ ]+ back\b", Kind.STEP_BEGUN, Direction.BACKWARD),
    (r".* waits again: ", Kind.STEP_WAITS_AGAIN, Direction.FORWARD), (r"[^;]* proven in mode ", Kind.BATCH_PROVEN, None),
    (r".* is void: ", Kind.BATCH_VOID, None),
    (r"[^;]* bake (starts|begins) anew|.* left its mode", Kind.BAKE_RESTARTED, None))
"""The sentences of earlier releases, which said in them alone what kind of move it was: its kind, and the way it went."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch: `proven` is when its own gates had passed and its bake began."""

    name: str
    what: str
    start: datetime
    proven: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """One stay in a step, forward or backward. Until `opened` it waited for its entry gates, or for an approval."""

    step: str
    start: datetime | None = None
    opened: datetime | None = None
    end: datetime | None = None
    backward: bool = False
    held: bool = False
    said: str = ""
    """What was said when it began: by whom it was approved, and on which backups; or why it rolls back by itself."""
    batches: tuple[Batch, ...] = ()
    troubles: tuple[Transition, ...] = ()
    """Moves by which a gate took something back: a bake that began again, a batch that was void."""


def typed(move: Transition) -> Transition:
    """The move with its kind and the way it went; None where an earlier release does not say which."""
    if move.reason != Kind.MOVED:
        return move
    kind, way = next(((kind, way) for said, kind, way in OLDER if re.match(said, move.message)), (move.reason, None))
    return move.evolve(reason=kind, direction=move.direction or way)


def stages_of(status: MigrationStatus, moves: Sequence[Transition]) -> tuple[Stage, ...]:
    """By the moves; before the first on record by the times of the steps, in the order in which they began."""
    records = {each.name: Stage(each.name, each.start_time, end=each.end_time) for each in status.steps}
    first = moves[0].time if moves else None
    began = status.progress.start_time if len(moves) < HISTORY_KEPT else None
    by_moves = _Stages(lambda step: _begun((records[step].start if step in records else None, began), first))
    for move in moves:
        by_moves.add(move)
    before = [each for each in records.values() if first is None or (each.end is not None and each.end < first)]
    return (*sorted(before, key=lambda each: each.start.timestamp() if each.start else 0.0), *by_moves.stages)


def _begun(times: Iterable[datetime | None], first: datetime | None) -> datetime | None:
    """When the step was entered in which the first move was made: the first of the times that is not after that move; a
    step that is taken back is on record with the time of its rollback."""
    return next((time for time in times if time and first and time <= first), None)


class _Stages:
    """The stages that moves show, one after the other; the last one is under way until it is closed."""

    def __init__(self, begun: Callable[[str], datetime | None]) -> None:
        self.stages: list[Stage] = []
        self._begun, self._open = begun, False

    def add(self, move: Transition) -> None:
        before, after = step_of(move.from_), step_of(move.to)
        if not self.stages and before and before not in ENDS:
            self._enter(Stage(before, self._begun(before), backward=is_backward(move) is not (move.reason in TURNS)))
        going = bool(self.stages) and self.stages[-1].backward
        backward = going if move.direction is None else is_backward(move)
        if after in ENDS:
            self._leave(move.time)
        elif not self._open or self.stages[-1].step != after or backward is not going:
            self._leave(move.time)
            why = move.message if move.reason == Kind.AUTOMATIC_ROLLBACK else ""
            self._enter(Stage(after, move.time, backward=backward, said=why))
        else:
            self._within(move)

    def _within(self, move: Transition) -> None:
        last, (_, _, before), (_, _, after) = self.stages[-1], move.from_.partition("/"), move.to.partition("/")
        batches = last.batches
        if move.reason == Kind.STEP_BEGUN:
            last = replace(last, opened=move.time, said=move.message.partition("; ")[2] or last.said)
        elif move.reason == Kind.STEP_WAITS_AGAIN:
            last = replace(last, opened=None, said="")
        elif after and after != before:
            last = replace(last, batches=(*batches, Batch(after, move.message.removeprefix(f"batch {after}: "), move.time)))
        elif before and not after and batches:
            last = replace(last, batches=(*batches[:-1], replace(batches[-1], end=move.time)))
        elif after and batches and move.reason == Kind.BATCH_PROVEN:
            last = replace(last, batches=(*batches[:-1], replace(batches[-1], proven=move.time)))
        if move.reason in TROUBLES:
            last = replace(last, troubles=(*last.troubles, move))
        self.stages[-1] = last

    def _enter(self, stage: Stage) -> None:
        self.stages.append(stage)
        self._open = True

    def _leave(self, time: datetime) -> None:
        if self._open:
            last = self.stages[-1]
            batches = tuple(each if each.end else replace(each, end=time) for each in last.batches)
            self.stages[-1] = replace(last, end=time, batches=batches)
        self._open = False


def is_backward(move: Transition) -> bool:
    """Whether the plan is known to be walked backward after it."""
    return move.direction is Direction.BACKWARD


def begins(move: Transition, step: str) -> bool:
    """Whether the step's way forward begins with it."""
    return move.to == step and move.reason == Kind.STEP_BEGUN and not is_backward(move)


def step_of(place: str) -> str:
    """The step of a place."""
    return place.partition("/")[0]
