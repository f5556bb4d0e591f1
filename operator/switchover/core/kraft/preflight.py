"""G0: what must hold before anything is touched (kraft-migration.md section 5, first rows). Each finding names its cure."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from switchover.api.meta import OnFailure
from switchover.core.gate import Gate, Verdict, fail, passed, unknown, wait
from switchover.core.kraft import modes, names, template
from switchover.core.kraft.facts import BrokerView, KubernetesState, ServerConfiguration, Workload
from switchover.core.kraft.picture import Picture
from switchover.core.observed import Known, Unknown

FETCH = 1
FETCH_OF_3_9 = 17
"""Kafka 3.9 is the first release whose brokers speak Fetch v17, and the last one with ZooKeeper (FetchRequest.json)."""
SECRET_BYTES = 1_000_000
"""A little less than the 1 MiB that the API server takes for all values of a Secret."""


def _kubernetes(picture: Picture) -> KubernetesState | Verdict:
    state = picture.facts.kubernetes
    return state.value if isinstance(state, Known) else unknown("KubernetesUnknown", state.why, subject="Kubernetes")


def check_supported(picture: Picture) -> Verdict:
    """What the API already knows and this version does not do yet is refused here, never ignored."""
    spec = picture.spec
    listener = spec.controllers.listener
    unsupported = {
        "spec.windows": bool(spec.windows),
        "spec.onFailure RollBack": spec.on_failure is OnFailure.ROLL_BACK,
        f"securityProtocol {listener.security_protocol} of the controllers": listener.security_protocol != "PLAINTEXT",
    }
    for field, asked in unsupported.items():
        if asked:
            return fail("NotSupportedYet", f"{field} is not supported by this version of Switchover", subject=field,
                        unblocks="take it out of the spec, or run a version that supports it")
    return passed("everything asked for is supported")


def check_objects_exist(picture: Picture) -> Verdict:
    state = _kubernetes(picture)
    if isinstance(state, Verdict):
        return state
    for name in picture.broker_sets:
        workload = state.brokers.get(name)
        if workload is None:
            return fail("StatefulSetMissing", f"StatefulSet {name} does not exist in namespace {picture.namespace}",
                        subject=f"StatefulSet {name}", unblocks="correct spec.brokers[].name, or create it")
        configuration = state.configurations.get(name)
        if not isinstance(configuration, ServerConfiguration):
            return fail("ConfigurationMissing", configuration or f"the configuration of {name} cannot be read",
                        subject=f"StatefulSet {name}", unblocks="correct spec.brokers[].configuration")
        if workload.claimed_by not in ("", picture.uid):
            return fail("ClaimedByAnother", f"StatefulSet {name} is claimed by the migration with uid"
                        f" {workload.claimed_by}", subject=f"StatefulSet {name}",
                        unblocks=f"finish that migration; if it is gone, remove the annotation {names.CLAIM}")
        if len(workload.pods) != workload.replicas or not all(pod.ready for pod in workload.pods.values()):
            ready = sum(pod.ready for pod in workload.pods.values())
            return wait("PodsNotReady", f"not every pod of StatefulSet {name} is ready", subject=f"StatefulSet {name}",
                        observed=ready, threshold=workload.replicas, unblocks="all pods are ready")
    return passed("StatefulSets and configurations exist")


def check_template_supported(picture: Picture) -> Verdict:
    state = _kubernetes(picture)
    if isinstance(state, Verdict):
        return state
    for name, brokers in picture.broker_sets.items():
        workload = state.brokers.get(name)
        if workload is None:
            return unknown("NotObserved", f"StatefulSet {name} does not exist", subject=name)
        try:
            template.configuration_mount(workload, brokers)
        except template.Unsupported as reason:
            return fail("TemplateUnsupported", f"StatefulSet {name}: {reason}", subject=f"StatefulSet {name}",
                        unblocks="mount the configuration as a directory, or its key by subPath")
    return passed("the configuration mounts can be taken over")


def overrides(container: Mapping[str, object]) -> dict[str, str]:
    """The keys that a container's command line overrides (`--override key=value`, kafka.Kafka).

    A command is often one string for a shell, so words are looked for inside of every argument.
    """
    found: dict[str, str] = {}
    arguments = [*_strings(container.get("command")), *_strings(container.get("args"))]
    words = [word for word in " ".join(arguments).split() if word != "\\"]     # a shell's line goes on after a backslash
    for flag, following in zip_longest(words, words[1:], fillvalue=""):
        setting = flag.removeprefix("--override=") if flag.startswith("--override=") else following
        if flag.startswith("--override") and "=" in setting:
            key, _, value = setting.strip("\"'").partition("=")
            found[key] = value
    return found


def _strings(value: object) -> Sequence[str]:
    return [str(item) for item in value] if isinstance(value, list | tuple) else []


def check_configuration(picture: Picture) -> Verdict:
    """The file parses, is a ZooKeeper broker's, and nothing on the command line would undo what we write."""
    state = _kubernetes(picture)
    if isinstance(state, Verdict):
        return state
    for name, brokers in picture.broker_sets.items():
        workload, configuration = state.brokers.get(name), state.configurations.get(name)
        if workload is None or not isinstance(configuration, ServerConfiguration):
            return unknown("NotObserved", f"StatefulSet {name} or its configuration cannot be read", subject=name)
        try:
            container = template.broker_container(workload, brokers)
            keys = modes.properties(configuration.text)
        except template.Unsupported as reason:
            return fail("TemplateUnsupported", f"StatefulSet {name}: {reason}", subject=f"StatefulSet {name}",
                        unblocks="correct spec.brokers[].container")
        except ValueError as reason:
            return fail("ConfigurationMalformed", f"{configuration.source} is no properties file: {reason}",
                        subject=configuration.source, unblocks="correct the file")
        if verdict := _configuration_trouble(picture, workload.replicas, configuration, keys, overrides(container)):
            return verdict
    return passed("the configuration can be carried through every mode")


