"""Slots: which pod fills one, and how far the partition of a StatefulSet may go down."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from switchover.answers.observed import Known, Unknown
from switchover.engine.rollout import Sight
from switchover.groups import slots
from switchover.groups.facts import GroupSample
from switchover.groups.picture import TARGET, Picture
from switchover.groups.workloads import leaving, stateful_set
from switchover.kubernetes.members import MemberPod
from unit.group_pictures import (
    BRIDGED,
    CLASSIC,
    NOW,
    PARTITIONS,
    PODS,
    mixed,
    moment,
    of_stateful_set,
    pod,
    revision_of,
    source,
    spec_of,
    template,
    value,
    with_fact,
    with_member,
    with_pod,
    with_source,
    workload_of,
)


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


def test_the_pods_of_the_new_template_fill_the_slots_that_went_to_it():
    assert [value(slots.sight(mixed(), f"orders/{index}")).uid for index in (4, 5)] == ["uid-of-orders-4", "uid-of-orders-5"]
    for name, changes in (("orders-4", {"ready": False}), ("orders-5", {"terminating": True})):
        assert value(slots.sight(with_pod(name, **changes)(mixed()), "orders/5")).uid == "", "both are awaited"


# --- assigning ----------------------------------------------------------------------------------------------------------


def test_a_stateful_set_goes_on_when_the_pod_before_takes_part():
    """Ready is not enough for us: Kubernetes would take the next member away before this one is there."""
    begun = at_partition(6, of_stateful_set())
    begun = with_source(pods={**source(begun).pods, **old("orders-5", "10.0.0.5"), **old("orders-4", "10.0.0.4")})(begun)
    assert slots.assign(begun) == (stateful_set.lower(source(begun), 1),)
    first = at_partition(5, begun)
    assert slots.assign(first) == (), "the pod is not replaced yet"
    there = at_partition(5, of_stateful_set())
    there = with_source(pods={**source(there).pods, **old("orders-4", "10.0.0.4")})(there)
    assert slots.assign(with_member(5, host="10.9.9.9")(there)) == (), "Ready, and no member"
    assert slots.assign(with_member(5, protocol=CLASSIC)(there)) == (), "a member by the old protocol"
    assert slots.assign(with_fact(there, "group", Unknown("no answer"))) == ()
    assert slots.assign(there) == (stateful_set.lower(source(there), 2),)
    assert slots.assign(at_partition(4, of_stateful_set())) == ()


def test_no_old_pod_of_a_deployment_leaves_while_the_new_ones_are_no_members():
    surge = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}}
    here, earlier = source(mixed()), revision_of(template())
    pods = {**here.pods, **old("orders-6", "10.0.1.6"), **old("orders-7", "10.0.1.7")}
    rising = with_source(pods=pods, sizes={earlier: 6, here.update_revision: 2}, paused=False,
                         update_strategy=surge)(mixed())
    assert [str(mark) for mark in slots.assign(rising)] == [
        f"patch Pod {name}: among the first to leave" for name in ("orders-6", "orders-7")], "they are no members yet"
    marked = {name: replace(each, cost=leaving.FIRST) if name in ("orders-6", "orders-7") else each
              for name, each in pods.items()}
    (effect,) = slots.assign(with_source(pods=marked)(rising))
    assert str(effect) == "patch Deployment orders: 2 of 6 pods to its template"
    assert slots.assign(with_member(4, host="10.9.9.9")(rising)) == ()
    assert slots.assign(with_fact(rising, "group", Unknown("no answer"))) == ()


def falling(behind: Mapping[int, int | None]) -> Picture:
    """Two of the four old pods are to leave; what each partition of a pod, by its number, has not committed. None: nothing
    was ever committed there.
    """
    surge = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}}
    here, earlier = source(mixed()), revision_of(template())
    lags = {each: behind.get(each.partition % PODS, 0) for each in PARTITIONS}
    offsets = {each: (None, 100) if lag is None else (100, 100 + lag) for each, lag in lags.items()}
    sample = GroupSample(NOW, 1, offsets)
    rising = with_source(sizes={earlier: 6, here.update_revision: 2}, paused=False, update_strategy=surge)(mixed())
    return with_fact(rising, "samples", Known((sample, sample), NOW))


@pytest.mark.parametrize(("behind", "chosen"), [
    ({0: 5, 1: 1, 2: 9, 3: 0}, ["orders-3", "orders-1"]),
    ({0: 5, 1: 1, 2: 9, 3: None}, ["orders-1", "orders-0"]),
    ({0: 1, 1: 1, 2: 0, 3: 0}, ["orders-2", "orders-3"])])
def test_those_are_chosen_whose_partitions_have_the_least_that_is_not_committed(behind, chosen):
    assert [mark.name for mark in slots.assign(falling(behind))] == chosen


@pytest.mark.parametrize("spoil", [
    lambda picture: with_fact(picture, "samples", Unknown("no answer")),
    lambda picture: with_fact(picture, "group", Known(replace(picture.facts.group.value, members=tuple(
        replace(each, assigned=frozenset()) for each in picture.facts.group.value.members)), NOW))])
def test_while_nobody_can_tell_what_pods_are_worth_none_is_chosen(spoil):
    (effect,) = slots.assign(spoil(falling({0: 5})))
    assert effect.kind == "Deployment"


# --- how many -----------------------------------------------------------------------------------------------------------


def test_the_sizes_and_bakes_of_batches():
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
    find = slots.left(TARGET)
    waiting = find(of_stateful_set("Canary", "OOOOOO", ()))
    assert isinstance(waiting, Unknown)
    assert "StatefulSet orders does not have its target template yet" in waiting.why
    assert value(find(of_stateful_set()))[2:] == ["orders/3", "orders/2", "orders/1", "orders/0"]
    assert isinstance(find(moment("Canary")), Unknown), "a Deployment's as well"


def test_what_an_estimate_rests_on():
    assert slots.moves_left(mixed()) == 2
    bridged = spec_of(workload_of(**BRIDGED))
    assert slots.moves_left(moment("Canary", "IIIITT", spec=bridged)) == 8
    assert slots.moves_left(of_stateful_set()) == 2
    ended = slots.seconds_left(moment("Settle", "TTTTTT"))
    assert ended == spec_of().soak_seconds
    assert ended < slots.seconds_left(mixed()) < slots.seconds_left(moment("Canary")) < slots.seconds_left(
        moment("BridgeCanary", spec=bridged))
