"""Goals of the way forward: what must be true outside while in a step, as effects that make it so."""

from collections.abc import Callable, Iterable

from switchover.answers.observed import Known, Observed
from switchover.api.kafka_migration import NodeMode
from switchover.api.status import Verdict as Outcome
from switchover.cluster import blocked_writes, modes, names, template
from switchover.cluster.controllers import manifests
from switchover.cluster.door import edits, mount
from switchover.cluster.door.brokers import Brokers, ContainerMissing
from switchover.cluster.door.directives import Directive
from switchover.cluster.door.mount import DOOR
from switchover.cluster.ending import trial_job
from switchover.cluster.facts import KubernetesState
from switchover.cluster.gates.ending import OWN_TEMPLATE_TRIED
from switchover.cluster.modes import Voters
from switchover.cluster.picture import Picture
from switchover.cluster.reading import broker_workloads
from switchover.engine.effects import Apply, Delete, Effect, Provide, WriteNodeFiles, patch_stateful_set
from switchover.kubernetes.workloads import Workload

Directives = tuple[Directive, ...] | None


def state_of(picture: Picture) -> KubernetesState | None:
    return picture.facts.kubernetes.value if isinstance(picture.facts.kubernetes, Known) else None


def claim(picture: Picture, state: KubernetesState) -> tuple[Effect, ...]:
    """Mark the brokers' StatefulSets as ours."""
    return tuple(
        Apply({"apiVersion": "apps/v1", "kind": "StatefulSet",
               "metadata": {"name": workload.name, "annotations": {names.CLAIM: picture.uid}}})
        for workload in broker_workloads(state).values() if workload.claimed_by != picture.uid
    )


def back_up_originals(picture: Picture, state: KubernetesState) -> tuple[Effect, ...]:
    """Back up the StatefulSets and what their brokers are, as long as we have changed nothing of theirs.

    A backup is deleted and written again where a user has changed the template since: a rollback must not undo that. So is
    one that is not on record, which may be anybody's.
    Once a broker has another mode its answers are of our making, and the backup stays.
    """
    effects: list[Effect] = []
    for name, workload in broker_workloads(state).items():
        if picture.position.left(picture.pods_of(name), NodeMode.ZOOKEEPER):
            continue
        original, brokers = state.originals.get(name), picture.brokers_of(name)
        untouched = template.is_untouched(workload, picture.broker_sets[name])
        if original is not None and (template.is_outdated(workload, picture.broker_sets[name], original) or (
                untouched and not picture.keeps(name))):
            effects.append(Delete("apps/v1", "ControllerRevision", picture.original_of(name)))
        elif original is None and untouched and isinstance(brokers, Known):
            effects.append(Apply(template.original_manifest(
                workload, brokers.value, picture.position.attempt, names.labels(picture.name))))
    return tuple(effects)


def claim_to_upgrade(picture: Picture) -> tuple[Effect, ...]:
    """Claim and take over brokers that must be brought to Kafka 3.9; where none must be, nothing is touched yet."""
    return _claim_and_take_over(picture) if picture.upgrades else ()


def claim_to_raise(picture: Picture) -> tuple[Effect, ...]:
    """The same of brokers whose protocol version must be raised."""
    return _claim_and_take_over(picture) if picture.raises else ()


def _claim_and_take_over(picture: Picture) -> tuple[Effect, ...]:
    state = state_of(picture)
    return () if state is None else claim(picture, state) or take_templates_over(picture)


def claim_and_provision(picture: Picture) -> tuple[Effect, ...]:
    """Mark the brokers' StatefulSets as ours, and create the controllers with their edits."""
    state = state_of(picture)
    if state is None:
        return ()
    if first := claim(picture, state) or back_up_originals(picture, state) or controller_files(picture):
        return first
    own = picture.spec.brokers[0]
    workload, original, brokers = state.brokers.get(own.name), state.originals.get(own.name), picture.brokers_of(own.name)
    listeners = picture.listeners_for_controllers()
    if state.controllers is not None or workload is None or original is None or not (
            isinstance(brokers, Known) and isinstance(listeners, Known)):
        return ()
    return (Provide(tuple(manifests.manifests(
        picture.name, picture.spec, own, original, workload.claim_templates, brokers.value, listeners.value,
        frozenset().union(*(pod.with_token for pod in workload.pods.values())),
        (workload.selector, *workload.selectors.values())))),)


