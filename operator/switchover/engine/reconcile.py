"""One pass over a migration: read, observe, decide, record, act. The one place where pure meets impure.

What was decided is either recorded or performed, never both in one pass, and nothing is performed on a status that is not
the one just read: promise 1 of docs/architecture.md#promises.
"""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from pydantic import ValidationError

from switchover.answers.clock import Clock
from switchover.answers.errors import Fenced, Refused, Unreachable
from switchover.api.schema import mistakes
from switchover.api.status import Direction
from switchover.engine.approvals import PREFLIGHT, REQUESTER, noted
from switchover.engine.calls import Call, Notify, Telemetry, TooMuchWork, Worker, at_once, calls_of, stopped
from switchover.engine.effects import (
    Apply,
    Create,
    Delete,
    DeletePod,
    Effect,
    Elsewhere,
    Evict,
    Patch,
    Provide,
    WriteNodeFiles,
)
from switchover.engine.every_step import EveryStep, failed, lease_not_held, refused
from switchover.engine.figures import Figure, waits_of, without_decision
from switchover.engine.gate import Streak, Verdict
from switchover.engine.intent import ABANDON, or_abandon
from switchover.engine.kind import Kind, M, P
from switchover.engine.leases import Leases
from switchover.engine.pace import AT_ONCE, ENDED, MOVING, STANDING, WAITING, Spent, due, is_settling, share, spend
from switchover.engine.plan import Decision, decide
from switchover.engine.position import Position
from switchover.engine.record import stopped_status, without_foreign_record
from switchover.engine.status import linked, named, spent_of, with_made
from switchover.engine.story import Page, next_page
from switchover.kubernetes.ports import Migrations, Workloads
from switchover.reasons.reason import Reason
from switchover.reasons.walk import (
    DEFECT,
    INVALID_SPEC,
    RECORD_OF_ANOTHER,
    STATUS_UNREADABLE,
    TOO_MUCH_WORK,
)
from switchover.runtime.defects import place_of

HEARTBEAT_SECONDS, STANDING_HEARTBEAT_SECONDS = 30.0, 300.0
"""How often figures are written while no verdict changes; and while only somebody else can change anything."""

CALL_AGAIN_SECONDS = 600.0
"""What comes and goes calls people at most so often."""
FENCED_OFTEN = 5
"""Effects in a row that met something else than was read: once or twice is chance, this is a fight, and is reported."""

DEFECT_MET = "a defect of this operator: nothing moves until a pass succeeds. It tries again; its log has the error"
TOO_MUCH = ("this object takes more processor time than one object may: nothing moves until a pass succeeds. It is tried"
            " again every two minutes")
RECORD_LOST = ("the status is the record of this migration, and nothing moves without it: run the version of the operator"
               " that wrote it, or restore it as it was")

JOB = "Job"

logger = logging.getLogger(__name__)

M_contra = TypeVar("M_contra", contravariant=True)


class Observer(Protocol[M_contra, P]):
    """What one migration is looked at through, and what changes the things that it alone knows."""

    async def see(self, picture: P, lease_holder: str, *, fresh: bool = True) -> P:
        """The picture with the facts of this pass in it; what is watched anyway is read again only for a `fresh` one.

        Never raises.
        """
        ...

    async def perform(self, effect: Elsewhere) -> None:
        """An effect on something else than Kubernetes. Raises what ports raise."""
        ...

    async def leftovers(self, migration: M_contra) -> list[str]:
        """All that the migration made or changed and that still exists, for a message each. Raises Unreachable."""
        ...

    async def close(self) -> None: ...


class Connect(Protocol[M_contra, P]):
    """Open what a migration is observed through. Raises Refused for credentials that do not fit."""

    async def __call__(self, migration: M_contra) -> Observer[M_contra, P]: ...


