"""The plan of a ConsumerGroupMigration before it begins: how its templates change, how many pods are replaced, how long."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from switchover.answers.observed import Known
from switchover.api.consumer_group_migration import Workload
from switchover.groups import slots
from switchover.groups.picture import Picture
from switchover.groups.workloads.change import FIELDS, Unsupported, changed, container_of, own_places
from switchover.groups.workloads.places import Item, Place, differences, found, leaves, words
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
            yield from (f"{sign} {words(each)}={shown(_secret(each), value)}"
                        for sign, side in (("-", before), ("+", after)) for each, value in leaves(found(side, place), place))


def _secret(place: Place) -> str:
    """By what a value may be told to be secret: the variable or annotation that it is of, and not the path to it."""
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
