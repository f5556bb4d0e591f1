"""The plan of a KafkaMigration: its steps as a table."""

from collections.abc import Callable, Sequence

from switchover.answers.observed import Observed
from switchover.api.kafka_migration import KafkaMigrationStep as Name
from switchover.api.kafka_migration import NodeMode
from switchover.cluster import estimate, goals, modes, nodes, preflight, rollback, step
from switchover.cluster.facts import Need
from switchover.cluster.gates import (
    connections,
    disks,
    dual_write,
    ending,
    groups,
    operations,
    quorum,
    registration,
    replicas,
    workloads,
)
from switchover.cluster.gates import rollback as to_zookeeper
from switchover.cluster.gates.dual_write import PARITY
from switchover.cluster.gates.on_record import RECORD_HOLDS, check_finalize_begun, check_hand_over_begun
from switchover.cluster.gates.operations import REHEARSED, REHEARSED_AGAIN, WITHIN_WINDOW
from switchover.cluster.picture import Picture
from switchover.cluster.rehearsal import replica_job
from switchover.cluster.step import ClusterStep as Step
from switchover.engine.effects import Effect
from switchover.engine.gate import Gate
from switchover.engine.plan import Correction, Leg, Plan, Rescue, until_seen
from switchover.engine.rollout import BatchSize, Rollout, Sight

Left = Callable[[Picture], Observed[Sequence[str]]]
Sizes = Callable[[Picture], tuple[BatchSize, ...]]
Goal = Callable[[Picture], tuple[Effect, ...]]
Replace = Callable[[Picture, str, Sight], Effect]

Gates = tuple[Gate[Picture], ...]
BEFORE_A_RESTART: Gates = (workloads.NODES_SCHEDULABLE, replicas.RESTART_IS_SAFE, replicas.ADDRESSES_KNOWN)
BEFORE_A_BROKER: Gates = (workloads.TEMPLATE_IS_OURS, *BEFORE_A_RESTART)
BEFORE_A_BROKER_GOES_BACK: Gates = (
    to_zookeeper.TEMPLATE_IS_ORIGINAL, workloads.NODES_SCHEDULABLE, to_zookeeper.ZOOKEEPER_RULES, disks.DISKS_ALLOW_ROLLBACK)
BEFORE_A_BROKER_MOVES: Gates = (WITHIN_WINDOW, *BEFORE_A_BROKER, registration.MODES_ON_RECORD)
UNCHANGED: Gates = (workloads.REPLICAS_UNCHANGED, disks.VOLUMES_KEPT, connections.LISTENER_CREDENTIALS)
IN_ORDER: Gates = (groups.GROUPS_HEALTHY, replicas.FOLLOWERS_TAKEN_BACK)
ZOOKEEPER_LEADS: Gates = (registration.OTHERS_IN_ZOOKEEPER,)
"""Until KRaft's controllers lead, a broker that has lost ZooKeeper is none of the cluster's."""
CHANNELS: Gates = (replicas.FOLLOWERS_TAKEN_BACK, replicas.FORWARDS)
BROKER_WATCH: Gates = (*IN_ORDER, dual_write.NO_PHANTOM_COPY, *UNCHANGED)
TAKEN_OVER: Gates = (*BROKER_WATCH, workloads.TEMPLATE_IS_OURS)
DRIVER: Gates = (dual_write.DRIVER_ALIVE,)
WRITES: Gates = (*DRIVER, dual_write.PARTITION_STATES)
AS_IT_IS = ""
"""The mode of a rollout that leaves each node in the mode that it has."""
ON_ZOOKEEPER = (Need.BROKER_SETTINGS,)
"""Of whatever looks at brokers in ZooKeeper's modes: what they were, and which of these modes it is."""
LAST_ON_ZOOKEEPER = (Need.BROKER_MODES,)
"""The same where they have backups."""
STILL_COMPARED = (Need.PARITY,)
"""Where its figures alone show it: it takes a while, and is to be there when WrittenBack asks."""
AFTER_A_PLAIN_BROKER: Gates = (
    workloads.STARTED_BY_ITS_EDITS, to_zookeeper.PLAIN_BROKER, replicas.ALL_IN_SYNC, replicas.BROKERS_SEE_EACH_OTHER)
