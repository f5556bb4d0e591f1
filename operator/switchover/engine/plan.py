"""A plan is a tuple of steps; a step is one leg forward and one back. `decide` walks it, one move a pass.

`decide` is pure: the picture of this pass in, a decision out. The decision names the position to record and the effects to
perform, never both at once: what is not on record yet is not acted upon.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic

from switchover.api.status import Direction
from switchover.api.status import Verdict as Outcome
from switchover.engine.effects import Effect
from switchover.engine.every_step import NOTHING_SHUT, EveryStep
from switchover.engine.gate import Gate, Judge, Judgement, Streak, Verdict, answered, fail, gravest, wait
from switchover.engine.position import NodeRecord, Position
from switchover.engine.rollout import P, Rollout, judge_batch, roll
from switchover.reasons.walk import (
    APPROVAL_VOID,
    AWAITING_APPROVAL,
    BAKING,
    NO_SUCH_STEP,
    OF_WINDOWS,
    PAUSED,
    POINT_OF_NO_RETURN,
    RETAINING,
    SOAKING,
    UNDO_NOT_AVAILABLE,
    UNKNOWN_STEP,
    ZOOKEEPER_RUNS,
)
from switchover.text.command import command
from switchover.text.nearest import meant

MEANT_TO_BE_LONG = OF_WINDOWS | {"Passed", *(each.name for each in (
    BAKING, SOAKING, RETAINING, AWAITING_APPROVAL, APPROVAL_VOID, ZOOKEEPER_RUNS))}
"""Reasons of waiting that is no standstill."""


def nothing(_: object) -> tuple[Effect, ...]:
    """The goal of a leg that only watches."""
    return ()


def _no_records(_: object) -> Mapping[str, NodeRecord]:
    return {}


def _never(_: object) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Correction(Generic[P]):
    """What undoes the changes of others, first and always, even while gates are shut or in a pause: `begun` once the step
    has begun, `ahead` before, for what the steps before it have left. `needs` names the facts that `ahead` reads."""

    begun: Callable[[P], tuple[Effect, ...]] = nothing
    ahead: Callable[[P], tuple[Effect, ...]] = nothing
    needs: tuple[str, ...] = ()

    def effects(self, picture: P) -> tuple[Effect, ...]:
        """What is to be done now."""
        return self.ahead(picture) if picture.position.opened is None else self.begun(picture)


def _begun(_: object) -> Mapping[str, NodeRecord] | None:
    return None


def until_seen(first_effect: Callable[[P], Verdict],
               records: Callable[[P], Mapping[str, NodeRecord]] = _no_records,
               ) -> Callable[[P], Mapping[str, NodeRecord] | None]:
    """The records of nodes of a step whose first effect does not show yet; none while that cannot be seen."""
    return lambda picture: records(picture) if answered(first_effect, picture).outcome is Outcome.WAIT else None


@dataclass(frozen=True, slots=True)
class Rescue(Generic[P]):
    """The remediation of a standstill: `rollout` goes while one of `gates` is overdue."""

    gates: tuple[Gate[P], ...]
    rollout: Rollout[P]


@dataclass(frozen=True, slots=True)
class Leg(Generic[P]):
    """The work of a step in one direction.

    `enter` gates pass before `opened` is recorded, together with the node records of `assigns`. Then `goal` is made true
    and the rollouts go on, one after the other, while every `watch` gate passes; the leg ends when every `done` gate is
    open as well. While a gate of one of the `rescues` is overdue, that one is rolled instead, and until it is complete
    nothing is stalled for it. A leg that is `one_way` is finished before the direction can change; a pause waits while it is
    `critical`. `keep` undoes the changes of others. `needs` names the facts that its own functions read and that a pass
    reads only where they are named.
    """

    enter: tuple[Gate[P], ...] = ()
    assigns: Callable[[P], Mapping[str, NodeRecord]] = _no_records
    watch: tuple[Gate[P], ...] = ()
    goal: Callable[[P], tuple[Effect, ...]] = nothing
    keep: Correction[P] = field(default_factory=Correction)
    rollouts: tuple[Rollout[P], ...] = ()
    done: tuple[Gate[P], ...] = ()
    rescues: tuple[Rescue[P], ...] = ()
    one_way: bool = False
    critical: Callable[[P], bool] = _never
    needs: tuple[str, ...] = ()

    @property
    def void(self) -> tuple[Gate[P], ...]:
        """Gates that its restarts want before and after: once one has found something in between, paused or not, the batch
        is void, since it proves nothing."""
        return tuple({gate.name: gate for rollout in self.rollouts if rollout.restart
                      for gate in rollout.before if gate in rollout.after}.values())

    def reads(self, *, begun: bool) -> frozenset[str]:
        """Every fact that it, its rollouts or its gates name, those for its beginning left out once it has begun."""
        rollouts = (*self.rollouts, *(rescue.rollout for rescue in self.rescues))
        gates = (*self.watch, *self.done, *(gate for rescue in self.rescues for gate in rescue.gates),
                 *(() if begun else self.enter),
                 *(gate for rollout in rollouts for gate in (*rollout.before, *rollout.after)))
        named = (*self.needs, *(() if begun else self.keep.needs), *(need for each in rollouts for need in each.needs))
        return frozenset((*named, *(need for gate in gates for need in gate.needs)))


@dataclass(frozen=True, slots=True)
class Step(Generic[P]):
    """One named part of a plan. `back` is None where it cannot be taken back.

    A `hold` waits for an approval; where it is a gate, an open gate makes the approval needless. That a held step has begun
    is believed while its approval counts. Without one, `unbegun` may give the records of its nodes: then nothing of it was
    done, and it waits again with these (`until_seen`).
    """

    name: str
    forward: Leg[P]
    back: Leg[P] | None
    hold: bool | Gate[P] = False
    unbegun: Callable[[P], Mapping[str, NodeRecord] | None] = _begun

    @property
    def records_nodes(self) -> bool:
        """Whether it puts nodes on record: the steps before the first that does change nothing of the user's."""
        return self.forward.assigns is not _no_records

    def leg(self, direction: Direction) -> Leg[P] | None:
        """Its work in this direction; None where it cannot be taken back."""
        return self.forward if direction is Direction.FORWARD else self.back

    def reads(self, direction: Direction, *, begun: bool) -> frozenset[str]:
        """Every fact that the leg or a gate of the step itself names."""
        leg, named = self.leg(direction), frozenset(self.hold.needs if isinstance(self.hold, Gate) else ())
        return named if leg is None else named | leg.reads(begun=begun)


