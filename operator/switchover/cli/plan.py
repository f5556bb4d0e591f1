"""`switchover plan`: what the operator sees of a migration at this moment and would do next. Nothing is written."""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from switchover.adapters.api_server import connect
from switchover.adapters.clock import WallClock
from switchover.adapters.kubernetes import KubernetesWorkloads
from switchover.adapters.migrations import KubernetesMigrations
from switchover.adapters.survey import KubernetesSurvey
from switchover.api.kafka_migration import KafkaMigration
from switchover.cli.connections import Connections
from switchover.cli.migration import read_migration
from switchover.core.intent import PREFLIGHT, intent_of
from switchover.core.kraft.estimate import direction_seconds, rollback_seconds
from switchover.core.kraft.kind import KafkaMigrations
from switchover.core.kraft.picture import Picture
from switchover.core.kraft.plan import PLAN
from switchover.core.kraft.preview import changes, lines, preview, shown
from switchover.core.observed import Known
from switchover.core.plan import Decision, decide
from switchover.core.policy import Policy
from switchover.core.status import findings_of
from switchover.ports import Clock, Migrations
from switchover.reconcile import Connect
from switchover.settings import Settings

SECOND_LOOK = 1.0
"""Seconds after which dual write has written `/migration` twice: whether it is alive shows in a second look alone."""


async def explain_from_here(settings: Settings, name: str) -> list[str]:
    """Explain a migration of our namespace with connections of our own."""
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)      # the gates tell of ZooKeeper
    clock = WallClock()
    server = await connect(settings.namespace, settings.kubeconfig)
    try:
        migrations = KubernetesMigrations(server, clock, "KafkaMigration", "kafkamigrations")
        connections = Connections(settings.namespace, KubernetesWorkloads(server, clock), KubernetesSurvey(server), clock)
        return await explain(name, settings.namespace, migrations, connections, clock)
    finally:
        await server.close()


async def explain(name: str, namespace: str, migrations: Migrations, connect: Connect[KafkaMigration, Picture],
                  clock: Clock) -> list[str]:
    """One pass without its record and its effects, in lines. Refused when there is no such migration.

    Gates that want several passes in a row have had only one here; they are told as passing, not as open.
    """
    migration = await read_migration(name, migrations)
    kind = KafkaMigrations(Policy(images=("*",)), "*")      # what the chart allows and names is not known here
    observer = await connect(migration)
    try:
        picture = await observer.see(kind.picture(migration, namespace, clock.now()), "")
        if isinstance(written := picture.facts.migration_written, Known) and not written.value.seen_to_change:
            await asyncio.sleep(SECOND_LOOK)
            picture = await observer.see(replace(picture, now=clock.now()), "")
    finally:
        await observer.close()
    picture, intent = replace(picture, now=clock.now()), intent_of(migration, PLAN.names)
    return [*_told(picture, *(decide(PLAN, each, intent, {}, picture.now) for each in (picture, _begun(picture))))]


def _begun(picture: Picture) -> Picture:
    """The picture with Preflight begun: of a migration that no operator has seen yet its findings are told all the same."""
    at = picture.position
    return picture.at(replace(at, opened=picture.now)) if at.step == PREFLIGHT and at.opened is None else picture


def _told(picture: Picture, decision: Decision, begun: Decision) -> Iterator[str]:
    at = picture.position
    for step in PLAN.steps:
        yield f"{'>' if step.name == at.step else ' '} {step.name}"
    if at.batch is not None:
        yield f"batch {at.batch.index}: {', '.join(at.batch.nodes)}"
    for name, record in sorted(at.nodes.items()):
        yield f"node {record.node_id} {name}: assigned {record.assigned}"
    yield from _estimated(picture)
    for name, judgement in begun.judged.items():
        verdict = judgement.verdict
        subject = f" [{verdict.subject}]" if verdict.subject else ""
        yield f"gate {name}: {verdict.outcome} {verdict.reason}{subject} {verdict.message}".rstrip()
        if verdict.unblocks:
            yield f"     unblocks: {verdict.unblocks}"
    for finding in findings_of(begun.judged) if at.step == PREFLIGHT else ():
        subject = f" [{finding.subject}]" if finding.subject else ""
        yield f"finding {finding.severity} {finding.code}{subject} {finding.message}"
        if finding.cure:
            yield f"     cure: {finding.cure}"
    if at.step == PREFLIGHT:
        yield from _previewed(picture)
    if decision.position != at:
        yield f"next: record: {decision.note}"
    for effect in decision.effects:
        yield f"next: {effect}"
    if decision.position == at and not decision.effects:
        yield "next: wait"


def _estimated(picture: Picture) -> Iterator[str]:
    """How long it goes on, and how long the way back would take. Windows are reckoned with, waits for approvals are not."""
    left = direction_seconds(picture)
    yield f"left: {_duration(left)}" if left is not None else "left: nobody can tell"
    if PLAN.can_go_back(picture.position):
        yield f"back from here: {_duration(rollback_seconds(picture))}"


def _previewed(picture: Picture) -> Iterator[str]:
    """The plan with every node's configuration, restart by restart; secret values are hidden."""
    found = preview(picture)
    if found is None:
        return
    yield f"plan: {_restarts(found.restarts)}, {_duration(found.estimated_seconds)}"
    yield (f"  {found.basis.value.lower()}: {found.broker_restart_seconds} s for a batch of brokers and"
           f" {found.controller_restart_seconds} s for a controller")
    for step in found.steps:
        hold = ", waits for an approval" if step.hold else ""
        yield f"  {step.name}: {_restarts(step.restarts)}, {_duration(step.estimated_seconds)}{hold}"
    for own in found.nodes:
        yield f"  {own.name}: {own.nodes} pods, {_restarts(own.restarts_each)} each"
    for change in changes(picture):
        yield f"configuration of {change.workload} in mode {change.mode}:"
        for line in lines(change):
            yield f"  {line}"
        for key, values in change.own.items():
            if all(new is None for _, new in values.values()):
                continue                                             # a line above takes it away
            each = ", ".join(f"{pod} {shown(key, new) if new is not None else 'none'}" for pod, (_, new) in values.items())
            yield f"    {key}: {each}"


def _restarts(count: int) -> str:
    return f"{count} restart{'' if count == 1 else 's'}"


def _duration(seconds: float) -> str:
    return f"about {timedelta(seconds=round(seconds))}"
