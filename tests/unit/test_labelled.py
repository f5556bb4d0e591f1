"""Objects that are found by their labels, or by what they are about, are those that a look at all of them finds, whatever
came and went."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from switchover.kubernetes.client.index import ANYTHING, Labelled, Subject

LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"))
EVENTS = st.lists(st.tuples(st.sampled_from("123"), st.none() | LABELS))


@given(EVENTS, LABELS)
def test_the_index_finds_what_a_look_at_all_finds(events: list[tuple[str, dict[str, str] | None]],
                                                  wanted: dict[str, str]) -> None:
    there: dict[str, dict[str, Any]] = {}
    objects = Labelled()
    for name, labels in events:
        if labels is None:
            there.pop(name, None)
            objects.drop(name)
        else:
            there[name] = {"metadata": {"name": name, "labels": labels}}
            objects.put(there[name])
    assert {name: found for name in "123" if (found := objects.get(name)) is not None} == there
    for each in (objects, Labelled(there.values())):
        found = sorted(item["metadata"]["name"] for item in each.carrying(wanted))
        assert found == sorted(name for name, item in there.items() if wanted.items() <= item["metadata"]["labels"].items())


def test_what_carries_no_label_is_among_all_and_nowhere_else() -> None:
    objects = Labelled([{"metadata": {"name": "bare"}}, {"metadata": {"name": "none", "labels": None}}])
    assert len(objects.carrying({})) == 2
    assert objects.carrying({"app": "orders"}) == []


SUBJECTS = st.sampled_from([("target", "Deployment", "a"), ("target", "Deployment", "b"), ANYTHING])


@given(st.lists(st.tuples(st.sampled_from("123"), st.none() | SUBJECTS)), st.sets(SUBJECTS))
def test_and_what_is_about_something_is_found_by_that(
        events: list[tuple[str, Subject | None]], wanted: set[Subject]) -> None:
    there: dict[str, Subject] = {}
    objects = Labelled(subject=lambda found: found["about"])
    for name, about in events:
        if about is None:
            there.pop(name, None)
            objects.drop(name)
        else:
            there[name] = about
            objects.put({"metadata": {"name": name}, "about": about})
    found = sorted(item["metadata"]["name"] for item in objects.about(wanted))
    assert found == sorted(name for name, about in there.items() if about in wanted)