AFTER_A_BROKER: Gates = (
    workloads.STARTED_BY_ITS_EDITS, registration.MOVED_BROKER, registration.OBSERVERS_CAUGHT_UP, replicas.ALL_IN_SYNC,
    replicas.BROKERS_SEE_EACH_OTHER)
AFTER_A_KRAFT_BROKER: Gates = (*AFTER_A_BROKER, registration.NOBODY_FENCED, dual_write.DUAL_WRITE)
AFTER_A_CONTROLLER: Gates = (
    quorum.QUORUM_UP, registration.NOBODY_FENCED_FOR_LONG, replicas.BROKERS_SEE_EACH_OTHER, replicas.ALL_IN_SYNC)


def brokers(mode: str, left: Left, before: Gates, after: Gates, sizes: Sizes = nodes.sizes,
            assign: Goal = goals.broker_files, restart: bool = False, needs: tuple[Need, ...] = ()) -> Rollout[Picture]:
    """A rollout of brokers."""
    return Rollout(mode=mode, left=left, sight=nodes.sight, assign=assign, replace=nodes.replace_pod, sizes=sizes,
                   before=before, after=after, restart=restart, needs=needs)


def controllers(mode: NodeMode, left: Left, before: Gates = (), after: Gates = (), sizes: Sizes = rollback.all_controllers,
                replace: Replace = nodes.replace_pod, restart: bool = False,
                needs: tuple[Need, ...] = ()) -> Rollout[Picture]:
    """A rollout of controllers."""
    return Rollout(mode=mode, left=left, sight=nodes.sight, assign=goals.controller_files, replace=replace, sizes=sizes,
                   before=before, after=after, restart=restart, needs=needs)


# --- Forward ------------------------------------------------------------------------------------------------------------

TO_PINNED = brokers(
    NodeMode.ZOOKEEPER_PINNED, nodes.brokers_to_pinned, BEFORE_A_BROKER_MOVES, AFTER_A_PLAIN_BROKER,
    needs=ON_ZOOKEEPER)
TO_RAISED = brokers(
    NodeMode.ZOOKEEPER_RAISED, nodes.brokers_to_raised, BEFORE_A_BROKER_MOVES, AFTER_A_PLAIN_BROKER,
    needs=ON_ZOOKEEPER)
TO_MIGRATION_BUT_LAST = brokers(
    NodeMode.MIGRATION, nodes.all_but_the_last_to_migration, BEFORE_A_BROKER_MOVES, AFTER_A_BROKER,
    needs=ON_ZOOKEEPER)
LAST_TO_MIGRATION = brokers(
    NodeMode.MIGRATION, nodes.the_last_to_migration, BEFORE_A_BROKER_MOVES, AFTER_A_BROKER,
    needs=LAST_ON_ZOOKEEPER)
TO_KRAFT = brokers(
    NodeMode.KRAFT, nodes.brokers_to_kraft,
    (*BEFORE_A_BROKER_MOVES, quorum.MAJORITY_WITHOUT_BATCH, dual_write.DUAL_WRITE_ALIVE, disks.TOPIC_IDS_ON_DISK),
    (*AFTER_A_KRAFT_BROKER, PARITY))
REGISTERED_AGAIN = controllers(
    NodeMode.MIGRATION_CONTROLLER, nodes.to_register_again, sizes=nodes.one_by_one, restart=True,
    before=(quorum.MAJORITY_WITHOUT_BATCH,), after=(quorum.QUORUM_UP,))
RESTARTED = controllers(NodeMode.MIGRATION_CONTROLLER, rollback.to_restart, restart=True)
HANDED_ON = controllers(
    NodeMode.MIGRATION_CONTROLLER, rollback.to_hand_on, sizes=nodes.one_by_one, restart=True,
    before=(quorum.MAJORITY_WITHOUT_BATCH,), after=(quorum.QUORUM_UP,), needs=(Need.PARITY,))
