"""The bytes of the embedded consumer protocol, written out here as Kafka's schemas lay them out."""

import pytest

from switchover.kafka.client import consumer_protocol
from switchover.kafka.client.consumer_protocol import NO_GENERATION, Malformed
from switchover.lag.group import TopicPartition

TWO_TOPICS = "00000002 0001 61 0002 6263"
USER_DATA, NO_USER_DATA = "00000003 010203", "ffffffff"
NOTHING_OWNED = "00000000"
GENERATION, RACK = "00000007", "0001 72"

V0 = f"{TWO_TOPICS} {USER_DATA}"
V1 = f"{V0} {NOTHING_OWNED}"
V2 = f"{V1} {GENERATION}"
V3 = f"{V2} {RACK}"

ONE_AND_THREE_OF_A = "00000001 0001 61 00000002 00000001 00000003"


@pytest.mark.parametrize(("version", "body", "generation"), [
    ("0000", V0, NO_GENERATION), ("0001", V1, NO_GENERATION), ("0002", V2, 7), ("0003", V3, 7), ("0009", f"{V3} 0102", 7),
])
def test_a_subscription_of_every_version(version: str, body: str, generation: int) -> None:
    read = consumer_protocol.subscription(bytes.fromhex(version + body))
    assert read.topics == {"a", "bc"}
    assert read.generation == generation


@pytest.mark.parametrize("version", ["0000", "0003", "0009"])
@pytest.mark.parametrize(("user_data", "length"), [(USER_DATA, 3), (NO_USER_DATA, 0), ("00000000", 0)])
def test_an_assignment_of_every_version(version: str, user_data: str, length: int) -> None:
    read = consumer_protocol.assignment(bytes.fromhex(f"{version} {ONE_AND_THREE_OF_A} {user_data}"))
    assert read.partitions == {TopicPartition("a", 1), TopicPartition("a", 3)}
    assert read.user_data == length


def test_no_bytes_are_no_subscription_and_no_assignment() -> None:
    assert consumer_protocol.subscription(b"") == consumer_protocol.Subscription(frozenset(), NO_GENERATION)
    assert consumer_protocol.assignment(b"") == consumer_protocol.Assignment(frozenset(), 0)


@pytest.mark.parametrize("data", ["00", "ffff" + V3, "0003" + V2, "0003 ffffffff", "0003 7fffffff", "0000 00000001 0001 ff"])
def test_what_is_no_subscription(data: str) -> None:
    with pytest.raises(Malformed, match="its subscription cannot be read"):
        consumer_protocol.subscription(bytes.fromhex(data))


@pytest.mark.parametrize("data", ["00", "8000" + ONE_AND_THREE_OF_A + NO_USER_DATA, "0000" + ONE_AND_THREE_OF_A,
                                  "0000 ffffffff ffffffff"])
def test_what_is_no_assignment(data: str) -> None:
    with pytest.raises(Malformed, match="its assignment cannot be read"):
        consumer_protocol.assignment(bytes.fromhex(data))
