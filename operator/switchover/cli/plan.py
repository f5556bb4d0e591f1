"""`switchover plan`: what the operator sees of a migration at this moment and would do next. Nothing is written."""

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any, Generic

from pydantic import ValidationError

from switchover.answers.clock import Clock, WallClock
from switchover.answers.errors import Refused
from switchover.answers.observed import Known
from switchover.api.schema import mistakes
from switchover.api.status import Finding, Severity
from switchover.api.status import Verdict as Outcome
from switchover.cli.command import Place
from switchover.cli.kube import connected
from switchover.cli.objects import KAFKA_MIGRATION, Found, find, in_file
from switchover.cli.operators import running
from switchover.cluster.estimate import direction_seconds, rollback_seconds
from switchover.cluster.kind import kafka_migrations
from switchover.cluster.picture import Picture
from switchover.cluster.preview import changes, lines, preview
from switchover.engine.approvals import PREFLIGHT
from switchover.engine.gate import Verdict
from switchover.engine.kind import Kind, M, P
from switchover.engine.plan import Decision, Plan, decide
from switchover.engine.policy import ANYTHING
from switchover.engine.reconcile import Connect
from switchover.engine.record import without_foreign_record
from switchover.engine.status import findings_of
from switchover.groups import preview as group_preview
from switchover.groups.kind import consumer_group_migrations
from switchover.groups.picture import Picture as GroupPicture
from switchover.groups.slots import moves_left, seconds_left
from switchover.groups.status import BACK_SECONDS
from switchover.kubernetes.client.api_server import ApiServer
from switchover.kubernetes.client.survey import GROUP_RIGHTS, RIGHTS, KubernetesSurvey
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.process.connections import Connections, GroupConnections
from switchover.shared.grouped import grouped
from switchover.text.command import Command, command, kubectl
from switchover.text.visible import counted, shown

SECOND_LOOK = 1.0
"""Seconds after which dual write has written `/migration` twice: whether it is alive shows in a second look alone."""


@dataclass(frozen=True, slots=True)
class Look(Generic[P]):
    """One pass without its record and its effects. `begun` is what Preflight finds, also where no operator has begun it.
    `operator` is the namespace and the name of a pod in which the same can be asked, None where none is seen."""

    plan: Plan[P]
    picture: P
    decision: Decision
    begun: Decision
    operator: tuple[str, str] | None = None

    @property
    def code(self) -> int:
        """The exit code: 1 for a blocker or a gate that fails, 3 for a warning or what could not be seen, else 0."""
        severities = {finding.severity for finding in self.findings}
        outcomes = {judgement.verdict.outcome for judgement in self.begun.judged.values()}
        if Severity.BLOCKER in severities or Outcome.FAIL in outcomes:
            return 1
        return 3 if Severity.WARNING in severities or Outcome.UNKNOWN in outcomes else 0

    @property
    def findings(self) -> tuple[Any, ...]:
        """Those of Preflight; none in a later step, whose gates say what is wrong."""
        return findings_of(self.begun.judged) if self.picture.position.step == PREFLIGHT else ()


async def look_from_here(place: Place, name: str) -> Look[Any]:
    """Look at a migration of either kind with connections of our own."""
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)      # the gates report on ZooKeeper
    async with connected(place) as server:
        return await look_through(server, await find(server, name), WallClock())


async def look_at_file(place: Place, text: str) -> Look[Any]:
    """Look at what a manifest asks for, before anything is installed."""
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    async with connected(place) as server:
        return await look_through(server, in_file(text, server.namespace), WallClock(), asks_rights=False)


async def look_through(server: ApiServer, found: Found, clock: Clock, *, asks_rights: bool = True) -> Look[Any]:
    """Look at one object with the rights of that connection, which are the operator's where it runs in the operator's pod.

    Elsewhere they are somebody's, and `asks_rights` is False: what these lack says nothing of the operator's.
    """
    of_cluster, of_group = (RIGHTS, GROUP_RIGHTS) if asks_rights else ({}, {})
    workloads = KubernetesWorkloads(server, clock)
    home = os.environ.get("POD_NAMESPACE", "")                               # in the operator's own pod
    seen: Look[Any]
    if found.kind is KAFKA_MIGRATION:
        clusters = Connections(server.namespace, workloads, KubernetesSurvey(server, of_cluster), clock, home=home)
        seen = await look(found.resource, kafka_migrations(ANYTHING, "*"), server.namespace, clusters, clock)
    else:
        groups = GroupConnections(workloads, KubernetesSurvey(server, of_group), clock, home=home)
        seen = await look(found.resource, consumer_group_migrations(ANYTHING), server.namespace, groups, clock)
    return replace(seen, operator=await running(server))