def _configuration_trouble(picture: Picture, pods: int, configuration: ServerConfiguration, keys: Mapping[str, str],
                           overridden: Mapping[str, str]) -> Verdict | None:
    source, listener = configuration.source, picture.spec.controllers.listener.name
    if changed := sorted(modes.BROKER_KEYS & set(overridden)):
        return fail("OverriddenOnCommandLine", f"the command line overrides {changed[0]}, which the migration must change in"
                    " the file; the command line would win", subject=changed[0], observed=overridden[changed[0]],
                    unblocks=f"take --override {changed[0]} out of the container's command")
    if "process.roles" in keys:
        return fail("AlreadyKRaft", f"{source} sets process.roles: these brokers do not run on ZooKeeper", subject=source,
                    observed=keys["process.roles"], unblocks="nothing to migrate")
    if modes.MIGRATION_FLAG in keys or "controller.quorum.voters" in keys:
        return fail("MigrationAlreadyConfigured", f"{source} already has settings of a migration begun by hand",
                    subject=source, unblocks=f"remove {modes.MIGRATION_FLAG} and controller.* from it")
    if listener in {item.partition("://")[0].strip() for item in keys.get("listeners", "").split(",")}:
        return fail("ListenerNameTaken", f"the brokers have a listener {listener} of their own", subject=source,
                    unblocks="choose another spec.controllers.listener.name")
    if keys.get("broker.id.generation.enable", "").strip() == "true" and "broker.id" not in {*keys, *overridden}:
        return fail("GeneratedBrokerId", f"{source} lets Kafka generate broker ids, which a migration refuses",
                    subject=source, unblocks="give each broker its id explicitly")
    size = max(pods, picture.spec.controllers.replicas) * len(configuration.text) + sum(
        map(len, configuration.other_keys.values()))
    if size > SECRET_BYTES:
        return fail("ConfigurationTooLarge", f"{source} is too large to be kept once for each pod", subject=source,
                    observed=f"{size} bytes", threshold=f"{SECRET_BYTES} bytes", unblocks="make it smaller")
    return None


