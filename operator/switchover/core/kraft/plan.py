"""The plan of a KafkaMigration: its steps as a table (design, section 6)."""

import hashlib
import json
import math
from collections.abc import Mapping

from switchover.api.kafka_migration import KafkaMigrationSpec
from switchover.core.effects import Apply, DeletePod, Effect, Evict, PatchStatefulSet, WriteNodeFiles
from switchover.core.gate import Gate
from switchover.core.kraft import controllers, modes, names, preflight, template
from switchover.core.kraft.facts import KubernetesState, ServerConfiguration
from switchover.core.kraft.gates import dual_write, ending, groups, quorum, registration, replicas, workloads
from switchover.core.kraft.picture import Picture
from switchover.core.observed import Known, Observed, Unknown
from switchover.core.plan import Leg, Plan, Step
from switchover.core.position import NodeRecord
from switchover.core.rollout import BatchSize, Rollout, Sight

FROZEN = ("zookeeper", "kafka", "brokers", "controllers", "soak_seconds", "zookeeper_retention_seconds")
"""The parts of the spec that make the plan: the CRD freezes them once a plan is recorded."""


# --- Goals --------------------------------------------------------------------------------------------------------------


def _state(picture: Picture) -> KubernetesState | None:
    return picture.facts.kubernetes.value if isinstance(picture.facts.kubernetes, Known) else None


def claim_and_provision(picture: Picture) -> tuple[Effect, ...]:
    """Mark the brokers' StatefulSets as ours, and create the controllers with their files."""
    state = _state(picture)
    release = quorum.protocol_version(picture)
    if state is None or release is None or not isinstance(picture.facts.zookeeper, Known):
        return ()
    claims = tuple(
        Apply({"apiVersion": "apps/v1", "kind": "StatefulSet",
               "metadata": {"name": workload.name, "annotations": {names.CLAIM: picture.uid}}})
        for workload in preflight.broker_workloads(state).values() if workload.claimed_by != picture.uid
    )
    if claims:
        return claims
    if files := controller_files(picture):
        return files
    if state.controllers is not None:
        return ()
    brokers = picture.spec.brokers[0]
    workload = state.brokers.get(brokers.name)
    if workload is None:
        return ()
    manifests = controllers.manifests(picture.name, picture.spec, brokers, workload,
                                      picture.facts.zookeeper.value.cluster_id, release)
    return tuple(Apply(manifest) for manifest in manifests)


def take_templates_over(picture: Picture) -> tuple[Effect, ...]:
    """Keep the originals, write every pod's file, then change each template once.

    Once a broker has been assigned another mode, a template that is not ours was changed by somebody else: that is for the
    gates to tell, not for us to fight over.
    """
    state = _state(picture)
    if state is None or any(picture.position.nodes[name].assigned != "A" for name in picture.brokers):
        return ()
    effects: list[Effect] = []
    for name, workload in preflight.broker_workloads(state).items():
        configuration = state.configurations.get(name)
        brokers = picture.broker_sets[name]
        if template.is_ours(workload, brokers) or not isinstance(configuration, ServerConfiguration):
            continue
        if state.originals.get(name) is None:
            manifest = template.original_manifest(workload, picture.position.attempt, names.labels(picture.name))
            effects.append(Apply(manifest))
        elif files := broker_files(picture):
            return files
        else:
            try:
                operations = template.patch(workload, brokers, picture.pods_of(name), configuration.other_keys)
            except template.Unsupported:
                continue                               # changed since Preflight: the gate TemplateIsOurs tells it
            effects.append(PatchStatefulSet(name, operations, "own file for each pod, pods replaced by eviction only"))
    return tuple(effects)


def restore_strategies(picture: Picture) -> tuple[Effect, ...]:
    """Give the update strategies back."""
    state = _state(picture)
    if state is None:
        return ()
    return tuple(
        PatchStatefulSet(name, template.restore_strategy(workload, original), "update strategy as it was")
        for name, workload in preflight.broker_workloads(state).items()
        if (original := state.originals.get(name)) is not None
        and workload.update_strategy != original["updateStrategy"]
    )


# --- Files: assigning a mode is writing its file ------------------------------------------------------------------------


def broker_files(picture: Picture) -> tuple[Effect, ...]:
    """The brokers' Secrets as the assignments on record say; nothing when they already are so."""
    state = _state(picture)
    if state is None:
        return ()
    effects: list[Effect] = []
    for name in picture.broker_sets:
        configuration = state.configurations.get(name)
        if not isinstance(configuration, ServerConfiguration):
            continue
        files = dict(configuration.other_keys)
        for pod in picture.pods_of(name):
            record = picture.position.nodes[pod]
            files[template.file_key(pod)] = modes.render_broker(
                configuration.text, record.assigned, record.node_id, picture.voters)
        if files != state.node_files.get(name):
            effects.append(WriteNodeFiles(names.node_files(name), files, names.labels(picture.name)))
    return tuple(effects)


