"""From ZooKeeper to KRaft and back, as guarded commands: what the operator, a person, Kafka and chaos may do, in any order.

What Kafka does is in docs/facts/kraft.md (Znodes, Forward, Rollback, Epochs, A leftover /migration), KIP-866 and
`KRaftMigrationDriver` of Kafka 3.9. Three brokers; the controllers are one thing that has a leader or none; all changes of
metadata are one, which is in ZooKeeper or is not; all partitions have one epoch, the highest. Nothing takes time.

That the operator behaves as it does here is held by `conformance.py`: each move of a simulated migration is one of these.
"""

from collections.abc import Mapping
from dataclasses import replace

from models.guarded import Command, Guard, Model, Variable

BROKERS = range(3)
STEPS = {"NOT_BEGUN": 0, "PROVISION_CONTROLLERS": 1, "ENABLE_MIGRATION": 2, "COPY_METADATA": 3, "MOVE_BROKERS": 4, "SOAK": 5,
         "FINALIZE": 6}
"""Those of cluster/plan.py that matter here: COPY_METADATA is DualWrite, too, and NOT_BEGUN all that comes before."""
CONSTANTS: Mapping[str, int] = STEPS | {
    "ON_ZOOKEEPER": 0, "IN_MIGRATION": 1, "ON_KRAFT": 2,                           # mode of a broker
    "ABSENT": 0, "RUNNING": 1, "STOPPED": 2,                                       # controllers
    "EMPTY": 0, "COPIED": 1, "FINAL": 2,                                           # log; FINAL is POST_MIGRATION
    "NOBODY": 0, "KRAFT": len(BROKERS) + 1,                                        # controller; 1 to 3 is a broker
    "NO_NODE": 0, "WITHOUT_OFFSET": 1, "WITH_OFFSET": 2,                           # migration
    "FORWARD": 0, "BACK": 1,                                                       # direction
    "NOT_LOOKED": 0, "UNCLAIMED": 1, "CLAIMED": 2,                                 # claim_seen
    "NOTHING": 0, "DELETE_MIGRATION": 1, "DELETE_CONTROLLER": 2,                   # late
}


def every(condition: str) -> str:
    """So of every broker: `{i}` stands for its number."""
    return " and ".join(f"({condition.format(i=i)})" for i in BROKERS)


def any_two_of_three(condition: str) -> str:
    return " or ".join(f"({condition.format(i=i)} and {condition.format(i=j)})" for i in BROKERS for j in BROKERS if i < j)


ALL_UP = every("up_{i} == 1")
A_BROKER_RULES = "NOBODY < controller < KRAFT"
KRAFT_RULES = "(controller == KRAFT and leader == 1 and log == COPIED)"
NOBODY_RULES = f"not ({A_BROKER_RULES} or {KRAFT_RULES})"
HOLDER = "CLAIMED if controller == KRAFT else UNCLAIMED"
GOES_BACK, GOES_FORWARD = "direction == BACK and ", "direction == FORWARD and "

