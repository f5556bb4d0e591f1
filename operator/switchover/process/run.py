"""The operator put together: adapters, reconciler, loops, metrics, logs."""

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Sequence

import kopf
from prometheus_client import CollectorRegistry, ProcessCollector

from switchover.answers.clock import WallClock
from switchover.api.meta import GROUP, VERSION
from switchover.cluster.kind import kafka_migrations
from switchover.engine.kind import Kind, M, P
from switchover.engine.reconcile import Connect, Reconciler
from switchover.groups.kind import consumer_group_migrations
from switchover.kubernetes.client.api_server import ApiServer, connect
from switchover.kubernetes.client.migrations import KubernetesMigrations
from switchover.kubernetes.client.reflector import WatchedServer
from switchover.kubernetes.client.survey import GROUP_RIGHTS, KubernetesSurvey
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.process.connections import Connections, GroupConnections
from switchover.process.deadline import Deadline
from switchover.process.handlers import Loops, LoopsByNamespace, Watch, register, serve, why_dead, why_not_ready
from switchover.process.leadership import Leadership
from switchover.process.metrics import MeasuredMigrations, Metrics
from switchover.process.probe import answering, health
from switchover.process.probe import metrics as scraped
from switchover.process.settings import Settings
from switchover.process.turns import Turns
from switchover.process.webhook import Webhook
from switchover.runtime.garbage import look_seldom
from switchover.text.visible import OneLine

DEEPEST = 30_000
"""Calls in each other, ours and those of the JSON reader. The API server takes objects of 10,000 levels (managedFields are
free-form), and Kopf's watch of all objects ends of one that cannot be read. What walks it takes two calls a level; the C
stack of 8 MiB, which the reader uses, holds more than twice as many."""


async def run_operator(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT.

    Raises Refused when the API server's credentials cannot be read, and Deposed when another instance may act instead.
    """
    log_as(settings)
    sys.setrecursionlimit(DEEPEST)
    look_seldom()
    clock = WallClock()
    server = await connect(settings.namespace, settings.kubeconfig)
    metrics_registry = CollectorRegistry()
    ProcessCollector(registry=metrics_registry)
    metrics = Metrics(metrics_registry, time.monotonic)
    webhook = Webhook(settings.webhook, settings.webhook_template, settings.docs,
                      metrics.notified) if settings.webhook is not None else None
    turns, deadline = Turns(metrics.turn_seconds.observe), Deadline()
    leadership = Leadership(KubernetesWorkloads(server, clock), settings.leader_lease, settings.identity)
    metrics.watch_leads(lambda: leadership.leads)
    metrics.watch_turns(lambda: turns.waiting, lambda: turns.running)
    now = asyncio.get_running_loop().time
    watch = Watch(settings.watched, turns, settings.selector)
    login = kopf.login_with_kubeconfig if settings.kubeconfig else kopf.login_with_service_account
    kopf.on.login(registry=watch.registry)(login)
    served: dict[tuple[str, str], tuple[str, ...]] = {}

    watched: dict[str, WatchedServer] = {}           # one of each namespace, for both kinds
    metrics.watch_age(lambda: max((each.age(now()) for each in tuple(watched.values())), default=0.0))

    def add(name: str, plural: str, kind: Kind[M, P],
            connections: Callable[[ApiServer, KubernetesWorkloads, KubernetesWorkloads], Connect[M, P]]) -> None:
        """Serve a kind. What a migration is served with is bound to its namespace, and so are its requests."""
        def loops(namespace: str) -> Loops:
            there = server.within(namespace)
            migrations = KubernetesMigrations(there, clock, name, plural)
            workloads = KubernetesWorkloads(there, clock, leadership.before)
            seen = KubernetesWorkloads(watched.setdefault(namespace, WatchedServer(there)), clock, leadership.before)
            reconciler = Reconciler(
                kind, namespace, settings.identity, MeasuredMigrations(migrations, metrics), workloads, seen,
                connections(there, workloads, seen), clock, metrics.migrations(name, namespace), settings.docs,
                webhook.of(name, namespace) if webhook is not None else None, deadline)
            return Loops(name, namespace, reconciler.reconcile, reconciler.release, migrations.set_finalizer,
                         migrations.is_ending, reconciler.leave, reconciler.close, metrics, turns)

        register(watch, (GROUP, VERSION, plural), LoopsByNamespace(name, loops, metrics))
        served[GROUP, plural] = ("list", "watch")

    if "KafkaMigration" in settings.kinds:
        add("KafkaMigration", "kafkamigrations", kafka_migrations(settings.allow, settings.image),
            lambda there, workloads, seen: Connections(
                there.namespace, workloads, KubernetesSurvey(there), clock, watched=seen, home=settings.namespace))
    if "ConsumerGroupMigration" in settings.kinds:
        add("ConsumerGroupMigration", "consumergroupmigrations", consumer_group_migrations(settings.allow),
            lambda there, workloads, seen: GroupConnections(
                workloads, KubernetesSurvey(there, GROUP_RIGHTS), clock, watched=seen, home=settings.namespace))

    async def missing(namespace: str) -> Sequence[str]:
        return await KubernetesSurvey(server.within(namespace), served).missing_rights(())

    probes = health(lambda: why_dead(watch, now()),
                    lambda: why_not_ready(watch, now()) if leadership.leads else leadership.silence)
    try:
        async with answering(settings.metrics_port, scraped(metrics_registry)), answering(settings.probe_port, probes):
            await leadership.lead(lambda: serve(watch, missing, metrics))
    finally:
        if webhook is not None:
            await webhook.close()
        await asyncio.gather(*(each.close() for each in watched.values()))
        await server.close()


def log_as(settings: Settings) -> None:
    """Logs on standard error, one JSON object a line unless text is asked for."""
    kopf.configure(
        verbose=settings.log_level == "DEBUG",
        quiet=settings.log_level in ("WARNING", "ERROR"),
        log_format=kopf.LogFormat.JSON if settings.json_logs else kopf.LogFormat.FULL,
    )
    if not settings.json_logs:
        for handler in logging.getLogger().handlers:
            handler.addFilter(OneLine())
    logging.getLogger().setLevel(settings.log_level)
    for chatty in ("aiohttp.access", "kopf.objects", "kopf.activities"):      # every probe, every event of the watch
        logging.getLogger(chatty).setLevel(logging.WARNING)
    logging.getLogger("kazoo").setLevel(logging.ERROR)     # every failed attempt; the status reports on ZooKeeper