def controller_files(picture: Picture) -> tuple[Effect, ...]:
    """The controllers' Secret, made from the first broker set's file."""
    state = _state(picture)
    if state is None:
        return ()
    configuration = state.configurations.get(picture.spec.brokers[0].name)
    if not isinstance(configuration, ServerConfiguration):
        return ()
    files = {
        template.file_key(pod): modes.render_controller(
            configuration.text, picture.position.nodes[pod].assigned, node_id, picture.voters, controllers.LOG_DIR)
        for pod, node_id in picture.controllers.items()
    }
    name = picture.spec.controllers.name
    if files == state.node_files.get(name):
        return ()
    return (WriteNodeFiles(names.node_files(name), files, names.labels(picture.name)),)


# --- Nodes in a rollout -------------------------------------------------------------------------------------------------


def sight(picture: Picture, name: str) -> Observed[Sight]:
    """The pod of a node and the mode it answers in."""
    if not isinstance(picture.facts.kubernetes, Known):
        return picture.facts.kubernetes
    workload = picture.workload_of(name)
    if workload is None:
        return Unknown(f"the StatefulSet of pod {name} does not exist")
    mode = picture.mode(picture.position.nodes[name].node_id)
    told = mode.value if isinstance(mode, Known) else ""
    at = picture.facts.kubernetes.at
    pod = workload.pods.get(name)
    if pod is None:
        return Known(Sight("", False, False, None, told, f"pod {name} does not exist at this moment"), at)
    return Known(Sight(pod.uid, pod.ready, pod.terminating, pod.started_at, told, pod.trouble), at)


def replace_pod(_: Picture, name: str, seen: Sight) -> Effect:
    """Evict a pod; one that is not Ready is deleted, since the budget would protect it from its own repair."""
    return Evict(name, seen.uid) if seen.ready else DeletePod(name, seen.uid)


def sizes(picture: Picture) -> tuple[BatchSize, ...]:
    """The batches of brokers as the spec asks; a share of the brokers is rounded up."""
    brokers = len(picture.brokers)
    return tuple(
        BatchSize(batch.pods or math.ceil(brokers * (batch.percent or 0) / 100), float(batch.bake_seconds))
        for batch in picture.spec.rollout.steps
    )


def one_by_one(_: Picture) -> tuple[BatchSize, ...]:
    """Controllers go one at a time; their gates hold for longer than a broker's session, which is their bake."""
    return (BatchSize(1, 0.0),)


def brokers_to(mode: str, picture: Picture) -> Observed[list[str]]:
    """Brokers not assigned to `mode` yet: those that lead least first, the ZooKeeper controller's last."""
    zookeeper = picture.facts.zookeeper
    if not isinstance(zookeeper, Known):
        return zookeeper
    controller = zookeeper.value.controller
    view = next((view.value for view in picture.facts.views.values() if isinstance(view, Known)), None)
    if view is None or (controller is None and mode == "B"):
        return Unknown("no broker tells who leads what" if view is None else "/controller does not exist at this moment")
    leads = dict.fromkeys(picture.brokers.values(), 0)
    for partition in view.partitions:
        leads[partition.leader] = leads.get(partition.leader, 0) + 1

    def rank(name: str) -> tuple[bool, int, str]:
        broker_id = picture.brokers[name]
        return controller is not None and broker_id == controller.node_id, leads[broker_id], name

    left = picture.position.left(picture.brokers, mode)
    return Known(sorted(left, key=rank), zookeeper.at)


def all_but_the_last_to_b(picture: Picture) -> Observed[list[str]]:
    """EnableMigration leaves one broker, the ZooKeeper controller's, to CopyMetadata."""
    left = brokers_to("B", picture)
    return Known(left.value[:-1], left.at) if isinstance(left, Known) else left


def the_last_to_b(picture: Picture) -> Observed[list[str]]:
    return brokers_to("B", picture)


def brokers_to_c(picture: Picture) -> Observed[list[str]]:
    return brokers_to("C", picture)


def controllers_to_f(picture: Picture) -> Observed[list[str]]:
    """Followers first, the leader of this moment last.

    Should leadership move to a controller that was chosen already, it goes all the same: every broker is on KRaft and the
    approval is given, so whoever wins the election may finalize.
    """
    seen = picture.facts.quorum
    if not isinstance(seen, Known):
        return seen
    leader = seen.value.leader_id
    left = picture.position.left(picture.controllers, "F")
    return Known(sorted(left, key=lambda name: (picture.controllers[name] == leader, name)), seen.at)


def assign_everything(picture: Picture) -> Mapping[str, NodeRecord]:
    """What ProvisionControllers puts on record: brokers as they are, controllers to start in mode P."""
    pods = picture.broker_pods()
    assert isinstance(pods, Known), "the gate BrokersIdentified has passed"
    return {
        **{name: NodeRecord(broker_id, "A") for name, broker_id in pods.value.items()},
        **{name: NodeRecord(node_id, "P") for name, node_id in picture.controllers.items()},
    }


# --- The table ----------------------------------------------------------------------------------------------------------

BEFORE_A_BROKER: tuple[Gate[Picture], ...] = (
    workloads.TEMPLATE_IS_OURS, workloads.NODES_SCHEDULABLE, replicas.RESTART_IS_SAFE)
