"""The gates of a group whose coordination moves: open on a healthy picture of their moment, and what they say else."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest

from switchover.answers.observed import Known, Unknown
from switchover.api.consumer_group_migration import CoordinationMigration
from switchover.api.status import Severity
from switchover.api.status import Verdict as Outcome
from switchover.coordination.acknowledgement import Acknowledgement
from switchover.coordination.assignment import VARIANTS
from switchover.coordination.mode import Mode
from switchover.coordination.registration import Registration, Subscribed
from switchover.coordination.world import Owner
from switchover.engine.gate import Gate, Verdict
from switchover.groups import coordination
from switchover.groups.coordination.membership import check_converged
from switchover.groups.coordination.preflight import find_hazards, find_wrong_group, find_wrong_storage
from switchover.groups.facts import Stored
from switchover.groups.picture import INTERMEDIATE, Facts, Picture
from switchover.groups.plan import plan_of
from switchover.kafka.group import GroupState, GroupType, OffsetsTopic
from switchover.shared.partition import TopicPartition
from unit.coordination_walk import CoordinationWalk
from unit.coordination_world import CoordinatedWorld
from unit.given_reasons import FOUND, reasons
from unit.group_pictures import value, with_fact
from unit.group_spoilers import then

Spoil = Callable[[Picture], Picture]
FAIL, WAIT = Outcome.FAIL, Outcome.WAIT
P0 = TopicPartition("orders", 0)
OWN = Path(coordination.__file__).parent


# --- moments ------------------------------------------------------------------------------------------------------------


PREFLIGHTS = ("old", "enabled", "kafka")


@cache
def moment(name: str) -> Picture:
    """A healthy picture: three of Preflight, where all pods are of that kind, and three of the way to Kafka."""
    first = name if name in PREFLIGHTS else "old"
    walked = CoordinationWalk(CoordinatedWorld(("Deployment", "orders", 4), first=first),
                              "ZooKeeper" if name == "kafka" else "Kafka", soakSeconds=600)
    if name in PREFLIGHTS:
        for _ in range(6):
            walked.step()
        return replace(walked.picture(), position=replace(walked.position, step="Preflight", entered=walked.world.now - 15))
    steps = {"toggle": "Toggle", "mixed": "ReplaceWithKafkaConsumers", "moved": "Settle"}
    walked.until(lambda: walked.position.step == steps[name])
    if name == "mixed":
        walked.until(lambda: walked.position.batches_done > 0)
    for _ in range(2 if name == "mixed" else 1):
        walked.step()
    if name == "moved":
        for _ in range(8):
            walked.step()
    return walked.picture()


def world(**changes: Any) -> Spoil:
    return lambda picture: with_fact(
        picture, "zookeeper", Known(replace(value(picture.facts.zookeeper), **changes), picture.now))


def group(**changes: Any) -> Spoil:
    return lambda picture: with_fact(picture, "group", Known(replace(value(picture.facts.group), **changes), picture.now))


def rebalancing(picture: Picture) -> Picture:
    """Kafka's coordinator tells no member's topics and assignment meanwhile."""
    members = tuple(replace(each, topics=frozenset(), assigned=frozenset()) for each in value(picture.facts.group).members)
    return group(state=GroupState.PREPARING_REBALANCE, members=members)(picture)


def spec(**changes: Any) -> Spoil:
    return lambda picture: replace(picture, spec=picture.spec.model_copy(update=changes))


def told(**changes: Any) -> Spoil:
    """Another spec.coordination."""
    return lambda picture: spec(coordination=picture.spec.coordination.model_copy(update=changes))(picture)


def joins(consumer_id: str, *, enabled: bool = False, registration: Registration | None = None) -> Spoil:
    def spoil(picture: Picture) -> Picture:
        found = value(picture.facts.zookeeper)
        registrations = {**found.registrations, consumer_id: registration or Registration({"orders": 1})}
        acknowledgements = {**found.acknowledgements, **({consumer_id: Acknowledgement()} if enabled else {})}
        return world(registrations=registrations, acknowledgements=acknowledgements)(picture)

    return spoil


def strange(picture: Picture) -> Picture:
    """A KafkaConsumer that runs in no pod of ours."""
    found = value(picture.facts.group)
    member = CoordinationWalk(CoordinatedWorld(("Deployment", "orders", 1), first="kafka"), "ZooKeeper").world.coordinator
    (one,) = member.group().members
    return group(members=(*found.members, replace(one, client_id="console", host="10.9.9.9", assigned=frozenset())))(picture)


def without_kafka_consumers(picture: Picture) -> Picture:
    enabled = value(picture.facts.zookeeper).acknowledgements
    return group(members=tuple(each for each in value(picture.facts.group).members if each.client_id in enabled))(picture)


def acknowledges(**changes: Any) -> Spoil:
    """One migration-enabled member says something else."""
    def spoil(picture: Picture) -> Picture:
        found = dict(value(picture.facts.zookeeper).acknowledgements)
        first = sorted(found)[0]
        found[first] = replace(found[first], **changes) if changes else None
        return world(acknowledgements=found)(picture)

    return spoil


def without_owner(picture: Picture) -> Picture:
    owners = dict(value(picture.facts.zookeeper).owners)
    del owners[next(each for each, owner in sorted(owners.items()) if owner.session)]
    return world(owners=owners)(picture)


def stored(*readings: Mapping[str, Any]) -> Spoil:
    """The last readings of partition 0 in both stores, oldest first."""
    def spoil(picture: Picture) -> Picture:
        samples = list(value(picture.facts.stores))
        for index, changes in enumerate(readings, -len(readings)):
            offsets = dict(samples[index].offsets)
            offsets[P0] = replace(offsets[P0], **changes)
            samples[index] = replace(samples[index], offsets=offsets)
        return with_fact(picture, "stores", Known(tuple(samples), picture.now))

    return spoil


def every(**changes: Callable[[Stored, int], int | None]) -> Spoil:
    """What every partition has in a store, by the place of the sample."""
    def spoil(picture: Picture) -> Picture:
        samples = tuple(
            replace(sample, offsets={each: replace(found, **{key: change(found, index) for key, change in changes.items()})
                                     for each, found in sample.offsets.items()})
            for index, sample in enumerate(value(picture.facts.stores)))
        return with_fact(picture, "stores", Known(samples, picture.now))

    return spoil


def at_kafka(found: Stored, index: int) -> int:
    """Moves, and is ahead of what ZooKeeper has."""
    return (found.zookeeper or 0) + 100 + index


def quiet(seconds: float) -> Spoil:
    return lambda picture: with_fact(picture, "quiet_since", Known(picture.now - seconds, picture.now))


def known(fact: str, told_: object) -> Spoil:
    return lambda picture: with_fact(picture, fact, Known(told_, picture.now))


def bridge_pods(picture: Picture) -> list[str]:
    return sorted(pod.name for _, mode, pod in picture.pods() if mode == INTERMEDIATE)


def changed(picture: Picture, names: list[str], **changes: Any) -> Picture:
    fleet = value(picture.facts.fleet)
    source = fleet.sources["orders"]
    pods = {each: replace(pod, **changes) if each in names else pod for each, pod in source.pods.items()}
    return with_fact(picture, "fleet", Known(replace(fleet, sources={"orders": replace(source, pods=pods)}), picture.now))


def started(picture: Picture, ago: float) -> Picture:
    """Every pod of the bridge has been up for so long."""
    return changed(picture, bridge_pods(picture), started_at=picture.now - ago)


def a_pod(**changes: Any) -> Spoil:
    """One pod of the bridge is different."""
    return lambda picture: changed(picture, bridge_pods(picture)[:1], **changes)


def nobody_registered(picture: Picture) -> Picture:
    """The members of the bridge's pods are gone from ZooKeeper, and from Kafka."""
    found = value(picture.facts.group)
    left = tuple(each for each in found.members if each.client_id not in value(picture.facts.zookeeper).acknowledgements)
    return then(world(registrations={}, acknowledgements={}), group(members=left))(started(picture, 70))


