"""Goals of the way forward: what must be true outside while in a step, as effects that make it so."""

from collections.abc import Callable, Iterable, Mapping

from switchover.api.kafka_migration import BrokerSet
from switchover.core.effects import Apply, Effect, WriteNodeFiles, patch_stateful_set
from switchover.core.kraft import controllers, inherited, modes, names, preflight, template
from switchover.core.kraft.facts import KubernetesState, ServerConfiguration
from switchover.core.kraft.gates import quorum
from switchover.core.kraft.modes import Voters
from switchover.core.kraft.picture import Picture
from switchover.core.observed import Known


def state_of(picture: Picture) -> KubernetesState | None:
    return picture.facts.kubernetes.value if isinstance(picture.facts.kubernetes, Known) else None


def claim(picture: Picture, state: KubernetesState) -> tuple[Effect, ...]:
    """Mark the brokers' StatefulSets as ours."""
    return tuple(
        Apply({"apiVersion": "apps/v1", "kind": "StatefulSet",
               "metadata": {"name": workload.name, "annotations": {names.CLAIM: picture.uid}}})
        for workload in preflight.broker_workloads(state).values() if workload.claimed_by != picture.uid
    )


def claim_to_raise(picture: Picture) -> tuple[Effect, ...]:
    """Claim and take over brokers whose protocol version must be raised; where none must be, nothing is touched yet."""
    state = state_of(picture)
    if state is None or not picture.raises:
        return ()
    return claim(picture, state) or take_templates_over(picture)


def claim_and_provision(picture: Picture) -> tuple[Effect, ...]:
    """Mark the brokers' StatefulSets as ours, and create the controllers with their files."""
    state = state_of(picture)
    release = quorum.protocol_version(picture)
    if state is None or release is None or not isinstance(picture.facts.zookeeper, Known):
        return ()
    if claims := claim(picture, state):
        return claims
    if files := controller_files(picture):
        return files
    if state.controllers is not None:
        return ()
    brokers = picture.spec.brokers[0]
    workload = state.brokers.get(brokers.name)
    configuration = state.configurations.get(brokers.name)
    if workload is None or not isinstance(configuration, ServerConfiguration):
        return ()
    manifests = controllers.manifests(picture.name, picture.spec, brokers, workload,
                                      picture.facts.zookeeper.value.cluster_id, release)
    pod, container = workload.template["spec"], template.broker_container(workload, brokers)
    return tuple(Apply(inherited.completed(manifest, pod, container, configuration.text)) for manifest in manifests)


def take_templates_over(picture: Picture) -> tuple[Effect, ...]:
    """Keep the originals, write every pod's file, then change each template once.

    Once a broker has been assigned another mode, a template that is not ours was changed by somebody else: that is for the
    gates to tell, not for us to fight over.
    """
    state = state_of(picture)
    zookeeper = picture.facts.zookeeper
    if state is None or not isinstance(zookeeper, Known):
        return ()
    if any(picture.position.nodes[name].assigned != "A" for name in picture.brokers):
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
                operations = template.patch(workload, brokers, picture.pods_of(name), configuration.other_keys,
                                            zookeeper.value.cluster_id)
            except template.Unsupported:
                continue                               # changed since Preflight: the gate TemplateIsOurs tells it
            effects.append(patch_stateful_set(name, operations, "own file for each pod, pods replaced by eviction only"))
    return tuple(effects)


def restore_strategies(picture: Picture) -> tuple[Effect, ...]:
    """Give the update strategies back."""
    state = state_of(picture)
    if state is None:
        return ()
    return tuple(
        patch_stateful_set(name, template.restore_strategy(workload, original), "update strategy as it was")
        for name, workload in preflight.broker_workloads(state).items()
        if (original := state.originals.get(name)) is not None
        and workload.update_strategy != original["updateStrategy"]
    )