def take_templates_over(picture: Picture) -> tuple[Effect, ...]:
    """Back up the originals, write every pod's edits, then change each template once.

    Once a broker has been assigned another mode, a template that is not ours was changed by somebody else: gates report
    that, and we do not fight over it.
    """
    state = state_of(picture)
    if state is None or any(picture.position.nodes[name].assigned != NodeMode.ZOOKEEPER for name in picture.brokers):
        return ()
    if first := back_up_originals(picture, state):
        return first
    effects: list[Effect] = []
    for name, workload in broker_workloads(state).items():
        brokers = picture.broker_sets[name]
        found = picture.brokers_of(name)
        if template.is_ours(workload, brokers) or state.originals.get(name) is None or not isinstance(found, Known):
            continue
        if files := broker_files(picture):
            return files
        try:
            operations = template.patch(workload, brokers, found.value.image)
        except ContainerMissing:
            continue                                   # changed since Preflight: the gate TemplateIsOurs reports it
        effects.append(patch_stateful_set(name, operations, "edits at each pod's start, pods replaced by eviction only"))
    return tuple(effects)


def restore_strategies(picture: Picture) -> tuple[Effect, ...]:
    """Restore the update strategies."""
    state = state_of(picture)
    if state is None:
        return ()
    return tuple(
        patch_stateful_set(name, template.restore_strategy(workload, original), "update strategy as it was")
        for name, workload in broker_workloads(state).items()
        if (original := state.originals.get(name)) is not None
        and workload.update_strategy != original["updateStrategy"]
    )


def hand_over(picture: Picture) -> tuple[Effect, ...]:
    """Restore the update strategies where no pod would restart by that, and then release the StatefulSets themselves.

    Brokers that run by the user's own configuration lose everything of ours: first in the template, once a Job has tried
    it. A pod that is lost before comes back by its edits.
    """
    state = state_of(picture)
    if state is None:
        return ()
    if first := trial_job.keep(picture, state) or _take_ours_out(picture, state):
        return first
    if _unsettled(picture, state):
        return ()
    if first := restore_strategies(picture):
        return first
    effects: list[Effect] = []
    for name, workload in broker_workloads(state).items():
        theirs = all(picture.position.nodes[pod].assigned == NodeMode.OWN_KRAFT for pod in picture.pods_of(name))
        if theirs and state.node_files.get(name):
            effects.append(Delete("v1", "Secret", names.node_files(name)))
        elif theirs and state.originals.get(name) is not None:
            effects.append(Delete("apps/v1", "ControllerRevision", picture.original_of(name)))
        elif workload.claimed_by == picture.uid:
            effects.append(patch_stateful_set(name, template.release(workload), "claimed no longer"))
    return tuple(effects)


def _take_ours_out(picture: Picture, state: KubernetesState) -> tuple[Effect, ...]:
    """Remove what is ours from templates that the user has brought."""
    if not picture.own_configuration or OWN_TEMPLATE_TRIED.check(picture).outcome is not Outcome.PASS:
        return ()
    effects: list[Effect] = []
    for name, workload in broker_workloads(state).items():
        brokers = picture.broker_sets[name]
        if template.is_untouched(workload, brokers) or not template.is_brought(workload, brokers, state.originals.get(name)):
            continue
        try:
            operations = template.take_ours_out(workload, brokers)
        except ContainerMissing:
            continue                                   # the gate OwnTemplateTried reports it
        effects.append(patch_stateful_set(name, operations, "nothing of ours in it, pods replaced by eviction only"))
    return tuple(effects)


def _unsettled(picture: Picture, state: KubernetesState) -> dict[str, Workload]:
    """Our StatefulSets of which a pod would restart if Kubernetes replaced pods by itself. A template that is neither ours
    nor rolled to by us may be newer than the update revision that was read."""
    found = {}
    for name, workload in broker_workloads(state).items():
        ours = not {"volumes", "mounts"} & {*template.changed_back(workload, picture.broker_sets[name])}
        rolled = not picture.position.left(picture.pods_of(name), NodeMode.OWN_KRAFT)
        outdated = any(pod.revision != workload.update_revision for pod in workload.pods.values())
        if workload.claimed_by == picture.uid and (outdated or not (ours or rolled)):
            found[name] = workload
    return found


