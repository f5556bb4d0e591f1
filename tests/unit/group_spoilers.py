"""What can be wrong with a picture of a ConsumerGroupMigration: each of these changes one thing about it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from switchover.answers.observed import Known, Unknown
from switchover.engine.policy import Policy
from switchover.groups.facts import GroupSample
from switchover.groups.picture import Picture
from switchover.groups.reading import POLICY
from switchover.kubernetes.members import Autoscaler
from switchover.kubernetes.workloads import Manager
from switchover.lag.group import TopicPartition
from unit.group_pictures import (
    AUDIT,
    CLASSIC,
    NOW,
    broker,
    member,
    pod,
    samples,
    spec_of,
    template,
    value,
    with_brokers,
    with_fact,
    with_group,
    with_source,
)

FIRST = TopicPartition("orders", 0)


def then(*changes: Callable[[Picture], Picture]) -> Callable[[Picture], Picture]:
    def change(picture: Picture) -> Picture:
        for each in changes:
            picture = each(picture)
        return picture

    return change


def instead(make: Callable[[], Picture]) -> Callable[[Picture], Picture]:
    """Another moment altogether."""
    return lambda _: make()


def known(fact: str, found: object) -> Callable[[Picture], Picture]:
    return lambda picture: with_fact(picture, fact, Known(found, NOW))


def unread(fact: str) -> Callable[[Picture], Picture]:
    return lambda picture: with_fact(picture, fact, Unknown("no answer"))


def specced(*workloads: Mapping[str, Any], **changes: Any) -> Callable[[Picture], Picture]:
    return lambda picture: replace(picture, spec=spec_of(*workloads, **changes))


with_baseline = specced(gates={"baselineRef": {"name": "usual"}})


def audited_by(policy: Policy) -> Callable[[Picture], Picture]:
    return lambda picture: replace(picture, spec=picture.spec.evolve(audit=AUDIT), policy=policy)


# --- the group and its members ------------------------------------------------------------------------------------------


def stranger(picture: Picture) -> Picture:
    members = value(picture.facts.group).members
    return with_group(members=(*members, member(pod("legacy", "10.9.9.9", ""), CLASSIC, (), 17)))(picture)


def malformed(picture: Picture) -> Picture:
    return with_fact(picture, "group", Unknown("member m breaks the protocol", refused=True, malformed=True))


def sampled(*found: GroupSample) -> Callable[[Picture], Picture]:
    return known("samples", found)


def stands(*partitions: TopicPartition) -> Callable[[Picture], Picture]:
    return sampled(*samples(stands=frozenset(partitions)))


def rewound(picture: Picture) -> Picture:
    """The first partition's commit went back in the last sweep."""
    *before, last = samples()
    return sampled(*before, replace(last, offsets={**last.offsets, FIRST: (5, 3000)}))(picture)


def epochs(*numbers: int) -> Callable[[Picture], Picture]:
    return sampled(*(replace(sample, epoch=epoch) for sample, epoch in zip(
        samples(len(numbers), until=NOW), numbers, strict=True)))


# --- brokers ------------------------------------------------------------------------------------------------------------


def policies(*told: str) -> Callable[[Picture], Picture]:
    return lambda picture: with_fact(picture, "brokers", {
        number: Known(broker(settings={POLICY: policy} if policy else {}), NOW) for number, policy in enumerate(told, 1)})


def limits(setting: str, limit: int) -> Callable[[Picture], Picture]:
    return with_brokers(settings={POLICY: "bidirectional", setting: str(limit)})


# --- workloads and autoscalers ------------------------------------------------------------------------------------------


def environment(**variables: str) -> dict[str, Any]:
    return {"env": [{"name": name, "value": value} for name, value in variables.items()]}


def undone(picture: Picture) -> Picture:
    """The dry run shows the template as it was."""
    return known("trials", {"orders.template": Known(value(picture.source("orders")).template, NOW)})(picture)


def without_source(picture: Picture) -> Picture:
    return with_fact(picture, "fleet", Known(replace(value(picture.facts.fleet), sources={"orders": None}), NOW))


def without_originals(picture: Picture) -> Picture:
    return with_fact(picture, "fleet", Known(replace(value(picture.facts.fleet), originals={"orders": None}), NOW))


def rewritten(by: str, at: float, ours: float) -> Callable[[Picture], Picture]:
    """The Deployment, whose pods are being moved, has its original template again."""
    parts = frozenset({"env of app"})
    return with_source(template=template(), managers=(Manager(by, "Apply", "", at, parts),
                                                      Manager("switchover", "Update", "", ours, parts)))


def let_go(by: str) -> Callable[[Picture], Picture]:
    """Somebody gave the Deployment, two pods of which have moved, other settings."""
    return with_source(min_ready=0, managers=(Manager(by, "Apply", "", NOW - 1, frozenset({"strategy"})),))


def reset_by(by: str) -> Callable[[Picture], Picture]:
    """Somebody gave it another strategy alone."""
    return with_source(update_strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
                       managers=(Manager(by, "Apply", "", NOW - 1, frozenset({"strategy"})),))


def scaler(**changes: Any) -> Autoscaler:
    made = Autoscaler(api_version="autoscaling/v2", kind="HorizontalPodAutoscaler", name="orders", uid="uid-hpa",
                      resource_version="1", settings={"minReplicas": 4})
    return replace(made, **changes)


def kept(autoscaler: Autoscaler) -> Callable[[Picture], Picture]:
    """It was there at Baseline."""
    def change(picture: Picture) -> Picture:
        fleet = value(picture.facts.fleet)
        original = {**fleet.originals["orders"], "autoscalers": {str(autoscaler): autoscaler.settings}}
        return with_fact(picture, "fleet", Known(replace(fleet, originals={"orders": original}), NOW))

    return change
