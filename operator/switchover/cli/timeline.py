"""The stays of a migration in its steps, there and back, as its status tells of them. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from switchover.api.status import Direction
from switchover.api.status import MoveKind as Kind
from switchover.cli.loose import mapping, mappings, text, time
from switchover.cli.tree import seconds
from switchover.engine.status import HISTORY_KEPT

ENDS = ("Completed", "RolledBack")
"""Places in the history that are no steps: the ends of the plan."""
TURNS = (Kind.TURNED, Kind.AUTOMATIC_ROLLBACK)
TROUBLES = (Kind.STEP_WAITS_AGAIN, Kind.BATCH_VOID, Kind.BAKE_RESTARTED)
OLDER = (
    (r"turned backward at ", Kind.TURNED, True), (r"turned forward at ", Kind.TURNED, False),
    (r"rolls back automatically from ", Kind.AUTOMATIC_ROLLBACK, True),
    (r"[^ ]+ begins\b", Kind.STEP_BEGUN, False), (r"taking [^ ]+ back\b", Kind.STEP_BEGUN, True),
    (r".* waits again: ", Kind.STEP_WAITS_AGAIN, False), (r"[^;]* proven in mode ", Kind.BATCH_PROVEN, None),
    (r".* is void: ", Kind.BATCH_VOID, None),
    (r"[^;]* bake (starts|begins) anew|.* left its mode", Kind.BAKE_RESTARTED, None))
"""The sentences of earlier releases, which said in them alone what kind of move it was: its kind, and the way it went."""


@dataclass(frozen=True, slots=True)
class Move:
    """One move of status.history, with its evidence; `reason` is its kind. Places are a step, a step and a batch, or one of
    ENDS. `backward` is which way the plan is walked after it, None where an earlier release does not say."""

    time: str
    before: str
    after: str
    message: str
    reason: str = ""
    backward: bool | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch: `proven` is when its own gates had passed and its bake began."""

    name: str
    what: str
    start: str
    proven: str = ""
    end: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stay in a step, there or on the way back. Until `opened` it waited for its entry gates, or for an approval."""

    step: str
    start: str = ""
    opened: str = ""
    end: str = ""
    backward: bool = False
    held: bool = False
    said: str = ""
    """What was said when it began: by whom it was approved, and on which backups; or why it rolls back by itself."""
    batches: tuple[Batch, ...] = ()
    troubles: tuple[Move, ...] = ()
    """Moves by which a gate took something back: a bake that began anew, a batch that was void."""


def move_of(each: Mapping[str, Any]) -> Move:
    """A move as the status has it."""
    direction, reason, message = text(each.get("direction")), text(each.get("reason")), text(each.get("message"))
    backward = direction == Direction.BACKWARD if direction else None
    if reason in ("", Kind.MOVED):
        said, older = next(((kind, way) for words, kind, way in OLDER if re.match(words, message)), (reason, None))
        reason, backward = said, older if backward is None else backward
    return Move(time(each.get("time")), text(each.get("from")), text(each.get("to")), message, reason, backward)


def stages_of(status: Mapping[str, Any], moves: Sequence[Move]) -> tuple[Stage, ...]:
    """By the moves; before the first that is kept by the times of the steps, in the order in which they began."""
    records = {text(each.get("name")): Stage(text(each.get("name")), time(each.get("startTime")),
                                              end=time(each.get("endTime"))) for each in mappings(status.get("steps"))}
    first = next((move.time for move in moves if move.time), "")
    began = time(mapping(status.get("progress")).get("startTime")) if len(moves) < HISTORY_KEPT else ""
    told = _Told(lambda step: _begun((records[step].start if step in records else "", began), first))
    for move in moves:
        told.add(move)
    before = [each for each in records.values()
              if each.step and (not moves or (first and each.end and seconds(each.end) < seconds(first)))]
    return (*sorted(before, key=lambda each: seconds(each.start) if each.start else 0.0), *told.stages)


def _begun(times: Iterable[str], first: str) -> str:
    """When the step was entered in which the first move was made: the first of the times that is not after that move; a
    step that is taken back is on record with the time of its way back."""
    return next((time for time in times if time and first and seconds(time) <= seconds(first)), "")


class _Told:
    """The stages that moves tell of, one after the other; the last one is under way until it is closed."""

    def __init__(self, begun: Callable[[str], str]) -> None:
        self.stages: list[Stage] = []
        self._begun, self._open = begun, False

    def add(self, move: Move) -> None:
        before, after = step_of(move.before), step_of(move.after)
        if not self.stages and before and before not in ENDS:
            self._enter(Stage(before, self._begun(before), backward=bool(move.backward) is not (move.reason in TURNS)))
        going = bool(self.stages) and self.stages[-1].backward
        backward = going if move.backward is None else move.backward
        if after in ENDS:
            self._leave(move.time)
        elif not self._open or self.stages[-1].step != after or backward is not going:
            self._leave(move.time)
            why = move.message if move.reason == Kind.AUTOMATIC_ROLLBACK else ""
            self._enter(Stage(after, move.time, backward=backward, said=why))
        else:
            self._within(move)

    def _within(self, move: Move) -> None:
        last, (_, _, before), (_, _, after) = self.stages[-1], move.before.partition("/"), move.after.partition("/")
        batches = last.batches
        if move.reason == Kind.STEP_BEGUN:
            last = replace(last, opened=move.time, said=move.message.partition("; ")[2] or last.said)
        elif move.reason == Kind.STEP_WAITS_AGAIN:
            last = replace(last, opened="", said="")
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

    def _leave(self, time: str) -> None:
        if self._open:
            last = self.stages[-1]
            batches = tuple(each if each.end else replace(each, end=time) for each in last.batches)
            self.stages[-1] = replace(last, end=time, batches=batches)
        self._open = False


def begins(move: Move, step: str) -> bool:
    """Whether the step's way forward begins with it."""
    return move.after == step and move.reason == Kind.STEP_BEGUN and not move.backward


def step_of(place: str) -> str:
    """The step of a place."""
    return place.partition("/")[0]
