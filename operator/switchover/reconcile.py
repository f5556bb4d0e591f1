"""One pass over a KafkaMigration: read, observe, decide, record, act. The one place where pure meets impure.

What was decided is either recorded or performed, never both in one pass, and nothing is performed on a status that is not
the one just read: promise 1 of the design.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pydantic import ValidationError

from switchover.api.kafka_migration import KafkaMigration, KafkaMigrationSpec
from switchover.api.status import Direction
from switchover.core.effects import (
    Apply,
    Create,
    Delete,
    DeletePod,
    DeleteZNode,
    Effect,
    Evict,
    Patch,
    PatchStatefulSet,
    RaiseEpoch,
    RaiseVersions,
    WriteNodeFiles,
)
from switchover.core.gate import Judge, Judgement, Streak, fail, wait
from switchover.core.kraft import names
from switchover.core.kraft.deletion import ABANDON, LET_GO, UNTOUCHED, check_deletion, may_go, while_deleted
from switchover.core.kraft.facts import Facts, Pod
from switchover.core.kraft.figures import figures, waits_of
from switchover.core.kraft.intent import intent_of
from switchover.core.kraft.pace import remaining, spend
from switchover.core.kraft.picture import Picture
from switchover.core.kraft.plan import PLAN
from switchover.core.kraft.status import PREFLIGHT, invalid_status, next_status, telling
from switchover.core.observed import Known
from switchover.core.pace import Spent
from switchover.core.plan import Decision, decide
from switchover.core.status import entered_of, paces_of, position_of, spent_of, volumes_of
from switchover.leftovers import leftovers
from switchover.observe import Observer
from switchover.ports import Clock, Fenced, Migrations, Refused, Telemetry, Unreachable, Workloads

LEASE_SECONDS = 30
HEARTBEAT_SECONDS = 30.0
"""How often figures are written while no verdict changes."""
AT_ONCE, MOVING, STANDING, ENDED = 0.0, 1.0, 3.0, 30.0
"""Seconds until the next pass: after a record, while a batch moves, while a gate or person is waited for, at the end."""

FENCED_OFTEN = 5
"""Effects in a row that met something else than was read: once or twice is chance, this is a fight, and is told."""

logger = logging.getLogger(__name__)


class Connect(Protocol):
    """Open what a migration is observed through, from its spec. Raises Refused for credentials that do not fit."""

    async def __call__(self, spec: KafkaMigrationSpec) -> Observer: ...


@dataclass(slots=True)
class _Memory:
    """What is kept between passes. Losing it costs time, never safety."""

    uid: str
    observer: Observer
    streaks: Mapping[str, Streak] = field(default_factory=dict)
    modes: dict[str, str] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)
    refused: str = ""                        # what the API server last said no to, until an effect succeeds
    fenced: int = 0                          # how often in a row an effect met something else than was read
    last_pass: float = 0.0
    last_record: float = 0.0


class Reconciler:
    """Reconciles the KafkaMigrations of one namespace. `identity` tells this operator's pod from any other."""

    def __init__(self, namespace: str, identity: str, migrations: Migrations, workloads: Workloads, connect: Connect,
                 clock: Clock, telemetry: Telemetry) -> None:
        self._namespace = namespace
        self._identity = identity
        self._migrations = migrations
        self._workloads = workloads
        self._connect = connect
        self._clock = clock
        self._telemetry = telemetry
        self._memories: dict[str, _Memory] = {}

    async def reconcile(self, name: str) -> float:
        """One pass; the seconds until the next. Raises what ports raise when the object itself cannot be read."""
        raw = await self._migrations.get(name)
        if raw is None:
            await self._forget(name)
            return ENDED
        try:
            migration = KafkaMigration.model_validate(raw)
        except ValidationError as error:
            return await self._refuse(name, raw, _in_words(error))
        if _is_over(migration):
            await self._forget(name)
            self._telemetry.told(name, migration.metadata.uid, figures(migration.spec, migration.status, None), {})
            return ENDED
        memory = await self._remember(name, migration)
        now = self._clock.now()
        holder = await self._hold(migration)
        picture = Picture(name, self._namespace, migration.metadata.uid, migration.spec,
                          position_of(migration.status, PREFLIGHT, now), Facts(), now,
                          migration.status.high_watermark, entered_of(migration.status.steps), paces_of(migration.status),
                          volumes_of(migration.status))
        facts = await memory.observer.facts(picture, holder)
        holder = holder or await self._hold(migration, facts)
        picture = replace(picture, facts=_with_holder(facts, holder), now=self._clock.now())
        decision = _with_refusal(self._decide(migration, picture, memory, holder), memory)
        memory.streaks = decision.streaks
        recorded = await self._record(migration, picture, decision, memory)
        if decision.position != picture.position or not recorded:
            return AT_ONCE
        for effect in decision.effects:
            await self._perform(migration, picture, effect, memory)
        return _delay(decision)

    async def release(self, name: str) -> float | None:
        """The object is being deleted: None when it may go, else the seconds until it is asked again."""
        raw = await self._migrations.get(name)
        if raw is None:
            await self._forget(name)
            return None
        try:
            migration = KafkaMigration.model_validate(raw)
        except ValidationError as error:
            if ABANDON in (raw["metadata"].get("annotations") or {}) or not (raw.get("status") or {}).get("planHash"):
                return None
            return await self._refuse(name, raw, f"it cannot be taken back: {_in_words(error)}; {LET_GO}")
        if not may_go(migration):
            return await self.reconcile(name) or MOVING
        if migration.status.progress.step not in UNTOUCHED:
            await self._list_leftovers(migration)
        if cluster_id := migration.status.cluster_id:
            await self._workloads.release_lease(names.lease(cluster_id), self._holder(migration))
        await self._forget(name)
        return None

    async def _list_leftovers(self, migration: KafkaMigration) -> None:
        """Tell what stays, in the log and in Events, which outlive the object."""
        metadata, progress = migration.metadata, migration.status.progress
        logger.info("deleted at %s %s", progress.step, progress.direction, extra={"migration": metadata.name})
        for item in await leftovers(self._workloads, migration):
            logger.info("left behind: %s", item, extra={"migration": metadata.name})
            await self._announce(metadata.name, metadata.uid, "LeftBehind", item)

    # --- the pass, piece by piece -------------------------------------------------------------------------------------

    def _decide(self, migration: KafkaMigration, picture: Picture, memory: _Memory, holder: str) -> Decision:
        deleted, intent = migration.metadata.deletion_timestamp, intent_of(migration)
        if deleted is not None:
            intent = while_deleted(intent, picture)
        decision = decide(PLAN, picture, intent, memory.streaks, picture.now)
        if deleted is not None:
            decision = _with_deletion(decision, picture, deleted.timestamp())
        if holder == self._holder(migration) or picture.position.step == PREFLIGHT:
            return decision                        # Preflight changes nothing, and has a gate of its own for the Lease
        judge: Judge[Picture] = Judge("lease", memory.streaks, picture.now)
        judgement = judge.add("Lease", fail(
            "LeaseNotHeld", "another operator or migration holds the Lease of this Kafka cluster", subject="Lease",
            observed=holder or "nobody yet", threshold=self._holder(migration),
            unblocks="it is released, or it expires"))
        return replace(decision, position=picture.position, effects=(), note="", stalled=None,
                       judged={**decision.judged, judgement.gate: judgement})

    async def _record(self, migration: KafkaMigration, picture: Picture, decision: Decision, memory: _Memory) -> bool:
        """Write the status where something changed that people or decisions rest on; False when somebody was faster."""
        passed, memory.last_pass = max(0.0, picture.now - memory.last_pass), picture.now
        memory.spent = spend(memory.spent, passed, picture.position, decision)
        memory.modes.update(_modes(picture))
        left = remaining(picture, decision)
        status = next_status(migration, picture, decision, memory.spent, left, memory.modes)
        moved = decision.position != picture.position
        due = picture.now - memory.last_record >= HEARTBEAT_SECONDS
        metadata = migration.metadata
        if moved or due or telling(status) != telling(migration.status):
            try:
                await self._migrations.record(metadata.name, metadata.uid, metadata.resource_version, status.manifest())
            except Fenced:
                return False
            memory.last_record = picture.now
        self._telemetry.told(metadata.name, metadata.uid, figures(migration.spec, status, picture),
                             waits_of(decision.judged.values(), passed))
        if moved:
            logger.info("recorded: %s", decision.note, extra={"migration": metadata.name})
            await self._announce(metadata.name, metadata.uid, "Moved", decision.note)
        return True

    async def _announce(self, name: str, uid: str, reason: str, message: str) -> None:
        """Events are for people: one that cannot be written stops nothing."""
        try:
            await self._migrations.announce(name, uid, reason, message, warning=False)
        except (Unreachable, Refused, Fenced) as error:
            logger.warning("event not written: %s", error)

    async def _perform(self, migration: KafkaMigration, picture: Picture, effect: Effect, memory: _Memory) -> None:
        """One effect. A refusal (a budget, say) is told in `waitingFor`, and tried again in the next pass."""
        logger.info("act: %s", effect, extra={"migration": migration.metadata.name})
        try:
            match effect:
                case Apply(manifest):
                    await self._workloads.apply(manifest)
                case Create(manifest):
                    await self._workloads.create(manifest)
                case Patch(api_version, kind, name, operations, _, subresource):
                    await self._workloads.patch(api_version, kind, name, operations, subresource)
                case WriteNodeFiles(secret, files, labels):
                    await self._workloads.write_node_files(secret, files, labels)
                case PatchStatefulSet(stateful_set, operations, _):
                    await self._workloads.patch_stateful_set(stateful_set, operations)
                case Evict(pod, uid):
                    await self._workloads.evict(_pod(picture, pod, uid))
                case DeletePod(pod, uid):
                    await self._workloads.delete_pod(_pod(picture, pod, uid))
                case Delete(api_version, kind, name, uid):
                    await self._workloads.delete_object(api_version, kind, name, uid)
                case RaiseEpoch(epoch, expected):
                    await memory.observer.zookeeper.raise_epoch(epoch, expected)
                case RaiseVersions(epochs, controller_epoch):
                    await memory.observer.zookeeper.raise_versions(epochs, controller_epoch)
                case DeleteZNode(path, version, controller_epoch):
                    await memory.observer.zookeeper.delete(path, version, controller_epoch)
            memory.refused, memory.fenced = "", 0
        except Fenced as error:
            logger.info("fenced, reading again: %s", error)
            memory.fenced += 1
            if memory.fenced >= FENCED_OFTEN:
                memory.refused = f"{effect}: {error}"
        except Refused as error:
            logger.warning("refused: %s: %s", effect, error)
            memory.refused = f"{effect}: {error}"

    async def _hold(self, migration: KafkaMigration, facts: Facts | None = None) -> str:
        """Take or renew the Lease of this Kafka cluster; "" while the cluster's id is not known."""
        cluster_id = migration.status.cluster_id
        if not cluster_id and facts is not None and isinstance(facts.zookeeper, Known):
            cluster_id = facts.zookeeper.value.cluster_id
        if not cluster_id:
            return ""
        return await self._workloads.hold_lease(names.lease(cluster_id), self._holder(migration), LEASE_SECONDS)

    def _holder(self, migration: KafkaMigration) -> str:
        return f"{migration.metadata.uid}/{self._identity}"

    async def _refuse(self, name: str, raw: Mapping[str, Any], why: str) -> float:
        metadata = raw["metadata"]
        status = invalid_status(raw, metadata["generation"], why, self._clock.now())
        if (raw.get("status") or {}).get("observedGeneration") != metadata["generation"]:
            await self._migrations.record(name, metadata["uid"], metadata["resourceVersion"], status)
        return ENDED

    # --- memory -------------------------------------------------------------------------------------------------------

    async def _remember(self, name: str, migration: KafkaMigration) -> _Memory:
        memory = self._memories.get(name)
        if memory is not None and memory.uid == migration.metadata.uid:
            return memory
        await self._forget(name)
        memory = _Memory(
            migration.metadata.uid,
            await self._connect(migration.spec),
            modes={node.name: node.observed for node in migration.status.nodes},
            spent=spent_of(migration.status.progress),
            last_pass=self._clock.now(),
        )
        self._memories[name] = memory
        return memory

    async def _forget(self, name: str) -> None:
        if (memory := self._memories.pop(name, None)) is not None:
            await memory.observer.close()

    async def close(self) -> None:
        """Close what every migration is observed through."""
        for name in tuple(self._memories):
            await self._forget(name)


