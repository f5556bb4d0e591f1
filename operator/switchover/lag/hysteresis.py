"""What the gate says after an evaluation, given what it said before: a fold over evaluations.

The gate passes late and leaves late, so that it does not flap (a Schmitt trigger): see docs/facts/lag.md#late-in-late-out.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from switchover.lag.group import Evaluation, TopicPartition
from switchover.lag.thresholds import Thresholds
from switchover.lag.verdicts import Effect

LIMIT = 20
"""Partitions in trouble that are counted; one is enough to fail, and a resource's status is no place for thousands."""

Counts = tuple[tuple[str, int, int], ...]
"""Topic, partition, and for how many consecutive evaluations."""


@dataclass(frozen=True, slots=True)
class State:
    """What one evaluation hands to the next; times in ms since the epoch."""

    effect: Effect = Effect.INCONCLUSIVE
    """What the gate says now."""
    at: int | None = None
    """The last evaluation."""
    streak: int = 0
    """Consecutive evaluations that passed."""
    streak_since: int | None = None
    """The first of them."""
    entered: int | None = None
    """Since when the gate passes; None while it does not."""
    strays: int = 0
    """Consecutive evaluations beyond 1.5·T_ok since it passes."""
    held_since: int | None = None
    """Since when it holds without a break."""
    last_generation: int | None = None
    config: str = ""
    standing: Counts = ()
    behind: Counts = ()


def fold(state: State, evaluation: Evaluation, thresholds: Thresholds) -> State:
    """The state after one more evaluation. One that is not later than the last changes nothing."""
    if state.at is not None and evaluation.at <= state.at:
        return state
    unseen = state.at is not None and evaluation.at - state.at > thresholds.max_pause
    if unseen or evaluation.config != state.config:
        state = State()
    if evaluation.generation != state.last_generation:
        state = replace(state, streak=0, streak_since=None, entered=None, strays=0)

    standing, behind = _count(state.standing, evaluation.standing), _count(state.behind, evaluation.behind)
    found = Effect.FAIL if _escalates(standing, behind, evaluation, thresholds) else evaluation.effect
    after = replace(_streaks(state, evaluation, found, thresholds), at=evaluation.at, standing=standing, behind=behind,
                    last_generation=evaluation.generation, config=evaluation.config)
    if after.entered is not None:
        return replace(after, effect=Effect.PASS, held_since=None)
    if found not in (Effect.PASS, Effect.HOLD):
        return replace(after, effect=found, held_since=None)
    held_since = state.held_since if state.held_since is not None else evaluation.at
    overdue = evaluation.at - held_since >= thresholds.deadline
    return replace(after, effect=Effect.INCONCLUSIVE if overdue else Effect.HOLD, held_since=held_since)


def _streaks(state: State, evaluation: Evaluation, found: Effect, thresholds: Thresholds) -> State:
    """Whether the gate enters Pass, stays there, or leaves it."""
    if found is Effect.PASS:
        streak = state.streak + 1
        since = evaluation.at if state.streak_since is None else state.streak_since
        enters = streak >= thresholds.pass_evaluations and evaluation.at - since >= thresholds.pass_time
        entered = evaluation.at if state.entered is None and enters else state.entered
        return replace(state, streak=streak, streak_since=since, entered=entered, strays=0)
    strays = state.strays + 1 if evaluation.strayed else 0
    stays = found is Effect.HOLD and evaluation.ready and strays < thresholds.leave_evaluations
    if state.entered is not None and stays:
        return replace(state, streak=0, streak_since=None, strays=strays)
    return replace(state, streak=0, streak_since=None, entered=None, strays=0)


def _escalates(standing: Counts, behind: Counts, evaluation: Evaluation, thresholds: Thresholds) -> bool:
    return (any(count >= thresholds.standing_evaluations for *_, count in standing)
            or any(count >= thresholds.behind_evaluations and TopicPartition(topic, partition) in evaluation.growing
                   for topic, partition, count in behind))


def _count(before: Counts, found: frozenset[TopicPartition]) -> Counts:
    """One more for each that is found again; the longest of them."""
    known = {TopicPartition(topic, partition): count for topic, partition, count in before}
    longest = sorted(found, key=lambda each: (-known.get(each, 0), each))[:LIMIT]
    return tuple((*each, known.get(each, 0) + 1) for each in longest)


def stored(state: State) -> dict[str, Any]:
    """The state as plain values for JSON."""
    return asdict(state) | {"effect": state.effect.name}


def restored(values: Mapping[str, Any]) -> State:
    """The state that was `stored`. Raises KeyError or TypeError for anything else."""
    counts = {name: tuple((str(topic), int(partition), int(count)) for topic, partition, count in values[name])
              for name in ("standing", "behind")}
    return State(**{**values, **counts, "effect": Effect[values["effect"]]})
