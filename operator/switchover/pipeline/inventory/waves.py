"""Which groups are migrated together: waves under caps; and a wave as ConsumerGroupMigrations."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Any

import yaml
from pydantic import ValidationError

from switchover.api.consumer_group_migration import ConsumerGroupMigration
from switchover.api.meta import API_VERSION
from switchover.pipeline.config import Kafka, Workload, ZooKeeper
from switchover.pipeline.inventory.readiness import Coordination, Group
from switchover.pipeline.outcome import BadConfig
from switchover.shared.grouped import grouped

TRIED = 20
"""Topics of the largest component whose removal is tried, most shared first."""


@dataclass(frozen=True, slots=True)
class Wave:
    """`groups` are in the order in which they are migrated. `over` says which cap connected groups have burst."""

    number: int
    groups: tuple[str, ...]
    partitions: int
    over: str = ""


@dataclass(frozen=True, slots=True)
class Glue:
    """The topic that holds the largest component of `size` groups together: without it the largest part has `without`."""

    topic: str
    size: int
    without: int


def components(topics: Mapping[str, Iterable[str]], cut: Set[str] = frozenset()) -> list[tuple[str, ...]]:
    """Groups that are connected by shared topics: each sorted, all sorted by their first. `topics` are those of a group."""
    parent = {group: group for group in topics}

    def root(group: str) -> str:
        while parent[group] != group:
            parent[group] = parent[parent[group]]
            group = parent[group]
        return group

    first: dict[str, str] = {}
    for group in sorted(topics):
        for topic in topics[group]:
            if topic not in cut:
                parent[root(group)] = root(first.setdefault(topic, group))
    return sorted(tuple(each) for each in grouped((root(group), group) for group in sorted(topics)).values())


def glue(topics: Mapping[str, Iterable[str]], cut: Set[str] = frozenset()) -> Glue | None:
    """What holds the largest component together; None where nothing does, or no single topic."""
    largest = max(components(topics, cut), key=len, default=())
    within = {group: frozenset(topics[group]) - cut for group in largest}
    shared = Counter(topic for each in within.values() for topic in each)
    best: Glue | None = None
    for topic, count in sorted(shared.items(), key=lambda item: (-item[1], item[0]))[:TRIED]:
        if count > 1:
            without = max(map(len, components(within, cut | {topic})))
            if without < len(largest) and (best is None or without < best.without):
                best = Glue(topic, len(largest), without)
    return best


def pack(groups: Sequence[Group], scores: Mapping[str, int], max_groups: int, max_partitions: int,
         cut: Set[str] = frozenset()) -> tuple[Wave, ...]:
    """Components in ascending risk (the lowest score of their groups counts), each whole, into waves under the caps.

    The order of `groups` does not matter. A component above a cap is a wave of its own and says so.
    """
    by_name = {group.name: group for group in groups}
    connected = components({group.name: group.topics for group in groups}, cut)
    size = {each: sum(by_name[name].partitions for name in each) for each in connected}
    ordered = sorted(connected, key=lambda each: (-min(scores[name] for name in each), size[each], each))
    waves: list[list[tuple[str, ...]]] = []
    for each in ordered:
        now = waves[-1] if waves else None
        if now is not None and sum(map(len, [*now, each])) <= max_groups and sum(
                size[one] for one in [*now, each]) <= max_partitions:
            now.append(each)
        else:
            waves.append([each])
    return tuple(_wave(number, wave, size, max_groups, max_partitions) for number, wave in enumerate(waves, 1))


def _wave(number: int, wave: Sequence[tuple[str, ...]], size: Mapping[tuple[str, ...], int], max_groups: int,
          max_partitions: int) -> Wave:
    names, partitions = tuple(name for each in wave for name in each), sum(size[each] for each in wave)
    over = [f"{len(names)} groups, where {max_groups} are wanted"] * (len(names) > max_groups)
    over += [f"{partitions} partitions, where {max_partitions} are wanted"] * (partitions > max_partitions)
    return Wave(number, names, partitions, "; ".join(over) + (": they share topics" if over else ""))


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
    """The resource of one group. Raises BadConfig where the settings make none that is valid."""
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


def _connection(party: Kafka | ZooKeeper) -> dict[str, Any]:
    return party.model_dump(by_alias=True, exclude_none=True, include={"bootstrap_servers", "connect", "credentials_ref"})


def document(wave: Wave, migrations: Sequence[dict[str, Any]]) -> str:
    """The file of one wave. The same groups give the same text. By libyaml, which a large fleet's manifests need."""
    head = f"# Wave {wave.number}: {len(migrations)} of {len(wave.groups)} groups, {wave.partitions} partitions.\n"
    return head + yaml.dump_all(
        migrations, Dumper=yaml.CSafeDumper, sort_keys=False, explicit_start=True, allow_unicode=False)
