"""Pods from one Deployment to another: more first, less only when the new ones are Ready; from any point, either way."""

from dataclasses import replace

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchover.core.groups.replicas import exchange, is_exchanged, scale
from unit.consumers import NEW, OLD, after, manifest, pod, pods, workload


def deployment(count, **changes):
    return workload(manifest(replicas=count), **changes)


def test_scaled_by_its_scale_if_nobody_wrote_since():
    effect = scale(deployment(3), 5)
    assert (effect.subresource, str(effect)) == ("scale", "scale Deployment orders: 3 to 5 replicas")
    seen = {"kind": "Deployment", "metadata": {"name": "orders", "uid": "uid-of-the-workload", "resourceVersion": "70"},
            "spec": {"replicas": 3}}
    assert after(seen, effect)["spec"] == {"replicas": 5}
    for field in ("uid", "resourceVersion"):
        with pytest.raises(jsonpatch.JsonPatchTestFailed):
            after({**seen, "metadata": {**seen["metadata"], field: "another"}}, effect)


def test_less_only_when_every_new_pod_is_ready():
    source, copy = deployment(3), deployment(0)
    assert exchange(copy, source, 1, 3) == scale(copy, 1)
    copy = deployment(1)
    assert exchange(copy, source, 1, 3) == scale(source, 2)
    for ill in ({"ready": False}, {"terminating": True}, {"revision": NEW}):
        waiting = replace(copy, pods=pods(pod("orders-0", **ill)))
        assert exchange(waiting, source, 1, 3) is None
        assert not is_exchanged(waiting, deployment(2), 1, 3)


def test_nothing_is_taken_from_the_one_that_rises():
    """After a turn in the middle of a batch it may have more than its share."""
    assert exchange(deployment(3), deployment(2), 1, 3) is None
    assert exchange(deployment(3), deployment(3), 1, 3) == scale(deployment(3), 2)


def test_done_when_the_others_are_gone_and_not_before():
    copy = deployment(1)
    assert is_exchanged(copy, deployment(2), 1, 3)
    ending = deployment(2, pods=pods(pod("orders-0"), pod("orders-1"), pod("orders-2", terminating=True)))
    assert not is_exchanged(copy, ending, 1, 3), "a pod that ends still consumes"
    assert not is_exchanged(copy, deployment(3), 1, 3)
    for late in ((replace(copy, caught_up=False), deployment(2)), (copy, deployment(2, caught_up=False))):
        assert not is_exchanged(*late, 1, 3)


@given(total=st.integers(1, 6), steps=st.lists(st.tuples(st.booleans(), st.integers(1, 6)), min_size=1, max_size=6))
def test_there_are_never_fewer_ready_pods_than_in_the_beginning(total, steps):
    """Batches of any size, turning round anywhere, with each decision made anew from what is seen."""
    counts = {"source": total, "copy": 0}

    def seen(name):
        made = workload(manifest(replicas=counts[name]))
        return replace(made, uid=name)

    for forward, size in steps:
        rising, falling = ("copy", "source") if forward else ("source", "copy")
        moved = min(total, counts[rising] + size)
        for _ in range(3):
            effect = exchange(seen(rising), seen(falling), moved, total)
            if effect is not None:
                fenced = effect.operations[0]["value"]
                counts[fenced] = effect.operations[-1]["value"]
            assert counts["source"] + counts["copy"] >= total
        assert is_exchanged(seen(rising), seen(falling), moved, total)
        assert counts[rising] + counts[falling] == total


def test_pods_of_an_earlier_template_do_not_count():
    """Promote: the source was changed at 0 replicas; what it brings must be of the new template."""
    mixed = deployment(2, update_revision=NEW, pods=pods(pod("orders-0", NEW), pod("orders-1", OLD)))
    assert mixed.ready() == ("orders-0",)
    assert exchange(mixed, deployment(2), 2, 2) is None
