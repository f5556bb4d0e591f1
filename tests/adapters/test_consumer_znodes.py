"""What one member reads and writes in ZooKeeper, transaction by transaction, on a real server."""

import contextlib
import json
import queue
import uuid
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from adapters.clusters import KafkaCluster
from patience import stretched, until
from switchover.consumer.messages import Changed, Event, OwnerFreed, OwnerGone
from switchover.consumer.znodes import GUARD, Taken, Znodes, brokers, endpoints
from switchover.coordination.acknowledgement import Acknowledgement
from switchover.coordination.layout import Layout
from switchover.coordination.registration import Registration
from switchover.shared.partition import TopicPartition

P, Q = TopicPartition("t", 0), TopicPartition("t", 1)


class Peer:
    """A member with a session of its own, and what its watches told."""

    def __init__(self, client: KazooClient, group: str, name: str, *, enabled: bool = True) -> None:
        self.client, self.name, self.layout = client, name, Layout(group)
        self.session: int = client.client_id[0]
        self.told: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.znodes = Znodes(client, self.session, self.layout, name, Registration({"t": 1}), enabled, self.told.put)

    def owner(self, partition: TopicPartition) -> tuple[bytes, int, int]:
        """Its value, its session and its version."""
        data, stat = self.client.get(self.layout.owner(partition))
        return data, stat.ephemeralOwner, stat.version

    def hears(self) -> set[Event]:
        found = {self.told.get(timeout=stretched(10))}
        while not self.told.empty():
            found.add(self.told.get())
        return found


def started(connect: str, opened: contextlib.ExitStack) -> KazooClient:
    client = KazooClient(connect)
    client.start()
    opened.callback(client.close)
    opened.callback(client.stop)
    return client


@pytest.fixture
def peers(zookeeper_cluster: KafkaCluster) -> Iterator[tuple[Peer, Peer]]:
    """Two members of a group, the first registered, in a chroot without a broker."""
    with contextlib.ExitStack() as opened:
        root = started(str(zookeeper_cluster.zookeeper.address), opened)
        chroot = f"/{uuid.uuid4().hex}"
        root.create(f"{chroot}/brokers/topics", makepath=True)
        made = [Peer(started(f"{zookeeper_cluster.zookeeper.address}{chroot}", opened), "group", name)
                for name in ("one", "two")]
        made[0].znodes.register()
        yield made[0], made[1]


def test_registered_in_both_places_or_in_none(peers: tuple[Peer, Peer]) -> None:
    one, _ = peers
    one.znodes.register()
    assert one.znodes.is_registered()
    world = one.znodes.read()
    assert (list(world.registrations), world.old) == (["one"], ())
    assert one.client.get(f"{one.layout.root}")[0] is None, "as the old consumer leaves it"
    assert one.client.get(one.layout.ids)[0] == b""
    one.client.delete(one.layout.registration("one"))
    assert not one.znodes.is_registered()
    one.znodes.register()
    assert one.znodes.is_registered(), "what is missing alone is made again"
    other = Peer(peers[1].client, one.layout.group, "one")
    with pytest.raises(Taken, match=f"{one.session:#x}"):
        other.znodes.register()


def test_without_migration_nothing_is_below_migration(peers: tuple[Peer, Peer]) -> None:
    plain = Peer(peers[1].client, "plain", "plain", enabled=False)
    plain.znodes.register()
    assert plain.znodes.read().old == ("plain",)
    assert plain.client.exists(f"{plain.layout.root}/migration") is None


def test_a_claim_is_refused_over_an_owner_and_told_when_it_is_freed(peers: tuple[Peer, Peer]) -> None:
    one, two = peers
    two.znodes.register()
    assert one.znodes.claim({P: "one-0"}) == {P}
    assert one.owner(P) == (b"one-0", one.session, 1)
    assert two.znodes.claim({P: "two-0", Q: "two-0"}) == {Q}
    one.znodes.release(frozenset({P}), guard=False)
    assert two.hears() == {OwnerFreed(P)}
    assert two.znodes.claim({P: "two-0"}) == {P}


def test_a_claim_whose_answer_was_lost_is_ours(peers: tuple[Peer, Peer]) -> None:
    one, _ = peers
    one.znodes.claim({P: "one-0"})
    assert one.znodes.claim({P: "one-0"}) == {P}
    assert one.znodes.claim({P: "one-1"}) == {P}, "of the same session, for another stream"
    assert one.owner(P) == (b"one-1", one.session, 1)


def test_nothing_is_claimed_in_a_session_that_is_not_registered(peers: tuple[Peer, Peer]) -> None:
    one, two = peers
    one.znodes.claim({P: "one-0"})
    with pytest.raises(NoNodeError):
        two.znodes.claim({Q: "two-0"})
    assert two.client.exists(two.layout.owner(Q)) is None


