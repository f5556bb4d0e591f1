"""What can be wrong, and what the gate of a KafkaMigration says of it. Preflight's are in test_kraft_preflight.py."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest

from switchover.api.kafka_migration import NodeMode
from switchover.api.status import Severity
from switchover.api.status import Verdict as Outcome
from switchover.cluster import preflight
from switchover.cluster.facts import Export
from switchover.cluster.picture import Picture
from switchover.cluster.rehearsal import report
from switchover.cluster.rehearsal.report import Report, as_message
from switchover.kafka.node import NOT_LISTENING
from switchover.kubernetes.jobs import JobState
from switchover.kubernetes.reports import DiskReport
from switchover.metadata.image import BrokerRegistration, MigrationState
from switchover.outside.observed import Known, Unknown
from switchover.zookeeper.nodes import ControllerNode, MigrationNode
from unit.judged_groups import Swept
from unit.kraft_gates import GATES, MOMENTS, USERS_NEW, asks_for_own, finalized, given_back, reaching, taken, to_c, users_new
from unit.kraft_spoilers import (
    BY_A_BROKER,
    FORMATTED,
    LAGGING,
    NAMELESS,
    OLD,
    TOGGLED,
    UNKNOWN_QUOTA,
    answers,
    backups,
    coming_up,
    container_renamed,
    controller_volumes,
    dead_and_behind,
    hybrid,
    in_trouble,
    log,
    migration_node,
    not_listed,
    observer,
    old_groups,
    one_server_runs,
    opened_at,
    parity,
    partition,
    pod,
    pod_spec,
    probing,
    quorum,
    registration,
    rehearsed,
    rolling_update,
    samples,
    shown,
    silent,
    standing,
    sweep,
    unregistered,
    untold,
    versions,
    voter,
    with_controllers_that_wait,
    with_log_unknown,
    without_edits,
    without_listener_credentials,
    without_original,
    without_state,
    without_workload,
    written,
    zookeeper,
)
from unit.pictures import (
    ACTIVE,
    NOW,
    OFFSET,
    PRE,
    SOAKING_SINCE,
    answer,
    spec_of,
    spoil,
    spoil_each,
    spoil_pod,
    spoil_workload,
    stateful_set,
    value,
    with_fact,
    workload_of,
)

W, F, U = Outcome.WAIT, Outcome.FAIL, Outcome.UNKNOWN
FOUND = report.Finding(report.Stage.COPY, "CopyWouldFail", Severity.BLOCKER, "nothing would be copied", "/config/users/evil")


class Finding(NamedTuple):
    """What is wrong with the healthy picture of a gate, and what the gate must say."""

    gate: str
    what: str
    spoil: Callable[[Picture], Picture]
    outcome: Outcome
    reason: str
    subject: str = ""


FINDINGS = [
    # preflight: who is who
    *(Finding(gate, "a broker that is not registered", zookeeper(brokers={}), W, "BrokersNotIdentified")
      for gate in ("BrokersIdentified", "BrokersOnRecord")),
    # backups
    Finding("BackupsTaken", "nothing said of backups", backups(None), W, "BackupsMissing", "spec.backups"),
    Finding("BackupsTaken", "backups from before the soak", backups(taken(SOAKING_SINCE - 1)), W, "BackupsMissing"),
    Finding("BackupsTaken", "backups of the second in which the soak began", backups(taken(SOAKING_SINCE)), W,
            "BackupsMissing"),
    Finding("BackupsTaken", "backups from the future", backups(taken(NOW + 301)), W, "BackupsMissing"),
    Finding("BackupsTaken", "a soak that is not on record", lambda picture: replace(picture, entered={}), U, "NotObserved"),
    # credentials
    Finding("ListenerCredentials", "a Secret that was deleted", without_listener_credentials, F,
            "ListenerCredentialsUnusable", "Secret keys"),
    # disks
    Finding("DisksAllowRollback", "a formatted log directory", pod("kafka-0", disks=FORMATTED), F, "LogDirectoryFormatted",
            "kafka-0"),
    Finding("DisksAllowRollback", "a broker with the flag that reports nothing", pod("kafka-0", disks=None), U,
            "DisksUnknown", "kafka-0"),
    Finding("TopicIdsOnDisk", "a partition without its topic id", pod("kafka-0", disks=NAMELESS), W, "TopicIdMissingOnDisk",
            "kafka-0"),
    Finding("TopicIdsOnDisk", "volumes without any log directory", pod("kafka-0", disks=DiskReport(0, 0, 0, 0)), U,
            "DisksUnknown", "kafka-0"),
    # door
    Finding("StartedByItsEdits", "a process that nothing of ours has started", shown(""), F, "DoorNotPassed", "kafka-0"),
    Finding("StartedByItsEdits", "a process of other edits", shown("switchover.B.00000000"), W, "StartedByOtherEdits",
            "kafka-0"),
    Finding("StartedByItsEdits", "back in mode ZooKeeper, and started through the door",
            lambda _: shown("switchover.A.00000000")(given_back()), W, "DoorStillThere", "kafka-0"),
    Finding("StartedByItsEdits", "a process that does not tell", silent("markers", 0), U, "BrokerSilent", "kafka-0"),
    Finding("StartedByItsEdits", "edits that are gone", lambda p: spoil(p, "kubernetes", node_files={}), U, "NotObserved",
            "kafka-0"),
    Finding("StartedByItsEdits", "edits that are gone, and a process that nothing of ours has started",
            lambda p: shown("")(spoil(p, "kubernetes", node_files={})), U, "NotObserved", "kafka-0"),
    # dual write
    Finding("NoPhantomCopy", "a copy of which the log knows nothing", migration_node(offset=OFFSET + 2), W,
            "StaleMigrationNode", "/migration"),
    Finding("Claimed", "a ZooKeeper controller still in charge", zookeeper(controller=BY_A_BROKER), W, "NotClaimed",
            "/controller"),
    Finding("Claimed", "a stranger in charge", zookeeper(controller=ControllerNode(77, False, 3)), W, "NotClaimed"),
    Finding("Claimed", "nobody in charge", zookeeper(controller=None), W, "NoController", "/controller"),
    Finding("Copied", "an offset of -1", migration_node(offset=-1), W, "NotCopied", "/migration"),
    Finding("Copied", "no /migration at all", zookeeper(migration=None), W, "NotCopied", "/migration"),
    Finding("Copied", "a log that does not say so", log(migration_state=PRE), W, "NotCopied", "metadata log"),
    Finding("Copied", "a copy under way", log(open_transaction="ZK Migration"), W, "NotCopied", "metadata log"),
    Finding("CopyFollowsClaim", "claimed and not copied", migration_node(offset=-1), W, "ClaimedNotCopied", "/migration"),
    Finding("CopyFollowsClaim", "claimed, not copied, and the quorum dead",
            lambda p: with_fact(migration_node(offset=-1)(p), "log", Unknown("no leader")), W, "ClaimedNotCopied",
            "/migration"),
    Finding("ClaimFollowsRegistration", "a claim that does not come",
            lambda p: log(migration_state=PRE)(zookeeper(controller=ControllerNode(2, True, -1))(p)), W, "NotClaimed",
            "/controller"),
    Finding("DualWrite", "ZooKeeper behind the log", migration_node(offset=OFFSET - 4), W, "DualWriteBehind", "/migration"),
    Finding("DualWrite", "a heartbeat that stopped", written(NOW - 6), W, "DualWriteBehind", "/migration"),
    Finding("DualWrite", "/migration deleted", zookeeper(migration=None), F, "MigrationNodeGone", "/migration"),
    Finding("DualWriteAlive", "a heartbeat that stopped", written(NOW - 6), W, "DualWriteBehind", "/migration"),
    Finding("DriverAlive", "a driver that nobody has seen writing yet", written(NOW - 2, False), U,
            "ZooKeeperUnknown", "/migration"),
    Finding("DriverAlive", "a driver that has not written since we look", written(NOW - 60, False), W, "DualWriteStuck",
            "/migration"),
    Finding("DriverAlive", "a driver that writes no more", written(NOW - 60), W, "DualWriteStuck",
            "/migration"),
    Finding("PartitionStates", "partitions that the driver cannot write", without_state(("orders", 1), ("orders", 2)), W,
            "PartitionsWithoutState", "orders-1"),
    Finding("DualWriteBegins", "a log that is not seen", with_log_unknown, U, "MetadataLogUnknown"),
    Finding("DualWriteBegins", "an offset that has stood for long", standing(6), W, "DualWriteStandsStill", "/migration"),
    Finding("DualWriteBegins", "a quota that Kafka does not know", standing(6, UNKNOWN_QUOTA), W, "QuotaStopsDualWrite",
            "quota foo_rate of user alice"),
    Finding("DualWriteBegins", "a byte rate with a decimal",
            standing(6, {(("client-id", None),): {"producer_byte_rate": 1048576.5}}), W, "QuotaStopsDualWrite",
            "quota producer_byte_rate of client-id (default)"),
    # ending
    Finding("ZooKeeperUnused", "a probe that asks for it", probing("ls /brokers/ids"), W, "PodsNeedZooKeeper",
            "StatefulSet kafka"),
    Finding("ZooKeeperUnused", "the controllers' entrypoint waits for it", with_controllers_that_wait, W,
            "PodsNeedZooKeeper", "StatefulSet kafka-controller"),
    Finding("ZooKeeperUnused", "a client of ZooKeeper",
            lambda p: spoil_each(p, "zookeeper_connections", lambda _: 2), W, "ZooKeeperInUse", "zookeeper:2181"),
    Finding("ZooKeeperUnused", "a ZooKeeper that does not tell", silent("zookeeper_connections", "zookeeper:2181"), U,
            "ZooKeeperUnverified", "zookeeper:2181"),
    Finding("Soaked", "a soak that has just begun", opened_at(NOW - 3599), W, "Soaking"),
    Finding("Retained", "a retention that has just begun", opened_at(NOW - 7199), W, "Retaining"),
    Finding("Finalized", "a log that still migrates", log(migration_state=ACTIVE), W, "NotFinalized", "metadata log"),
    Finding("Finalized", "a controller with the flag", log(controllers={3000: False, 3001: True, 3002: False}), W,
            "ControllerFlagged", "controller 3001"),
    Finding("DualWriteEnded", "a node that we have not looked at for long enough", written(NOW - 2, False), U,
            "ZooKeeperUnknown", "/migration"),
    Finding("DualWriteEnded", "a heartbeat a moment ago", written(NOW - 1), W, "StillDualWriting",
            "/migration"),
    Finding("ZooKeeperStopped", "a server that accepts connections", one_server_runs, W, "ZooKeeperRuns", "zk-1:2181"),
    Finding("ZooKeeperStopped", "a server that runs, and a broker that is down",
            lambda p: pod("kafka-1", ready=False)(one_server_runs(p)), W, "BrokerSilent", "kafka-1"),
    Finding("ZooKeeperStopped", "a server of which nothing is known", silent("zookeeper_connections", "zookeeper:2181"), U,
            "ZooKeeperUnverified", "zookeeper:2181"),
    Finding("BackWithoutZooKeeper", "a pod that does not get Ready", pod("kafka-2", ready=False), W,
            "NotBackWithoutZooKeeper", "kafka-2"),
    Finding("BackWithoutZooKeeper", "a broker that does not answer", silent("answers", 2), W, "NotBackWithoutZooKeeper",
            "kafka-2"),
    # groups
    Finding("GroupsHealthy", "too much lag", samples(sweep(0, 100, 20_000)), W, "GroupLag", "orders orders-0"),
    Finding("GroupsHealthy", "commits that stand still", samples(sweep(31, 90, 95), sweep(0, 90, 99)), W, "GroupStalled",
            "orders orders-0"),
    Finding("GroupsHealthy", "a group that never committed", samples(Swept(0, {})), W, "GroupHasNoCommits", "orders"),
    Finding("GroupsHealthy", "records deleted before they were consumed", samples(sweep(0, 5, 99, start=7)), W,
            "GroupOffsetsWrong", "orders orders-0"),
    Finding("GroupsHealthy", "a commit beyond the end, twice", samples(sweep(2, 101, 100), sweep(0, 101, 100)), W,
            "GroupOffsetsWrong", "orders orders-0"),
    Finding("GroupsHealthy", "a commit beyond the end, once", samples(sweep(2, 100, 100), sweep(0, 101, 100)), U,
            "GroupUnknown", "orders orders-0"),
    Finding("GroupsHealthy", "a commit that went back and stays",
            samples(sweep(40, 90, 100), sweep(30, 50, 100), sweep(0, 60, 100)), W, "GroupOffsetsWrong", "orders orders-0"),
    Finding("GroupsHealthy", "samples that are too old", samples(sweep(10, 90, 100)), U, "GroupUnknown", "orders orders-0"),
    Finding("GroupsHealthy", "a partition with records and no commit", samples(sweep(0, None, 50)), W, "GroupNeverCommitted",
            "orders orders-0"),
    Finding("GroupsHealthy", "a group that cannot be sampled", silent("groups", "orders"), U, "GroupUnknown", "orders"),
    # on record
    Finding("RecordHolds", "a log that still migrates", log(migration_state=ACTIVE), F, "RecordContradicted",
            "ReleaseZooKeeper"),
    # parity
    Finding("Parity", "a difference that stays", parity(difference=True), W, "MetadataDiffers", "topic orders"),
    Finding("Parity", "differences that may be on their way", parity(), W, "ParityUnsettled", "metadata"),
    Finding("Parity", "a reading from before the step", parity(proven=True, at=NOW - 3600), W, "ParityUnsettled",
            "metadata"),
    # quorum
    Finding("QuorumUp", "controllers that are coming up", coming_up("kafka-controller-1", "kafka-controller-2"), U,
            "ControllerComingUp", "pod kafka-controller-1"),
    Finding("QuorumUp", "controllers that are up and do not lead", lambda p: with_fact(
        p, "quorum", Unknown("nobody leads")), U, "QuorumUnknown", "quorum"),
    Finding("QuorumUp", "a controller that crashes", in_trouble("kafka-controller-1", "kafka-controller-2"), U,
            "ControllerInTrouble", "pod kafka-controller-1"),
    Finding("QuorumUp", "a voter that is not ours", quorum(voters=dict.fromkeys((1, 3000, 3001), LAGGING)), F,
            "WrongVoters"),
    Finding("QuorumUp", "a leader in its first moments", quorum(high_watermark=-1), W, "QuorumStarting", "controller 3000"),
    Finding("QuorumUp", "a voter far behind", voter(3001, log_end_offset=OFFSET - 5), W, "VoterBehind", "controller 3001"),
    Finding("QuorumUp", "a voter that stopped fetching", voter(3002, last_fetch_ms=int((NOW - 4) * 1000)), W, "VoterBehind",
            "controller 3002"),
    Finding("PreMigration", "a controller that takes long", coming_up("kafka-controller-2", since=NOW - 500), U,
            "ControllerInTrouble", "pod kafka-controller-2"),
    Finding("PreMigration", "a controller that crashes", in_trouble("kafka-controller-0"), U, "ControllerInTrouble",
            "pod kafka-controller-0"),
    Finding("PreMigration", "a quorum that can never migrate", log(migration_state=MigrationState.NONE), F,
            "QuorumCannotMigrate"),
    Finding("PreMigration", "no state in the log yet", log(migration_state=None), W, "NoMigrationState", "metadata log"),
    Finding("PreMigration", "another metadata.version", log(metadata_version=20), F, "MetadataVersionMismatch"),
    Finding("PreMigration", "brokers whose protocol nobody tells", lambda p: with_fact(p, "broker_settings", {}), U,
            "SettingsUnknown"),
    Finding("ControllersReady", "a controller without the flag", log(controllers={3000: True, 3001: False, 3002: True}), W,
            "ControllerNotReady", "controller 3001"),
    Finding("ControllersReady", "a controller that has not registered", log(controllers={3000: True, 3001: True}), W,
            "ControllerNotReady", "controller 3002"),
    Finding("ControllersReady", "a controller without finalized features",
            lambda p: spoil_each(p, "answers", lambda a: replace(a, features_epoch=-1), 3002), W, "ControllerStarting",
            "controller 3002"),
    Finding("ControllersReady", "a controller that does not answer", silent("answers", 3001), U, "ControllerComingUp",
            "pod kafka-controller-1"),
    Finding("ControllersReady", "a controller that does not listen", lambda p: spoil_each(
        p, "answers", lambda _: NOT_LISTENING, 3001), U, "ControllerComingUp", "pod kafka-controller-1"),
    Finding("ControllersReady", "a controller whose pod nobody sees", lambda p: spoil(
        silent("answers", 3001)(p), "kubernetes", controllers=None), U, "ControllerUnknown", "controller 3001"),
    Finding("MajorityWithoutBatch", "another voter behind", voter(3002, log_end_offset=OFFSET - 5), W, "VoterBehind",
            "controller 3002"),
    Finding("ControllerFinalized", "a controller with the flag", answers(3001, NodeMode.MIGRATION_CONTROLLER), W,
            "WrongMode", "kafka-controller-1"),
    Finding("ControllerFinalized", "a controller that does not answer", silent("answers", 3001), W, "ControllerSilent",
            "kafka-controller-1"),
    # reach
    Finding("ControllersReachBrokers", "a network that lets brokers in alone", lambda _: reaching(
        "kafka-0.kafka:9092", "kafka-1.kafka:9092"), W, "BrokersOutOfReach", "pod kafka-controller-0"),
    Finding("ControllersReachBrokers", "a pod that starts still", lambda _: reaching(reported=False), U,
            "ReachUnknown", "pod kafka-controller-0"),
    Finding("ControllersReachBrokers", "a broker that is not there as controllers are made", lambda p: zookeeper(
        brokers={})(spoil(p, "kubernetes", controllers=None)), U, "ReachUnknown", "brokers"),
    # registration
    Finding("MovedBroker", "a broker that does not answer", silent("answers", 0), W, "BrokerSilent", "kafka-0"),
    Finding("MovedBroker", "a broker in its old mode", answers(0, NodeMode.ZOOKEEPER), W, "WrongMode", "kafka-0"),
    Finding("MovedBroker", "a broker that left ZooKeeper", zookeeper(brokers={}), W, "ZooKeeperRegistration", "kafka-0"),
    Finding("MovedBroker", "a broker whose registration was refused", unregistered(0), W, "NotRegistered", "kafka-0"),
    Finding("MovedBroker", "a broker registered in the other mode", registration(0, migrating_zk=False), W, "NotRegistered",
            "kafka-0"),
    Finding("MovedBroker", "a fenced broker", registration(0, fenced=True), W, "BrokerFenced", "kafka-0"),
    Finding("ObserversCaughtUp", "a broker far behind the log", observer(0, LAGGING), W, "ObserverBehind", "kafka-0"),
    Finding("ObserversCaughtUp", "a broker that does not follow the log", observer(0, None), W, "ObserverBehind", "kafka-0"),
    Finding("NobodyFenced", "a fenced broker", registration(1, fenced=True), W, "BrokerFenced", "kafka-1"),
    Finding("NobodyFenced", "a broker that is not registered", unregistered(2), W, "BrokerFenced", "kafka-2"),
    Finding("NobodyFencedForLong", "a fenced broker", registration(1, fenced=True), W, "BrokerFenced", "kafka-1"),
    Finding("AllKRaft", "a broker registered in ZooKeeper", zookeeper(brokers={1: {}}), W, "BrokerOnZooKeeper", "broker 1"),
    Finding("AllKRaft", "a broker in ZooKeeper mode", answers(2, NodeMode.MIGRATION), W, "BrokerOnZooKeeper", "kafka-2"),
    Finding("AllKRaft", "a broker that the log has in ZooKeeper mode", registration(0, migrating_zk=True), W,
            "BrokerOnZooKeeper", "kafka-0"),
    Finding("AllKRaft", "a broker that does not answer", silent("answers", 1), U, "BrokerSilent", "kafka-1"),
    Finding("AllKRaft", "a stranger in ZooKeeper mode",
            lambda p: spoil(p, "log", brokers={**value(p.facts.log).brokers, 9: BrokerRegistration(1, True, True)}), F,
            "UnknownBroker", "broker 9"),
    Finding("ModesOnRecord", "a settled broker in another mode", answers(1, NodeMode.MIGRATION), W, "WrongMode", "kafka-1"),
    Finding("ModesOnRecord", "a settled broker that does not answer", silent("answers", 1), U, "BrokerSilent", "kafka-1"),
    Finding("StartedBroker", "a broker that is not registered", unregistered(2), W, "NotRegistered", "kafka-2"),
    Finding("StartedBroker", "a fenced broker", registration(2, fenced=True), W, "BrokerFenced", "kafka-2"),
    # rehearsal
    Finding("Rehearsed", "no Job yet", lambda p: with_fact(p, "rehearsal", Known(None, NOW)), W, "RehearsalRunning",
            "Job to-kraft-rehearsal"),
    Finding("Rehearsed", "a replica that works", lambda p: rehearsed(
        p, state=JobState.RUNNING, message="", words="pod a: Pending"), W, "RehearsalRunning"),
    Finding("Rehearsed", "a replica that did not start", lambda p: rehearsed(
        p, state=JobState.FAILED, message="", words="deadline exceeded"), F, "RehearsalFailed"),
    Finding("Rehearsed", "what is no report", lambda p: rehearsed(p, message="Traceback"), F, "RehearsalFailed"),
    Finding("Rehearsed", "an operator that does not know its image", lambda p: replace(p, operator_image=""), U,
            "RehearsalUnknown", "IMAGE"),
    Finding("Rehearsed", "a node that ends the controller", lambda p: rehearsed(p, message=as_message(Report("digest", (
        replace(FOUND, reason="NodeWouldBeDeleted", severity=Severity.INFO), FOUND)))), F, "CopyWouldFail",
            "/config/users/evil"),
    Finding("Rehearsed", "more than the report has room for", lambda p: rehearsed(
        p, message=as_message(Report("digest", more=1))), F, "RehearsalIncomplete"),
    Finding("RehearsedAgain", "another tree by now", lambda p: rehearsed(
        with_fact(p, "exported", Known(Export("other", ()), NOW)), created=NOW - 3600), W, "RehearsalRunning"),
    # replicas
    Finding("BrokersSeeEachOther", "a broker that no controller reaches", untold(0), W, "BrokerDeaf", "broker 0"),
    Finding("BrokersSeeEachOther", "a broker that has just started", lambda p: spoil_pod(
        untold(0)(p), "kafka-0", started_at=NOW - 10), W, "BrokerSilent", "broker 0"),
    Finding("BrokersSeeEachOther", "a broker that is not listed", not_listed(1, 0), W, "BrokerFenced", "broker 0"),
    Finding("BrokersSeeEachOther", "a broker that does not answer", silent("views", 0), W, "BrokerSilent", "broker 0"),
    Finding("RestartIsSafe", "another replica out of sync", partition(1, isr=(0, 1)), W, "WouldLoseInSyncReplicas",
            "orders-0"),
    Finding("RestartIsSafe", "a topic whose minimum is not known", lambda p: with_fact(p, "min_insync", Known({}, NOW)), U,
            "NotObserved"),
    Finding("RestartIsSafe", "one of the other brokers silent", silent("views", 1), U, "NoWitness"),
    Finding("AllInSync", "a replica out of sync", partition(2, isr=(0, 2)), W, "OutOfSync", "orders-0"),
    Finding("AllInSync", "a partition without a leader", partition(2, leader=-1), W, "OutOfSync", "orders-0"),
    Finding("AllInSync", "one of the other brokers silent", silent("views", 2), U, "NoWitness"),
    # rollback
    Finding("TemplateIsOriginal", "a clean-up of ControllerRevisions, and our template", lambda p: spoil_workload(
        without_original(p), template=workload_of(to_c()).template, update_strategy={"type": "OnDelete"}), F,
        "OriginalMissing", "ControllerRevision kafka-before-switchover-1"),
    Finding("TemplateIsOriginal", "our own template", lambda p: spoil_workload(p, template={"spec": {}}), W,
            "TemplateNotRestored", "kafka"),
    Finding("TemplateIsOriginal", "a strategy that restarts pods by itself",
            lambda p: spoil_workload(p, update_strategy={"type": "RollingUpdate"}), W, "TemplateNotRestored", "kafka"),
    Finding("WrittenBack", "metadata on its way to ZooKeeper", migration_node(offset=OFFSET - 4), W, "DualWriteBehind"),
    Finding("WrittenBack", "metadata that only one side has", parity(difference=True), W, "MetadataDiffers"),
    Finding("WrittenBack", "controllers that died with metadata of their own", dead_and_behind, W,
            "MetadataNotInZooKeeper", "/migration"),
    Finding("WrittenBack", "controllers of which nothing is known", with_log_unknown, U, "MetadataLogUnknown"),
    Finding("WrittenBack", "nobody is the controller", zookeeper(controller=None), W, "NoController", "/controller"),
    Finding("PartitionVersions", "a state that is behind", versions(1), W, "PartitionVersionsBehind", "/brokers/topics"),
    Finding("PartitionVersions", "states that were not read", versions(None), U, "PartitionVersionsUnknown"),
    Finding("PartitionVersions", "no comparison yet", lambda p: with_fact(p, "parity", Unknown("under way")), U,
            "PartitionVersionsUnknown"),
    Finding("PartitionVersions", "a quorum that does not answer and listens",
            with_log_unknown, U, "MetadataLogUnknown", "metadata log"),
    Finding("ControllersStopped", "a controller that still listens",
            lambda p: spoil_each(p, "answers", lambda _: answer(NodeMode.MIGRATION_CONTROLLER), 3001), W, "ControllerRuns",
            "kafka-controller-1"),
    Finding("ControllersStopped", "a controller of which nothing is known", silent("answers", 3001), U,
            "ControllerUnknown", "kafka-controller-1"),
    Finding("ZooKeeperRules", "a claim of KRaft", zookeeper(controller=ControllerNode(3000, False, 7)), W, "StillClaimed",
            "/controller"),
    Finding("ZooKeeperRules", "a claim, and states that cannot be read",
            lambda p: with_fact(zookeeper(controller=ControllerNode(3000, False, 7))(p), "partition_epoch",
                                Unknown("no answer")), U, "PartitionEpochUnknown", "/brokers/topics"),
    Finding("ZooKeeperRules", "no controller at this moment", zookeeper(controller=None), W, "NoController", "/controller"),
    Finding("ZooKeeperRules", "a broker that names another one",
            lambda p: spoil_each(p, "views", lambda view: replace(view, controller_id=0), 1), W, "ControllerNotKnown",
            "kafka-1"),
    Finding("ZooKeeperRules", "a broker that does not answer", silent("views", 1), U, "BrokerSilent", "kafka-1"),
    Finding("ZooKeeperRules", "a broker of the batch that runs and does not answer", silent("views", 0), U,
            "BrokerSilent", "kafka-0"),
    Finding("PlainBroker", "a broker that kept the flag",
            lambda p: spoil_each(p, "answers", lambda _: answer(NodeMode.MIGRATION), 0), W,
            "WrongMode", "kafka-0"),
    Finding("PlainBroker", "a broker that does not answer", silent("answers", 0), W, "BrokerSilent", "kafka-0"),
    Finding("PlainBroker", "a broker that is not registered", zookeeper(brokers={1: {}, 2: {}}), W,
            "ZooKeeperRegistration", "kafka-0"),
    Finding("ControllersGone", "the node of the claim",
            zookeeper(migration=MigrationNode(False, -1, -1, -1, 0, NOW)), W, "Leftover", "/migration"),
    Finding("ControllersGone", "a volume", lambda p: spoil(p, "kubernetes", controller_claims=("data-0",)), W, "Leftover",
            "claim data-0"),
    Finding("ControllersGone", "a file of a controller",
            lambda p: spoil(p, "kubernetes", node_files={"kafka-controller": {"a": "b"}}), W, "Leftover",
            "Secret kafka-controller-switchover"),
    Finding("BrokersReleased", "a file of a broker", lambda p: spoil(p, "kubernetes", node_files={"kafka": {"a": "b"}}), W,
            "Leftover", "Secret kafka-switchover"),
    Finding("BrokersReleased", "our copy of the original", lambda p: spoil(p, "kubernetes", originals={"kafka": {
        "template": workload_of(p).template, "updateStrategy": workload_of(p).update_strategy}}), W, "Leftover", "original"),
    Finding("BrokersReleased", "our claim", lambda p: spoil_workload(p, claimed_by=p.uid), W, "Leftover", "claim"),
    Finding("BrokersReleased", "a template that is not back", lambda p: spoil(p, "kubernetes", originals={"kafka": {
        "template": {}, "updateStrategy": {}}}), W, "TemplateNotRestored", "kafka"),
    # volumes
    Finding("VolumesKept", "a broker on another volume", pod("kafka-1", volumes=("data-kafka-1/2",)), W, "VolumeReplaced",
            "kafka-1"),
    Finding("VolumesKept", "a controller on another volume", controller_volumes("kafka-controller-1"), W, "VolumeReplaced",
            "kafka-controller-1"),
    Finding("VolumesKept", "two of three controllers on other volumes",
            controller_volumes("kafka-controller-0", "kafka-controller-2"), F, "QuorumVolumesLost", "kafka-controller-0"),
    # windows
    Finding("WithinWindow", "a window that opens at night",
            lambda p: replace(p, spec=spec_of(windows=[{"name": "night", "cron": "0 1 * * *", "durationSeconds": 3600}])), W,
            "OutsideWindow", "night"),
    # workloads
    Finding("TemplateIsOurs", "no StatefulSet", without_workload, F, "StatefulSetMissing", "kafka"),
    Finding("TemplateIsOurs", "the update strategy changed back", rolling_update, F, "RevertedByGitOps", "kafka"),
    Finding("TemplateIsOurs", "the hybrid mount", hybrid, F, "RevertedByGitOps", "kafka"),
    Finding("TemplateIsOurs", "no edits in the pod", without_edits, F, "RevertedByGitOps", "kafka"),
    Finding("TemplateIsOurs", "nobody who keeps the start script", pod_spec(initContainers=[]), F, "RevertedByGitOps",
            "kafka"),
    Finding("TemplateIsOurs", "no volume with the script and the edits", pod_spec(volumes=[]), F, "RevertedByGitOps",
            "kafka"),
    Finding("TemplateIsOurs", "the container renamed", container_renamed, F, "RevertedByGitOps", "kafka"),
    Finding("TemplateIsOurs", "a clean-up of ControllerRevisions", without_original, F, "OriginalMissing",
            "ControllerRevision kafka-before-switchover-1"),
    Finding("ReplicasUnchanged", "a broker more", lambda p: spoil_workload(p, replicas=4), F, "ReplicasChanged", "kafka"),
    Finding("NodesSchedulable", "a cordoned node", pod("kafka-2", cordoned=True), W, "NodeCordoned", "node-2"),
    Finding("NoPodWouldRestart", "a pod of an older revision", pod("kafka-1", revision="kafka-1"), W, "WouldRestart",
            "kafka-1"),
    Finding("NoPodWouldRestart", "no StatefulSet", without_workload, F, "StatefulSetMissing", "kafka"),
    Finding("OriginalsKept", "a clean-up of ControllerRevisions", without_original, F, "OriginalMissing",
            "ControllerRevision kafka-before-switchover-1"),
    Finding("GitHasTheTemplate", "nobody's manifest has it", lambda p: spoil_workload(p, applied_by=()), W, "NotInGit",
            "kafka"),
    Finding("GitHasTheTemplate", "a template of the user's own", lambda p: spoil_workload(
        p, applied_by=(), template=USERS_NEW), W, "OwnTemplate", "kafka"),
    Finding("GitHasTheTemplate", "one that is to be rolled to", lambda p: asks_for_own(spoil_workload(
        p, applied_by=(), template=USERS_NEW)), W, "OwnTemplate", "kafka"),
    Finding("GitHasTheTemplate", "none that could be rolled to", asks_for_own, W, "TemplateNotBrought", "kafka"),
    Finding("GitHasTheTemplate", "no StatefulSet", without_workload, F, "StatefulSetMissing", "kafka"),
    Finding("UsersTemplateCanBe", "no StatefulSet", without_workload, F, "StatefulSetMissing", "kafka"),
    Finding("UsersTemplateCanBe", "the one that it had on ZooKeeper", lambda p: spoil_workload(
        p, template=stateful_set()["spec"]["template"]), F, "RevertedByGitOps", "StatefulSet kafka"),
    Finding("UsersTemplateCanBe", "half of it is ours", lambda p: without_edits(spoil_workload(
        p, template=workload_of(finalized()).template)), F, "RevertedByGitOps", "StatefulSet kafka"),
    Finding("UsersTemplateCanBe", "a strategy that replaces pods by itself", lambda p: spoil_workload(
        p, update_strategy={"type": "RollingUpdate"}), W, "TemplateNotHeld", "kafka"),
    Finding("OnlyOursWouldRestart", "the one that it had on ZooKeeper", lambda p: spoil_workload(
        p, template=stateful_set()["spec"]["template"]), W, "TemplateNotBrought", "kafka"),
    Finding("OnlyOursWouldRestart", "a template of the user's own that nobody asked for", lambda _: users_new(), W,
            "WouldRestart", "kafka-0"),
    Finding("OnlyOursWouldRestart", "a template without Kafka", lambda p: spoil_workload(
        p, template={"metadata": {}, "spec": {"containers": [{"name": "one"}, {"name": "two"}]}}), F, "ContainerMissing",
        "kafka"),
    Finding("OnlyOursWouldRestart", "no StatefulSet", without_workload, F, "StatefulSetMissing", "kafka"),
    # zookeeper groups
    Finding("NoZooKeeperGroups", "a group of old consumers", old_groups(pay=OLD), W, "GroupOnZooKeeper", "pay"),
    Finding("NoZooKeeperGroups", "a group whose partitions Kafka assigns", old_groups(pay=TOGGLED), W, "GroupOnZooKeeper",
            "pay"),
    Finding("NoZooKeeperGroups", "several groups", old_groups(pay=OLD, audit=OLD), W, "GroupOnZooKeeper", "audit, pay"),
    Finding("NoZooKeeperGroups", "a ZooKeeper that does not answer",
            lambda p: with_fact(p, "zookeeper_groups", Unknown("no answer")), U, "ZooKeeperUnknown", "/consumers"),
]
"""By the files of cluster/gates; of each, gate after gate."""


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: f"{finding.gate}: {finding.what}")
def test_a_gate_tells_what_is_wrong(finding: Finding):
    verdict = GATES[finding.gate].check(finding.spoil(MOMENTS[finding.gate]()))
    assert (verdict.outcome, verdict.reason) == (finding.outcome, finding.reason), verdict.message
    assert finding.subject in verdict.subject
    assert verdict.message


def test_every_gate_between_the_steps_has_something_that_shuts_it():
    own = {gate.name for gate in preflight.GATES}
    assert {finding.gate for finding in FINDINGS} == GATES.keys() - own