GUARDS: Mapping[str, Guard] = {
    "NO_LEFTOVER": Guard("migration == NO_NODE", "cluster/preflight/ownership.py: find_znodes"),
    "QUORUM_UP": Guard("leader == 1", "cluster/gates/quorum.py: check_quorum_up"),
    "RESTART_IS_SAFE": Guard(ALL_UP, "cluster/gates/replicas.py: check_restart_is_safe"),
    "ALL_IN_SYNC": Guard(f"not ({NOBODY_RULES})", "cluster/gates/replicas.py: check_all_in_sync, after the broker"
                         " before: where nobody elects leaders, no replica comes back in sync"),
    "COPIED": Guard("controller == KRAFT and log == COPIED and migration == WITH_OFFSET",
                    "cluster/gates/dual_write.py: check_claimed, check_copied"),
    "DUAL_WRITE_ALIVE": Guard(KRAFT_RULES, "cluster/gates/dual_write.py: check_dual_write, before each broker moves"),
    "ALL_KRAFT": Guard(every("mode_{i} == ON_KRAFT"), "cluster/gates/registration.py: check_all_kraft"),
    "NONE_LEFT_ON_KRAFT": Guard(every("mode_{i} != ON_KRAFT"), "cluster/rollback.py: to_migration, none left"),
    "WRITTEN_BACK": Guard("log == EMPTY or unwritten == 0", "cluster/gates/rollback.py: check_written_back"),
    "NOTHING_BEHIND": Guard("controllers == ABSENT or migration == NO_NODE or unwritten == 0",
                            "cluster/gates/rollback.py: is_behind, of stopped controllers; it knows what was seen of their"
                            " log, and the model takes that for all of it"),
    "NO_CLAIM_MEANWHILE": Guard("controller != KRAFT", "cluster/rollback.py: end_claim, which looks in the same pass."
                                " Between that look and the end of the last controller the product has no check"),
    "CONTROLLERS_STOPPED": Guard("controllers != RUNNING", "cluster/rollback.py: end_claim, _all_stopped"),
    "EPOCH_RAISED": Guard("controller_epoch >= partition_epoch and controller_epoch >= raft_epoch",
                          "cluster/rollback.py: end_claim, RaiseEpoch"),
    "MIGRATION_NODE_FIRST": Guard("migration == NO_NODE", "cluster/rollback.py: end_claim, its order"),
    "ZOOKEEPER_RULES": Guard(A_BROKER_RULES, "cluster/gates/rollback.py: check_zookeeper_rules, of /controller"),
    "ZOOKEEPER_NAMED": Guard(every("names_kraft_{i} == 0"),
                             "cluster/gates/rollback.py: check_zookeeper_rules, of every broker"),
    "NODE_VERSIONS": Guard("nodes_changed == 0", "cluster/effects.py: DeleteZNode, the version of the node and of"
                           " /controller_epoch that were seen: ZooKeeper refuses others"),
    "CONTROLLERS_GONE": Guard("log == EMPTY and raft_epoch == 0",
                              "cluster/gates/rollback.py: check_controllers_gone, of volumes"),
}

HAZARDS = {
    "ELECTIONS_ABORTED": "a partition's epoch is above the ZooKeeper controller's, which elects no leader (KAFKA-20488)",
    "TOPICS_DELETED": "an empty log takes /migration for its own, and deletes every topic (Strimzi #11262)",
    "METADATA_LOST": "metadata that KRaft accepted never reaches ZooKeeper, which rules again",
    "TWO_CONTROLLERS": "a broker and KRaft act as controller at the same time",
    "NOBODY_RULES": "a broker is stopped while nobody can elect other leaders",
    "ASKS_IN_VAIN": "a broker is stopped that asks KRaft for leave, where no controller answers: that takes five minutes",
    "TWO_AWAY": "a second broker is stopped while one is away",
    "NOT_COPIED": "a broker starts on KRaft, which has no metadata",
    "OLD_LOG": "a log with another attempt's metadata begins behind a deleted /migration",
    "CUT_OFF": "the migration has ended, and a broker still needs ZooKeeper (KAFKA-20960)",
}


def kraft(elections: int, attempts: int, troubles: int) -> Model:
    """The model with at most so many elections of KRaft in an attempt, so many attempts, and so many troubles."""
    commands = (*_forward(), *_person(attempts), *_back(elections), *_zookeeper(), *_brokers(troubles), *_kraft(elections))
    return Model(_variables(elections, attempts, troubles), CONSTANTS, GUARDS, HAZARDS, (
        *map(_changes_nodes, commands), *_late(troubles)))


def _changes_nodes(command: Command) -> Command:
    """The same, noted for a request that is on its way."""
    if not {"migration", "controller_epoch"} & command.then.keys():
        return command
    return replace(command, then={"nodes_changed": "1 if late != NOTHING else 0", **command.then})


