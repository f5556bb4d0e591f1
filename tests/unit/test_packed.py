"""What is packed comes back as it was, in a tenth of the memory of its dicts."""

import sys
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchover.kubernetes.client.index import Packed

JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(JSON)
def test_it_comes_back_as_it_was(value: Any) -> None:
    assert Packed(value).value() == value


def test_whoever_changes_what_he_got_changes_nothing_that_is_kept() -> None:
    kept = Packed({"spec": {"replicas": 1}})
    kept.value()["spec"]["replicas"] = 2
    assert kept.value() == {"spec": {"replicas": 1}}


@pytest.mark.parametrize("depth", [10, 1_000, 10_000])
def test_what_nests_as_deep_as_the_api_server_lets_it_is_kept_too(depth: int) -> None:
    value: Any = "bottom"
    for _ in range(depth):
        value = {"f:x": value}
    found, levels = Packed(value).value(), 0
    while isinstance(found, dict):
        found, levels = found["f:x"], levels + 1
    assert (found, levels) == ("bottom", depth)


def pod(number: int) -> dict[str, Any]:
    return {
        "metadata": {"name": f"pod-{number}", "namespace": "shop", "uid": f"uid-{number}", "labels": {"app": "orders"},
                     "ownerReferences": [{"kind": "ReplicaSet", "uid": f"owner-{number}", "controller": True}]},
        "spec": {"containers": [{"name": f"c{each}", "image": "registry.example/app:1", "env": [
            {"name": f"VARIABLE_{variable}", "value": f"value {variable} of {number}"} for variable in range(20)]}
            for each in range(2)]},
        "status": {"conditions": [{"type": kind, "status": "True"} for kind in ("Ready", "PodScheduled", "Initialized")]}}


def test_it_takes_a_tenth_of_the_memory() -> None:
    def taken(kept: list[Any]) -> int:
        tracemalloc.start()
        try:
            kept.extend(make(number) for number in range(100))
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    make: Any = pod
    plain = taken([])
    make = lambda number: Packed(pod(number))  # noqa: E731
    assert taken(whole := []) * 10 < plain, sys.getsizeof(whole)
