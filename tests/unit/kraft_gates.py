"""Every gate of a KafkaMigration, and a healthy picture of the moment at which it is asked."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from switchover.answers.observed import Known
from switchover.api.kafka_migration import HandOver, NodeMode
from switchover.api.status import Verdict as Outcome
from switchover.cluster import gates, goals, preflight
from switchover.cluster.door import edits
from switchover.cluster.ending import trial_job
from switchover.cluster.picture import Picture
from switchover.engine.effects import Create, WriteNodeFiles
from switchover.kubernetes import reports
from unit.each_gate import every_gate
from unit.pictures import (
    ACTIVE,
    NOW,
    POST,
    PRE,
    SOAKING_SINCE,
    moment,
    spoil,
    spoil_each,
    spoil_workload,
    stateful_set,
    tried,
    value,
    with_fact,
)

GATES = every_gate(gates, preflight)


def outcome(name: str, picture: Picture) -> Outcome:
    return GATES[name].check(picture).outcome


def to_b() -> Picture:
    return moment("EnableMigration", (NodeMode.MIGRATION, NodeMode.ZOOKEEPER), NodeMode.MIGRATION_CONTROLLER, ("kafka-0",),
                  PRE)


def reaching(*unreached: str, reported: bool = True, connected: bool = False) -> Picture:
    """ProvisionControllers, with controllers that have asked the brokers."""
    picture = moment("ProvisionControllers", NodeMode.ZOOKEEPER, NodeMode.MIGRATION_CONTROLLER, (), PRE)
    state = value(picture.facts.kubernetes)
    told = dict.fromkeys(unreached, connected) if reported else None
    pods = {name: replace(pod, unreached=told) for name, pod in state.controllers.pods.items()}
    template = {"spec": {"initContainers": [{"name": reports.REACH}], "containers": []}}
    return spoil(picture, "kubernetes", controllers=replace(state.controllers, pods=pods, template=template))


def claimed() -> Picture:
    return moment("CopyMetadata", NodeMode.MIGRATION, NodeMode.MIGRATION_CONTROLLER, ("kafka-2",), ACTIVE)


def dual_write() -> Picture:
    return moment("DualWrite", NodeMode.MIGRATION, NodeMode.MIGRATION_CONTROLLER, (), ACTIVE)


def to_c() -> Picture:
    return moment("MoveBrokers", (NodeMode.KRAFT, NodeMode.MIGRATION), NodeMode.MIGRATION_CONTROLLER, ("kafka-0",), ACTIVE)


def all_kraft() -> Picture:
    return moment("Finalize", NodeMode.KRAFT, NodeMode.MIGRATION_CONTROLLER, (), ACTIVE)


def to_f() -> Picture:
    controllers = (NodeMode.MIGRATION_CONTROLLER, NodeMode.KRAFT_CONTROLLER, NodeMode.MIGRATION_CONTROLLER)
    return moment("Finalize", NodeMode.KRAFT, controllers, ("kafka-controller-1",), ACTIVE)


USERS_NEW = stateful_set()["spec"]["template"]
USERS_NEW["metadata"]["annotations"] = {"checksum/configuration": "of KRaft settings"}


def finalized() -> Picture:
    return moment("Finalize", NodeMode.KRAFT, NodeMode.KRAFT_CONTROLLER, (), POST)


def users_new() -> Picture:
    """HandOver of brokers that run by their edits still, where the user has brought a template of their own."""
    return spoil_workload(moment("HandOver", NodeMode.KRAFT, NodeMode.KRAFT_CONTROLLER, (), POST), template=USERS_NEW,
                          update_revision="of the new one",
                          update_strategy={"type": "OnDelete"})


OWN = HandOver.OWN_CONFIGURATION


def to_own() -> Picture:
    """The same, as the spec asks for."""
    return asks_for_own(users_new())


def has_tried(picture: Picture, **changes: str) -> Picture:
    """Its trial has ended; see `pictures.tried`."""
    picture = with_fact(picture, "trials", {"kafka": Known(None, NOW)})
    (made,) = trial_job.keep(picture, value(picture.facts.kubernetes))
    assert isinstance(made, Create)
    return with_fact(picture, "trials", {"kafka": Known(tried(made.manifest, **changes), NOW)})


def asks_for_own(picture: Picture) -> Picture:
    return replace(picture, spec=picture.spec.model_copy(update={"hand_over": OWN}))


def at_rest() -> Picture:
    return moment("ReleaseZooKeeper", NodeMode.KRAFT, NodeMode.KRAFT_CONTROLLER, (), POST, opened=NOW - 7201)


def without_zookeeper() -> Picture:
    """A broker was restarted while ZooKeeper is stopped, and is back."""
    picture = moment("ReleaseZooKeeper", NodeMode.KRAFT, NodeMode.KRAFT_CONTROLLER, ("kafka-2",), POST, opened=NOW - 7201)
    return spoil_each(picture, "zookeeper_connections", lambda _: None)


def stopping() -> Picture:
    controllers = (NodeMode.MIGRATION_CONTROLLER, NodeMode.STOPPED, NodeMode.MIGRATION_CONTROLLER)
    return moment("EnableMigration", NodeMode.MIGRATION, controllers, ("kafka-controller-1",), ACTIVE)


def started(picture: Picture) -> Picture:
    """The brokers' edits are written as the record says, and those of the batch run with them."""
    (written,) = goals.broker_files(picture)
    assert isinstance(written, WriteNodeFiles)
    shown = {picture.brokers[name]: Known(edits.marker_of(written.files[name]), NOW) for name in picture.batch}
    files = {**value(picture.facts.kubernetes).node_files, "kafka": written.files}
    return with_fact(spoil(picture, "kubernetes", node_files=files), "markers", shown)