FAILED_OVER = controllers(
    NodeMode.MIGRATION_CONTROLLER, rollback.to_fail_over, sizes=nodes.one_by_one, restart=True,
    before=(WITHIN_WINDOW, quorum.MAJORITY_WITHOUT_BATCH, registration.NOBODY_FENCED),
    after=(*AFTER_A_CONTROLLER, dual_write.DUAL_WRITE, PARITY))


def restarted(left: Left, *needs: Need) -> Rollout[Picture]:
    """The restart of a broker that has lost a channel to the controller. The gates that waited for it judge whether all are
    in sync then: the next leader may have the same fault."""
    return brokers(
        AS_IT_IS, left, sizes=nodes.one_by_one, restart=True,
        before=(workloads.TEMPLATE_IS_OURS, workloads.NODES_SCHEDULABLE, dual_write.LEADERS_CAN_BE_ELECTED,
                replicas.LEADER_CAN_GO),
        after=(workloads.STARTED_BY_ITS_EDITS, replicas.BROKERS_SEE_EACH_OTHER), needs=needs)


LEADER_RESTARTED = Rescue(
    (replicas.FOLLOWERS_TAKEN_BACK,), restarted(nodes.leader_that_is_stuck, Need.CAUGHT_UP))
WHILE_WRITING = (
    Rescue((*DRIVER, PARITY), HANDED_ON),
    LEADER_RESTARTED,
    Rescue((replicas.FORWARDS,), restarted(nodes.broker_that_is_cut_off, Need.FORWARDING)),
    Rescue((registration.NOBODY_FENCED, registration.OTHERS_HEARD), restarted(nodes.broker_without_heartbeats)))
CONTROLLERS_TO_KRAFT = controllers(
    NodeMode.KRAFT_CONTROLLER, nodes.controllers_to_kraft, sizes=nodes.one_by_one,
    before=(WITHIN_WINDOW, quorum.MAJORITY_WITHOUT_BATCH, registration.ALL_KRAFT, registration.NOBODY_FENCED),
    after=(quorum.CONTROLLER_FINALIZED, *AFTER_A_CONTROLLER))

TO_OWN_KRAFT = brokers(
    NodeMode.OWN_KRAFT, nodes.brokers_to_own_kraft,
    (WITHIN_WINDOW, workloads.USERS_TEMPLATE_CAN_BE, ending.OWN_TEMPLATE_TRIED, *BEFORE_A_RESTART,
     groups.GROUPS_HEALTHY),
    (*AFTER_A_BROKER, registration.NOBODY_FENCED, groups.GROUPS_HEALTHY), assign=rollback.no_files)

WITH_THE_USERS_FILES = controllers(
    NodeMode.KRAFT_CONTROLLER, nodes.controller_to_start_again, sizes=nodes.one_by_one, restart=True,
    before=(WITHIN_WINDOW, quorum.MAJORITY_WITHOUT_BATCH, registration.NOBODY_FENCED), after=AFTER_A_CONTROLLER)

CONTROLLER_WITHOUT_ZOOKEEPER = controllers(
    NodeMode.KRAFT_CONTROLLER, nodes.controller_to_start_without_zookeeper, sizes=nodes.one_by_one, restart=True,
    before=(WITHIN_WINDOW, ending.ZOOKEEPER_STOPPED, quorum.MAJORITY_WITHOUT_BATCH, registration.NOBODY_FENCED),
    after=(*AFTER_A_CONTROLLER, ending.ZOOKEEPER_STOPPED))


def started_without_zookeeper(mode: NodeMode) -> Rollout[Picture]:
    """The restart of one broker that proves that brokers no longer need ZooKeeper."""
    return Rollout(
        mode=mode, left=lambda picture: nodes.to_start_without_zookeeper(picture, mode), sight=nodes.sight,
        assign=rollback.no_files, replace=nodes.replace_pod, sizes=nodes.sizes, restart=True,
        before=(WITHIN_WINDOW, ending.ZOOKEEPER_STOPPED, *BEFORE_A_RESTART),
        after=(workloads.STARTED_BY_ITS_EDITS, registration.STARTED_BROKER, registration.OBSERVERS_CAUGHT_UP,
               replicas.ALL_IN_SYNC, replicas.BROKERS_SEE_EACH_OTHER, registration.NOBODY_FENCED, ending.ZOOKEEPER_STOPPED))