async def look(resource: Mapping[str, Any], kind: Kind[M, P], namespace: str, connect: Connect[M, P],
               clock: Clock) -> Look[P]:
    """One pass. Refused for an object that cannot be read, and for credentials that do not fit.

    Gates that want several passes in a row have had only one here; they are shown as passing, not as open.
    """
    try:
        migration = kind.read(without_foreign_record(resource, clock.now())[0])
    except ValidationError as error:
        raise Refused(f"{resource['metadata'].get('name', 'the manifest')} cannot be read: {mistakes(error)}") from None
    observer = await connect(migration)
    try:
        picture = await observer.see(kind.picture(migration, namespace, clock.now()), "")
        if _shows_later(picture):
            await asyncio.sleep(SECOND_LOOK)
            picture = await observer.see(picture.held_by("", clock.now()), "")
    finally:
        await observer.close()
    picture, intent, plan = picture.held_by("", clock.now()), kind.intent(migration), kind.plan(picture)
    decision, begun = (decide(plan, each, intent, {}, picture.now) for each in (picture, _begun(picture)))
    return Look(plan, picture, decision, begun)


def _shows_later(picture: Any) -> bool:
    if not isinstance(picture, Picture):
        return False
    written = picture.facts.migration_written
    return isinstance(written, Known) and not written.value.seen_to_change


def _begun(picture: P) -> P:
    """The picture with Preflight begun: a migration that no operator has seen yet has its findings too."""
    at = picture.position
    return picture.at(replace(at, opened=picture.now)) if at.step == PREFLIGHT and at.opened is None else picture


def as_lines(look: Look[Any]) -> Iterator[str]:
    """The look in lines."""
    at = look.picture.position
    for step in look.plan.steps:
        yield f"{'>' if step.name == at.step else ' '} {step.name}"
    if at.batch is not None:
        yield f"batch {at.batch.index}: {', '.join(at.batch.nodes)}"
    for name, record in sorted(at.nodes.items()):
        yield f"node {record.node_id} {name}: assigned {record.assigned}"
    left = _left(look.picture)
    yield f"remaining: {_duration(left) if left is not None else 'unknown'}"
    if look.plan.can_go_back(at):
        yield f"rollback from here: {_duration(_back(look.picture))}"
    for verdict, gates in _alike(look):
        why = "" if verdict.outcome is Outcome.PASS else f" {verdict.reason}"
        yield f"gate {', '.join(gates)}: {verdict.outcome}{why}{_subject(verdict)} {verdict.message}".rstrip()
        if verdict.unblocks:
            yield f"     unblocks: {verdict.unblocks}"
    if any(judgement.verdict.outcome is Outcome.UNKNOWN for judgement in look.begun.judged.values()):
        yield _from_inside(look, command("switchover plan --namespace {} {}", *reversed(look.picture.named)))
    yield from _found(look)
    if at.step == PREFLIGHT:
        yield from _preview(look)
    yield from _next(look)


def _alike(look: Look[Any]) -> Iterable[tuple[Verdict, Sequence[str]]]:
    """Every verdict with the gates that gave it: what many could not see is said once."""
    return grouped((replace(each.verdict, findings=()), name) for name, each in look.begun.judged.items()).items()


def _subject(of: Verdict | Finding) -> str:
    return f" [{of.subject}]" if of.subject else ""


def preflight(look: Look[Any]) -> Iterator[str]:
    """What was found, what could not be seen and for which gates, and what would be done; the last line counts."""
    unseen = [(verdict, gates) for verdict, gates in _alike(look) if verdict.outcome is Outcome.UNKNOWN]
    yield from _found(look)
    for verdict, gates in unseen:
        yield f"unseen {verdict.reason}{_subject(verdict)} {verdict.message} ({', '.join(gates)})"
    if unseen:
        yield _from_inside(look, command("switchover preflight --namespace {} --file - < MANIFEST", look.picture.named[1]))
    yield from _preview(look)
    counts = Counter(str(finding.severity) for finding in look.findings)
    yield ", ".join((*(counted(counts[severity], severity) for severity in Severity), f"{len(unseen)} unseen"))