def check_residue(picture: Picture) -> Verdict:
    """Nothing is left of an earlier attempt: with a stale `/migration` the controllers would delete every topic."""
    facts = picture.facts
    if not isinstance(facts.zookeeper, Known):
        return unknown("ZooKeeperUnknown", facts.zookeeper.why, subject="ZooKeeper")
    state = facts.zookeeper.value
    if state.migration is not None:
        told = "it is empty (KAFKA-19480)" if state.migration.empty else f"its offset is {state.migration.offset}"
        return fail("Residue", f"/migration exists in ZooKeeper, {told}: something is left of an earlier attempt",
                    subject="/migration", unblocks="make sure that no KRaft controller runs, then delete /migration")
    if state.controller is None:
        return wait("NoController", "/controller does not exist: no broker is the controller", subject="/controller",
                    unblocks="a broker becomes the controller")
    if not state.controller.ephemeral:
        return fail("Residue", "/controller is not ephemeral: KRaft controllers claimed it in an earlier attempt",
                    subject="/controller", observed=f"node {state.controller.node_id}",
                    unblocks="make sure that no KRaft controller runs, then delete /controller")
    kubernetes = _kubernetes(picture)
    if isinstance(kubernetes, Verdict):
        return kubernetes
    if kubernetes.controllers is not None:
        return fail("Residue", f"StatefulSet {picture.spec.controllers.name} exists already",
                    subject=f"StatefulSet {picture.spec.controllers.name}",
                    unblocks="delete it with its volume claims, or choose another spec.controllers.name")
    if kubernetes.controller_claims:
        return fail("Residue", "volumes of controllers of an earlier attempt exist: their log would be taken for this one",
                    subject=f"claim {kubernetes.controller_claims[0]}",
                    unblocks=f"delete the claims {', '.join(kubernetes.controller_claims)}")
    return passed("nothing is left of an earlier attempt")


def check_membership(picture: Picture) -> Verdict:
    """Every broker is a pod of ours and alive, and no partition is assigned to a broker that is not."""
    pods = picture.broker_pods()
    if not isinstance(pods, Known):
        return wait("BrokersNotIdentified", pods.why, subject="/brokers/ids",
                    unblocks="every pod advertises a listener under a host name that begins with its own name")
    facts = picture.facts
    assert isinstance(facts.zookeeper, Known)
    known = set(pods.value.values())
    if strangers := sorted(set(facts.zookeeper.value.brokers) - known):
        return fail("UnknownBroker", f"broker {strangers[0]} is registered but is no pod of spec.brokers",
                    subject=f"broker {strangers[0]}", unblocks="name all StatefulSets of the cluster in spec.brokers")
    if shared := sorted(known & set(picture.controllers.values())):
        return fail("NodeIdTaken", f"controller id {shared[0]} is a broker's id", subject=f"broker {shared[0]}",
                    unblocks="choose another spec.controllers.firstNodeId")
    if not isinstance(facts.zookeeper_topics, Known):
        return unknown("ZooKeeperUnknown", facts.zookeeper_topics.why, subject="ZooKeeper")
    topics = facts.zookeeper_topics.value
    if topics.malformed:
        return fail("MalformedNode", topics.malformed[0], subject=topics.malformed[0].split(":")[0],
                    unblocks="repair or delete that node in ZooKeeper")
    for name, topic in sorted(topics.topics.items()):
        for partition, replicas in sorted(topic.assignment.items()):
            if dead := sorted(set(replicas) - known):
                return fail("DeadBrokerInAssignment", f"{name}-{partition} is assigned to broker {dead[0]}, which does not"
                            " live: the migration would wait for it for ever", subject=f"{name}-{partition}",
                            observed=f"replicas {list(replicas)}", threshold=f"brokers {sorted(known)}",
                            unblocks="reassign that partition to living brokers")
        if topic.topic_id is None:
            return fail("TopicWithoutId", f"topic {name} has no topic_id in ZooKeeper: the migration would stall",
                        subject=name, unblocks="let the ZooKeeper controller move once (restart its broker): it writes ids")
    if topics.pending_deletes:
        return wait("PendingDeletes", f"topic {topics.pending_deletes[0]} is being deleted",
                    subject="/admin/delete_topics", unblocks="the deletion ends")
    if topics.reassigning:
        return wait("Reassigning", "a reassignment of partitions is under way", subject="/admin/reassign_partitions",
                    unblocks="it ends")
    return passed("every replica lives on a broker of this migration")