# --- the table ----------------------------------------------------------------------------------------------------------


class Finding(NamedTuple):
    gate: str
    moment: str
    spoil: Spoil
    outcome: Outcome
    reason: str
    subject: str


LEFT_OVER = every(kafka=lambda *_: 10**6, end=lambda *_: 2 * 10**6)
ENABLED_ID = "orders_orders-009-1795240855786-0000000a"
OLD_ID = "orders_elsewhere-1795240855786-0000000b"
LIST = Registration({"orders.*": 1}, Subscribed.WHITE_LIST)
FINDINGS = (
    # what Preflight looks for
    Finding("Group", "old", world(malformed={"orders_x": "is not JSON"}), FAIL, "MalformedRegistration", "orders_x"),
    Finding("Group", "old", world(registrations={}, owners={}), FAIL, "GroupEmpty", "orders"),
    Finding("Group", "old", strange, FAIL, "KafkaConsumerTooEarly", "console"),
    Finding("Group", "old", joins(ENABLED_ID, enabled=True), FAIL, "AlreadyMoved", ENABLED_ID),
    Finding("Group", "old", told(replace="Nothing"), FAIL, "NotMigrationEnabled", "orders_orders-001"),
    Finding("Group", "enabled", world(mode=Mode.KAFKA), FAIL, "NothingToChange", "orders"),
    Finding("Group", "kafka", joins(OLD_ID), FAIL, "AlreadyMoved", OLD_ID),
    Finding("Group", "kafka", group(members=()), FAIL, "GroupEmpty", "orders"),
    Finding("Group", "kafka", group(type=GroupType.CONSUMER), FAIL, "GroupTypeUnsupported", "orders"),
    Finding("Group", "kafka", group(state=GroupState.PREPARING_REBALANCE), WAIT, "GroupNotStable", "orders"),
    Finding("Group", "kafka", group(assignor="cooperative-sticky"), FAIL, "AssignorNotEager", "cooperative-sticky"),
    Finding("ZooKeeperRights", "old", known("missing_zookeeper_rights", ("WRITE on /consumers/orders/migration/mode",)),
            FAIL, "ZooKeeperRightMissing", "orders"),
    Finding("Patterns", "old", joins(OLD_ID, registration=Registration({r"edge\\.x": 1}, Subscribed.WHITE_LIST)), FAIL,
            "PatternEscaped", OLD_ID),
    Finding("Patterns", "old", joins(OLD_ID, registration=Registration({"(?i)orders": 1}, Subscribed.WHITE_LIST)), FAIL,
            "PatternDiffers", OLD_ID),
    Finding("Assignment", "old", joins(OLD_ID), WAIT, "AssignmentNotUnderstood", "orders"),
    Finding("Assignment", "old", told(assignment_strategy="RoundRobin"), WAIT, "AssignmentNotUnderstood", "orders"),
    Finding("Assignment", "old", then(
        told(assignment_strategy=None), world(registrations={OLD_ID: Registration({"orders": 1})}, owners={
            TopicPartition("orders", number): Owner(f"{OLD_ID}-0", 7) for number in range(6)})), FAIL, "AssignmentUnclear",
        "orders"),
    Finding("Assignment", "old", then(
        told(assignment_strategy="RoundRobin"), world(topics={"Aa": [0], "BB": [0]}, registrations={
            OLD_ID: Registration({"Aa": 1, "BB": 1})})), FAIL, "AssignmentAmbiguous", "orders"),
    Finding("Storage", "old", every(kafka=lambda found, index: 900 + index), FAIL, "OffsetsInBoth", "orders"),
    Finding("Storage", "old", every(kafka=lambda found, index: 900 + index, zookeeper=lambda found, _: 900), FAIL,
            "OffsetsInKafkaOnly", "orders"),
    Finding("Storage", "old", lambda picture: replace(picture, position=replace(picture.position, entered=picture.now - 4)),
            WAIT, "StoresWatched", "orders"),
    Finding("Storage", "old", every(zookeeper=lambda found, _: 900), WAIT, "NoCommitSeen", "orders"),
    Finding("Stores", "old", LEFT_OVER, FAIL, "KafkaOffsetsAhead", "orders-0"),
    Finding("Stores", "old", stored({"zookeeper": 10**6}, {"zookeeper": 10**6}), FAIL, "OffsetOutsideLog", "orders-0"),
    Finding("Stores", "old", stored({"start": 5000}, {"start": 5000}), FAIL, "OffsetOutsideLog", "orders-0"),
    Finding("Stores", "kafka", stored({"zookeeper": 10**6}, {"zookeeper": 10**6, "end": 2 * 10**6}), FAIL,
            "ZooKeeperOffsetsAhead", "orders-0"),
    Finding("Changes", "old", lambda picture: spec(workloads=tuple(
        each.model_copy(update={"bridge": None}) for each in picture.spec.workloads))(picture), FAIL, "BridgeMissing",
        "orders"),
    Finding("Changes", "old", told(replace="Nothing"), FAIL, "NothingIsReplaced", "orders"),
    Finding("CoordinatorCapacity", "old", known("coordinated", {1: 5000}), WAIT, "CoordinatorFull", "broker 1"),
    Finding("CoordinatorCapacity", "old", known("offsets_topic", OffsetsTopic(500, False, 0)), FAIL, "RecordTooLarge",
            "max.message.bytes"),
    # who takes part
    Finding("PodsAreMembers", "old", world(registrations={}), WAIT, "MemberMissing", "orders-001"),
    Finding("PodsAreMembers", "toggle", a_pod(terminating=True), WAIT, "PodEnding", "orders-"),
    Finding("NoForeignMembers", "old", joins(OLD_ID), WAIT, "ForeignMembers", OLD_ID),
    Finding("NoForeignMembers", "mixed", strange, WAIT, "ForeignMembers", "console"),
    Finding("NewPodsJoin", "mixed", a_pod(restarts=1), FAIL, "NewPodRestarts", "orders-"),
    Finding("NewPodsJoin", "mixed", nobody_registered, FAIL, "NotAMember", "orders-"),
    Finding("NewPodsJoin", "mixed", lambda picture: world(acknowledgements={})(started(picture, 70)), FAIL, "WrongConsumer",
            "orders-"),
    Finding("AllMoved", "moved", joins(ENABLED_ID, enabled=True), WAIT, "MembersNotMoved", ENABLED_ID),
    # who owns what
    Finding("Converged", "old", world(malformed={"orders_x": "is not JSON"}), WAIT, "MalformedRegistration", "orders_x"),
    Finding("Converged", "old", without_owner, WAIT, "OwnersUnsettled", "orders"),
    Finding("Converged", "toggle", acknowledges(mode=Mode.KAFKA), WAIT, "ModesDiffer", "orders"),
    Finding("Converged", "mixed", acknowledges(owned=frozenset()), WAIT, "MemberBehind", "orders_orders-"),
    Finding("Converged", "mixed", group(state=GroupState.COMPLETING_REBALANCE), WAIT, "GroupNotStable", "orders"),
    Finding("Covered", "toggle", without_owner, WAIT, "PartitionsUnowned", "orders-0"),
    Finding("Covered", "mixed", without_owner, WAIT, "PartitionsUnowned", "orders-"),
    Finding("Covered", "mixed", lambda picture: world(owners={
        each: Owner("orders_orders-009-1-0a-0", 7) for each in (TopicPartition("orders", n) for n in range(6))})(
            picture), WAIT, "OwnedTwice", "orders-"),
    Finding("Covered", "old", world(registrations={}, owners={}), WAIT, "NothingSubscribed", "orders"),
    Finding("Covered", "moved", rebalancing, WAIT, "GroupNotStable", "orders"),
    Finding("Progressed", "mixed", lambda picture: with_fact(picture, "samples", Known(tuple(
        replace(each, offsets={p: (900, end) for p, (_, end) in each.offsets.items()})
        for each in value(picture.facts.samples)), picture.now)), WAIT, "NoProgressYet", "orders-"),
    # the mode, and whom it keeps apart
    Finding("NoIntruders", "mixed", joins(OLD_ID), FAIL, "OldConsumerArrived", OLD_ID),
    Finding("NoIntruders", "mixed", then(joins(OLD_ID), without_kafka_consumers), WAIT, "OldConsumerArrived", OLD_ID),
    Finding("NoIntruders", "toggle", then(joins(OLD_ID), strange), FAIL, "KafkaConsumerTooEarly", "console"),
    Finding("NoIntruders", "toggle", strange, WAIT, "KafkaConsumerTooEarly", "console"),
    Finding("ModeKept", "mixed", world(mode=None, mode_version=-1), WAIT, "ModeNodeChanged", "migration/mode"),
    Finding("ModeKept", "toggle", world(mode=None, mode_data=b"kafka\n", mode_version=3), WAIT, "ModeNodeChanged",
            "migration/mode"),
    Finding("Quiet", "toggle", joins(OLD_ID), WAIT, "OldConsumerArrived", OLD_ID),
    Finding("Quiet", "toggle", quiet(3.0), WAIT, "NotQuietYet", "orders"),
    Finding("ModeFollowed", "toggle", acknowledges(), WAIT, "ModeNotFollowed", "orders_orders-"),
    Finding("ModeFollowed", "mixed", acknowledges(mode_version=-1), WAIT, "ModeNotFollowed", "orders_orders-"),
    Finding("ModeFollowed", "mixed", acknowledges(waits="x is old"), WAIT, "MemberWaits", "orders_orders-"),
    Finding("KafkaConsumersGone", "mixed", lambda picture: picture, WAIT, "KafkaConsumersLeft", "orders"),
    Finding("KafkaConsumersGone", "toggle", strange, WAIT, "KafkaConsumersLeft", "console"),
    Finding("Unguarded", "toggle", lambda picture: world(owners={
        **value(picture.facts.zookeeper).owners, P0: Owner("guard of x", 0)})(picture), WAIT, "GuardsLeft", "orders-0"),
    Finding("BrokersVisible", "toggle", world(brokers=frozenset()), FAIL, "BrokersOnKRaft", "broker 1"),
    # offsets
    Finding("ZooKeeperOffsets", "toggle", stored({"kafka": 1200}, {"zookeeper": 1100}), WAIT, "ZooKeeperOffsetsBehind",
            "orders-0"),
    Finding("KafkaOffsets", "toggle", stored({}, {"kafka": None}), WAIT, "KafkaOffsetsBehind", "orders-0"),
    Finding("KafkaOffsets", "toggle", stored({"zookeeper": 1200}, {"kafka": 1100}), WAIT, "KafkaOffsetsBehind", "orders-0"),
)


