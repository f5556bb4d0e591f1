"""`switchover rehearse`: the rehearsal of a manifest, without a migration."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import ValidationError

from switchover.answers.ask import Answers
from switchover.answers.clock import WallClock
from switchover.answers.errors import Refused, Unreachable
from switchover.api.kafka_migration import KafkaMigration
from switchover.api.schema import mistakes
from switchover.cli.command import Place
from switchover.cli.kube import connected
from switchover.cli.objects import KAFKA_MIGRATION, in_file
from switchover.cluster import names
from switchover.cluster.door.brokers import ContainerMissing, container_of, layout_of, upgraded
from switchover.cluster.modes import METADATA_LEVELS
from switchover.cluster.observe.rehearsal import handed_in
from switchover.cluster.rehearsal import replica_job
from switchover.cluster.rehearsal import report as reports
from switchover.cluster.rehearsal.report import Report
from switchover.kafka.ports import KafkaNodes
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.kubernetes.workloads import JobRun
from switchover.network.credentials import Access
from switchover.process.connections import REAL, Credentialed
from switchover.text.command import kubectl

POLL_SECONDS = 1.0


def read_manifest(text: str, namespace: str) -> KafkaMigration:
    """The KafkaMigration in a file. Raises Refused, which says why not."""
    try:
        return KafkaMigration.model_validate(in_file(text, namespace, (KAFKA_MIGRATION,)).resource)
    except ValidationError as error:
        raise Refused(mistakes(error)) from None


async def rehearse(place: Place, image: str, text: str, release: str, *, keep: bool,
                   say: Callable[[str], None]) -> tuple[str, Report]:
    """Rehearse what a manifest says: its name, and the report. Raises Refused and Unreachable when it does not come to its
    end."""
    if not image:
        raise Refused("neither --image nor IMAGE is set: the replica's pod needs the operator's image, which switchover "
                      "doctor names")
    if release not in METADATA_LEVELS:
        raise Refused(f"--release {release} is none of {', '.join(METADATA_LEVELS)}")
    logging.getLogger("kazoo").setLevel(logging.ERROR)
    async with connected(place) as server:
        migration = read_manifest(text, server.namespace)
        workloads = KubernetesWorkloads(server, WallClock())
        clients = Credentialed(migration, workloads, REAL, Answers())
        try:
            found = await _rehearse(image, migration, release, workloads, clients, keep, say)
            return migration.metadata.name, found.at(migration.spec.zookeeper.connect)
        finally:
            await clients.close()


async def _rehearse(own_image: str, migration: KafkaMigration, release: str, workloads: KubernetesWorkloads,
                    clients: Credentialed, keep: bool, say: Callable[[str], None]) -> Report:
    own, wanted = migration.spec.brokers[0], migration.spec.rehearsal
    workload = await workloads.stateful_set(own.name)
    if workload is None:
        raise Refused(f"StatefulSet {own.name} does not exist in namespace {migration.metadata.namespace}")
    try:
        image = migration.spec.upgrade.image if migration.spec.upgrade is not None else ""
        container = upgraded(container_of(workload.template, own), image)
    except ContainerMissing as error:
        raise Refused(f"StatefulSet {own.name}: {error}") from None
    say("reading ZooKeeper")
    found = await clients.clients(controllers=False)
    tree = await found.tree.export()
    export = handed_in(tree)
    say(f"read {len(tree.nodes)} nodes, {len(tree.topics)} topics; nothing was written")
    classes = await _classes(found.brokers, Access(migration.spec.kafka.bootstrap_servers), say)
    name = names.job(migration.metadata.name, "try", (migration.metadata.name,))
    uid = await workloads.create(replica_job.job(
        name, wanted, workload.template["spec"], container, layout_of(container, own).script, release, own_image, export,
        secrets.token_hex(8), classes))
    try:
        for part in replica_job.config_maps(await _there(workloads, name, uid), export.parts):
            await workloads.create(part)
        return await _ended(workloads, name, uid, say)
    finally:
        if keep:
            say(f"stays for {replica_job.KEPT_SECONDS // 60} minutes: "
                 + kubectl(migration.metadata.namespace, "logs job/{} --container {}", name, replica_job.CONDUCTOR))
        else:
            await workloads.delete_object("batch/v1", "Job", name, uid)


async def _classes(brokers: KafkaNodes, bootstrap: Access, say: Callable[[str], None]) -> Mapping[str, str]:
    """The classes that are not Kafka's, as one of the brokers names them."""
    try:
        broker_id, address = min((await brokers.metadata(bootstrap.addresses[0])).brokers.items())
        return replica_job.own_classes(await brokers.settings(address, broker_id))
    except (Refused, Unreachable) as error:
        say(f"the brokers' own classes are not tried: {error}")
        return {}


async def _there(workloads: KubernetesWorkloads, name: str, uid: str) -> JobRun:
    job = await workloads.job(name, uid)
    if job is None:
        raise Refused(f"Job {name} was deleted")
    return job


async def _ended(workloads: KubernetesWorkloads, name: str, uid: str, say: Callable[[str], None]) -> Report:
    progress = ""
    while True:
        job = await _there(workloads, name, uid)
        if job.message or job.ended:
            found = replica_job.told(job)
            if isinstance(found, str):
                raise Refused(f"the rehearsal did not come to its end: {found}")
            return found
        if job.detail != progress:
            say(progress := job.detail)
        await asyncio.sleep(POLL_SECONDS)


def written(found: Report, name: str, output: Path) -> None:
    """The report for a change ticket, as its name says: .json or .md."""
    match output.suffix:
        case ".json":
            output.write_text(reports.as_json(found) + "\n")
        case ".md":
            output.write_text(reports.as_markdown(found, name))
        case other:
            raise Refused(f"--output {output}: {other or 'no ending'} is neither .json nor .md")