# --- Rollback -----------------------------------------------------------------------------------------------------------

BACK_TO_MIGRATION = brokers(
    NodeMode.MIGRATION, rollback.to_migration, (*BEFORE_A_BROKER, dual_write.DUAL_WRITE_ALIVE), AFTER_A_KRAFT_BROKER,
    sizes=nodes.one_by_one)
STARTED_AGAIN = controllers(
    NodeMode.MIGRATION_CONTROLLER, rollback.to_start_again, before=(connections.LISTENER_CREDENTIALS,),
    after=(quorum.QUORUM_UP, dual_write.DUAL_WRITE))
STOPPED = controllers(NodeMode.STOPPED, rollback.to_stop, sizes=rollback.stop_sizes, replace=rollback.stop_pod,
                      before=(to_zookeeper.PARTITION_VERSIONS,), after=(to_zookeeper.CONTROLLERS_STOPPED,))
BACK_TO_ZOOKEEPER = brokers(
    NodeMode.ZOOKEEPER, rollback.to_zookeeper, sizes=nodes.one_by_one, assign=rollback.no_files,
    before=(*BEFORE_A_BROKER_GOES_BACK, replicas.FOLLOWERS_TAKEN_BACK, replicas.RESTART_IS_SAFE, replicas.ADDRESSES_KNOWN),
    after=(*AFTER_A_PLAIN_BROKER, replicas.FOLLOWERS_TAKEN_BACK), needs=ON_ZOOKEEPER)
LEADER_BACK = Rescue((replicas.FOLLOWERS_TAKEN_BACK,), brokers(
    NodeMode.ZOOKEEPER, nodes.leader_that_is_stuck, sizes=nodes.one_by_one, assign=rollback.no_files, restart=True,
    before=(*BEFORE_A_BROKER_GOES_BACK, replicas.LEADER_CAN_GO),
    after=(workloads.STARTED_BY_ITS_EDITS, to_zookeeper.PLAIN_BROKER, replicas.BROKERS_SEE_EACH_OTHER),
    needs=(*ON_ZOOKEEPER, Need.CAUGHT_UP)))
"""The same leader where its pod's template is the user's own again."""

GIVEN_BACK: Leg[Picture] = Leg(
    goal=rollback.release_brokers, rollouts=(BACK_TO_ZOOKEEPER,), rescues=(LEADER_BACK,),
    done=(to_zookeeper.BROKERS_RELEASED, workloads.NO_POD_WOULD_RESTART), one_way=True)

ON_DELETE: Correction[Picture] = Correction(goals.keep_on_delete)
DUAL_WRITE_GOES_ON: Correction[Picture] = Correction(goals.keep_dual_write)
DUAL_WRITE_STILL_GOES_ON: Correction[Picture] = Correction(
    goals.keep_dual_write, ahead=goals.put_dual_write_right, needs=(Need.STATELESS,))
OUTDATED_HELD: Correction[Picture] = Correction(goals.hold_outdated, ahead=goals.hold_outdated)

# --- The table ----------------------------------------------------------------------------------------------------------