@dataclass(slots=True)
class _Memory(Generic[M, P]):
    """What is remembered between passes. Losing it costs time, never safety."""

    uid: str
    reached_by: object
    observer: Observer[M, P]
    streaks: Mapping[str, Streak] = field(default_factory=dict)
    modes: Mapping[str, str] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)
    page: Page = field(default_factory=Page)
    place: tuple[object, ...] = ()           # where it stood by the last record, or by the last fresh reading
    refused: Verdict | None = None           # what became of the last effect that failed, until one succeeds
    unheld: str = ""                         # why it is not known whether the Lease is ours
    made: dict[str, str] = field(default_factory=dict)       # uids of what was created, until they are on record
    fenced: int = 0                          # how often in a row an effect met something else than was read
    last_pass: float = 0.0
    last_record: float = 0.0
    last_news: float = -float("inf")         # when this operator last wrote something new of it


@dataclass(frozen=True, slots=True)
class _Outcome(Generic[M]):
    """All that a pass works out of what was seen. `record` is the status to write, None where there is nothing new."""

    decision: Decision
    after: M
    record: Mapping[str, Any] | None
    news: bool
    spent: Spent
    modes: Mapping[str, str]
    figures: Sequence[Figure]
    waits: Mapping[str, float]
    page: Page
    lines: Sequence[str]