def _variables(elections: int, attempts: int, troubles: int) -> tuple[Variable, ...]:
    return (
        *(Variable(f"mode_{i}", 0, 2, "the mode that the broker starts in, or runs in") for i in BROKERS),
        *(Variable(f"up_{i}", 1, 1, "the broker runs, and others hear it") for i in BROKERS),
        *(Variable(f"names_kraft_{i}", 0, 1, "what the broker heard of last is that KRaft rules") for i in BROKERS),
        *(Variable(f"registered_{i}", 0, 1, "the quorum's log knows the broker") for i in BROKERS),
        Variable("cut_off", 0, len(BROKERS), "1 to 3: the broker that cannot reach the controllers"),
        Variable("controllers", 0, 2, "KRaft's: their pods"),
        Variable("leader", 0, 1, "the quorum has one"),
        Variable("raft_epoch", 0, elections + 1, "one more with each election"),
        Variable("log", 0, 2, "the controllers' metadata log"),
        Variable("unwritten", 0, 1, "metadata that KRaft accepted, and that ZooKeeper lacks"),
        Variable("controller", 1, CONSTANTS["KRAFT"], "/controller"),
        Variable("controller_epoch", 1, 63, "/controller_epoch"),
        Variable("migration", 0, 2, "/migration"),
        Variable("partition_epoch", 1, 63, "the highest controller_epoch in the state of a partition"),
        Variable("direction", 0, 1, "of the operator"),
        Variable("step", 0, max(STEPS.values()), "on record"),
        Variable("attempt", 1, attempts, "from 1"),
        Variable("troubles", 0, max(troubles, 1),
                 "so far: crashes of brokers, ways to the controllers that were cut, requests that are late"),
        Variable("claim_seen", 0, 2, "what the operator saw of the claim, before it acts on that"),
        Variable("late", 0, 2, "what a request of the operator that is still on its way asks of ZooKeeper"),
        Variable("nodes_changed", 0, 1, "/migration or /controller_epoch is another one than when that was sent"),
        Variable("flagless", 0, 1, "the controllers that do not lead have started without the migration flag"),
    )


def _stop(i: int, mode: str) -> dict[str, str]:
    """A pod is replaced: its session ends, and its next process starts in the mode that is assigned."""
    return {f"mode_{i}": mode, **_gone(i)}


def reaches_a_leader(i: int) -> str:
    return f"leader == 1 and cut_off != {i + 1}"


def _gone(i: int) -> dict[str, str]:
    """A process is away, and with it its session and what it had heard."""
    return {f"up_{i}": "0", f"names_kraft_{i}": "0", "controller": f"NOBODY if controller == {i + 1} else controller"}


def _by_a_restart(i: int) -> dict[str, str]:
    return {"TWO_AWAY": f"not ({ALL_UP})", "NOBODY_RULES": NOBODY_RULES,
            "ASKS_IN_VAIN": f"names_kraft_{i} == 1 and leader == 0"}


# --- the operator -----------------------------------------------------------------------------------------------------


