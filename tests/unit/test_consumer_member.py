"""One migration-enabled member, rule by rule (docs/facts/coordination.md#the-rules); what many of them do together is
in simulation/coordination."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from switchover.consumer import messages as m
from switchover.consumer.commits import Stored
from switchover.consumer.member.following import Rules
from switchover.consumer.member.holdings import KAFKA_PATIENCE, LINGER
from switchover.consumer.member.machine import Member
from switchover.consumer.member.share import PARKED
from switchover.consumer.member.states import Phase
from switchover.consumer.sessions import Lease
from switchover.consumer.znodes import offset_in
from switchover.coordination.acknowledgement import Acknowledgement
from switchover.coordination.mode import Mode
from switchover.coordination.registration import Registration
from switchover.coordination.world import Owner, World
from switchover.shared.partition import TopicPartition

Asked = TypeVar("Asked")
ME, PEER, JAVA = "g_me", "g_peer", "g_java"
P = [TopicPartition("t", number) for number in range(4)]
SESSION = 7


def world(*enabled: str, old: Iterable[str] = (), mode: Mode | None = None,
          owners: Mapping[TopicPartition, Owner] | None = None) -> World:
    registrations = dict.fromkeys([*enabled, *old], Registration({"t": 1}))
    return World(registrations, {}, dict.fromkeys(enabled, Acknowledgement()), mode, (mode or "").encode(),
                 -1 if mode is None else 5, {"t": (0, 1, 2, 3)}, owners or {})


class Driver:
    """A member with a clock. `asked` are the requests since the last look."""

    def __init__(self, **rules: Any) -> None:
        self.member = Member(Rules(ME, **{"commit_interval": None, **rules}))
        self.now = 100.0
        self.asked: list[m.Request] = []

    def tell(self, *events: m.Event) -> "Driver":
        for event in events:
            self.asked += self.member.handle(event, self.now)
        return self

    def after(self, seconds: float) -> "Driver":
        self.now += seconds
        return self.tell(m.Tick())

    def take(self, kind: type[Asked]) -> Asked:
        found = [each for each in self.asked if isinstance(each, kind)]
        assert len(found) == 1, f"{kind.__name__} in {self.asked}"
        self.asked.remove(found[0])  # type: ignore[arg-type]
        return found[0]

    def has(self, kind: type) -> bool:
        return any(isinstance(each, kind) for each in self.asked)

    def sees(self, seen: World) -> "Driver":
        return self.tell(m.WorldRead(self.take(m.ReadWorld).number, seen))

    def registered(self) -> "Driver":
        self.tell(m.Connected(SESSION))
        return self.tell(m.Registered(self.take(m.Register).number))

    def nobody_in_kafka(self, **others: frozenset[TopicPartition]) -> "Driver":
        return self.tell(m.Described(self.take(m.Describe).number, {ME: frozenset(), **others}))

    def claimed(self) -> "Driver":
        claim = self.take(m.Claim)
        return self.tell(m.Claimed(claim.number, frozenset(claim.threads)))

    def offsets(self, position: int = 0, behind: Iterable[TopicPartition] = ()) -> "Driver":
        read = self.take(m.ReadOffsets)
        return self.tell(m.OffsetsRead(read.number, dict.fromkeys(read.partitions, position), frozenset(behind)))

    def fetches(self, *partitions: TopicPartition) -> bool:
        return self.member.holdings.fetching() == frozenset(partitions)


def ours(*partitions: TopicPartition) -> dict[TopicPartition, Owner]:
    return dict.fromkeys(partitions, Owner(f"{ME}-0", SESSION))


def fetching(mode: Mode, *others: str, old: Iterable[str] = ()) -> Driver:
    """A member that fetches its share: in zookeeper mode beside the others, in kafka mode all four partitions."""
    driver = Driver().registered()
    if mode is Mode.KAFKA:
        driver.tell(m.GroupAssigned(frozenset(P)))
        driver.sees(world(ME, *others, mode=mode))
    else:
        driver.sees(world(ME, *others, old=old)).nobody_in_kafka()
    driver.claimed().offsets()
    driver.asked.clear()
    return driver


def test_a_share_is_claimed_then_read_then_fetched() -> None:
    driver = Driver().registered().sees(world(ME, PEER)).nobody_in_kafka()
    assert driver.take(m.Claim).threads == {P[0]: "g_me-0", P[1]: "g_me-0"}
    driver = fetching(Mode.ZOOKEEPER, PEER)
    assert driver.fetches(P[0], P[1])


def test_a_plain_member_asks_kafka_nothing() -> None:
    driver = Driver(enabled=False).registered().sees(world(old=[ME, JAVA]))
    assert not driver.has(m.Describe)
    assert set(driver.take(m.Claim).threads) == {P[2], P[3]}    # g_java comes first


def test_a_refused_claim_waits_for_the_owner_to_go() -> None:
    driver = Driver().registered().sees(world(ME)).nobody_in_kafka()
    driver.tell(m.Claimed(driver.take(m.Claim).number, frozenset(P[:3])))
    assert not driver.has(m.Claim)
    driver.tell(m.OwnerFreed(P[3]))
    assert set(driver.take(m.Claim).threads) == {P[3]}


def test_a_change_while_the_group_is_read_is_read_too() -> None:
    """The watch that told of it is gone: what came after it would be seen half a minute later."""
    driver = fetching(Mode.ZOOKEEPER)
    read = driver.tell(m.Changed()).take(m.ReadWorld)
    driver.tell(m.Changed(), m.WorldRead(read.number, world(ME, owners=ours(*P))))
    driver.sees(world(ME, PEER, owners=ours(*P)))
    assert driver.take(m.Stop).partitions == {P[2], P[3]}
    assert not driver.has(m.ReadWorld)


def test_after_a_lost_session_zookeeper_mode_is_begun_anew() -> None:
    """Its acknowledgement went with the session, so the group may have gone over to Kafka without it."""
    driver = fetching(Mode.ZOOKEEPER).tell(m.Expired()).registered().sees(world(ME, mode=Mode.KAFKA))
    assert (driver.member.mode, driver.has(m.Claim)) == (None, False)
    assert driver.tell(m.GroupAssigned(frozenset(P))).member.mode is Mode.KAFKA


def test_what_is_let_go_is_drained_committed_and_kept_a_moment_for_old_members() -> None:
    driver = fetching(Mode.ZOOKEEPER)
    driver.tell(m.Changed()).sees(world(ME, old=["g_zoo"], owners=ours(*P)))
    stop = driver.take(m.Stop)
    assert stop.partitions == {P[2], P[3]}
    assert not driver.has(m.Commit)
    driver.tell(m.Stopped(stop.number))
    commit = driver.take(m.Commit)
    driver.tell(m.CommittedToZooKeeper(commit.number))
    assert not driver.has(m.Release)
    driver.tell(m.CommittedToKafka(commit.number))
    assert not driver.after(LINGER / 2).has(m.Release)
    release = driver.after(LINGER).take(m.Release)
    assert (release.partitions, release.guard) == (stop.partitions, False)


def test_in_zookeeper_mode_kafka_holds_up_no_release() -> None:
    driver = fetching(Mode.ZOOKEEPER)
    driver.tell(m.Changed()).sees(world(ME, PEER, owners=ours(*P)))
    driver.tell(m.Stopped(driver.take(m.Stop).number))
    commit = driver.take(m.Commit)
    driver.tell(m.CommittedToZooKeeper(commit.number))
    assert not driver.has(m.Release)
    assert not driver.after(KAFKA_PATIENCE).take(m.Release).guard


def test_in_kafka_mode_nothing_goes_without_kafkas_answer() -> None:
    driver = fetching(Mode.KAFKA)
    driver.tell(m.GroupRevoking())
    driver.tell(m.Stopped(driver.take(m.Stop).number))
    commit = driver.take(m.Commit)
    driver.tell(m.CommittedToZooKeeper(commit.number)).after(10 * KAFKA_PATIENCE)
    assert not driver.has(m.Release)
    assert not driver.has(m.AllowRevoke)
    driver.tell(m.CommittedToKafka(commit.number))
    release = driver.take(m.Release)
    assert release.guard                    # R6
    driver.tell(m.Released(release.number))
    driver.take(m.AllowRevoke)              # R2: only now


def test_in_zookeeper_mode_the_embedded_member_joins_again_at_once() -> None:
    driver = fetching(Mode.ZOOKEEPER)
    driver.tell(m.GroupRevoking()).take(m.AllowRevoke)
    assert driver.fetches(*P)


def test_kafka_mode_is_not_followed_beside_an_old_member_and_the_culprit_is_named() -> None:
    driver = fetching(Mode.ZOOKEEPER)
    driver.tell(m.GroupAssigned(frozenset(P)), m.Changed())
    driver.asked = [driver.take(m.ReadWorld)]
    driver.sees(world(ME, old=[JAVA], mode=Mode.KAFKA, owners=ours(*P)))
    assert driver.member.mode is Mode.ZOOKEEPER
    assert driver.take(m.Acknowledge).acknowledgement.waits == "g_java is not migration-enabled"


def test_kafka_mode_is_followed_with_an_assignment_only() -> None:
    driver = fetching(Mode.ZOOKEEPER)
    driver.tell(m.Changed()).sees(world(ME, mode=Mode.KAFKA, owners=ours(*P)))
    assert driver.take(m.Acknowledge).acknowledgement.waits == "has no assignment from Kafka's group yet"
    driver.tell(m.GroupAssigned(frozenset(P[:2])))
    told = driver.take(m.Acknowledge).acknowledgement
    assert (told.mode, told.mode_version, told.waits) == (Mode.KAFKA, 5, "")
    assert driver.take(m.Stop).partitions == {P[2], P[3]}       # what both modes give us is not interrupted


@pytest.mark.parametrize("seen", [
    world(ME, mode=Mode.ZOOKEEPER, owners=ours(*P)), world(ME, owners=ours(*P)),
    world(ME, old=[JAVA], mode=Mode.KAFKA, owners=ours(*P)),
], ids=["zookeeper", "deleted", "an old member"])
def test_kafka_mode_is_not_left_while_a_kafka_consumer_is_there(seen: World) -> None:
    driver = fetching(Mode.KAFKA)
    driver.tell(m.Changed()).sees(seen)
    driver.tell(m.Described(driver.take(m.Describe).number, {ME: frozenset(P), "rdkafka": frozenset()}))
    assert driver.member.mode is Mode.KAFKA
    assert driver.take(m.Acknowledge).acknowledgement.waits == "KafkaConsumer rdkafka is in the group"
    driver.after(1.0).sees(seen)
    driver.nobody_in_kafka()
    assert driver.member.mode is Mode.ZOOKEEPER


def test_kafka_mode_is_not_left_while_nobody_can_tell_who_is_there() -> None:
    driver = fetching(Mode.KAFKA)
    driver.tell(m.Changed()).sees(world(ME, mode=Mode.ZOOKEEPER, owners=ours(*P)))
    driver.tell(m.Failed(driver.take(m.Describe).number, "timed out"))
    assert driver.member.mode is Mode.KAFKA
    assert "cannot ask Kafka" in driver.take(m.Acknowledge).acknowledgement.waits


@pytest.mark.parametrize(("old", "mode"), [((), Mode.KAFKA), ([JAVA], None)])
def test_who_begins_beside_a_kafka_consumer_begins_in_kafka_mode_and_not_at_all_beside_an_old_member(
        old: Iterable[str], mode: Mode | None) -> None:
    driver = Driver().registered().sees(world(ME, old=old)).nobody_in_kafka(rdkafka=frozenset())
    assert driver.member.mode is mode
    assert driver.member.following.waits == "KafkaConsumer rdkafka is in the group"
    assert not driver.has(m.Claim)


def test_junk_changes_nothing_and_is_named() -> None:
    driver = fetching(Mode.KAFKA)
    driver.tell(m.Changed()).sees(replace(world(ME, owners=ours(*P)), mode_data=b"kafka\n", mode_version=6))
    assert driver.fetches(*P)
    assert "b'kafka\\n'" in driver.take(m.Acknowledge).acknowledgement.waits


def test_a_malformed_registration_stops_nothing_and_is_named() -> None:
    driver = fetching(Mode.ZOOKEEPER)
    driver.tell(m.Changed()).sees(replace(world(ME, PEER, owners=ours(*P)), malformed={"g_bad": "is not JSON"}))
    assert driver.fetches(*P)
    assert driver.take(m.Acknowledge).acknowledgement.waits == "g_bad is not JSON"


def test_an_owner_node_that_is_gone_stops_at_once() -> None:
    driver = fetching(Mode.ZOOKEEPER)
    driver.tell(m.OwnerGone(P[1]))
    assert driver.take(m.Abandon).partitions == {P[1]}
    assert not driver.has(m.Stop)
    assert set(driver.take(m.Claim).threads) == {P[1]}


def test_after_a_lost_connection_nothing_goes_on_before_the_nodes_were_seen() -> None:
    driver = fetching(Mode.ZOOKEEPER)
    driver.tell(m.Suspended(), m.Tick())
    assert driver.asked == []
    driver.tell(m.Resumed())
    assert not driver.has(m.GoOn)
    driver.sees(world(ME, owners=ours(*P[:3]) | {P[3]: Owner("g_peer-0", 9)}))
    driver.take(m.GoOn)
    assert driver.take(m.Abandon).partitions == {P[3]}


def test_in_kafka_mode_neither_before_kafka_holds_us_for_the_owner() -> None:
    driver = fetching(Mode.KAFKA)
    driver.tell(m.Suspended(), m.Resumed()).sees(world(ME, mode=Mode.KAFKA, owners=ours(*P)))
    assert not driver.has(m.GoOn)
    driver.tell(m.Described(driver.take(m.Describe).number, {"rdkafka": frozenset(P)}))
    assert not driver.has(m.GoOn)
    driver.after(1.0).tell(m.Described(driver.take(m.Describe).number, {ME: frozenset(P)})).take(m.GoOn)


def test_an_ended_session_drops_everything_and_registers_again() -> None:
    driver = fetching(Mode.ZOOKEEPER)
    driver.tell(m.Expired())
    assert driver.take(m.Abandon).partitions == set(P)
    assert driver.tell(m.Connected(SESSION + 1)).has(m.Register)
    assert driver.member.holdings == {}


@pytest.mark.parametrize("mode", Mode)
def test_a_registration_that_somebody_deleted_is_written_again_and_what_is_held_stays(mode: Mode) -> None:
    """The group was read without it: nobody's share follows from that reading."""
    driver = fetching(mode)
    driver.tell(m.Changed()).sees(world(PEER, mode=mode, owners=ours(*P)))
    driver.tell(m.Registered(driver.take(m.Register).number))
    driver.sees(world(ME, mode=mode, owners=ours(*P)))
    assert driver.fetches(*P)
    assert not driver.has(m.Stop)