@cache
def gates() -> Mapping[str, Gate[Picture]]:
    """Every gate of the plans there and back."""
    found: dict[str, Gate[Picture]] = {}
    for name in ("old", "kafka"):
        for step in plan_of(moment(name).spec).steps:
            for leg in (step.forward, step.back):
                if leg is not None:
                    rolled = [gate for each in leg.rollouts for gate in (*each.before, *each.after)]
                    for gate in (*leg.enter, *leg.watch, *leg.done, *rolled):
                        assert found.setdefault(gate.name, gate) is gate, f"two gates of the name {gate.name}"
    return found


def own() -> dict[str, Gate[Picture]]:
    """Those of this plan alone."""
    named = {finding.gate for finding in FINDINGS}
    return {name: gate for name, gate in gates().items() if name in named}


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: f"{finding.gate}-{finding.moment}-{finding.reason}")
def test_a_gate_says_what_is_wrong(finding):
    verdict = gates()[finding.gate].check(finding.spoil(moment(finding.moment)))
    found: tuple[Verdict, ...] = verdict.findings or (verdict,)
    wanted = [each for each in found if each.reason == finding.reason]
    assert wanted, [(each.reason, each.message) for each in found]
    assert (wanted[0].outcome, finding.subject in wanted[0].subject) == (finding.outcome, True), wanted[0]
    assert verdict.outcome is not Outcome.PASS
    assert wanted[0].unblocks


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: f"{finding.gate}-{finding.moment}-{finding.reason}")
def test_it_says_nothing_on_the_healthy_picture(finding):
    healthy = moment(finding.moment)
    assert finding.spoil(healthy) == healthy or gates()[finding.gate].check(healthy).outcome is Outcome.PASS


