"""A StatefulSet by its partition: the patches, and when the template may be changed."""

from dataclasses import replace

import jsonpatch
import pytest

from switchover.groups.workloads import stateful_set
from unit.consumers import NEW, after, manifest, pod, pods, workload

ON_DELETE = {"type": "OnDelete"}


def made(**changes):
    return workload(manifest("StatefulSet"), **changes)


@pytest.mark.parametrize("strategy", [ON_DELETE, {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}])
def test_held_settled_lowered_and_given_back(strategy):
    made = manifest("StatefulSet")
    made["spec"]["updateStrategy"] = strategy
    settled = after(made, stateful_set.settle(workload(made)))
    assert settled["spec"]["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    held = after(settled, stateful_set.hold(workload(settled)))
    assert [stateful_set.is_held(workload(each)) for each in (made, settled, held)] == [False, False, True]
    lowered = after(held, stateful_set.lower(workload(held), 1))
    assert lowered["spec"]["updateStrategy"]["rollingUpdate"] == {"partition": 2}
    assert not stateful_set.is_held(workload(lowered))
    assert after(lowered, stateful_set.restore_strategy(workload(lowered), strategy))["spec"] == made["spec"]


@pytest.mark.parametrize("effect", [stateful_set.hold, stateful_set.settle, lambda each: stateful_set.lower(each, 1),
                                    lambda each: stateful_set.restore_strategy(each, ON_DELETE)])
def test_each_is_fenced_by_object_and_generation(effect):
    made = manifest("StatefulSet")
    for field in ("uid", "generation"):
        other = {**made, "metadata": {**made["metadata"], field: "another"}}
        with pytest.raises(jsonpatch.JsonPatchTestFailed):
            after(other, effect(workload(made)))


def test_settled_only_when_whatever_starts_is_what_runs():
    assert stateful_set.settled(made())
    assert not stateful_set.settled(made(caught_up=False))
    assert not stateful_set.settled(made(current_revision="of-long-ago")), "as OnDelete leaves it"
    mixed = pods(pod("orders-0"), pod("orders-1"), pod("orders-2", NEW))
    assert not stateful_set.settled(made(pods=mixed))


def test_turned_round_in_the_middle_a_pod_comes_back_as_one_of_those_that_are_here():
    mixed = pods(pod("orders-0"), pod("orders-1"), pod("orders-2", NEW))
    assert stateful_set.comes_back(made())
    for revisions in ({}, {"current_revision": NEW}, {"update_revision": NEW}):
        assert stateful_set.comes_back(made(pods=mixed, **revisions))
    assert not stateful_set.comes_back(made(pods=mixed, current_revision="of-long-ago"))
    assert not stateful_set.comes_back(made(pods=mixed, caught_up=False))
    assert stateful_set.comes_back(made(update_revision=NEW)), "its template was changed, and no pod has followed"
    assert not stateful_set.comes_back(made(current_revision="of-long-ago"))


def test_held_is_what_the_change_of_a_template_is_fenced_by():
    made = manifest("StatefulSet")
    for found, held in ((2, False), (3, True), (100, False)):
        made["spec"]["updateStrategy"]["rollingUpdate"]["partition"] = found
        assert stateful_set.is_held(workload(made)) is held


def test_the_highest_ordinals_go_first_from_wherever_they_begin():
    assert stateful_set.highest(made(), 2) == ("orders-2", "orders-1")
    assert stateful_set.highest(made(first_ordinal=5), 3) == ("orders-7", "orders-6", "orders-5")
    assert stateful_set.highest(made(), 0) == ()


def test_what_would_restart_under_a_strategy():
    found = made(update_revision=NEW, pods=pods(pod("orders-0"), pod("orders-1"), pod("orders-2", NEW)))
    rolling = {"type": "RollingUpdate"}
    assert stateful_set.would_restart(found, rolling) == ("orders-1", "orders-0")
    assert stateful_set.would_restart(found, {**rolling, "rollingUpdate": {"partition": 1}}) == ("orders-1",)
    assert stateful_set.would_restart(found, {**rolling, "rollingUpdate": {"partition": 2}}) == ()
    assert stateful_set.would_restart(found, {**rolling, "rollingUpdate": {"partition": 9}}) == ()
    assert stateful_set.would_restart(found, ON_DELETE) == ()
    missing = replace(found, pods=pods(pod("orders-0", NEW), pod("orders-1", NEW)))
    assert stateful_set.would_restart(missing, rolling) == ("orders-2",), "what is not there has not been seen"
