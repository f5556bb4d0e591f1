"""The operator put together: adapters, reconciler, loops, metrics, logs."""

import asyncio
import logging
import time

import kopf
from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server

from switchover.adapters.api_server import connect
from switchover.adapters.clock import WallClock
from switchover.adapters.kubernetes import KubernetesWorkloads
from switchover.adapters.migrations import KubernetesMigrations
from switchover.adapters.survey import KubernetesSurvey
from switchover.api.meta import GROUP, VERSION
from switchover.cli.connections import Connections
from switchover.core.kraft.kind import KafkaMigrations
from switchover.handlers import Loops, kopf_settings, register
from switchover.metrics import MeasuredMigrations, Metrics
from switchover.reconcile import Reconciler
from switchover.settings import Settings

KIND, PLURAL = "KafkaMigration", "kafkamigrations"


async def run_operator(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT. Raises Refused when the API server's credentials cannot be read."""
    log_as(settings)
    clock = WallClock()
    server = await connect(settings.namespace, settings.kubeconfig)
    workloads = KubernetesWorkloads(server, clock)
    migrations = KubernetesMigrations(server, clock, KIND, PLURAL)
    metrics_registry = CollectorRegistry()
    ProcessCollector(registry=metrics_registry)
    metrics = Metrics(metrics_registry, time.monotonic)
    measured = MeasuredMigrations(migrations, metrics)
    connections = Connections(settings.namespace, workloads, KubernetesSurvey(server), clock)
    reconciler = Reconciler(
        KafkaMigrations(), settings.namespace, settings.identity, measured, workloads, connections, clock,
        metrics.migrations)
    loops = Loops(reconciler.reconcile, reconciler.release, migrations.set_finalizer, metrics)
    registry = kopf.OperatorRegistry()
    login = kopf.login_with_kubeconfig if settings.kubeconfig else kopf.login_with_service_account
    kopf.on.login(registry=registry)(login)
    register(registry, (GROUP, VERSION, PLURAL), loops)
    scraped, thread = start_http_server(settings.metrics_port, registry=metrics_registry)
    try:
        await kopf.operator(
            registry=registry,
            settings=kopf_settings(),
            namespaces=[settings.namespace],
            liveness_endpoint=f"http://0.0.0.0:{settings.probe_port}/healthz",
        )
    finally:
        await reconciler.close()
        await server.close()
        scraped.shutdown()
        scraped.server_close()
        await asyncio.to_thread(thread.join, 5.0)


def log_as(settings: Settings) -> None:
    """Logs on standard error, one JSON object a line unless text is asked for."""
    kopf.configure(
        verbose=settings.log_level == "DEBUG",
        quiet=settings.log_level in ("WARNING", "ERROR"),
        log_format=kopf.LogFormat.JSON if settings.json_logs else kopf.LogFormat.FULL,
    )
    logging.getLogger().setLevel(settings.log_level)
    for chatty in ("aiohttp.access", "kopf.objects", "kopf.activities"):      # every probe, every event of the watch
        logging.getLogger(chatty).setLevel(logging.WARNING)
    logging.getLogger("kazoo").setLevel(logging.ERROR)     # every failed attempt; the status tells of ZooKeeper