def hand_over(picture: Picture) -> tuple[Effect, ...]:
    """Give the update strategies back, and when they are, the StatefulSets themselves."""
    state = state_of(picture)
    if state is None:
        return ()
    return restore_strategies(picture) or tuple(
        patch_stateful_set(name, template.release(workload), "claimed no longer")
        for name, workload in preflight.broker_workloads(state).items() if workload.claimed_by == picture.uid
    )


# --- Files: assigning a mode is writing its file ------------------------------------------------------------------------


def broker_files(picture: Picture) -> tuple[Effect, ...]:
    """The brokers' Secrets as the assignments on record say; nothing when they already are so."""
    state = state_of(picture)
    if state is None:
        return ()
    effects: list[Effect] = []
    for name, brokers in picture.broker_sets.items():
        configuration = state.configurations.get(name)
        if not isinstance(configuration, ServerConfiguration):
            continue
        text, voters = configuration.text, picture.voters

        def rendered(pod: str, own: BrokerSet = brokers, text: str = text, voters: Voters | None = voters) -> str | None:
            record = picture.position.nodes[pod]
            if record.assigned in ("A", "R"):
                return template.node_file(own, text, modes.without_quorum(text, record.assigned))
            if voters is None:
                return None
            return template.node_file(own, text, modes.render_broker(text, record.assigned, record.node_id, voters))

        files = _files(state, name, picture.pods_of(name), rendered, configuration.other_keys, brokers)
        if files is not None and files != state.node_files.get(name):
            effects.append(WriteNodeFiles(names.node_files(name), files, names.labels(picture.name)))
    return tuple(effects)


def controller_files(picture: Picture) -> tuple[Effect, ...]:
    """The controllers' Secret, made from the first broker set's file."""
    state = state_of(picture)
    if state is None:
        return ()
    configuration = state.configurations.get(picture.spec.brokers[0].name)
    if not isinstance(configuration, ServerConfiguration):
        return ()
    text, voters = configuration.text, picture.voters

    def rendered(pod: str) -> str | None:
        mode = picture.position.nodes[pod].assigned
        if mode == "Stopped":
            return modes.STOPPED_FILE
        if voters is None:
            return None
        return modes.render_controller(text, mode, picture.controllers[pod], voters, controllers.METADATA_DIR)

    name = picture.spec.controllers.name
    files = _files(state, name, picture.controllers, rendered, {})
    if files is None or files == state.node_files.get(name):
        return ()
    return (WriteNodeFiles(names.node_files(name), files, names.labels(picture.name)),)


def _files(state: KubernetesState, workload: str, pods: Iterable[str], rendered: Callable[[str], str | None],
           others: Mapping[str, str], brokers: BrokerSet | None = None) -> dict[str, str] | None:
    """Every pod's file beside the other keys. One that cannot be rendered now stays as written; None where none was."""
    files = dict(others)
    for pod in pods:
        key = template.file_key(pod, brokers)
        text = rendered(pod)
        if text is None:
            text = state.node_files.get(workload, {}).get(key)
        if text is None:
            return None
        files[key] = text
    return files


# --- The brake ----------------------------------------------------------------------------------------------------------


def keep_on_delete(picture: Picture) -> tuple[Effect, ...]:
    """OnDelete again at once where somebody else gave brokers that are being moved a strategy that restarts them now.

    With the old template beside it Kubernetes restarts one broker after the other on the user's file, ungated, within
    moments. This stops it after the first. A template, or a strategy that restarts nothing, is for the gates to tell, not
    for us to fight over.
    """
    state = state_of(picture)
    if state is None:
        return ()
    return tuple(
        patch_stateful_set(name, template.hold_strategy(workload), "pods replaced by eviction only, again")
        for name, workload in preflight.broker_workloads(state).items()
        if workload.claimed_by == picture.uid and template.would_restart(workload, picture.broker_sets[name])
        and state.originals.get(name) is not None and picture.position.left(picture.pods_of(name), "A")
    )