def test_a_claim_that_failed_may_have_been_done_and_is_released_where_it_is_not_wanted_any_more() -> None:
    driver = Driver().registered().sees(world(ME)).nobody_in_kafka()
    driver.tell(m.Failed(driver.take(m.Claim).number, "connection lost"), m.Changed()).sees(world(ME, PEER))
    assert driver.take(m.Release).partitions == {P[2], P[3]}


def brought(phase: Phase, mode: Mode) -> Driver:
    """A member that closes with all partitions in this phase; in zookeeper mode an old member is there."""
    seen = world(ME, mode=mode, old=["a_zoo"] if mode is Mode.ZOOKEEPER else ())
    driver = Driver().registered()
    if mode is Mode.KAFKA:
        driver.tell(m.GroupAssigned(frozenset(P))).sees(seen)
    else:
        driver.sees(seen).nobody_in_kafka()
    if phase is not Phase.CLAIMING:
        driver.claimed()
    if phase not in (Phase.CLAIMING, Phase.READING):
        driver.offsets()
    if phase is not Phase.FETCHING:
        driver.tell(m.Closing())
    if phase in (Phase.COMMITTING, Phase.LINGERING, Phase.RELEASING):
        driver.tell(m.Stopped(driver.take(m.Stop).number))
    if phase in (Phase.LINGERING, Phase.RELEASING):
        number = driver.take(m.Commit).number
        driver.tell(m.CommittedToZooKeeper(number), m.CommittedToKafka(number))
    if phase is Phase.RELEASING:
        driver.after(LINGER)
    driver.asked.clear()
    assert driver.member.holdings
    assert {holding.phase for holding in driver.member.holdings.values()} == {phase}
    return driver


