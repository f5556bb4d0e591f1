"""Slots: which pod fills one, and how far the partition of a StatefulSet may go down."""

from dataclasses import replace

import pytest

from switchover.api.consumer_group_migration import WorkloadKind
from switchover.core.groups import partition, slots
from switchover.core.groups.picture import TARGET, Picture
from switchover.core.groups.workloads import MemberPod
from switchover.core.observed import Unknown
from switchover.core.rollout import Sight
from unit.group_pictures import (
    CLASSIC,
    NOW,
    mixed,
    moment,
    of_stateful_set,
    pod,
    revision_of,
    spec_of,
    template,
    value,
    with_fact,
    with_member,
    with_pod,
    with_source,
    workload_of,
)


def source(picture: Picture):
    return value(picture.facts.fleet).sources["orders"]


def at_partition(number: int, picture: Picture) -> Picture:
    return with_source(update_strategy={"type": "RollingUpdate", "rollingUpdate": {"partition": number}})(picture)


def old(name: str, ip: str, **changes: object) -> dict[str, MemberPod]:
    return {name: pod(name, ip, revision_of(template()), **changes)}


# --- seeing -------------------------------------------------------------------------------------------------------------


def test_a_pod_in_its_mode_fills_its_slot():
    sight = value(slots.sight(of_stateful_set(), "orders/5"))
    assert sight == Sight("uid-of-orders-5", True, False, NOW - 3600, TARGET)


@pytest.mark.parametrize("changes", [{"ready": False}, {"terminating": True}, {"revision": "another"}])
def test_a_pod_that_is_coming_up_is_awaited_and_never_to_be_evicted(changes):
    """A rollout evicts a pod that it sees and that is not where it should be: Kubernetes replaces these by itself."""
    trouble = "ImagePullBackOff: no such image"
    sight = value(slots.sight(with_pod("orders-5", trouble=trouble, **changes)(of_stateful_set()), "orders/5"))
    assert (sight.uid, sight.trouble) == ("", f"orders-5: {trouble}")


def test_the_clones_pods_fill_the_slots_that_went_to_it():
    assert [value(slots.sight(mixed(), f"orders/{index}")).uid for index in (4, 5)] == [
        "uid-of-orders-switchover-4", "uid-of-orders-switchover-5"]
    awaited = value(slots.sight(with_pod("orders-switchover-4", ready=False)(mixed()), "orders/5"))
    assert awaited.uid == ""


# --- assigning ----------------------------------------------------------------------------------------------------------


def test_a_stateful_set_goes_on_when_the_pod_before_takes_part():
    """Ready is not enough for us: Kubernetes would take the next member away before this one is there."""
    begun = at_partition(6, of_stateful_set())
    begun = with_source(pods={**source(begun).pods, **old("orders-5", "10.0.0.5"), **old("orders-4", "10.0.0.4")})(begun)
    assert slots.assign(begun) == (partition.lower(source(begun), 1),)
    first = at_partition(5, begun)
    assert slots.assign(first) == (), "the pod is not replaced yet"
    there = at_partition(5, of_stateful_set())
    there = with_source(pods={**source(there).pods, **old("orders-4", "10.0.0.4")})(there)
    assert slots.assign(with_member(5, host="10.9.9.9")(there)) == (), "Ready, and no member"
    assert slots.assign(with_member(5, protocol=CLASSIC)(there)) == (), "a member by the old protocol"
    assert slots.assign(with_fact(there, "group", Unknown("no answer"))) == ()
    assert slots.assign(there) == (partition.lower(source(there), 2),)
    assert slots.assign(at_partition(4, of_stateful_set())) == ()


def test_nothing_is_taken_from_the_source_while_the_clones_pods_are_no_members():
    rising = mixed()
    more = {**source(rising).pods, **{each.name: each for each in (pod("orders-4", "10.0.1.4", source(
        rising).update_revision), pod("orders-5", "10.0.1.5", source(rising).update_revision))}}
    rising = with_source(replicas=6, pods=more)(rising)
    (effect,) = slots.assign(rising)
    assert str(effect) == "scale Deployment orders: 6 to 4 replicas"
    assert slots.assign(with_member(4, host="10.9.9.9")(rising)) == ()
    assert slots.assign(with_fact(rising, "group", Unknown("no answer"))) == ()


# --- how many -----------------------------------------------------------------------------------------------------------


def test_each_kind_of_workload_has_a_canary_of_the_same_size_and_bake():
    spec = spec_of(workload_of(), workload_of("StatefulSet", "payments"), rollout={"steps": [
        {"pods": 2, "bakeSeconds": 300}, {"pods": 1, "bakeSeconds": 60}, {"percent": 50, "bakeSeconds": 5}]})
    picture = moment("Canary", spec=spec)
    assert [(size.pods, size.bake) for size in slots.sizes(picture)] == [(2, 300.0), (1, 60.0), (3, 5.0)]
    assert [(size.pods, size.bake) for size in slots.canary_size(picture)] == [(2, 300.0)]
    assert [(size.pods, size.bake) for size in slots.sizes_after_canary(picture)] == [(1, 60.0), (3, 5.0)]
    assert [(size.pods, size.bake) for size in slots.sizes_without_bake(picture)] == [(1, 0.0), (3, 0.0)]
    alone = replace(picture, spec=spec_of(rollout={"steps": [{"pods": 2}]}))
    assert slots.sizes_after_canary(alone) == slots.sizes(alone)


def test_no_batch_is_chosen_of_a_stateful_set_whose_template_is_not_changed_yet():
    """Its partition would go down over the old one."""
    find = slots.left(TARGET, frozenset({WorkloadKind.STATEFUL_SET}))
    waiting = find(of_stateful_set("Canary", "OOOOOO", ()))
    assert isinstance(waiting, Unknown)
    assert "StatefulSet orders does not have its target template yet" in waiting.why
    assert value(find(of_stateful_set()))[2:] == ["orders/3", "orders/2", "orders/1", "orders/0"]
    assert value(find(mixed())) == [], "a Deployment is another rollout's"


def test_what_an_estimate_rests_on():
    assert slots.moves_left(mixed()) == 2
    assert slots.moves_left(moment("Promote", "IIIITT")) == 8
    assert slots.moves_left(of_stateful_set()) == 2
    ended = slots.seconds_left(moment("Settle", "TTTTTT"))
    assert ended == spec_of().soak_seconds
    assert ended < slots.seconds_left(moment("Promote", "IIIITT")) < slots.seconds_left(mixed()) < slots.seconds_left(
        moment("Canary"))