BROKER_WATCH: tuple[Gate[Picture], ...] = (
    groups.GROUPS_HEALTHY, workloads.REPLICAS_UNCHANGED, dual_write.NO_PHANTOM_COPY)
TAKEN_OVER: tuple[Gate[Picture], ...] = (*BROKER_WATCH, workloads.TEMPLATE_IS_OURS)
AFTER_A_BROKER: tuple[Gate[Picture], ...] = (
    registration.MOVED_BROKER, registration.OBSERVERS_CAUGHT_UP, replicas.ALL_IN_SYNC, replicas.BROKERS_SEE_EACH_OTHER)

TO_B_BUT_LAST: Rollout[Picture] = Rollout(
    mode="B", left=all_but_the_last_to_b, sight=sight, assign=broker_files, replace=replace_pod, sizes=sizes,
    before=BEFORE_A_BROKER, after=AFTER_A_BROKER)
LAST_TO_B: Rollout[Picture] = Rollout(
    mode="B", left=the_last_to_b, sight=sight, assign=broker_files, replace=replace_pod, sizes=sizes,
    before=BEFORE_A_BROKER, after=AFTER_A_BROKER)
TO_C: Rollout[Picture] = Rollout(
    mode="C", left=brokers_to_c, sight=sight, assign=broker_files, replace=replace_pod, sizes=sizes,
    before=(*BEFORE_A_BROKER, dual_write.DUAL_WRITE_ALIVE),
    after=(*AFTER_A_BROKER, registration.NOBODY_FENCED, dual_write.DUAL_WRITE))
TO_F: Rollout[Picture] = Rollout(
    mode="F", left=controllers_to_f, sight=sight, assign=controller_files, replace=replace_pod, sizes=one_by_one,
    before=(quorum.MAJORITY_WITHOUT_BATCH, registration.ALL_KRAFT, registration.NOBODY_FENCED),
    after=(quorum.CONTROLLER_FINALIZED, quorum.QUORUM_UP, registration.NOBODY_FENCED_FOR_LONG,
           replicas.BROKERS_SEE_EACH_OTHER, replicas.ALL_IN_SYNC))

PLAN: Plan[Picture] = Plan((
    Step("Preflight", forward=Leg(done=preflight.GATES), back=Leg()),
    Step("ProvisionControllers", back=None, forward=Leg(
        enter=(preflight.BROKERS_IDENTIFIED,),
        assigns=assign_everything,
        goal=claim_and_provision,
        done=(quorum.QUORUM_UP, quorum.CONTROLLERS_READY, quorum.PRE_MIGRATION))),
    Step("EnableMigration", back=None, forward=Leg(
        watch=BROKER_WATCH, goal=take_templates_over, rollouts=(TO_B_BUT_LAST,))),
    Step("CopyMetadata", back=None, forward=Leg(
        watch=(*TAKEN_OVER, dual_write.COPY_FOLLOWS_CLAIM),
        rollouts=(LAST_TO_B,),
        done=(dual_write.CLAIMED, dual_write.COPIED))),
    Step("DualWrite", back=None, forward=Leg(
        watch=TAKEN_OVER, done=(dual_write.DUAL_WRITE, registration.NOBODY_FENCED))),
    Step("MoveBrokers", back=None, forward=Leg(watch=TAKEN_OVER, rollouts=(TO_C,), done=(registration.ALL_KRAFT,))),
    Step("Soak", back=None, forward=Leg(
        watch=(dual_write.DUAL_WRITE_ALIVE, workloads.TEMPLATE_IS_OURS, workloads.REPLICAS_UNCHANGED),
        done=(ending.SOAKED, dual_write.DUAL_WRITE, registration.ALL_KRAFT, registration.NOBODY_FENCED))),
    Step("Finalize", back=None, hold=True, irreversible=True, forward=Leg(
        enter=(registration.ALL_KRAFT, dual_write.DUAL_WRITE, quorum.QUORUM_UP, registration.NOBODY_FENCED,
               replicas.ALL_IN_SYNC, workloads.TEMPLATE_IS_OURS, groups.GROUPS_HEALTHY),
        watch=(groups.GROUPS_HEALTHY,),
        rollouts=(TO_F,),
        done=(ending.FINALIZED, ending.DUAL_WRITE_ENDED))),
    Step("HandOver", back=None, hold=True, forward=Leg(
        enter=(workloads.NO_POD_WOULD_RESTART,), goal=restore_strategies, done=(workloads.NO_POD_WOULD_RESTART,))),
    Step("ReleaseZooKeeper", back=None, forward=Leg(done=(ending.RETAINED, ending.ZOOKEEPER_UNUSED))),
))


def plan_hash(uid: str, attempt: int, spec: KafkaMigrationSpec) -> str:
    """What an approval is given for: this object, this attempt, and everything that makes the plan."""
    frozen = {key: value for key, value in spec.model_dump(mode="json").items() if key in FROZEN}
    body = json.dumps([uid, attempt, [step.name for step in PLAN.steps], frozen], sort_keys=True)
    return hashlib.sha256(body.encode()).hexdigest()[:16]