@pytest.mark.parametrize("phase", [each for each in Phase if each not in (Phase.FREE, Phase.CLAIMING)])
def test_nothing_more_is_asked_for_a_partition_whose_owner_node_has_gone(phase: Phase) -> None:
    driver = brought(phase, Mode.ZOOKEEPER).tell(m.Closing())
    driver.asked.clear()
    driver.tell(*map(m.OwnerGone, driver.member.holdings))
    driver.take(m.Leave)
    assert {type(each) for each in driver.asked} <= {m.Abandon, m.Acknowledge}


@pytest.mark.parametrize("phase", [each for each in Phase if each is not Phase.FREE])
def test_nor_for_any_when_the_session_has_ended(phase: Phase) -> None:
    driver = brought(phase, Mode.ZOOKEEPER).tell(m.Expired())
    assert driver.member.holdings == {}
    assert {type(each) for each in driver.asked} <= {m.Abandon, m.Leave}


@pytest.mark.parametrize("phase", [each for each in Phase if each not in (Phase.FREE, Phase.LINGERING, Phase.RELEASING)])
def test_put_out_of_kafkas_group_all_is_released_at_once_whatever_was_under_way(phase: Phase) -> None:
    driver = brought(phase, Mode.KAFKA)
    under_way = next(iter(driver.member.holdings.values())).request
    assert driver.tell(m.GroupLost()).take(m.Release).partitions == set(P)
    driver.tell(m.Claimed(under_way, frozenset(P)), m.OffsetsRead(under_way, dict.fromkeys(P, 0), frozenset(P)),
                m.Stopped(under_way))
    assert {type(each) for each in driver.asked} <= {m.Abandon, m.Acknowledge}