def test_a_guard_takes_the_place_of_an_owner_and_gives_it_back(peers: tuple[Peer, Peer]) -> None:
    one, two = peers
    two.znodes.register()
    one.znodes.claim({P: "one-0"})
    one.znodes.release(frozenset({P}), guard=True)
    one.znodes.release(frozenset({P}), guard=True)
    assert one.owner(P) == (GUARD, 0, 0)
    one.znodes.guard(frozenset({P, Q}))
    assert one.owner(Q) == (GUARD, 0, 0)
    assert two.znodes.claim({P: "two-0", Q: "two-0"}) == {P, Q}
    assert {two.owner(each) for each in (P, Q)} == {(b"two-0", two.session, 1)}


def test_another_sessions_node_is_not_released(peers: tuple[Peer, Peer]) -> None:
    one, two = peers
    two.znodes.register()
    one.znodes.claim({P: "one-0"})
    one.client.delete(one.layout.owner(P))
    two.znodes.claim({P: "two-0"})
    one.znodes.release(frozenset({P}), guard=True)
    assert one.owner(P) == (b"two-0", two.session, 1)


def test_an_owner_node_that_goes_is_told_and_one_that_changes_is_watched_on(peers: tuple[Peer, Peer]) -> None:
    one, two = peers
    one.znodes.claim({P: "one-0"})
    two.client.set(two.layout.owner(P), b"one-0")
    assert (one.hears(), one.znodes.has_lost(P)) == ({OwnerGone(P)}, False)
    two.client.delete(two.layout.owner(P))
    assert (one.hears(), one.znodes.has_lost(P), one.znodes.has_lost(P)) == ({OwnerGone(P)}, True, False)


def test_offsets_are_written_over_our_owner_node_alone(peers: tuple[Peer, Peer]) -> None:
    one, two = peers
    one.znodes.claim({P: "one-0", Q: "one-0"})
    assert one.znodes.offsets([P, Q]) == {P: None, Q: None}
    for offset in (5, 7):
        assert one.znodes.commit({P: offset, Q: 2}) == frozenset()
    assert one.znodes.offsets([P, Q]) == {P: 7, Q: 2}
    two.client.delete(two.layout.owner(P))
    two.client.create(two.layout.owner(P), b"one-0", ephemeral=True)
    assert one.znodes.commit({P: 9, Q: 9}) == {P}, "the value is ours, the node is not: an old consumer made it"
    assert one.znodes.offsets([P, Q]) == {P: 7, Q: 9}
    two.client.set(two.layout.offset(P), b"-1")
    assert one.znodes.offsets([P]) == {P: None}


def test_everything_that_was_read_is_watched(peers: tuple[Peer, Peer]) -> None:
    one, two = peers
    topic = "/brokers/topics/wide"
    wide = Peer(two.client, one.layout.group, "wide")
    wide.znodes = Znodes(two.client, two.session, one.layout, "wide", Registration({"wide": 1}), True,
                         wide.told.put)
    wide.znodes.register()
    for change in (
        lambda: one.client.create(one.layout.mode, b"kafka"),
        lambda: one.client.set(one.layout.mode, b"zookeeper"),
        lambda: one.client.create(topic, json.dumps({"partitions": {"0": [1]}}).encode()),
        lambda: one.client.set(topic, json.dumps({"partitions": {"0": [1], "1": [1]}}).encode()),
        lambda: one.client.delete(one.layout.acknowledgement("one")),
        lambda: one.client.delete(one.layout.registration("one")),
    ):
        wide.znodes.read()
        assert wide.told.empty()
        change()
        assert wide.hears() == {Changed()}


def test_old_consumers_are_woken_by_a_registration_that_comes_back(peers: tuple[Peer, Peer]) -> None:
    one, _ = peers
    two_sees = one.client.exists(one.layout.ids).pzxid
    one.znodes.wake()
    assert one.znodes.is_registered()
    assert one.client.exists(one.layout.ids).pzxid > two_sees


def test_what_could_not_be_told_is_told_with_the_next_reading(peers: tuple[Peer, Peer]) -> None:
    one, _ = peers
    told = Acknowledgement(waits="for it")
    one.client.delete(one.layout.acknowledgement("one"))
    with pytest.raises(NoNodeError):
        one.znodes.acknowledge(told)
    one.znodes.register()
    until(lambda: one.znodes.read().acknowledgements == {"one": told}, "it is told", 5)


def test_the_brokers_that_zookeeper_names(zookeeper_cluster: KafkaCluster) -> None:
    with contextlib.ExitStack() as opened:
        assert brokers(started(zookeeper_cluster.zookeeper_connect, opened)) == zookeeper_cluster.bootstrap


@pytest.mark.parametrize(("registered", "found"), [
    ({"version": 1, "host": "h", "port": 9092}, ["h:9092"]),
    ({"version": 3, "endpoints": ["SSL://h:9093", "PLAINTEXT://h:9092"], "host": "h", "port": 9092}, ["h:9092"]),
    ({"version": 5, "endpoints": ["IN://h:9094", "OUT://[::1]:9095"], "host": None, "port": -1,
      "listener_security_protocol_map": {"IN": "SASL_SSL", "OUT": "PLAINTEXT"}}, ["[::1]:9095"]),
])
def test_where_a_broker_answers_in_plaintext(registered: dict[str, object], found: list[str]) -> None:
    assert endpoints(registered) == found