@pytest.mark.parametrize("name", sorted(own()))
def test_it_is_shut_while_it_sees_nothing(name):
    blind = Facts(**{each.name: Unknown("the network is down") for each in fields(Facts)
                     if each.name not in ("lease_holder", "brokers")}, lease_holder="", brokers={})
    picture = replace(moment("old"), facts=blind)
    if name == "Changes":
        assert gates()[name].check(picture).outcome is Outcome.PASS, "it reads the spec alone"
        return
    verdict = gates()[name].check(picture)
    assert verdict.outcome is Outcome.UNKNOWN, verdict


def test_every_reason_of_this_plan_is_in_the_table():
    given = {*reasons(OWN, FOUND)}
    assert given - {finding.reason for finding in FINDINGS} == {"GroupTooLarge"}, "of other plans"


def test_what_preflight_tells_without_a_fault():
    def codes(name: str) -> set[str]:
        found = [each for gate in gates().values() for each in gate.check(moment(name)).findings]
        return {each.reason for each in found if each.severity is Severity.INFO}

    assert codes("old") == {"AssignmentUnderstood", "ConsumerIsPython"}
    nothing = every(zookeeper=lambda found, _: None, kafka=lambda found, _: None)(moment("old"))
    assert "OffsetResetDecides" in {each.reason for each in gates()["Offsets"].check(nothing).findings}
    assert gates()["Subscriptions"].check(joins(OLD_ID, registration=LIST)(moment("old"))).findings[0].reason == \
        "SubscriptionsDiffer"