def test_a_commit_that_kafka_fences_is_not_tried_again_and_all_of_it_is_released() -> None:
    driver = brought(Phase.COMMITTING, Mode.KAFKA)
    driver.tell(m.CommittedToKafka(driver.member.holdings[P[0]].request, fenced=True))
    assert driver.take(m.Release).partitions == set(P)
    assert driver.asked == []


def test_what_was_never_fetched_and_is_in_both_stores_is_released_at_once() -> None:
    driver = brought(Phase.READING, Mode.ZOOKEEPER)
    number = driver.member.holdings[P[3]].request
    released = driver.tell(m.OffsetsRead(number, dict.fromkeys(driver.member.holdings, 3), frozenset())).take(m.Release)
    assert released.partitions == driver.member.holdings.keys()
    assert driver.asked == []


def test_put_out_of_kafkas_group_nothing_is_committed() -> None:
    driver = fetching(Mode.KAFKA)
    driver.tell(m.GroupLost())
    assert driver.take(m.Abandon).partitions == set(P)
    assert not driver.has(m.Commit)
    driver.take(m.Release)


def test_what_lingers_when_kafka_gives_it_to_others_is_released_at_once() -> None:
    driver = fetching(Mode.ZOOKEEPER).tell(m.Changed()).sees(world(ME, old=["g_zoo"], owners=ours(*P)))
    driver.tell(m.Stopped(driver.take(m.Stop).number))
    number = driver.take(m.Commit).number
    driver.tell(m.CommittedToZooKeeper(number), m.CommittedToKafka(number))
    assert driver.member.holdings[P[3]].phase is Phase.LINGERING
    driver.tell(m.Changed(), m.GroupAssigned(frozenset(P))).sees(world(ME, mode=Mode.KAFKA, owners=ours(*P)))
    assert not driver.has(m.Release)
    assert driver.tell(m.GroupLost()).take(m.Release).partitions == set(P)


