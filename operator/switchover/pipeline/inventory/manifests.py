"""A wave as ConsumerGroupMigrations: what `kubectl apply` takes, and nothing moves by it until a person says Running."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Any

import yaml
from pydantic import ValidationError

from switchover.api.consumer_group_migration import ConsumerGroupMigration
from switchover.api.meta import API_VERSION
from switchover.pipeline.config import Kafka, ZooKeeper
from switchover.pipeline.inventory.group import Coordination, Group
from switchover.pipeline.inventory.settings import Workload
from switchover.pipeline.inventory.waves import Wave
from switchover.pipeline.outcome import BadConfig

WAVE_LABEL = "switchover.dev/wave"


def object_name(group: str) -> str:
    """A name that Kubernetes takes; one that had to be changed ends with a hash, so that two groups never share one."""
    if re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?", group):
        return group
    short = re.sub(r"[^a-z0-9]+", "-", group.lower())[:42].strip("-") or "group"
    return f"{short}-{sha256(group.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def workload_of(group: str, workloads: Sequence[Workload]) -> Workload | None:
    """The first that matches."""
    return next((each for each in workloads if fnmatchcase(group, each.groups)), None)


def migration(group: Group, wave: int, workload: Workload, kafka: Kafka, zookeeper: ZooKeeper | None) -> dict[str, Any]:
    """The resource of one group. Raises BadConfig in words where the settings make none that is valid."""
    change: dict[str, Any] = {
        "name": workload.name.replace("{group}", group.name), "kind": workload.kind, "container": workload.container,
        "template": workload.template, **({"bridge": workload.bridge} if workload.bridge is not None else {})}
    spec: dict[str, Any] = {"desiredState": "Planned", "group": group.name, "kafka": _connection(kafka),
                            "workloads": [change]}
    if group.coordination is Coordination.ZOOKEEPER:
        if zookeeper is None:
            raise BadConfig(f"group {group.name!r:.100} is coordinated by ZooKeeper: give zookeeper.connect")
        spec |= {"zookeeper": _connection(zookeeper), "coordination": {"to": "Kafka"}}
    else:
        spec["protocol"] = {"to": "Consumer"}
    found = {"apiVersion": API_VERSION, "kind": "ConsumerGroupMigration",
             "metadata": {"name": object_name(group.name), "labels": {WAVE_LABEL: str(wave)}}, "spec": spec}
    try:
        ConsumerGroupMigration.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise BadConfig(f"inventory.workloads makes no valid migration of group {group.name!r:.100}: "
                        f"{where}: {first['msg']}") from None
    return found


def _connection(told: Kafka | ZooKeeper) -> dict[str, Any]:
    return told.model_dump(by_alias=True, exclude_none=True, include={"bootstrap_servers", "connect", "credentials_ref"})


def document(wave: Wave, migrations: Sequence[dict[str, Any]]) -> str:
    """The file of one wave. The same groups give the same text. By libyaml, which a large fleet's manifests need."""
    head = f"# Wave {wave.number}: {len(migrations)} of {len(wave.groups)} groups, {wave.partitions} partitions.\n"
    return head + yaml.dump_all(
        migrations, Dumper=yaml.CSafeDumper, sort_keys=False, explicit_start=True, allow_unicode=False)