def _forward() -> list[Command]:
    commands = [
        Command("operator", "Preflight passes, and ProvisionControllers begins.",
                GOES_FORWARD + "step == NOT_BEGUN", {"step": "PROVISION_CONTROLLERS"}, ("NO_LEFTOVER",)),
        Command("operator", "The controllers start.",
                GOES_FORWARD + "step == PROVISION_CONTROLLERS and controllers == ABSENT", {"controllers": "RUNNING"}),
        Command("operator", "The controllers are ready, and EnableMigration begins.",
                GOES_FORWARD + "step == PROVISION_CONTROLLERS and controllers == RUNNING", {"step": "ENABLE_MIGRATION"},
                ("QUORUM_UP",)),
        Command("operator", "All brokers but the last have the flag, and CopyMetadata begins.",
                GOES_FORWARD + f"step == ENABLE_MIGRATION and {ALL_UP} and ({any_two_of_three('mode_{i} >= IN_MIGRATION')})",
                {"step": "COPY_METADATA"}),
        Command("operator", "The metadata is copied, and MoveBrokers begins.",
                GOES_FORWARD + "step == COPY_METADATA", {"step": "MOVE_BROKERS"}, ("COPIED",)),
        Command("operator", "All brokers are on KRaft, and the soak begins.",
                GOES_FORWARD + f"step == MOVE_BROKERS and {ALL_UP}", {"step": "SOAK"}, ("ALL_KRAFT",)),
        Command("operator", "The soak has passed, a person approves, and Finalize begins.",
                GOES_FORWARD + "step == SOAK and leader == 1 and unwritten == 0", {"step": "FINALIZE"}),
        Command("operator", "The controllers that do not lead start without the flag.",
                "step == FINALIZE and log == COPIED and flagless == 0", {"flagless": "1"}),
        Command("operator", "The leader of the controllers stops, to start without the flag.",
                "flagless == 1 and log == COPIED and leader == 1", {"leader": "0"}),
    ]
    for i in BROKERS:
        commands += [
            Command("operator", f"Broker {i} is restarted with the migration flag.",
                    GOES_FORWARD + f"ENABLE_MIGRATION <= step <= COPY_METADATA and mode_{i} == ON_ZOOKEEPER",
                    _stop(i, "IN_MIGRATION"), ("RESTART_IS_SAFE", "ALL_IN_SYNC"), _by_a_restart(i)),
            Command("operator", f"Broker {i} is restarted on KRaft.",
                    GOES_FORWARD + f"step == MOVE_BROKERS and mode_{i} == IN_MIGRATION",
                    _stop(i, "ON_KRAFT"), ("RESTART_IS_SAFE", "DUAL_WRITE_ALIVE"), _by_a_restart(i))]
    return commands