PLAN: Plan[Picture] = Plan((
    Step(Name.PREFLIGHT, forward=Leg(done=preflight.GATES), back=Leg(one_way=True, needs=ON_ZOOKEEPER)),
    Step(Name.REHEARSE,
         forward=Leg(goal=replica_job.rehearse, done=(REHEARSED,), needs=(Need.BROKER_SETTINGS,)),
         back=Leg(goal=replica_job.clear_away, one_way=True, needs=(Need.REHEARSAL,))),
    Step(Name.UPGRADE_BROKERS, estimate=estimate.upgrade, expected=step.UPGRADING,
         forward=Leg(
             enter=(WITHIN_WINDOW, preflight.BROKERS_IDENTIFIED),
             assigns=nodes.assign_brokers,
             watch=(*ZOOKEEPER_LEADS, *IN_ORDER, workloads.REPLICAS_UNCHANGED), rescues=(LEADER_RESTARTED,),
             goal=goals.claim_to_upgrade,
             keep=ON_DELETE,
             rollouts=(TO_PINNED,)),
         back=GIVEN_BACK),
    Step(Name.RAISE_PROTOCOL_VERSION, estimate=estimate.raise_version, expected=step.RAISING,
         forward=Leg(
             enter=(WITHIN_WINDOW, preflight.BROKERS_ON_RECORD),
             assigns=nodes.assign_missing_brokers,
             watch=(*ZOOKEEPER_LEADS, *IN_ORDER, workloads.REPLICAS_UNCHANGED), rescues=(LEADER_RESTARTED,),
             goal=goals.claim_to_raise,
             keep=ON_DELETE,
             rollouts=(TO_RAISED,)),
         back=GIVEN_BACK),
    Step(Name.PROVISION_CONTROLLERS, estimate=estimate.provision, expected=step.RAISING,
         forward=Leg(
             enter=(WITHIN_WINDOW, *preflight.OF_CONTROLLERS),
             assigns=nodes.assign_controllers,
             watch=(connections.LISTENER_CREDENTIALS,),
             goal=goals.claim_and_provision, needs=ON_ZOOKEEPER,
             rescues=(Rescue((quorum.CONTROLLERS_READY,), REGISTERED_AGAIN),),
             done=(quorum.QUORUM_UP, quorum.CONTROLLERS_READY, quorum.PRE_MIGRATION, connections.CONTROLLERS_REACH_BROKERS)),
         back=Leg(
             goal=rollback.remove_controllers, needs=(*ON_ZOOKEEPER, Need.PARTITION_EPOCH), rollouts=(STOPPED,),
             done=(to_zookeeper.CONTROLLERS_GONE,), one_way=True, critical=rollback.is_critical)),
    Step(Name.ENABLE_MIGRATION, estimate=estimate.enable, expected=step.BECOMING_READY,
         forward=Leg(
             enter=(WITHIN_WINDOW,), watch=(*ZOOKEEPER_LEADS, *BROKER_WATCH), goal=goals.take_templates_over,
             keep=ON_DELETE, rollouts=(TO_MIGRATION_BUT_LAST,), rescues=(LEADER_RESTARTED,)),
         back=Leg(
             enter=(to_zookeeper.WRITTEN_BACK,),
             goal=rollback.give_back,
             keep=ON_DELETE,
             rollouts=(STARTED_AGAIN, STOPPED, BACK_TO_ZOOKEEPER), rescues=(LEADER_BACK,),
             done=(workloads.NO_POD_WOULD_RESTART,),
             one_way=True, critical=rollback.is_critical)),
    Step(Name.COPY_METADATA, estimate=estimate.copy, one_piece=True, expected=step.COPYING,
         forward=Leg(
             enter=(WITHIN_WINDOW, disks.TOPIC_IDS_ON_DISK, REHEARSED_AGAIN),
             watch=(*ZOOKEEPER_LEADS, *TAKEN_OVER, dual_write.CLAIM_FOLLOWS_REGISTRATION, dual_write.COPY_FOLLOWS_CLAIM),
             keep=Correction(goals.keep_on_delete, ahead=replica_job.rehearse_again),
             rescues=(Rescue((dual_write.CLAIM_FOLLOWS_REGISTRATION, dual_write.COPY_FOLLOWS_CLAIM), RESTARTED),
                      LEADER_RESTARTED),
             rollouts=(LAST_TO_MIGRATION,),
             done=(dual_write.CLAIMED, dual_write.COPIED)),
         back=Leg(watch=WRITES, rescues=(Rescue((*DRIVER, to_zookeeper.WRITTEN_BACK), HANDED_ON),),
                  keep=DUAL_WRITE_GOES_ON, needs=LAST_ON_ZOOKEEPER,
                  done=(to_zookeeper.WRITTEN_BACK,))),
    Step(Name.DUAL_WRITE, expected=step.WRITING,
         forward=Leg(
             watch=(*TAKEN_OVER, *WRITES, replicas.FORWARDS, dual_write.DUAL_WRITE_BEGINS), rescues=WHILE_WRITING,
             keep=DUAL_WRITE_GOES_ON,
             done=(dual_write.DUAL_WRITE, PARITY, registration.NOBODY_FENCED)),
         back=Leg(
             watch=(workloads.TEMPLATE_IS_OURS,), keep=ON_DELETE, done=(disks.DISKS_ALLOW_ROLLBACK,),
             needs=STILL_COMPARED)),
    Step(Name.MOVE_BROKERS, estimate=estimate.move, expected=step.MOVING,
         forward=Leg(
             enter=(WITHIN_WINDOW, groups.NO_ZOOKEEPER_GROUPS, *WRITES, replicas.FOLLOWERS_TAKEN_BACK),
             watch=(groups.NO_ZOOKEEPER_GROUPS, *TAKEN_OVER, *WRITES, replicas.FORWARDS,
                    registration.OTHERS_HEARD),
             rescues=WHILE_WRITING, keep=DUAL_WRITE_STILL_GOES_ON,
             rollouts=(TO_KRAFT,),
             done=(registration.ALL_KRAFT,)),
         back=Leg(watch=(*UNCHANGED, workloads.TEMPLATE_IS_OURS, *WRITES, *CHANNELS), rescues=WHILE_WRITING,
                  keep=DUAL_WRITE_GOES_ON, rollouts=(BACK_TO_MIGRATION,))),
    Step(Name.SOAK, estimate=estimate.soak, expected=step.MOVED,
         forward=Leg(
             enter=WRITES,
             watch=(dual_write.DUAL_WRITE_ALIVE, *WRITES, workloads.TEMPLATE_IS_OURS, *CHANNELS, *UNCHANGED),
             rescues=WHILE_WRITING,
             keep=DUAL_WRITE_STILL_GOES_ON,
             rollouts=(FAILED_OVER,),
             done=(ending.SOAKED, dual_write.DUAL_WRITE, PARITY, registration.ALL_KRAFT, registration.NOBODY_FENCED)),
         back=Leg(needs=STILL_COMPARED)),
    Step(Name.FINALIZE, back=None, hold=True, unbegun=until_seen(check_finalize_begun, nodes.assign_controllers),
         expected=step.FINALIZING, estimate=estimate.finalize, one_piece=True,
         forward=Leg(
             enter=(WITHIN_WINDOW, registration.ALL_KRAFT, dual_write.DUAL_WRITE, PARITY, quorum.QUORUM_UP,
                    registration.NOBODY_FENCED, replicas.ALL_IN_SYNC, *IN_ORDER, workloads.TEMPLATE_IS_OURS,
                    operations.BACKUPS_TAKEN),
             watch=(groups.GROUPS_HEALTHY, *UNCHANGED),
             keep=Correction(goals.keep_on_delete, ahead=goals.put_dual_write_right, needs=(Need.STATELESS,)),
             rollouts=(CONTROLLERS_TO_KRAFT,),
             done=(ending.FINALIZED, ending.DUAL_WRITE_ENDED))),
    Step(Name.HAND_OVER, back=None, hold=workloads.GIT_HAS_THE_TEMPLATE, unbegun=until_seen(check_hand_over_begun),
         expected=step.HANDED_OVER, estimate=estimate.hand_over,
         forward=Leg(
             enter=(workloads.ORIGINALS_KEPT, workloads.ONLY_OURS_WOULD_RESTART),
             keep=OUTDATED_HELD, goal=goals.hand_over, rollouts=(TO_OWN_KRAFT, WITH_THE_USERS_FILES),
             needs=(Need.TRIALS,),
             done=(workloads.NO_POD_WOULD_RESTART,))),
    Step(Name.RELEASE_ZOOKEEPER, back=None, estimate=estimate.release, expected=step.HANDED_OVER,
         forward=Leg(
             watch=(ending.RETAINED, ending.ZOOKEEPER_UNUSED, ending.BACK_WITHOUT_ZOOKEEPER),
             needs=ending.ASKED,
             rollouts=(*map(started_without_zookeeper, modes.ON_KRAFT), CONTROLLER_WITHOUT_ZOOKEEPER))),
), rests_on=(RECORD_HOLDS,))