@dataclass(frozen=True)
class Plan(Generic[P]):
    """The ordered steps of one migration. `rests_on` is what must be seen of the steps that were walked before, either way:
    without that the record is not believed, whoever wrote it, and nothing is done."""

    steps: tuple[Step[P], ...]
    rests_on: tuple[Gate[P], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the steps, in their order."""
        return tuple(step.name for step in self.steps)

    @property
    def final(self) -> frozenset[str]:
        """The names of the steps that cannot be taken back."""
        return frozenset(step.name for step in self.steps if step.back is None)

    @property
    def point_of_no_return(self) -> str:
        """The first step that cannot be taken back; "" where every one can."""
        return next((step.name for step in self.steps if step.back is None), "")

    @property
    def succeeded(self) -> int:
        """How many steps there are until it has succeeded: those up to the one that cannot be taken back."""
        return next((index for index, step in enumerate(self.steps, 1) if step.back is None), len(self.steps))

    def index(self, name: str) -> int | None:
        """The place of a step, None for a name that is not in this plan."""
        return next((index for index, step in enumerate(self.steps) if step.name == name), None)

    def can_go_back(self, at: Position) -> bool:
        """Whether every step from here to the start can be taken back."""
        here = self.index(at.step)
        if here is None:
            return False
        if at.step == self.point_of_no_return and at.opened is None and at.direction is Direction.FORWARD:
            here -= 1
        return all(step.back is not None for step in self.steps[: here + 1])

    def is_untouched(self, at: Position) -> bool:
        """Whether nothing of the user's was touched in this attempt, and no node is on record to be."""
        here = self.index(at.step)
        steps = () if here is None else self.steps[: here + (at.opened is not None)]
        return here is not None and not at.nodes and not any(step.records_nodes for step in steps)

    def needs(self, at: Position) -> frozenset[str]:
        """The facts that the leg on record names, of those that a pass reads only where they are named."""
        key = at.step, at.direction, at.opened is not None
        if key not in self._needs:
            index = self.index(at.step)
            self._needs[key] = frozenset() if index is None else self.steps[index].reads(
                at.direction, begun=key[2]) | {need for gate in self.rests_on for need in gate.needs}
        return self._needs[key]

    @cached_property
    def _needs(self) -> dict[tuple[str, Direction, bool], frozenset[str]]:
        """What was asked for so far: each leg is searched once."""
        return {}


@dataclass(frozen=True, slots=True)
class Intent:
    """What the user wants, as far as the walk is concerned. `approved` and `held` name steps.

    With `undo_failures` a step that is stalled is taken back. `undo_known` says that the user knows of an automatic
    rollback: from then on the spec decides the direction again. `changed` says that the spec is no longer that of the plan
    on record. `void` holds approvals that do not count: step -> why not.
    """

    direction: Direction
    paused: bool
    held: frozenset[str]
    approved: frozenset[str]
    patience: float
    undo_failures: bool = False
    undo_known: bool = False
    changed: bool = False
    void: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decision:
    """What to record, or else what to do, and why the rest waits."""

    position: Position
    effects: tuple[Effect, ...]
    judged: Mapping[str, Judgement]
    streaks: Mapping[str, Streak]
    note: str
    stalled: Judgement | None


def decide(plan: Plan[P], picture: P, intent: Intent, streaks: Mapping[str, Streak], now: float,
           every: EveryStep = NOTHING_SHUT) -> Decision:
    """One move of the walk, forward or back, or none; `every` are the gates of every step."""
    decision = _decide(plan, picture, intent, streaks, now)
    judged = {**decision.judged, **every.judged(acts=bool(decision.effects))}
    if every.lease is not None:
        return Decision(picture.position, (), judged, decision.streaks, "", None)
    return replace(decision, judged=judged)


def _decide(plan: Plan[P], picture: P, intent: Intent, streaks: Mapping[str, Streak], now: float) -> Decision:
    at = picture.position
    judge: Judge[P] = Judge(f"{at.attempt}/{at.direction}/{at.step}/{at.batches_done}", streaks, now)
    position, effects, note = _move(plan, picture, intent, judge, now)
    stalled = next((item for item in judge.judged.values() if item.verdict.outcome == "Fail" or item.overdue), None)
    if stalled is None and not intent.paused and position == at and not effects and not at.finished:
        begun = at.batch.started if at.batch is not None else at.opened
        stalled = next((item for item in judge.judged.values() if begun is not None and not item.open and _counts(item)
                        and now - max(begun, item.streak.since) > intent.patience), None)
    if (failed := _failure(plan, at, intent, judge, stalled)) is not None:
        turned = replace(_turned(plan, at, Direction.BACKWARD, now), failure=failed.verdict.reason)
        return Decision(turned, (), dict(judge.judged), judge.next_streaks(),
                        f"rolls back automatically from {at.step}: {failed.verdict.message}", failed)
    return Decision(position, effects, dict(judge.judged), judge.next_streaks(), note, stalled)


def _failure(plan: Plan[P], at: Position, intent: Intent, judge: Judge[P], stalled: Judgement | None) -> Judgement | None:
    """What causes an automatic rollback: a gate that must, or whatever is stalled where the user wants it so."""
    going = at.direction is Direction.FORWARD is intent.direction and not at.finished and not intent.paused
    if not going or plan.index(at.step) in (None, 0) or not plan.can_go_back(at):
        return None
    if (found := next((item for item in judge.judged.values() if item.undo), None)) is not None:
        return found
    if not intent.undo_failures or stalled is None or stalled.undo is not None:
        return None
    unbelieved = any(stalled.gate == gate.name for gate in plan.rests_on)
    return None if unbelieved else stalled


def _counts(item: Judgement) -> bool:
    """Waiting that is meant to be long (bake, soak, retention, closed windows) is no reason to call a step stalled."""
    return item.verdict.reason not in MEANT_TO_BE_LONG


# --- how a step lives ---------------------------------------------------------------------------------------------------
#
#   entered ── enter shut, not approved ──> it waits; keep.ahead undoes the changes of others
#      │ enter open, approved
#      ▼
#   opened, with the node records of assigns <────────────────────────────────────────────────┐
#      │ in each pass, in this order; the first that finds something to do ends the pass      │
#      ├─ keep.begun   others changed something: it is undone, paused or not                  │
#      ├─ void         a restart proves nothing: its batch is dropped, paused or not          │
#      ├─ (paused)     gates are judged, nothing moves, unless the leg is critical            │
#      ├─ unbegun      nobody approved it and nothing of it was done: back to entered         │
#      ├─ watch        shut: nothing moves but a rescue; a bake begins again                  │
#      ├─ goal         not true outside: its effects                                          │
#      ├─ rollouts     batch chosen > files > eviction > gates > bake > next batch            │
#      ├─ done         shut: it waits, or a rescue goes                                       │
#      │                                                          nothing left, not all open ─┘
#      ▼ all open
#   the next step is entered; in a rollback the one before it


def _move(plan: Plan[P], picture: P, intent: Intent, judge: Judge[P],
          now: float) -> tuple[Position, tuple[Effect, ...], str]:
    at = picture.position
    if at.failure and intent.undo_known:
        return replace(at, failure=""), (), "the rollback is acknowledged: spec.desiredState decides the direction again"
    index = plan.index(at.step)
    if index is None:
        judge.add("Step", fail(UNKNOWN_STEP, f"the step {at.step!r} on record is not in this operator's plan",
                               subject=at.step, unblocks="run the version of Switchover that recorded it"))
        return at, (), ""
    step = plan.steps[index]
    if at.finished and (at.direction is intent.direction or at.direction is Direction.FORWARD):
        judge.all_open(plan.rests_on, picture)
        return at, (), ""
    if intent.changed and index > 0 and at.direction is intent.direction is Direction.FORWARD and plan.is_untouched(at):
        first = plan.steps[0].name
        return at.enter(first, now), (), f"the spec was changed before anything was touched: {first} begins again"
    leg = step.leg(at.direction)
    one_way = leg is not None and leg.one_way and not at.finished
    if at.direction is not intent.direction and not intent.paused and not one_way:
        return _turn(plan, index, picture, intent, judge, now)
    if leg is None:
        judge.add("Undo", fail(UNDO_NOT_AVAILABLE, f"{step.name} cannot be taken back by this version of Switchover",
                               subject=step.name, unblocks=_command("resume", picture)))
        return at, (), ""
    gates = leg.enter if at.opened is None else leg.watch
    if not judge.all_open(plan.rests_on, picture):
        judge.all_open(gates, picture)
        return at, (), ""
    if effects := leg.keep.effects(picture):           # the gates of the open step say what others changed
        judge.all_open((*leg.enter, *leg.watch) if at.opened is None else gates, picture)
        return at, effects, ""
    if at.batch is not None and not judge.all_open(leg.void, picture) and judge.spoilt(leg.void):
        return at.batch_void(), (), f"batch {at.batch.index} is void: {', '.join(at.batch.nodes)} must be restarted again"
    standing = intent.paused and not leg.critical(picture)
    if standing:
        judge.add("Paused", wait(PAUSED, "it is paused: no step and no batch begins until spec.desiredState is Running",
                                 unblocks=_command("resume", picture)))
    if at.direction is Direction.FORWARD and (at.opened is None or index == 0) \
            and (misnamed := _misnamed(plan, intent)) is not None:
        judge.add("Steps", misnamed)
        standing = True
    if standing:
        return _stand(leg, picture, judge)
    if at.opened is None:
        return _open(step, leg, picture, intent, judge, now)
    if at.direction is Direction.FORWARD and (records := _never_begun(step, picture, intent, judge)) is not None:
        closed = replace(at, opened=None, batch=None, batches_done=0, nodes={**at.nodes, **records})
        return closed, (), f"{step.name} waits again: no approval of it counts any more, and nothing of it was done"
    if not judge.all_open(leg.watch, picture):
        if (shut := judge.spoilt(leg.watch)) and _bakes(at):
            return at.unproven(), (), f"gate {shut} closed: the bake begins again"
        if at.batch is not None:
            for rollout in _in_turn(leg, at)[:1]:      # none where another record has put a batch here
                judge_batch(rollout, picture, judge, now)
        return _rescue(leg, picture, judge, now)
    if effects := leg.goal(picture):
        judge.all_open(leg.done, picture)              # so that what never comes about is not tried in silence
        return at, effects, ""
    for rollout in _in_turn(leg, at):
        move = roll(rollout, picture, judge, now)
        if not move.complete:
            idle = move.position == at and not move.effects and not (at.batch is not None and at.batch.rescue)
            return _rescue(leg, picture, judge, now) if idle else (move.position, move.effects, move.note)
    if not judge.all_open(leg.done, picture):
        return _rescue(leg, picture, judge, now)
    return _leave(plan, index, at, now), (), f"{step.name} done"


def _misnamed(plan: Plan[P], intent: Intent) -> Verdict | None:
    """A hold or approval that names no step: what its user meant to hold would begin. None when each names one."""
    steps = [step.name for step in plan.steps]
    unknown = [f"{name} in {where}" for where, names in (("spec.holds", intent.held), ("spec.approvals", intent.approved))
            for name in sorted(names - {*steps})]
    if not unknown:
        return None
    return gravest((wait(
        NO_SUCH_STEP, f"no step of this plan is called {', '.join(unknown)}: no step begins before that is corrected",
        subject=unknown[0].partition(" ")[0], threshold=", ".join(steps),
        unblocks=f"name one of {', '.join(steps)}{meant(unknown[0].partition(' ')[0], steps)}"),), "")


def _stand(leg: Leg[P], picture: P, judge: Judge[P]) -> tuple[Position, tuple[Effect, ...], str]:
    """Every gate is judged as if it went on, and no move is made but one: a bake in which a gate closed begins again."""
    at, now = picture.position, judge.now
    if at.opened is None:
        judge.all_open(leg.enter, picture)
    judge.all_open(leg.watch, picture)
    shut = judge.spoilt(leg.watch)
    note = f"gate {shut} closed: the bake begins again" if shut else ""
    if at.opened is not None:
        moves = (roll(rollout, picture, judge, now) for rollout in _in_turn(leg, at))
        move = next((move for move in moves if not move.complete), None)
        if not shut and move is not None and move.position.batch is not None and move.position.batch.proven is None:
            note = move.note
    judge.all_open(leg.done, picture)
    if note and _bakes(at):
        return at.unproven(), (), f"in the pause, {note}"
    return at, (), ""


def _bakes(at: Position) -> bool:
    """Whether a batch bakes that a watch gate can make void. A remediation goes on while one is shut, which it is for."""
    return at.batch is not None and at.batch.proven is not None and not at.batch.rescue


def _in_turn(leg: Leg[P], at: Position) -> tuple[Rollout[P], ...]:
    """The rollouts of a leg in their order; one whose batch is on record goes first."""
    rescues = tuple(rescue.rollout for rescue in leg.rescues)
    every = rescues if at.batch is not None and at.batch.rescue else (*leg.rollouts, *rescues)
    return tuple(rollout for rollout in every if rollout.owns(at)) or leg.rollouts


def _rescue(leg: Leg[P], picture: P, judge: Judge[P], now: float) -> tuple[Position, tuple[Effect, ...], str]:
    """Roll a rescue, where a gate is overdue that it is for. It takes the place of a batch that is under way: its nodes have
    not settled, so they are left for later."""
    at = picture.position
    for rescue in leg.rescues:
        overdue = next((judged for gate in rescue.gates
                        if (judged := judge.judged.get(gate.name)) is not None and judged.overdue), None)
        if overdue is None:
            continue
        own = at.batch is None or _in_turn(leg, at)[0] is rescue.rollout
        if not own and at.batch is not None and at.batch.rescue:
            continue                                   # one remedy at a time
        clear = picture if own else picture.at(replace(at, batch=None))
        move = roll(rescue.rollout, clear, judge, now)
        if not move.complete:
            judge.remedied(rescue.gates)
        if move.position.batch is not None and clear.position.batch is None:
            return move.position.as_rescue(), (), f"{move.note}, the remediation of {overdue.verdict.reason}"
        if move.position != clear.position or move.effects:
            return move.position, move.effects, move.note
    return at, (), ""


def _turn(plan: Plan[P], index: int, picture: P, intent: Intent, judge: Judge[P],
          now: float) -> tuple[Position, tuple[Effect, ...], str]:
    at, step = picture.position, plan.steps[index]
    if intent.direction is Direction.BACKWARD and not plan.can_go_back(at):
        if step.name == plan.point_of_no_return:
            message, unblocks = f"{step.name} has begun: the point of no return is passed", _command("resume", picture)
            judge.add("Undo", fail(POINT_OF_NO_RETURN, message, subject=step.name, unblocks=unblocks))
        else:
            message = f"from {step.name} this version of Switchover cannot take every step back"
            judge.add("Undo", fail(UNDO_NOT_AVAILABLE, message, subject=step.name,
                                   unblocks=f"pause it, or let it go on: {_command('resume', picture)}"))
        return at, (), ""
    turned = _turned(plan, at, intent.direction, now)
    return turned, (), f"turned {intent.direction.lower()} at {turned.step}"


def _turned(plan: Plan[P], at: Position, direction: Direction, now: float) -> Position:
    index = plan.index(at.step)
    if direction is Direction.BACKWARD and index is not None and at.step == plan.point_of_no_return:
        at = replace(at, step=plan.steps[index - 1].name)            # this one has not begun: nothing of it to undo
    return at.turn(direction, now)


def _open(step: Step[P], leg: Leg[P], picture: P, intent: Intent, judge: Judge[P],
          now: float) -> tuple[Position, tuple[Effect, ...], str]:
    at = picture.position
    forward = at.direction is Direction.FORWARD
    ready = judge.all_open(leg.enter, picture)
    if forward and step.name not in intent.approved and _is_held(step, picture, intent, judge):
        unblocks = _command("approve", picture, step.name)
        if step.name in intent.void:
            judge.add("Approval", wait(APPROVAL_VOID, intent.void[step.name], subject=step.name,
                                       unblocks=unblocks))
        else:
            judge.add("Approval", wait(AWAITING_APPROVAL, f"nobody has approved {step.name} yet", subject=step.name,
                                       unblocks=unblocks))
        return at, (), ""
    if not ready:
        return at, (), ""
    opened = replace(at, opened=now, nodes={**at.nodes, **leg.assigns(picture)})
    return opened, (), f"{step.name} begins" if forward else f"taking {step.name} back"


def _command(act: str, picture: P, *more: str) -> str:
    """The command to paste that does it."""
    resource, namespace = picture.named
    return command("switchover {} {} --namespace {}", act, (resource, *more), namespace)


def _never_begun(step: Step[P], picture: P, intent: Intent, judge: Judge[P]) -> Mapping[str, NodeRecord] | None:
    """The records of the nodes of a step whose opening on record is not believed; None where it is."""
    records = None if step.name in intent.approved else step.unbegun(picture)
    return records if records is not None and _is_held(step, picture, intent, judge) else None


def _is_held(step: Step[P], picture: P, intent: Intent, judge: Judge[P]) -> bool:
    if step.name in intent.held:
        return True
    return not judge.all_open((step.hold,), picture) if isinstance(step.hold, Gate) else step.hold


def _leave(plan: Plan[P], index: int, at: Position, now: float) -> Position:
    onward = index + 1 if at.direction is Direction.FORWARD else index - 1
    if 0 <= onward < len(plan.steps):
        return at.enter(plan.steps[onward].name, now)
    return replace(at, finished=True, batch=None)