def test_a_mode_znode_that_is_gone_is_followed_by_whoever_followed_another_before():
    gone = acknowledges(mode_version=3)(moment("toggle"))
    assert gates()["ModeFollowed"].check(gone).outcome is Outcome.PASS
    assert gates()["ModeFollowed"].check(world(mode=Mode.ZOOKEEPER, mode_version=4)(gone)).reason == "ModeNotFollowed"


def test_an_idle_group_is_known_by_its_offsets():
    idle = every(zookeeper=lambda found, _: found.end)(moment("old"))
    still = with_fact(idle, "stores", Known(tuple(
        replace(each, offsets=value(idle.facts.stores)[-1].offsets) for each in value(idle.facts.stores)), idle.now))
    assert gates()["Storage"].check(still).outcome is Outcome.PASS


# --- whose offsets are not to be deleted, and who is not to be stopped -----------------------------------------------------

COMMITS_TO_KAFKA = every(kafka=at_kafka, zookeeper=lambda found, _: 900)
COMMITS_TO_BOTH = every(kafka=at_kafka)


@pytest.mark.parametrize(("spoil", "stands"), [
    pytest.param(COMMITS_TO_KAFKA, "OffsetsInKafkaOnly", id="Kafka"),
    pytest.param(COMMITS_TO_BOTH, "OffsetsInBoth", id="both"),
    pytest.param(then(LEFT_OVER, lambda picture: replace(
        picture, position=replace(picture.position, entered=picture.now))), "", id="nothing seen in this step yet"),
    pytest.param(then(LEFT_OVER, every(zookeeper=lambda found, _: 900)), "NoCommitSeen", id="nobody commits"),
])
def test_offsets_in_kafka_are_left_over_only_where_members_commit_to_zookeeper_alone(spoil: Spoil, stands: str) -> None:
    """The cure of KafkaOffsetsAhead deletes them: it is never told of the only position that a group has."""
    picture = spoil(moment("old"))
    assert "KafkaOffsetsAhead" not in [each.reason for each in find_hazards(picture)]
    if stands:
        assert stands in [each.reason for each in find_wrong_storage(picture)]