def _back(elections: int) -> list[Command]:
    ends_claim = GOES_BACK + "PROVISION_CONTROLLERS <= step <= ENABLE_MIGRATION and "
    commands = [
        Command("operator", "No broker is left on KRaft, and CopyMetadata is taken back.",
                GOES_BACK + f"step == MOVE_BROKERS and {ALL_UP}", {"step": "COPY_METADATA"}, ("NONE_LEFT_ON_KRAFT",)),
        Command("operator", "ZooKeeper has all metadata, and EnableMigration is taken back.",
                GOES_BACK + "step == COPY_METADATA", {"step": "ENABLE_MIGRATION", "claim_seen": "NOT_LOOKED"},
                ("WRITTEN_BACK",)),
        Command("operator", "The operator looks who holds /controller.",
                ends_claim + f"controllers != ABSENT and claim_seen != ({HOLDER})", {"claim_seen": HOLDER}),
        Command("operator", "The controllers, seen without a claim, are removed as they are.",
                ends_claim + "claim_seen == UNCLAIMED and controllers != ABSENT",
                {"controllers": "ABSENT", "leader": "0", "claim_seen": "NOT_LOOKED"}, ("NO_CLAIM_MEANWHILE",)),
        # The last condition is of the bound on elections alone: who starts again must have one left.
        Command("operator", "The controllers, seen with a claim, are stopped.",
                GOES_BACK + "step == ENABLE_MIGRATION and claim_seen == CLAIMED and controllers == RUNNING"
                f" and (unwritten == 0 or raft_epoch < {elections})",
                {"controllers": "STOPPED", "leader": "0", "claim_seen": "NOT_LOOKED"}),
        Command("operator", "The controllers stopped too early, and are started again.",
                GOES_BACK + "step == ENABLE_MIGRATION and controllers == STOPPED and controller == KRAFT and unwritten == 1"
                " and migration != NO_NODE",
                {"controllers": "RUNNING", "claim_seen": "NOT_LOOKED"}),
        Command("operator", "The operator raises /controller_epoch above the epoch of every partition.",
                GOES_BACK + "step == ENABLE_MIGRATION and controller == KRAFT"
                " and (controller_epoch < partition_epoch or controller_epoch < raft_epoch)",
                {"controller_epoch": "(partition_epoch if partition_epoch > raft_epoch else raft_epoch) + 1"},
                ("CONTROLLERS_STOPPED", "NOTHING_BEHIND")),
        Command("operator", "The operator deletes /migration, of controllers that claimed the cluster.",
                GOES_BACK + "step == ENABLE_MIGRATION and migration != NO_NODE and controller == KRAFT",
                {"migration": "NO_NODE"}, ("CONTROLLERS_STOPPED", "NOTHING_BEHIND", "EPOCH_RAISED")),
        Command("operator", "The operator deletes /migration, of controllers without a claim.",
                ends_claim + "migration != NO_NODE and controller != KRAFT",
                {"migration": "NO_NODE"}, ("CONTROLLERS_STOPPED",)),
        Command("operator", "The operator deletes /controller.",
                GOES_BACK + "step == ENABLE_MIGRATION and controller == KRAFT",
                {"controller": "NOBODY"}, ("CONTROLLERS_STOPPED", "NOTHING_BEHIND", "EPOCH_RAISED", "MIGRATION_NODE_FIRST")),
        Command("operator", "All brokers are as they were, and ProvisionControllers is taken back.",
                GOES_BACK + "step == ENABLE_MIGRATION and controllers == ABSENT and migration == NO_NODE"
                f" and controller != KRAFT and {ALL_UP} and {every('mode_{i} == ON_ZOOKEEPER')}",
                {"step": "PROVISION_CONTROLLERS", "claim_seen": "NOT_LOOKED"}),
        Command("operator", "The volumes of the controllers are deleted.",
                GOES_BACK + "step == PROVISION_CONTROLLERS and controllers == ABSENT and migration == NO_NODE"
                " and (log != EMPTY or raft_epoch > 0)",
                {"log": "EMPTY", "raft_epoch": "0", "unwritten": "0", **{f"registered_{i}": "0" for i in BROKERS}},
                (), {"METADATA_LOST": "unwritten == 1"}),
        Command("operator", "Nothing is left of the attempt: everything is as before.",
                GOES_BACK + "step == PROVISION_CONTROLLERS and controllers == ABSENT and migration == NO_NODE"
                " and controller != KRAFT", {"step": "NOT_BEGUN"}, ("CONTROLLERS_GONE",)),
    ]
    for i in BROKERS:
        commands += [
            Command("operator", f"Broker {i} is restarted in Migration, away from KRaft.",
                    GOES_BACK + f"step == MOVE_BROKERS and mode_{i} == ON_KRAFT",
                    _stop(i, "IN_MIGRATION"), ("RESTART_IS_SAFE", "DUAL_WRITE_ALIVE"), _by_a_restart(i)),
            Command("operator", f"Broker {i} is restarted on plain ZooKeeper.",
                    GOES_BACK + f"step == ENABLE_MIGRATION and controllers == ABSENT and migration == NO_NODE"
                    f" and mode_{i} == IN_MIGRATION",
                    _stop(i, "ON_ZOOKEEPER"), ("RESTART_IS_SAFE", "ZOOKEEPER_RULES", "ZOOKEEPER_NAMED"),
                    _by_a_restart(i))]
    return commands


def _late(troubles: int) -> list[Command]:
    """Requests to ZooKeeper of an operator that died, or of one whose connection hung: they arrive when they like."""
    sent = GOES_BACK + f"step == ENABLE_MIGRATION and controller == KRAFT and late == NOTHING and troubles < {troubles} and "
    return [
        Command("operator", "The operator asks ZooKeeper to delete /migration, and that is late.",
                sent + "migration != NO_NODE",
                {"late": "DELETE_MIGRATION", "nodes_changed": "0", "troubles": "troubles + 1"},
                ("CONTROLLERS_STOPPED", "NOTHING_BEHIND", "EPOCH_RAISED")),
        Command("operator", "The operator asks ZooKeeper to delete /controller, and that is late.",
                sent + "migration == NO_NODE",
                {"late": "DELETE_CONTROLLER", "nodes_changed": "0", "troubles": "troubles + 1"},
                ("CONTROLLERS_STOPPED", "NOTHING_BEHIND", "EPOCH_RAISED", "MIGRATION_NODE_FIRST")),
        Command("zookeeper", "The late request arrives, and /migration is deleted.",
                "late == DELETE_MIGRATION", {"late": "NOTHING", "nodes_changed": "0", "migration": "NO_NODE"},
                ("NODE_VERSIONS",)),
        Command("zookeeper", "The late request arrives, and /controller is deleted.",
                "late == DELETE_CONTROLLER", {"late": "NOTHING", "nodes_changed": "0", "controller": "NOBODY"},
                ("NODE_VERSIONS",)),
        Command("zookeeper", "The late request never arrives, or is refused.",
                "late != NOTHING", {"late": "NOTHING", "nodes_changed": "0"}),
    ]


