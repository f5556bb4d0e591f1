"""What a migration would do, and what stands in its way, before anybody has written it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from switchover.answers.observed import Known
from switchover.api.consumer_group_migration import (
    ConsumerGroupMigrationSpec,
    ContainerChange,
    ProtocolMigration,
    Workload,
)
from switchover.api.meta import KafkaConnection
from switchover.engine.approvals import PREFLIGHT
from switchover.engine.gate import Verdict, complete, fail
from switchover.engine.position import Position
from switchover.groups import slots
from switchover.groups.gates.convergence import check_offsets_replicated
from switchover.groups.gates.protocol import to_consumer
from switchover.groups.picture import Facts, Picture
from switchover.groups.preflight.brokers import (
    FIRST,
    find_old_brokers,
    find_policy,
    find_too_large_records,
    find_too_many_members,
    find_unclear_release,
)
from switchover.groups.preflight.group import find_custom_assignments, find_lost_co_partitioning, find_wrong_group
from switchover.groups.reading import brokers
from switchover.groups.workloads.change import FIELDS, Unsupported, changed, container_of, own_places
from switchover.groups.workloads.places import Item, Place, as_text, differences, found, leaves
from switchover.kafka.group import BrokerGroups
from switchover.reasons.workloads import PROTOCOL_REFUSED
from switchover.text.visible import shown


@dataclass(frozen=True, slots=True)
class WorkloadPreview:
    """One workload: its pods, how often each is replaced, and what its template becomes, change by change.

    `changes` has the lines that go and come (`- image=…`, `+ spec.volumes[config].configMap.name=…`) of each; secret values
    are hidden.
    """

    name: str
    pods: int
    replaced_each: int
    changes: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class GroupPreview:
    """All workloads, the pods replaced in all, and the seconds that batches, bakes and the soak take at the assumed pace."""

    workloads: tuple[WorkloadPreview, ...]
    replaced: int
    seconds: float


def preview(picture: Picture) -> GroupPreview | None:
    """What will be done; None while a workload cannot be seen."""
    found: list[WorkloadPreview] = []
    for workload in picture.spec.workloads:
        source = picture.source(workload.name)
        if not isinstance(source, Known):
            return None
        each = (2 if workload.bridge is not None else 1) if picture.replaces else 0
        changes = _changes(workload, source.value.template)
        found.append(WorkloadPreview(workload.name, source.value.replicas, each, changes))
    at = replace(picture.position, nodes=slots.assign_slots(picture))
    return GroupPreview(tuple(found), sum(each.pods * each.replaced_each for each in found),
                        slots.seconds_left(picture.at(at)))


def _changes(workload: Workload, template: Mapping[str, Any]) -> Mapping[str, tuple[str, ...]]:
    wanted = {"bridge": workload.bridge, "template": workload.template}
    found: dict[str, tuple[str, ...]] = {}
    for name, change in wanted.items():
        if change is not None:
            try:
                lines = difference(template, changed(template, workload.container, change), workload.container)
            except Unsupported as why:
                lines = iter((str(why),))
            found[name] = tuple(lines)
    return found


def difference(before: Mapping[str, Any], after: Mapping[str, Any], container: str) -> Iterator[str]:
    """The lines that go and come, first of the container's own settings and then of each place of the template."""
    old, new = (_settings(container_of(template, container)[1]) for template in (before, after))
    for key in sorted({*old, *new}):
        for sign, side in (("-", old), ("+", new)):
            if key in side and old.get(key) != new.get(key):
                yield f"{sign} {key}={shown(key, side[key])}"
    for place in differences(before, after):
        if not any(place[:len(each)] == each for each in own_places(container)):
            yield from (f"{sign} {as_text(each)}={shown(_secret(each), value)}"
                        for sign, side in (("-", before), ("+", after)) for each, value in leaves(found(side, place), place))


def _secret(place: Place) -> str:
    """By what a value may be known to be secret: the variable or annotation that it is of, and not the path to it."""
    for step, following in pairwise(place):
        if step == "env" and isinstance(following, Item):
            return str(following.value)
    return str(place[-1]) if place[:2] == ("metadata", "annotations") else ""


def _settings(container: Mapping[str, Any]) -> Mapping[str, str]:
    """Image, arguments and every variable as one line each."""
    variables = {f"env {each['name']}": str(each.get("value", "of a reference" if "valueFrom" in each else ""))
                 for each in container.get("env") or ()}
    plain = {field: str(container[field]) for field in FIELDS if field != "env" and container.get(field)}
    return plain | variables


Goal = Literal["Consumer", "Classic"]
Find = Callable[[Picture], Iterable[Verdict]]

SERVED = "group.coordinator.rebalance.protocols"
"""A broker's setting, which has all protocols by default (Kafka 4.0)."""


def of_brokers(facts: Facts, to: Goal, now: float) -> tuple[Verdict, ...]:
    """What stands in the way of every group, by `facts.brokers` and `facts.offsets_topic`; what is unknown as well."""
    return _judged((find_old_brokers, find_unserved, find_policy, find_unclear_release, _find_short_replicas), "any", facts,
                  to, now)


def of_group(name: str, facts: Facts, to: Goal, now: float) -> tuple[Verdict, ...]:
    """What stands in the way of this one, by the same, `facts.group` and `facts.partitions`."""
    more = (find_custom_assignments, find_lost_co_partitioning, find_too_many_members, find_too_large_records)
    return _judged((find_wrong_group, *(more if isinstance(facts.group, Known) else ())), name, facts, to, now)


def find_unserved(picture: Picture) -> Iterator[Verdict]:
    """By its setting. What a coordinator answers to a heartbeat says more, and is a question for each group."""
    if not to_consumer(picture):
        return
    for broker_id, answer in brokers(picture).items():
        if answer.release >= FIRST and (served := _served(answer)) and "consumer" not in served:  # older: its own finding
            yield fail(PROTOCOL_REFUSED, f"broker {broker_id} does not serve the consumer protocol",
                       subject=f"broker {broker_id}", observed=", ".join(served), threshold="consumer",
                       unblocks=f"add consumer to the brokers' {SERVED}")


def _served(answer: BrokerGroups) -> tuple[str, ...]:
    return tuple(each.strip().lower() for each in answer.settings.get(SERVED, "").split(",") if each.strip())


def _find_short_replicas(picture: Picture) -> Iterator[Verdict]:
    yield check_offsets_replicated(picture)


def _judged(finds: Iterable[Find], name: str, facts: Facts, to: Goal, now: float) -> tuple[Verdict, ...]:
    picture = Picture("", "", "", _shortest_spec(name, to), Position(step=PREFLIGHT, opened=now), facts, now)
    found = dict.fromkeys(each for find in finds for each in complete(find, picture) if each.reason != "Passed")
    return tuple(found)


def _shortest_spec(group: str, to: Goal) -> ConsumerGroupMigrationSpec:
    """The shortest one; nobody looks at its workload. A group may have a name that no spec may have: it is not checked."""
    nobody = Workload(name="any", container="any", template=ContainerChange())
    spec = ConsumerGroupMigrationSpec(group="any", kafka=KafkaConnection(bootstrap_servers="any:9092"), workloads=(nobody,),
                                      protocol=ProtocolMigration(to=to))
    return spec.model_copy(update={"group": group})