def test_offsets_that_are_left_over_in_kafka_are_told_with_their_cure() -> None:
    found = next(each for each in find_hazards(LEFT_OVER(moment("old"))) if each.reason == "KafkaOffsetsAhead")
    assert "--bootstrap-server kafka:9092 --delete-offsets --group orders --topic orders" in (found.unblocks or "")


@pytest.mark.parametrize(("spoil", "says"), [
    (world(malformed={"orders_x": "is not JSON"}), "leave those alone"),
    (world(malformed={"host:uuid": "is not JSON"}, registrations={}), "leave it alone"),
], ids=["beside Java", "alone"])
def test_nobody_is_told_to_stop_a_consumer_of_another_make(spoil: Spoil, says: str) -> None:
    picture = spoil(moment("old"))
    told = [each for each in (*find_wrong_group(picture), check_converged(picture))
            if each.reason == "MalformedRegistration"]
    assert len(told) == 2
    for each in told:
        assert says in (each.unblocks or "")
        assert "stop" not in f"{each.message} {each.unblocks}"


def test_every_strategy_that_the_spec_can_name_is_one_that_is_computed() -> None:
    named, _ = get_args(CoordinationMigration.model_fields["assignment_strategy"].annotation)
    assert get_args(named) == tuple(VARIANTS)
