"""The old consumer's registrations and arithmetic; the vectors are those of docs/facts/coordination.md#the-arithmetic."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchover.coordination import acknowledgement, mode, registration
from switchover.coordination.acknowledgement import Acknowledgement
from switchover.coordination.assignment import Ambiguous, Strategy, Text, assigned, java_hash
from switchover.coordination.layout import Layout
from switchover.coordination.mode import Mode
from switchover.coordination.registration import Malformed, NotJson, Registration, Subscribed, differs_in_java
from switchover.coordination.world import World
from switchover.shared.partition import TopicPartition

RANGE, ROUND_ROBIN = Strategy


@pytest.mark.parametrize(("text", "value"), [
    ("[orders,10]", 458862962), ("orders-10", -390715897), ("orders-0", 1234322248), ("[orders,0]", -1093576615), ("", 0),
])
def test_java_hash(text: str, value: int) -> None:
    assert java_hash(text) == value


def order(text: Text) -> list[str]:
    """The order in which one stream for each partition gets them."""
    threads = assigned(ROUND_ROBIN, text, {"c": {"orders": 99, "pay": 99}}, {"orders": range(12), "pay": range(4)})
    ids = sorted(f"c-{number}" for number in range(99))
    return [str(partition) for partition, _ in sorted(threads.items(), key=lambda item: ids.index(item[1]))]


def test_the_order_of_round_robin_in_both_texts() -> None:
    pay, orders = [f"pay-{number}" for number in range(4)], [f"orders-{number}" for number in range(12)]
    assert order(Text.UP_TO_0_11) == pay + orders
    assert order(Text.SINCE_1_0) == [*orders[10:], *pay, *orders[:10]]


def test_range_gives_the_first_threads_one_more_and_sorts_them_as_text() -> None:
    found = assigned(RANGE, Text.SINCE_1_0, {"a": {"t": 11}}, {"t": range(13)})
    assert [found[TopicPartition("t", number)] for number in range(5)] == ["a-0", "a-0", "a-1", "a-1", "a-10"]
    assert found[TopicPartition("t", 12)] == "a-9"


def test_who_subscribes_to_nothing_gets_nothing() -> None:
    for strategy in Strategy:
        streams = {"a": {"t": 1, "none": 1}, "b": {}, "c": {"u": 0}}
        found = assigned(strategy, Text.SINCE_1_0, streams, {"t": [0, 1], "u": [0]})
        assert found == {TopicPartition("t", 0): "a-0", TopicPartition("t", 1): "a-0"}


def test_a_hash_that_two_partitions_share_is_refused() -> None:
    with pytest.raises(Ambiguous, match=r"(Aa-0 and BB-0|BB-0 and Aa-0) have the same hash"):
        assigned(ROUND_ROBIN, Text.SINCE_1_0, {"c": {"Aa": 1, "BB": 1}}, {"Aa": [0], "BB": [0]})


@given(
    st.sampled_from(Strategy), st.sampled_from(Text),
    st.dictionaries(st.sampled_from("abcd"), st.dictionaries(st.sampled_from(["t", "u", "v"]), st.integers(0, 3))),
    st.dictionaries(st.sampled_from(["t", "u", "v"]), st.integers(0, 9).map(range)))
def test_every_partition_of_a_subscribed_topic_has_one_thread_that_subscribes(
    strategy: Strategy, text: Text, streams: dict[str, dict[str, int]], partitions: dict[str, range],
) -> None:
    found = assigned(strategy, text, streams, partitions)
    wanted = {topic for topics in streams.values() for topic, count in topics.items() if count}
    assert set(found) == {TopicPartition(topic, each) for topic in wanted for each in partitions.get(topic, ())}
    for partition, thread in found.items():
        consumer, _, number = thread.rpartition("-")
        assert int(number) < streams[consumer][partition.topic]
    alike = len({frozenset(topics) for topics in streams.values()}) == 1
    if alike and len({each for topics in streams.values() for each in topics.values()}) == 1 and strategy is ROUND_ROBIN:
        shares = Counter(found.values())
        assert max(shares.values(), default=0) <= min(shares.values(), default=0) + 1


def test_a_registration_as_the_java_consumer_writes_it() -> None:
    assert Registration({"orders": 2}, timestamp=1795240855786).encoded() == (
        b'{"version":1,"subscription":{"orders":2},"pattern":"static","timestamp":"1795240855786"}')
    assert registration.decoded(Registration({r"edge\.x": 1}, Subscribed.WHITE_LIST, 7).encoded()) == Registration(
        {r"edge\.x": 1}, Subscribed.WHITE_LIST, 7)


@pytest.mark.parametrize(("data", "words"), [
    (None, "is not JSON"), (b"", "is not JSON"), (b"host:1234", "is not JSON"), (b"[]", "not a JSON object"),
    (b'{"pattern":"static"}', "no subscription"), (b'{"subscription":{"t":1.0},"pattern":"static"}', "not an integer"),
    (b'{"subscription":{"t":1}}', "no pattern"), (b'{"subscription":{"t":1},"pattern":"wild"}', "no pattern of static, "),
    (b'{"subscription":{"t":true},"pattern":"static"}', "not an integer"),
])
def test_what_stops_the_old_consumer_is_malformed(data: bytes | None, words: str) -> None:
    with pytest.raises(Malformed, match=words):
        registration.decoded(data)


TOPICS = ["orders", "orders.eu", "ordersXeu", "pay", "__consumer_offsets", "__transaction_state"]


@pytest.mark.parametrize(("pattern", "by", "internal", "topics"), [
    ("orders", Subscribed.WHITE_LIST, False, ["orders"]),
    (" 'orders, pay' ", Subscribed.WHITE_LIST, False, ["orders", "pay"]),
    (r"orders\..*", Subscribed.WHITE_LIST, False, ["orders.eu"]),
    (".*", Subscribed.WHITE_LIST, False, ["orders", "orders.eu", "ordersXeu", "pay"]),
    ("orders.*", Subscribed.BLACK_LIST, False, ["pay"]),
    ("orders.*", Subscribed.BLACK_LIST, True, ["pay", "__consumer_offsets", "__transaction_state"]),
])
def test_lists(pattern: str, by: Subscribed, internal: bool, topics: list[str]) -> None:
    found = Registration({pattern: 3}, by).streams(TOPICS, exclude_internal=not internal)
    assert found == dict.fromkeys(topics, 3)


@pytest.mark.parametrize(("pattern", "differs"), [
    ("orders", False), (r"orders\.eu|pay-.*", False), ("[a-z]+[^0-9]?", False), ("(a|b)*", False), ("^orders$", False),
    (r"\p{Alpha}", True), (r"\d+", True), ("a*+", True), ("a++", True), ("(?=a)b", True), ("(?i)a", True), ("a{1,2}", True),
    ("[a&&[b]]", True), ("(", True), ("ä", True),
])
def test_patterns_that_java_may_read_otherwise(pattern: str, differs: bool) -> None:
    assert differs_in_java(pattern) is differs


@pytest.mark.parametrize(("data", "found"), [
    (b"kafka", Mode.KAFKA), (b"zookeeper", Mode.ZOOKEEPER), (b"kafka\n", None), (b"Kafka", None), (b"", None), (None, None),
    (b"\xff", None),
])
def test_the_mode_is_exact(data: bytes | None, found: Mode | None) -> None:
    assert mode.parsed(data) is found


def test_an_acknowledgement_comes_back() -> None:
    told = Acknowledgement(Mode.KAFKA, 3, 7, frozenset({TopicPartition("t", 1), TopicPartition("t", 0)}), "g_old is old")
    assert acknowledgement.decoded(told.encoded()) == told


@pytest.mark.parametrize("data", [None, b"", b"{}", b"[1]", b'{"version":1,"subscription":{},"pattern":"static"}'])
def test_what_others_write_there_is_none(data: bytes | None) -> None:
    assert acknowledgement.decoded(data) is None


def test_paths() -> None:
    layout, partition = Layout("g"), TopicPartition("t", 3)
    assert layout.registration("g_a") == "/consumers/g/ids/g_a"
    assert layout.acknowledgement("g_a") == "/consumers/g/migration/ids/g_a"
    assert layout.mode == "/consumers/g/migration/mode"
    assert (layout.owner(partition), layout.offset(partition)) == ("/consumers/g/owners/t/3", "/consumers/g/offsets/t/3")


@pytest.mark.parametrize(("world", "told"), [
    (World(malformed={"host:uuid": NotJson("is not JSON")}), "the registration of host:uuid is not JSON"),
    (World(strange_owners=("/c/g/owners/b't'/1-0",)), "/c/g/owners/b't'/1-0 is no old consumer's owner node"),
    (World({"g_java": Registration({"t": 1})}, malformed={"g_x": "has no subscription"}), ""),
])
def test_a_client_of_another_make_is_told_from_a_java_consumer(world: World, told: str) -> None:
    assert world.foreign == told