def hold_outdated(picture: Picture) -> tuple[Effect, ...]:
    """OnDelete again at once where somebody's manifest brings a strategy by which Kubernetes would restart brokers."""
    state = state_of(picture)
    if state is None:
        return ()
    return tuple(
        patch_stateful_set(name, template.hold_strategy(workload), "pods replaced by eviction only, again")
        for name, workload in _unsettled(picture, state).items() if workload.update_strategy != template.ON_DELETE
    )


# --- Edits: assigning a mode is writing them -------------------------------------------------------------------------------


def broker_files(picture: Picture) -> tuple[Effect, ...]:
    """The brokers' Secrets as the assignments on record say; nothing when they already are so.

    None for a StatefulSet that is neither there nor on record: nobody would take it away.
    """
    state = state_of(picture)
    if state is None:
        return ()
    effects: list[Effect] = []
    for name in picture.broker_sets:
        if state.brokers.get(name) is None and not picture.pods_of(name):
            continue
        brokers, voters = picture.brokers_of(name), picture.voters

        def directives(pod: str, brokers: Observed[Brokers] = brokers, voters: Voters | None = voters) -> Directives:
            record = picture.position.nodes[pod]
            if not isinstance(brokers, Known) or (voters is None and record.assigned not in modes.WITHOUT_QUORUM):
                return None
            return edits.broker(record.assigned, record.node_id, voters, brokers.value)

        effects += _write(picture, state, name, picture.pods_of(name), directives)
    return tuple(effects)


def controller_files(picture: Picture) -> tuple[Effect, ...]:
    """The controllers' Secret; their pods are a copy of those of the first broker set."""
    state = state_of(picture)
    if state is None:
        return ()
    own = picture.spec.brokers[0].name
    original, voters, cluster_id = state.originals.get(own), picture.voters, picture.cluster_id

    def directives(pod: str) -> Directives:
        mode = picture.position.nodes[pod].assigned
        if mode == NodeMode.STOPPED:
            return edits.STOPPED
        if original is None or voters is None or not cluster_id:
            return None
        if not isinstance(brokers := picture.brokers_of(own), Known):
            return None
        return edits.controller(mode, picture.controllers[pod], voters, brokers.value, cluster_id,
                                manifests.log_dir(original, brokers.value))

    return _write(picture, state, picture.spec.controllers.name, picture.controllers, directives)


def _write(picture: Picture, state: KubernetesState, workload: str, pods: Iterable[str],
           directives: Callable[[str], Directives]) -> tuple[Effect, ...]:
    """Every pod's edits, and the script. Edits that are not known now stay as written; nothing where none were."""
    present = state.node_files.get(workload, {})
    files = {mount.SCRIPT_KEY: DOOR}
    for pod in pods:
        wanted = directives(pod)
        text = edits.written(wanted) if wanted is not None else present.get(pod)
        if text is None:
            return ()
        files[pod] = text
    if files == present:
        return ()
    return (WriteNodeFiles(names.node_files(workload), files, names.labels(picture.name)),)


# --- The brake ----------------------------------------------------------------------------------------------------------


def keep_on_delete(picture: Picture) -> tuple[Effect, ...]:
    """OnDelete again at once where somebody else gave brokers that are being moved a strategy that restarts them now.

    If the old template comes with it, Kubernetes restarts one broker after the other on the user's file within moments.
    This stops it after the first. Gates report a template, or a strategy that restarts nothing: we do not fight over them.
    """
    state = state_of(picture)
    if state is None:
        return ()
    return tuple(
        patch_stateful_set(name, template.hold_strategy(workload), "pods replaced by eviction only, again")
        for name, workload in broker_workloads(state).items()
        if workload.claimed_by == picture.uid and template.would_restart(workload, picture.broker_sets[name])
        and state.originals.get(name) is not None and picture.position.left(picture.pods_of(name), NodeMode.ZOOKEEPER)
    )


def keep_dual_write(picture: Picture) -> tuple[Effect, ...]:
    """The brake, and the repair of what stops dual write."""
    return keep_on_delete(picture) or put_dual_write_right(picture)


def put_dual_write_right(picture: Picture) -> tuple[Effect, ...]:
    """Repair quotas and partitions that stop dual write."""
    return blocked_writes.correct_quotas(picture) or blocked_writes.create_states(picture)