def check_brokers_identified(picture: Picture) -> Verdict:
    """Read again in the pass that puts every pod and its broker id on record."""
    pods = picture.broker_pods()
    if not isinstance(pods, Known):
        return wait("BrokersNotIdentified", pods.why, subject="/brokers/ids", unblocks="every broker is registered again")
    return passed("every pod is known as a broker")


def check_versions(picture: Picture) -> Verdict:
    pods = picture.broker_pods()
    if not isinstance(pods, Known):
        return unknown("BrokersNotIdentified", pods.why)
    protocols: dict[int, str] = {}
    for name, broker_id in sorted(pods.value.items()):
        answer = picture.facts.answers.get(broker_id, Unknown(f"broker {broker_id} was not asked"))
        if not isinstance(answer, Known):
            return unknown("BrokerSilent", answer.why, subject=name)
        if picture.mode(broker_id) != Known("A", answer.at):
            return fail("NotInZooKeeperMode", f"broker {broker_id} ({name}) is not a plain ZooKeeper broker", subject=name,
                        unblocks="all brokers must run on ZooKeeper, without the migration flag")
        if answer.value.api_keys.get(FETCH, 0) < FETCH_OF_3_9:
            return fail("WrongKafkaVersion", f"broker {broker_id} ({name}) is older than Kafka 3.9", subject=name,
                        observed=f"Fetch v{answer.value.api_keys.get(FETCH, 0)}", threshold=f"Fetch v{FETCH_OF_3_9}",
                        unblocks="upgrade every broker to 3.9, the last release with ZooKeeper")
        settings = picture.facts.broker_settings.get(broker_id, Unknown(f"broker {broker_id} was not asked"))
        if not isinstance(settings, Known):
            return unknown("SettingsUnknown", settings.why, subject=name)
        protocols[broker_id] = settings.value.get("inter.broker.protocol.version", "")
    return _protocol_trouble(protocols) or passed(f"all brokers speak protocol {next(iter(protocols.values()), '')}")


def _protocol_trouble(protocols: Mapping[int, str]) -> Verdict | None:
    releases = {broker_id: version.split("-")[0] for broker_id, version in protocols.items()}
    different = sorted(set(releases.values()))
    if len(different) > 1:
        odd = min(releases, key=lambda broker_id: sum(version == releases[broker_id] for version in releases.values()))
        return fail("ProtocolVersionsDiffer", "the brokers do not have the same inter.broker.protocol.version",
                    subject=f"broker {odd}", observed=", ".join(f"{k}: {v}" for k, v in sorted(releases.items())),
                    threshold="one version", unblocks="set the same inter.broker.protocol.version on every broker")
    if different and different[0] not in modes.METADATA_LEVELS:
        return fail("ProtocolVersionUnsupported", "a migration needs inter.broker.protocol.version 3.6 or newer",
                    subject="inter.broker.protocol.version", observed=different[0],
                    threshold=", ".join(sorted(modes.METADATA_LEVELS)), unblocks="raise it to 3.9 on every broker")
    return None


def check_configuration_is_live(picture: Picture) -> Verdict:
    """The file's protocol version is the one the brokers run with: mode B must register with exactly that one."""
    state = _kubernetes(picture)
    if isinstance(state, Verdict):
        return state
    for name in picture.broker_sets:
        configuration = state.configurations.get(name)
        if not isinstance(configuration, ServerConfiguration):
            return unknown("NotObserved", f"the configuration of {name} cannot be read", subject=name)
        try:
            keys = modes.properties(configuration.text)
        except ValueError as reason:
            return unknown("NotObserved", f"{configuration.source} cannot be read: {reason}", subject=configuration.source)
        filed = keys.get("inter.broker.protocol.version", "").split("-")[0].strip()
        if not picture.facts.broker_settings:
            return unknown("SettingsUnknown", "no broker was asked for its settings")
        for broker_id, settings in sorted(picture.facts.broker_settings.items()):
            if not isinstance(settings, Known):
                return unknown("SettingsUnknown", settings.why, subject=f"broker {broker_id}")
            live = settings.value.get("inter.broker.protocol.version", "").split("-")[0]
            if filed and live != filed:
                return fail("FileIsNotLive", f"broker {broker_id} does not run with what {configuration.source} says",
                            subject="inter.broker.protocol.version", observed=live, threshold=filed,
                            unblocks="restart the brokers with this file, or correct it")
    return passed("the brokers run with what the files say")