def test_an_idle_partition_is_committed_when_it_is_taken() -> None:
    driver = Driver().registered().sees(world(ME)).nobody_in_kafka().claimed().offsets(3, behind=[P[2]])
    assert driver.take(m.Start).starts == dict.fromkeys(P, 3)
    assert driver.take(m.Commit).partitions == {P[2]}


def test_a_guard_before_an_old_member_is_taken_away_with_its_position_in_both_stores() -> None:
    driver = fetching(Mode.ZOOKEEPER, old=["g_zoo"])
    driver.tell(m.Changed()).sees(world(ME, old=["g_zoo"], owners=ours(P[0], P[1]) | {P[3]: Owner("guard")}))
    assert set(driver.take(m.Claim).threads) == {P[3]}
    driver.tell(m.Claimed(driver.member.holdings[P[3]].request, frozenset({P[3]}))).offsets(9, behind=[P[3]])
    assert not driver.has(m.Start)
    assert driver.take(m.Commit).partitions == {P[3]}
    assert driver.member.holdings[P[3]].phase is Phase.COMMITTING


def test_what_nobody_owns_in_kafka_mode_gets_a_guard() -> None:
    driver = fetching(Mode.KAFKA, PEER)
    driver.tell(m.GroupRevoking())
    driver.tell(m.Changed()).sees(world(ME, PEER, mode=Mode.KAFKA, owners=ours(*P)))
    assert not driver.has(m.Guard)
    other = Driver().registered().tell(m.GroupAssigned(frozenset(P[:2])))
    other.sees(world(ME, PEER, mode=Mode.KAFKA, owners={P[2]: Owner("g_peer-0", 9)}))
    assert other.take(m.Guard).partitions == {P[3]}