# --- people -----------------------------------------------------------------------------------------------------------


def _person(attempts: int) -> list[Command]:
    return [
        Command("person", "A person wants everything back.",
                GOES_FORWARD + "PROVISION_CONTROLLERS <= step <= SOAK",
                {"direction": "BACK", "step": "MOVE_BROKERS if step == SOAK else step", "claim_seen": "NOT_LOOKED"}),
        Command("person", "A person wants it to go forward again, while KRaft writes to ZooKeeper, too.",
                GOES_BACK + "step >= COPY_METADATA", {"direction": "FORWARD"}),
        Command("person", "A person wants another attempt.",
                GOES_BACK + f"step == NOT_BEGUN and attempt < {attempts}",
                {"direction": "FORWARD", "attempt": "attempt + 1"}),
        Command("person", "Somebody else's attempt of before has left /migration.",
                GOES_FORWARD + "step == NOT_BEGUN and attempt == 1 and migration == NO_NODE", {"migration": "WITH_OFFSET"}),
        Command("person", "A person deletes that /migration, as Preflight says.",
                GOES_FORWARD + "step == NOT_BEGUN and migration == WITH_OFFSET", {"migration": "NO_NODE"}),
        Command("person", "An administrator changes metadata through KRaft.",
                f"{KRAFT_RULES} and unwritten == 0", {"unwritten": "1"}),
    ]


# --- Kafka ------------------------------------------------------------------------------------------------------------


def _zookeeper() -> list[Command]:
    """ZooKeeper's controller: brokers elect by the ephemeral /controller (KafkaController of 3.9)."""
    elects = {"ELECTIONS_ABORTED": "partition_epoch > controller_epoch + 1", "METADATA_LOST": "unwritten == 1",
              "TWO_CONTROLLERS": "leader == 1 and log == COPIED"}
    return [
        *(Command("zookeeper", f"Broker {i} becomes the ZooKeeper controller.",
                  f"controller == NOBODY and up_{i} == 1 and mode_{i} != ON_KRAFT",
                  {"controller": str(i + 1), "controller_epoch": "controller_epoch + 1"}, (), elects) for i in BROKERS),
        Command("zookeeper", "The ZooKeeper controller elects leaders of partitions.",
                f"{A_BROKER_RULES} and partition_epoch < controller_epoch", {"partition_epoch": "controller_epoch"}),
    ]