class Reconciler(Generic[M, P]):
    """Reconciles the migrations of one kind in one namespace. `identity` names this operator's pod, `watched` are the
    `workloads` as watches show them, `docs` is the address of a copy of docs/ to which the status links; "": none is known.
    `notify` gets what people are called for, as Events do. `worker` works out what is pure."""

    def __init__(self, kind: Kind[M, P], namespace: str, identity: str, migrations: Migrations, workloads: Workloads,
                 watched: Workloads, connect: Connect[M, P], clock: Clock, telemetry: Telemetry, docs: str = "",
                 notify: Notify | None = None, worker: Worker = at_once) -> None:
        self._kind = kind
        self._namespace = namespace
        self._identity = identity
        self._migrations = migrations
        self._workloads = workloads
        self._connect = connect
        self._clock = clock
        self._telemetry = telemetry
        self._docs = docs
        self._notify = notify
        self._worker = worker
        self._leases = Leases(workloads, watched, clock)
        self._memories: dict[str, _Memory[M, P]] = {}
        self._called: dict[str, dict[tuple[str, str], float]] = {}   # when people were last called for what of a migration
        self._ended: dict[str, str] = {}             # name -> uid of the migrations whose end this operator has seen

    async def reconcile(self, name: str, seen: Mapping[str, Any] | None = None) -> float:
        """One pass; the seconds until the next. `seen` is the object as the watch shows it.

        What is seen through watches may be of a moment ago: only verdicts and figures rest on it. Where something would move
        or be done, everything is read and decided again, and only that counts.
        Raises what ports raise when the object itself cannot be read, and any other error once the status has it.
        """
        if seen is not None and (delay := await self._look(name, seen, fresh=False)) is not None:
            return delay
        raw = await self._migrations.get(name)
        if raw is None:
            await self._forget(name)
            return ENDED
        delay = await self._look(name, raw, fresh=True)
        assert delay is not None, "what is fresh is decided"
        return delay

    async def _read(self, raw: Mapping[str, Any]) -> M:
        return await self._worker(raw["metadata"]["uid"], partial(self._kind.read, raw))

    async def _look(self, name: str, raw: Mapping[str, Any], *, fresh: bool) -> float | None:
        raw, found = without_foreign_record(raw, self._clock.now())
        async with self._telling_defects(name, raw):
            delay = await self._pass(name, raw, fresh=fresh)
        if found and delay is not None:
            await self._announce(name, raw["metadata"]["uid"], RECORD_OF_ANOTHER.name, found, warning=True)
        return delay

    async def _pass(self, name: str, raw: Mapping[str, Any], *, fresh: bool = True) -> float | None:
        """None: it was not fresh, and there is more to do than to look."""
        try:
            migration = await self._read(raw)
        except ValidationError as error:
            return await self._refuse(name, raw, error) if fresh else None
        if self._is_over(migration) and self._ended.get(name) == migration.metadata.uid:
            await self._forget(name)
            self._telemetry.update(name, migration.metadata.uid, self._kind.figures(migration, None), {})
            return ENDED
        memory = await self._remember(name, migration)
        if memory.made:
            return await self._record_made(migration, memory) if fresh else None
        picture = self._kind.picture(migration, self._namespace, self._clock.now())
        if not fresh and memory.place not in ((), _place(picture.position)):
            return None                                    # seen before our own last record: no gate of then counts now
        memory.place = _place(picture.position)
        holder = await self._hold(migration, picture, memory)
        picture = await memory.observer.see(picture, holder, fresh=fresh)
        if not holder and not memory.unheld:
            holder = await self._hold(migration, picture, memory)
        picture = picture.held_by(holder, self._clock.now())
        found = await self._worker(memory.uid, partial(self._work_out, migration, picture, memory, holder))
        decision = found.decision
        if not fresh and (decision.position != picture.position or decision.effects):
            return None
        before, memory.streaks = memory.streaks, decision.streaks
        recorded = await self._record(migration, picture, found, memory)
        if not recorded and not fresh:
            memory.streaks = before
            return None
        if picture.position.finished and all(item.open for item in decision.judged.values()):
            self._ended[name] = migration.metadata.uid
        if decision.position != picture.position or not recorded:
            return AT_ONCE
        for effect in decision.effects:
            if not await self._perform(migration, effect, memory):
                break
        if memory.made:
            return AT_ONCE
        return due(picture.position, decision, picture.now, memory.last_news)

    async def release(self, name: str) -> float | None:
        """The object is being deleted: None when it may go, else the seconds until it is asked again."""
        raw = await self._migrations.get(name)
        if raw is None:
            await self._forget(name)
            return None
        raw, _ = without_foreign_record(raw, self._clock.now())
        async with self._telling_defects(name, raw):
            return await self._release(name, raw)

    async def _release(self, name: str, raw: Mapping[str, Any]) -> float | None:
        try:
            migration = await self._read(raw)
        except ValidationError as error:
            if ABANDON in (raw["metadata"].get("annotations") or {}) or not (raw.get("status") or {}).get("planHash"):
                return None
            named = f"{self._kind.short}/{name}", self._namespace
            return await self._refuse(
                name, raw, error, f"it cannot be rolled back before this is corrected ({or_abandon(named)}): ")
        if not self._kind.deletion.may_go(migration):
            return await self._pass(name, raw) or MOVING
        if migration.status.progress.step not in self._kind.deletion.untouched:
            await self._list_leftovers(migration)
        if lease := self._kind.claims(migration, self._kind.picture(migration, self._namespace, self._clock.now())):
            await self._leases.release(lease, self._holder(migration.metadata.uid))
        await self._forget(name)
        return None

    async def _list_leftovers(self, migration: M) -> None:
        """List what stays, in the log and in Events, which outlive the object."""
        metadata, progress = migration.metadata, migration.status.progress
        logger.info("deleted at %s %s", progress.step, progress.direction, extra=self._about(metadata.name))
        for item in await (await self._remember(metadata.name, migration)).observer.leftovers(migration):
            logger.info("left behind: %s", item, extra=self._about(metadata.name))
            await self._announce(metadata.name, metadata.uid, "LeftBehind", item)

    # --- the pass, piece by piece -------------------------------------------------------------------------------------

    def _decide(self, migration: M, picture: P, memory: _Memory[M, P], holder: str) -> Decision:
        deleted, intent = migration.metadata.deletion_timestamp, self._kind.intent(migration)
        why: tuple[Verdict, float] | None = None
        if deleted is not None:
            intent = self._kind.deletion.intent(intent, picture)
            why = self._kind.deletion.verdict(picture), deleted.timestamp()
        own, free = self._holder(migration.metadata.uid), picture.position.step == PREFLIGHT or picture.position.finished
        held = holder == own or (free and not memory.unheld)    # Preflight changes nothing, and has its own gate for it
        every = EveryStep(
            deletion=why,
            lease=None if held else (lease_not_held(own, holder, memory.unheld), picture.now),
            effects=None if memory.refused is None else (memory.refused, memory.last_pass))
        return decide(self._kind.plan(picture), picture, intent, memory.streaks, picture.now, every)

    def _work_out(self, migration: M, picture: P, memory: _Memory[M, P], holder: str) -> _Outcome[M]:
        """What is decided, and all that is written of it. Pure: `memory` stays as it is."""
        decision = self._decide(migration, picture, memory, holder)
        passed = max(0.0, picture.now - memory.last_pass)
        spent = spend(memory.spent, passed, picture.position, decision)
        after = migration.evolve(status=self._kind.next_status(migration, picture, decision, spent, memory.modes))
        moved = decision.position != picture.position
        soon = due(picture.position, decision, picture.now, memory.last_news) <= WAITING
        often = HEARTBEAT_SECONDS if soon else STANDING_HEARTBEAT_SECONDS
        beats = picture.now - memory.last_record >= often and not picture.position.finished
        news = moved or self._kind.telling(migration.status) != self._kind.telling(after.status)
        writes = moved or ((news or beats) and not self._counts_again(migration, picture, decision, memory))
        page, lines = memory.page, tuple[str, ...]()
        if logger.isEnabledFor(logging.INFO):                  # else nobody would read the story
            page, lines = next_page(memory.page, picture.position, self._kind.digest(picture), decision)
        return _Outcome(
            decision, after, linked(after.status.manifest(), self._docs) if writes else None, news, spent,
            {**memory.modes, **self._kind.recorded_modes(after)},
            self._kind.figures(after, picture), waits_of(decision.judged.values(), passed), page, lines)

    async def _record(self, migration: M, picture: P, found: _Outcome[M], memory: _Memory[M, P]) -> bool:
        """Write the status where something changed that people or decisions rest on; False when somebody was faster."""
        memory.last_pass, memory.spent, memory.modes = picture.now, found.spent, found.modes
        decision, metadata = found.decision, migration.metadata
        if found.record is not None:
            try:
                await self._migrations.record(metadata.name, metadata.uid, metadata.resource_version, found.record)
            except Fenced:
                return False
            memory.last_record, memory.place = picture.now, _place(decision.position)
            memory.last_news = picture.now if found.news else memory.last_news
        self._telemetry.update(metadata.name, metadata.uid, found.figures, found.waits)
        memory.page = found.page
        for line in found.lines:
            self._tell(metadata.name, line)
        if decision.position != picture.position:
            self._tell(metadata.name, f"recorded: {decision.note}")
            await self._announce(metadata.name, metadata.uid, "Moved", decision.note)
        for call in calls_of(migration.status, found.after.status) if found.record is not None else ():
            await self._call(metadata.name, metadata.uid, call)
        return True

    def _counts_again(self, migration: M, picture: P, decision: Decision, memory: _Memory[M, P]) -> bool:
        """Whether a migration that only looks has a gate that passes, and that a new process has to see pass several times:
        its count is no news of the migration, and would be written of all of them at once."""
        recorded = migration.status.observed_generation == migration.metadata.generation
        return (recorded and memory.last_news == -float("inf") and is_settling(decision)
                and picture.position.step == PREFLIGHT and self._kind.intent(migration).paused)

    async def _call(self, name: str, uid: str, call: Call) -> None:
        """Call people for what is on record now, unless they were called for it lately."""
        key, now, called = (call.reason, call.about), self._clock.now(), self._called.setdefault(name, {})
        if now - called.get(key, -CALL_AGAIN_SECONDS) < CALL_AGAIN_SECONDS:
            return
        called[key] = now
        if self._notify is not None:                   # first: an Event may wait for the API server, or be the last act
            self._notify(name, uid, call, partial(self._announce, name, uid, "NotificationFailed", warning=True))
        await self._announce(name, uid, call.reason, call.message, warning=call.warning)

    async def _announce(self, name: str, uid: str, reason: str, message: str, *, warning: bool = False) -> None:
        """Events are for people: one that cannot be written stops nothing."""
        try:
            await self._migrations.announce(name, uid, reason, message, warning=warning)
        except (Unreachable, Refused, Fenced) as error:
            logger.warning("event not written: %s", error)

    async def _perform(self, migration: M, effect: Effect, memory: _Memory[M, P]) -> bool:
        """One effect; False where no other should be tried. What fails is in `waitingFor`, and is tried again in the next
        pass, which sees what became of it."""
        name = migration.metadata.name
        self._tell(name, f"act: {effect}")
        try:
            await self._do(effect, memory)
            memory.refused, memory.fenced = None, 0
        except Fenced as error:
            self._tell(name, f"fenced, reading again: {error}")
            memory.fenced += 1
            if memory.fenced >= FENCED_OFTEN:
                memory.refused = refused(effect, error)
        except Refused as error:
            self._tell(name, f"refused: {effect}: {error}", logging.WARNING)
            memory.refused = refused(effect, error)
        except Unreachable as error:
            self._tell(name, f"failed: {effect}: {error}", logging.WARNING)
            memory.refused = failed(effect, error)
            return False
        return True

    async def _do(self, effect: Effect, memory: _Memory[M, P]) -> None:
        """What is matched here has names of its own (of a workload, say), which are not the migration's."""
        match effect:
            case Apply(manifest):
                await self._workloads.apply(manifest)
            case Create(manifest):
                await self._create(manifest, memory)
            case Provide(manifests):
                await self._workloads.provide(manifests)
            case Patch(api_version, kind, name, operations, _, subresource):
                await self._workloads.patch(api_version, kind, name, operations, subresource)
            case WriteNodeFiles(secret, files, labels):
                await self._workloads.write_node_files(secret, files, labels)
            case Evict(pod, uid):
                await self._workloads.evict(pod, uid)
            case DeletePod(pod, uid):
                await self._workloads.delete_pod(pod, uid)
            case Delete(api_version, kind, name, uid, labels):
                await self._workloads.delete_object(api_version, kind, name, uid, labels)
            case _:
                await memory.observer.perform(effect)

    async def _create(self, manifest: Mapping[str, Any], memory: _Memory[M, P]) -> None:
        """A Job that has the name and is not on record may be anybody's: it is deleted, and the next pass makes ours."""
        version, kind, name = manifest["apiVersion"], manifest["kind"], manifest["metadata"]["name"]
        try:
            uid = await self._workloads.create(manifest)
        except Fenced:
            if kind == JOB and (other := await self._workloads.manifest(version, kind, name)) is not None:
                await self._workloads.delete_object(version, kind, name, other["metadata"]["uid"])
            raise
        if kind == JOB:
            memory.made[named(manifest)] = uid

    async def _record_made(self, migration: M, memory: _Memory[M, P]) -> float:
        """What was created is on record before anything is read of it."""
        metadata, status = migration.metadata, migration.status
        status = status.evolve(made=with_made(status.made, memory.made))
        with suppress(Fenced):
            await self._migrations.record(metadata.name, metadata.uid, metadata.resource_version, status.manifest())
            memory.made = {}
        return AT_ONCE

    async def _hold(self, migration: M, picture: P, memory: _Memory[M, P]) -> str:
        """Hold the Lease of what this migration changes: who has it; "" while its name is not known, after the end, and
        where it cannot be seen."""
        memory.unheld = ""
        holder = self._holder(migration.metadata.uid)
        lease = "" if picture.position.finished else self._kind.claims(migration, picture)
        if not lease:
            self._leases.drop_all(holder)
            return ""
        looks = picture.position.step == PREFLIGHT and self._kind.intent(migration).paused
        try:
            return await self._leases.hold(lease, holder, acting=not looks)
        except (Unreachable, Refused, Fenced) as error:
            memory.unheld = str(error)
            logger.warning("Lease %s: %s", lease, error, extra=self._about(migration.metadata.name))
            return ""

    def _tell(self, name: str, line: str, level: int = logging.INFO) -> None:
        """A line of the log that is also one of the story (`switchover story`)."""
        logger.log(level, "%s", line, extra={**self._about(name), "story": f"{self._kind.short}/{name}"})

    def _about(self, name: str) -> dict[str, str]:
        """Whose line of the log it is."""
        return {"migration": name, "namespace": self._namespace}

    def _holder(self, uid: str) -> str:
        return f"{uid}/{self._identity}"

    # --- no decision --------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _telling_defects(self, name: str, raw: Mapping[str, Any]) -> AsyncIterator[None]:
        """Whatever nobody expected is written where people look, and goes on to the loop, which logs it and tries again."""
        try:
            yield
        except (Unreachable, Refused, Fenced):
            raise
        except Exception as error:
            reason, place, met = DEFECT, place_of(error), DEFECT_MET
            if isinstance(error, TooMuchWork):
                reason, place, met = TOO_MUCH_WORK, str(error), TOO_MUCH
            try:
                await self._stop(name, raw, reason, f"{place}: {met}")
            except (Unreachable, Refused, Fenced) as silent:
                logger.warning("%s: a defect could not be written to its status: %s", name, silent)
            raise

    async def _refuse(self, name: str, raw: Mapping[str, Any], error: ValidationError, before: str = "") -> float:
        """What somebody wrote cannot be read, which is the spec or the status."""
        reason, why = INVALID_SPEC, f"{before}{mistakes(error)}"
        if any(item["loc"][:1] == ("status",) for item in error.errors()):
            reason, why = STATUS_UNREADABLE, f"{why}: {RECORD_LOST}"
        await self._stop(name, raw, reason, why)
        return STANDING

    async def _stop(self, name: str, raw: Mapping[str, Any], reason: Reason, why: str) -> None:
        """No decision is possible: the metrics say so in each pass, the status once."""
        metadata, status = raw["metadata"], stopped_status(raw, reason, why, self._clock.now())
        figures = without_decision(raw["status"] if status is None else status, self._kind.steps)
        self._telemetry.update(name, metadata["uid"], tuple(figures), {})
        if status is not None:
            await self._migrations.record(name, metadata["uid"], metadata["resourceVersion"], status)
            await self._call(name, metadata["uid"], stopped(reason, why))

    def _is_over(self, migration: M) -> bool:
        """The plan's end is on record, the spec is the one that it speaks of, and nobody wanted something else when it was
        too late to turn: there is nothing to look at any more, once this operator has seen that it is so."""
        progress, status, metadata = migration.status.progress, migration.status, migration.metadata
        if progress.complete_time is None or status.observed_generation != metadata.generation \
                or noted(status.requesters, metadata.annotations.get(REQUESTER, "")) != status.requesters:
            return False
        return progress.direction is Direction.FORWARD or self._kind.intent(migration).direction is Direction.BACKWARD

    # --- memory -------------------------------------------------------------------------------------------------------

    async def _remember(self, name: str, migration: M) -> _Memory[M, P]:
        """What is remembered of it; nothing counts that was seen of another object, another cluster or as another user."""
        memory, reached_by = self._memories.get(name), self._kind.reached_by(migration)
        if memory is not None and memory.uid == migration.metadata.uid:
            if memory.reached_by != reached_by:
                before, memory.observer = memory.observer, await self._connect(migration)
                memory.reached_by, memory.streaks = reached_by, {}
                self._leases.drop_all(self._holder(memory.uid))
                await before.close()
            return memory
        await self._forget(name)
        self._memories[name] = _Memory(
            migration.metadata.uid,
            reached_by,
            await self._connect(migration),
            modes=dict(self._kind.recorded_modes(migration)),
            spent=spent_of(migration.status.progress),
            last_pass=self._clock.now(),
            last_record=self._clock.now() - share(migration.metadata.uid) * STANDING_HEARTBEAT_SECONDS,
        )
        return self._memories[name]

    async def _forget(self, name: str) -> None:
        self._called.pop(name, None)
        if (memory := self._memories.pop(name, None)) is not None:
            self._leases.drop_all(self._holder(memory.uid))
            await memory.observer.close()

    async def leave(self, name: str) -> None:
        """Another operator serves it from now on."""
        if (memory := self._memories.get(name)) is not None:
            await self._leases.leave(self._holder(memory.uid))
            await self._forget(name)

    async def close(self) -> None:
        """Close what every migration is observed through, and leave its Lease to whichever operator comes next."""
        await self._leases.leave()
        for name in tuple(self._memories):
            await self._forget(name)


def _place(at: Position) -> tuple[object, ...]:
    return at.attempt, at.direction, at.step, at.batches_done, at.finished