def check_health(picture: Picture) -> Verdict:
    """Every replica in sync as every broker sees it, and no topic that can never spare a broker."""
    pods = picture.broker_pods()
    if not isinstance(pods, Known):
        return unknown("BrokersNotIdentified", pods.why)
    minima = picture.facts.min_insync
    if not isinstance(minima, Known):
        return unknown("NotObserved", minima.why)
    for broker_id in sorted(pods.value.values()):
        view = picture.facts.views.get(broker_id, Unknown(f"broker {broker_id} was not asked"))
        if not isinstance(view, Known):
            return unknown("BrokerSilent", view.why, subject=f"broker {broker_id}")
        if verdict := _view_trouble(view.value, broker_id, minima.value, picture.spec.gates.accepted_topics):
            return verdict
    return passed("all replicas in sync")


def _view_trouble(view: BrokerView, witness: int, minima: Mapping[str, int], accepted: Iterable[str]) -> Verdict | None:
    for partition in view.partitions:
        name = f"{partition.topic}-{partition.index}"
        if set(partition.isr) != set(partition.replicas) or partition.leader < 0:
            return wait("OutOfSync", f"{name} has replicas out of sync, as broker {witness} sees it", subject=name,
                        observed=f"in sync {sorted(partition.isr)}", threshold=f"replicas {sorted(partition.replicas)}",
                        unblocks="the replicas catch up")
        needed = minima.get(partition.topic)
        if needed is None:
            return unknown("NotObserved", f"min.insync.replicas of {partition.topic} is not known yet", subject=name)
        if len(partition.replicas) <= max(1, needed) and partition.topic not in set(accepted):
            return fail("TopicCannotSpareABroker", f"topic {partition.topic} has {len(partition.replicas)} replicas and"
                        f" needs {max(1, needed)} in sync: it stands still whenever one of its brokers restarts",
                        subject=partition.topic, observed=f"{len(partition.replicas)} replicas",
                        threshold=f"more than {max(1, needed)}",
                        unblocks="add replicas, lower its min.insync.replicas, or name it in spec.gates.acceptedTopics")
    return None


def check_cluster_is_free(picture: Picture) -> Verdict:
    """The Lease of this Kafka cluster is held by this migration: two of them would disrupt it together."""
    state = _kubernetes(picture)
    if isinstance(state, Verdict):
        return state
    if state.lease_holder and not state.lease_holder.startswith(f"{picture.uid}/"):
        return fail("ClusterIsTaken", "another migration holds the Lease of this Kafka cluster",
                    subject="Lease", observed=state.lease_holder, threshold=picture.uid,
                    unblocks="finish or delete the other migration")
    return passed("no other migration moves this cluster")


def broker_workloads(state: KubernetesState) -> Mapping[str, Workload]:
    """The StatefulSets of brokers that exist."""
    return {name: workload for name, workload in state.brokers.items() if workload is not None}


def _stable(picture: Picture) -> int:
    return picture.spec.gates.stable_samples


GATES: tuple[Gate[Picture], ...] = (
    Gate("Supported", check_supported),
    Gate("ObjectsExist", check_objects_exist),
    Gate("TemplateSupported", check_template_supported),
    Gate("Configuration", check_configuration),
    Gate("ClusterIsFree", check_cluster_is_free),
    Gate("Residue", check_residue),
    Gate("Membership", check_membership),
    Gate("Versions", check_versions),
    Gate("ConfigurationIsLive", check_configuration_is_live),
    Gate("Health", check_health, samples=_stable),
)
BROKERS_IDENTIFIED: Gate[Picture] = Gate("BrokersIdentified", check_brokers_identified)