def _brokers(troubles: int) -> list[Command]:
    commands = []
    for i in BROKERS:
        commands += [
            Command("brokers", f"Broker {i} comes up.", f"up_{i} == 0 and mode_{i} != ON_KRAFT", {f"up_{i}": "1"}),
            Command("brokers", f"Broker {i} comes up on KRaft.",
                    f"up_{i} == 0 and mode_{i} == ON_KRAFT and log != EMPTY and {reaches_a_leader(i)}",
                    {f"up_{i}": "1", f"registered_{i}": "1"}),
            Command("brokers", f"Broker {i} registers with the controllers.",
                    f"up_{i} == 1 and mode_{i} == IN_MIGRATION and registered_{i} == 0 and {reaches_a_leader(i)}",
                    {f"registered_{i}": "1"}),
            Command("brokers", f"Broker {i} comes up on KRaft, which has no metadata.",
                    f"up_{i} == 0 and mode_{i} == ON_KRAFT and log == EMPTY", {f"up_{i}": "1"}, (), {"NOT_COPIED": "True"}),
            Command("chaos", f"Broker {i} crashes.", f"up_{i} == 1 and troubles < {troubles}",
                    {**_gone(i), "troubles": "troubles + 1"}),
            Command("chaos", f"Broker {i} can no longer reach the controllers, which fence it if it is on KRaft.",
                    f"cut_off == 0 and troubles < {troubles}",
                    {"cut_off": str(i + 1), f"up_{i}": f"0 if mode_{i} == ON_KRAFT else up_{i}",
                     "troubles": "troubles + 1"}),
            Command("chaos", f"Broker {i} can reach the controllers again.", f"cut_off == {i + 1}", {"cut_off": "0"}),
            Command("brokers", f"Broker {i} hears that KRaft rules.",
                    f"{KRAFT_RULES} and cut_off != {i + 1} and up_{i} == 1 and mode_{i} == IN_MIGRATION"
                    f" and names_kraft_{i} == 0",
                    {f"names_kraft_{i}": "1"}),
            Command("brokers", f"Broker {i} hears that a broker rules.",
                    f"{A_BROKER_RULES} and up_{i} == 1 and names_kraft_{i} == 1", {f"names_kraft_{i}": "0"})]
    return commands


def _kraft(elections: int) -> list[Command]:
    """The controllers: `KRaftMigrationDriver`, `QuorumController`."""
    claims_again = "controller == KRAFT and flagless == 0 and log != FINAL"
    return [
        Command("kraft", "The controllers elect a leader.",
                f"controllers == RUNNING and leader == 0 and (raft_epoch < {elections} or flagless == 1)",
                {"leader": "1", "raft_epoch": "raft_epoch + 1",
                 "controller_epoch": f"controller_epoch + 1 if {claims_again} else controller_epoch",
                 "log": "FINAL if flagless == 1 else log"}, (),
                {"OLD_LOG": "log == COPIED and migration == NO_NODE",
                 "CUT_OFF": f"flagless == 1 and not ({every('mode_{i} == ON_KRAFT')})"}),
        Command("chaos", "The leader of the controllers fails.",
                f"leader == 1 and (raft_epoch < {elections} or (flagless == 1 and log == COPIED))", {"leader": "0"}),
        Command("kraft", "The controllers make /migration, without an offset.",
                "controllers == RUNNING and migration == NO_NODE", {"migration": "WITHOUT_OFFSET"}),
        Command("kraft", "All brokers have registered with the flag, and KRaft claims /controller.",
                f"leader == 1 and log == EMPTY and controller != KRAFT and migration != NO_NODE"
                f" and {every('registered_{i} == 1')}",
                {"controller": "KRAFT", "controller_epoch": "controller_epoch + 1"}),
        Command("kraft", "KRaft copies the metadata, and writes its offset to /migration.",
                "leader == 1 and log == EMPTY and controller == KRAFT and migration == WITHOUT_OFFSET",
                {"log": "COPIED", "migration": "WITH_OFFSET"}),
        Command("kraft", "KRaft, whose log is empty, takes the offset of /migration for its own.",
                "leader == 1 and log == EMPTY and controller == KRAFT and migration == WITH_OFFSET",
                {"unwritten": "0"}, (), {"TOPICS_DELETED": "True"}),
        Command("kraft", "KRaft writes the change to ZooKeeper.",
                f"{KRAFT_RULES} and unwritten == 1 and migration == WITH_OFFSET",
                {"unwritten": "0", "partition_epoch": "raft_epoch if raft_epoch > partition_epoch else partition_epoch"}),
        Command("kraft", "KRaft writes the states of all partitions to ZooKeeper.",
                f"{KRAFT_RULES} and migration == WITH_OFFSET and partition_epoch != raft_epoch",
                {"partition_epoch": "raft_epoch"}),
    ]
