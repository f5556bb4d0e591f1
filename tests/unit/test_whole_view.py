"""What a broker answers of all partitions, whatever was read before; a partition in the same bytes is read once."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.views import metadata_answer
from switchover.answers import memory
from switchover.answers.errors import NoMetadata, Refused
from switchover.cluster.observe.brokers import MOST_PARTITIONS, whole
from switchover.kafka.client.bounds import Unreadable
from switchover.kafka.client.metadata import PARTITION, WholeViews
from switchover.kafka.node import Partition, seen_by
from switchover.network.addresses import Address

BROKER = Address("kafka-0", 9092)
HEADER = b"\0\0\0\1\0"
Told = Sequence[Partition]

brokers = st.lists(st.integers(0, 300), min_size=0, max_size=4, unique=True).map(tuple)
partitions = st.builds(
    Partition, st.sampled_from(["a", "b", "ü" * 100]), st.integers(0, 300), st.integers(-1, 300), brokers, brokers)
answers = st.lists(st.lists(partitions, max_size=8, unique_by=lambda each: (each.topic, each.index)), min_size=1, max_size=5)


def answer(told: Told, known: tuple[int, ...] = (1, 2)) -> bytes:
    return HEADER + metadata_answer(dict.fromkeys(known, Address("kafka", 9092)), told)


def of_topics(told: Told) -> tuple[Partition, ...]:
    return tuple(sorted(told, key=lambda each: [each.topic for each in told].index(each.topic)))


@given(answers)
def test_each_answer_is_read_as_it_is_whatever_was_read_before(told: list[list[Partition]]) -> None:
    views = WholeViews()
    for each in told:
        view = views.read(BROKER, answer(each))
        assert view.partitions == of_topics(each)
        assert {*view.lagging} == {each for each in each if each.leader < 0 or {*each.isr} != {*each.replicas}}
        assert view.brokers == {1: Address("kafka", 9092), 2: Address("kafka", 9092)}


ALL = [Partition(name, index, 1, (1, 2), (1, 2)) for name in ("a", "b") for index in range(3)]
ONE_LESS = [replace(each, isr=(1,)) if each is ALL[1] else each for each in ALL]


def test_what_is_told_in_the_same_bytes_is_the_same_object() -> None:
    views = WholeViews()
    first, same, changed = (views.read(BROKER, answer(told)) for told in (ALL, ALL, ONE_LESS))
    assert all(same.topics[name] is first.topics[name] for name in "ab")
    assert changed.topics["b"] is first.topics["b"]
    assert [each is now for each, now in zip(first.partitions, changed.partitions, strict=True)] == [
        each is not ALL[1] for each in ALL]
    assert [(witness, name) for witness, name, _ in seen_by({1: first, 2: same, 3: changed})] == [
        (1, "a"), (1, "b"), (3, "a")]


def test_partitions_in_another_order_are_not_read_again() -> None:
    views = WholeViews()
    first, turned = views.read(BROKER, answer(ALL)), views.read(BROKER, answer(ALL[::-1]))
    assert {id(each) for each in first.partitions} == {id(each) for each in turned.partitions}


@pytest.mark.parametrize("before", [(), ALL])
def test_an_answer_that_ends_early_is_unreadable(before: Told) -> None:
    data = answer(ALL)
    for size in range(len(HEADER), len(data) - 1):
        views = WholeViews()
        views.read(BROKER, answer(before))
        with pytest.raises(Unreadable):
            views.read(BROKER, data[:size])


def test_a_broker_that_knows_of_none_has_not_been_told() -> None:
    with pytest.raises(NoMetadata):
        WholeViews().read(BROKER, answer(ALL, known=()))


def test_more_partitions_than_there_is_memory_for_are_refused_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = memory.Budget(lambda: 4 * PARTITION * len(ALL))
    monkeypatch.setattr(memory, "ANSWERS", budget)
    views = WholeViews()
    views.read(BROKER, answer(ALL))
    with pytest.raises(Refused, match=r"a view of 7 partitions from broker kafka-0:9092 is more than there is memory for"):
        views.read(BROKER, answer([*ALL, Partition("b", 3, 1, (1,), (1,))]))
    assert budget.held == PARTITION * len(ALL)
    del views
    assert budget.held == 0


@pytest.mark.parametrize(("partitions", "asked"), [(0, 100), (6_000, 100), (40_000, 15), (200_000, 3), (10_000_000, 3)])
def test_of_many_brokers_as_many_are_asked_for_partitions_as_the_work_allows(partitions: int, asked: int) -> None:
    moving = range(0, 50)
    found = whole(range(100), moving, partitions)
    assert len(found) == asked
    assert asked == 100 or found.isdisjoint(moving)
    assert asked * partitions <= max(MOST_PARTITIONS, 3 * partitions)


def test_where_all_are_moving_some_of_them_are_asked() -> None:
    assert len(whole(range(100), range(100), 200_000)) == 3