def _from_inside(look: Look[Any], what: Command) -> str:
    """The command that sees what a laptop often does not."""
    where, pod = look.operator or ("ITS-NAMESPACE", "deployment/switchover")
    unseen = "" if look.operator else "where an operator runs that serves the namespace, "
    return (f"     if Kafka or ZooKeeper cannot be reached from here: {unseen}"
            + kubectl(where, "exec --stdin {} -- {}" if "<" in what else "exec {} -- {}", pod, what))


def _found(look: Look[Any]) -> Iterator[str]:
    for finding in look.findings:
        yield f"finding {finding.severity} {finding.code}{_subject(finding)} {finding.message}"
        if finding.cure:
            yield f"     cure: {finding.cure}"


def _preview(look: Look[Any]) -> Iterator[str]:
    return _previewed(look.picture) if isinstance(look.picture, Picture) else _previewed_group(look.picture)


def document(look: Look[Any]) -> Mapping[str, Any]:
    """The look as a JSON value."""
    at, plan = look.picture.position, None
    if at.step == PREFLIGHT:
        plan = preview(look.picture) if isinstance(look.picture, Picture) else group_preview.preview(look.picture)
    return {
        "name": look.picture.name, "step": at.step, "steps": list(look.plan.names),
        "batch": list(at.batch.nodes) if at.batch is not None else [],
        "secondsLeft": _left(look.picture), "secondsBack": _back(look.picture) if look.plan.can_go_back(at) else None,
        "gates": [{"name": name, "verdict": each.verdict.outcome.value, "reason": each.verdict.reason,
                   "subject": each.verdict.subject, "message": each.verdict.message, "unblocks": each.verdict.unblocks}
                  for name, each in look.begun.judged.items()],
        "findings": [finding.manifest() for finding in look.findings],
        "plan": None if plan is None else asdict(plan) if isinstance(plan, group_preview.GroupPreview) else plan.manifest(),
        "next": [line.removeprefix("next: ") for line in _next(look)],
    }


def _next(look: Look[Any]) -> Iterator[str]:
    decision = look.decision
    if decision.position != look.picture.position:
        yield f"next: record: {decision.note}"
    for effect in decision.effects:
        yield f"next: {effect}"
    if decision.position == look.picture.position and not decision.effects:
        yield "next: wait"


def _left(picture: Picture | GroupPicture) -> float | None:
    """How long it goes on. Windows are reckoned with, waits for approvals are not; None before nodes are on record."""
    if isinstance(picture, Picture):
        return direction_seconds(picture)
    return seconds_left(picture) if picture.position.nodes else None


def _back(picture: Picture | GroupPicture) -> float:
    """How long a rollback would take."""
    return rollback_seconds(picture) if isinstance(picture, Picture) else BACK_SECONDS * moves_left(picture)


def _previewed_group(picture: GroupPicture) -> Iterator[str]:
    """How templates change, and how many pods are replaced; secret values are hidden."""
    found = group_preview.preview(picture)
    if found is None:
        return
    yield f"plan: {counted(found.replaced, 'pod')} replaced, {_duration(found.seconds)}"
    for each in found.workloads:
        yield f"  {each.name}: {counted(each.pods, 'pod')}, each replaced {counted(each.replaced_each, 'time')}"
        for template, changed in each.changes.items():
            yield f"{template} of {each.name}:"
            yield from (f"  {line}" for line in changed)


def _previewed(picture: Picture) -> Iterator[str]:
    """The plan with every node's configuration, restart by restart; secret values are hidden."""
    found = preview(picture)
    if found is None:
        return
    yield f"plan: {counted(found.restarts, 'restart')}, {_duration(found.estimated_seconds)}"
    yield (f"  {found.basis.value.lower()}: {found.broker_restart_seconds} s for a batch of brokers and"
           f" {found.controller_restart_seconds} s for a controller")
    for step in found.steps:
        hold = ", waits for an approval" if step.hold else ""
        yield f"  {step.name}: {counted(step.restarts, 'restart')}, {_duration(step.estimated_seconds)}{hold}"
    for own in found.nodes:
        yield f"  {own.name}: {counted(own.nodes, 'pod')}, {counted(own.restarts_each, 'restart')} each"
    for change in changes(picture):
        yield f"configuration of {change.workload} in mode {change.mode}:"
        for line in lines(change):
            yield f"  {line}"
        for key, values in change.own.items():
            if all(new is None for _, new in values.values()):
                continue                                             # a line above takes it away
            each = ", ".join(f"{pod} {shown(key, new) if new is not None else 'none'}" for pod, (_, new) in values.items())
            yield f"    {key}: {each}"


def _duration(seconds: float) -> str:
    return f"about {timedelta(seconds=round(seconds))}"