def test_an_old_member_that_gave_up_is_woken() -> None:
    driver = fetching(Mode.ZOOKEEPER, old=["g_zoo"])
    parked = world(ME, old=["g_zoo"], owners=ours(P[0], P[1]))
    for _ in range(2):
        driver.tell(m.Changed()).sees(parked)
    assert not driver.has(m.Wake)
    driver.after(PARKED)
    driver.tell(m.Changed()).sees(parked).take(m.Wake)


def test_closing_lets_go_of_all_and_leaves() -> None:
    driver = fetching(Mode.KAFKA)
    driver.tell(m.Closing())
    driver.tell(m.Stopped(driver.take(m.Stop).number))
    number = driver.take(m.Commit).number
    driver.tell(m.CommittedToZooKeeper(number), m.CommittedToKafka(number))
    assert not driver.has(m.Leave)
    driver.tell(m.Released(driver.take(m.Release).number)).take(m.Leave)


def test_the_lease_counts_from_the_question_and_ends_before_the_session() -> None:
    lease = Lease(6.0)
    assert not lease.holds(0.0)
    lease.renewed(10.0)
    lease.renewed(9.0)                      # an answer that came late
    assert lease.holds(13.5)
    assert not lease.holds(13.7)
    lease.end()
    assert not lease.holds(10.0)
    assert lease.doubts == 1


@pytest.mark.parametrize(("stored", "position"), [
    (Stored(None, None), None), (Stored(5, None), 5), (Stored(5, 9), 9), (Stored(9, 5), 9), (Stored(9, 9), 9),
])
def test_the_later_of_two_offsets_counts(stored: Stored, position: int | None) -> None:
    assert stored.position == position


@pytest.mark.parametrize(("data", "offset"), [
    (b"10", 10), (b"-1", None), (b"", None), (None, None), (b"x", None), (b"0", 0)])
def test_offsets_in_zookeeper(data: bytes | None, offset: int | None) -> None:
    assert offset_in(data) == offset