def _is_over(migration: KafkaMigration) -> bool:
    """The plan's end is on record, the spec is the one that it speaks of, and nobody wanted something else when it was too
    late to turn: there is nothing to look at any more."""
    progress, status = migration.status.progress, migration.status
    if progress.complete_time is None or status.observed_generation != migration.metadata.generation:
        return False
    return progress.direction is Direction.FORWARD or intent_of(migration).direction is Direction.BACKWARD


def _with_refusal(decision: Decision, memory: _Memory) -> Decision:
    """The decision, with the last refusal among what is waited for while there is something to be done."""
    if not memory.refused or not decision.effects:
        return decision
    judge: Judge[Picture] = Judge("effects", memory.streaks, memory.last_pass)
    judgement = judge.add("Effects", wait("EffectRefused", memory.refused, subject=str(decision.effects[0]),
                                          unblocks="the budget, quota or right that forbids it allows it"))
    return replace(decision, judged={**decision.judged, judgement.gate: judgement})


def _with_deletion(decision: Decision, picture: Picture, since: float) -> Decision:
    """The decision, with the words that the object is being deleted and why it is still there."""
    verdict = check_deletion(picture)
    judgement = Judgement("Deletion", verdict, Streak(verdict.outcome, since, 0), open=False, overdue=False)
    return replace(decision, judged={**decision.judged, judgement.gate: judgement})


def _with_holder(facts: Facts, holder: str) -> Facts:
    if not isinstance(facts.kubernetes, Known):
        return facts
    state = replace(facts.kubernetes.value, lease_holder=holder)
    return replace(facts, kubernetes=Known(state, facts.kubernetes.at))


def _pod(picture: Picture, name: str, uid: str) -> Pod:
    workload = picture.workload_of(name)
    pod = workload.pods.get(name) if workload is not None else None
    if pod is None or pod.uid != uid:
        raise Fenced(f"pod {name} is not the one that was decided upon")
    return pod


def _modes(picture: Picture) -> dict[str, str]:
    found = {name: picture.mode(record.node_id) for name, record in picture.position.nodes.items()}
    return {name: mode.value for name, mode in found.items() if isinstance(mode, Known)}


def _delay(decision: Decision) -> float:
    if decision.position.finished:
        return ENDED
    if decision.effects or decision.position.batch is not None:
        return MOVING
    return MOVING if decision.position.opened is not None and decision.stalled is None else STANDING


def _in_words(error: ValidationError) -> str:
    return "; ".join(f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}" for item in error.errors()[:5])