def given_back() -> Picture:
    """Back on ZooKeeper, the original template restored, the first broker back in mode ZooKeeper."""
    picture = moment("EnableMigration", (NodeMode.ZOOKEEPER, NodeMode.MIGRATION), NodeMode.STOPPED, ("kafka-0",), PRE)
    original = value(picture.facts.kubernetes).originals["kafka"]
    return spoil_workload(picture, template=original["template"])


def taken(at: float) -> dict[str, str]:
    """`spec.backups` of backups taken then."""
    return {"takenTime": f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}", "location": "a shelf"}


MOMENTS: dict[str, Callable[[], Picture]] = {
    **dict.fromkeys((*(gate.name for gate in preflight.GATES), "BrokersIdentified", "BrokersOnRecord"),
                    lambda: moment("Preflight")),
    **dict.fromkeys(("QuorumUp", "ControllersReady", "PreMigration"),
                    lambda: moment("ProvisionControllers", NodeMode.ZOOKEEPER, NodeMode.MIGRATION_CONTROLLER, (), PRE)),
    **dict.fromkeys(("TemplateIsOurs", "ReplicasUnchanged", "NodesSchedulable", "VolumesKept", "RestartIsSafe", "AllInSync",
                     "FollowersTakenBack", "LeaderCanGo", "BrokersSeeEachOther", "MovedBroker",
                     "AddressesKnown", "ObserversCaughtUp", "GroupsHealthy", "NoPhantomCopy",
                     "ModesOnRecord", "OthersInZooKeeper",
                     "DisksAllowRollback", "TopicIdsOnDisk", "ListenerCredentials", "WithinWindow"), to_b),
    "StartedByItsEdits": lambda: started(to_b()),
    "Rehearsed": lambda: moment("Rehearse"),
    "RehearsedAgain": lambda: moment("CopyMetadata", (NodeMode.MIGRATION, NodeMode.MIGRATION, NodeMode.ZOOKEEPER),
                                     NodeMode.MIGRATION_CONTROLLER, (), PRE, opened=None),
    **dict.fromkeys(("ClaimFollowsRegistration", "CopyFollowsClaim", "Claimed", "Copied"), claimed),
    **dict.fromkeys(("DualWrite", "DualWriteAlive", "DualWriteBegins", "NobodyFenced", "Parity",
                     "LeadersCanBeElected", "Forwards"), dual_write),
    **dict.fromkeys(("AllKRaft", "NobodyFencedForLong"), all_kraft),
    "BackupsTaken": lambda: moment("Finalize", NodeMode.KRAFT, NodeMode.MIGRATION_CONTROLLER, (), ACTIVE, opened=None,
                                   backups=taken(SOAKING_SINCE + 1)),
    "Soaked": lambda: moment("Soak", NodeMode.KRAFT, NodeMode.MIGRATION_CONTROLLER, (), ACTIVE, opened=NOW - 3601),
    **dict.fromkeys(("MajorityWithoutBatch", "ControllerFinalized"), to_f),
    **dict.fromkeys(("Finalized", "DualWriteEnded"), finalized),
    "ControllersReachBrokers": reaching,
    "GitHasTheTemplate": lambda: spoil_workload(finalized(), applied_by=("kustomize-controller",)),
    "OriginalsKept": finalized,
    **dict.fromkeys(("UsersTemplateCanBe", "OnlyOursWouldRestart"), to_own),
    "OwnTemplateTried": lambda: has_tried(to_own()),
    **dict.fromkeys(("NoPodWouldRestart", "Retained", "ZooKeeperUnused", "RecordHolds"), at_rest),
    **dict.fromkeys(("ZooKeeperStopped", "BackWithoutZooKeeper", "StartedBroker"), without_zookeeper),
    "WrittenBack": dual_write,
    "NoZooKeeperGroups": lambda: moment("MoveBrokers", NodeMode.MIGRATION, NodeMode.MIGRATION_CONTROLLER, (), ACTIVE,
                                        opened=None),
    "OthersHeard": to_c,
    "DriverAlive": dual_write,
    "PartitionStates": dual_write,
    "PartitionVersions": dual_write,
    "ControllersStopped": stopping,
    **dict.fromkeys(("ZooKeeperRules", "PlainBroker", "TemplateIsOriginal"), given_back),
    "ControllersGone": lambda: moment("ProvisionControllers"),
    "BrokersReleased": lambda: moment("RaiseProtocolVersion"),
}
"""The moment at which each gate is asked."""
