"""What the brokers were given as their configuration, the controllers of the spec, and classes that are not Kafka's."""

from collections.abc import Iterator, Mapping

from switchover.api.meta import AcceptedRisk
from switchover.cluster import modes, names
from switchover.cluster.controllers import manifests
from switchover.cluster.door.brokers import PROTOCOL_MAP
from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.cluster.preflight import objects, ownership, security
from switchover.cluster.reading import Configured, brokers_by_pod, configured, examined, workloads
from switchover.engine.gate import Gate, Verdict, check, fail, info, several, warn
from switchover.kafka.node import MARKER, BrokerExamination
from switchover.kubernetes.selectors import selects
from switchover.metadata.kafka_config import foreign, names_classes
from switchover.reasons.cluster import DOOR_STILL_THERE
from switchover.reasons.notes import ALTER_CONFIG_POLICY, BROKERS_DIFFER, DELEGATION_TOKENS, FOREIGN_CLASS
from switchover.reasons.preflight import (
    ALREADY_KRAFT,
    FOREIGN_AUTHORIZER,
    LISTENER_NAME_TAKEN,
    LISTENERS_SET_AT_RUN_TIME,
    MIGRATION_ALREADY_CONFIGURED,
    NODE_ID_TAKEN,
    SEVERAL_BUDGETS,
)
from switchover.shared.grouped import grouped
from switchover.text.command import command, kubectl

TOKEN_KEYS = ("delegation.token.secret.key", "delegation.token.master.key")
LISTENERS = ("listeners", "advertised.listeners")
TAKEN_BY_CONTROLLERS = (
    "authorizer.class.name", "super.users", "allow.everyone.if.no.acl.found", "inter.broker.listener.name",
    "listener.security.protocol.map", "security.inter.broker.protocol", "sasl.mechanism.inter.broker.protocol",
    "min.insync.replicas", "default.replication.factor", "num.partitions", "unclean.leader.election.enable",
    "auto.create.topics.enable", "offsets.topic.replication.factor", "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr", "broker.session.timeout.ms",
)
"""Settings with which controllers decide or reach the brokers: theirs are those of the first broker's pod."""


def find_contradictions(picture: Picture) -> Iterator[Verdict]:
    for found in configured(picture):
        subject = f"broker {found.broker_id}"
        if found.has("process.roles"):
            yield fail(ALREADY_KRAFT, f"{subject} has process.roles: it runs on KRaft already", subject=subject,
                       observed=found.keys.get("process.roles", ""), unblocks="name only brokers on ZooKeeper in"
                       " spec.brokers; where none is left, there is nothing to migrate")
        if found.has(modes.MIGRATION_FLAG) or found.has("controller.quorum.voters"):
            yield fail(MIGRATION_ALREADY_CONFIGURED, f"{subject} already has settings of a migration begun by hand",
                       subject=subject,
                       unblocks=f"remove {modes.MIGRATION_FLAG} and controller.* from its configuration, and restart it")
        if marked := [name for name in found.hidden if name.startswith(MARKER)]:
            yield fail(DOOR_STILL_THERE, f"{subject} still runs Switchover's start script of an earlier attempt"
                       f" ({marked[0]})", subject=subject, unblocks="restart it from its own template, without that script")


def find_listeners_of_run_time(picture: Picture) -> Iterator[Verdict]:
    """A broker on KRaft takes no listener from what was set at run time, and nothing else that stands beside it
    (docs/facts/kraft.md#settings-of-one-broker-alone)."""
    told = dict(examined(picture))
    for pod, broker_id in sorted(brokers_by_pod(picture).items()):
        own = told[broker_id].own_dynamic
        lost = [key for key in (*LISTENERS, PROTOCOL_MAP) if key in own
                and not _stays(key, told[broker_id], picture.spec.controllers.listener.name)]
        if not lost:
            continue
        others = sorted(own.keys() - {*LISTENERS, PROTOCOL_MAP})
        also = f", and with it its other dynamic settings ({several(others)})" if others else ""
        settings = " and ".join(f"{key}={own[key]}" for key in lost)
        drop = command("kafka-configs.sh --bootstrap-server {} --alter --entity-type brokers --entity-name {}"
                       " --delete-config {}", picture.spec.kafka.bootstrap_servers, broker_id, ",".join(lost))
        yield fail(LISTENERS_SET_AT_RUN_TIME, f"broker {broker_id} ({pod}) has {' and '.join(lost)} set dynamically: on"
                   f" KRaft it ignores that{also}", subject=pod, observed=settings,
                   threshold="in its configuration",
                   unblocks=f"put {settings} into the configuration of {pod} and restart it; then {drop}")


def _stays(key: str, told: BrokerExamination, controllers: str) -> bool:
    """Whether a broker on KRaft is none the worse for this setting of run time."""
    listed = _listed(told.own_dynamic[key])
    if key == PROTOCOL_MAP:
        return controllers in {each.partition(":")[0] for each in listed}
    given = told.static_settings
    return listed == _listed(given.get(key) or given.get("listeners", ""))


def _listed(value: str) -> set[str]:
    return {item.strip() for item in value.split(",")}


def find_differences(picture: Picture) -> Iterator[Verdict]:
    """Of what a broker hides only this is known: whether it is set."""
    brokers = list(configured(picture))
    for key in TAKEN_BY_CONTROLLERS:
        values = {f"broker {each.broker_id}": _told(each, key) for each in brokers}
        if len(set(values.values())) > 1:
            first = next(iter(values.values()))
            odd = next(name for name, value in values.items() if value != first)
            yield warn(BROKERS_DIFFER, f"{odd} has another {key}: the controllers will have that of broker"
                       f" {brokers[0].broker_id}", subject=key, observed=f"{odd}: {values[odd]}", threshold=first,
                       cure="set the same on all brokers, and restart those that have another")


def _told(found: Configured, key: str) -> str:
    return "set, to what the broker hides" if key in found.hidden else _items(found.keys, key)


def _items(keys: Mapping[str, str], key: str) -> str:
    """Lists with or without spaces after their commas are the same."""
    return ",".join(item.strip() for item in keys[key].split(",")) if key in keys else "not set"


def find_features_that_change(picture: Picture) -> Iterator[Verdict]:
    """What behaves differently during or after the migration (docs/facts/kraft.md#behaves-differently-meanwhile)."""
    brokers = list(configured(picture))
    if policies := {each.broker_id: each.keys["alter.config.policy.class.name"] for each in brokers
                    if "alter.config.policy.class.name" in each.keys}:
        broker_id, policy = next(iter(policies.items()))
        yield warn(ALTER_CONFIG_POLICY, f"broker {broker_id} has an AlterConfigPolicy, which gets other values on KRaft than"
                   " on ZooKeeper (KAFKA-19026)", subject="alter.config.policy.class.name", observed=policy,
                   cure="read KIP-1252, and try the policy on a KRaft cluster first")
    if using := [f"broker {each.broker_id}" for each in brokers if any(each.has(key) for key in TOKEN_KEYS)]:
        yield info(DELEGATION_TOKENS, "delegation tokens are in use: during the migration only the controller's broker"
                   " creates, renews and expires them, others answer NOT_CONTROLLER", subject=several(using),
                   cure="renew tokens before it begins, or let clients repeat the request")


LISTENERS_OF_RUN_TIME = check("Listeners", find_listeners_of_run_time,
                              "every broker has its listeners from its own configuration", needs=(Need.EXAMINATION,))

CHECKS = (
    check("Configuration", find_contradictions, "nothing in the brokers' configuration is in the way",
          needs=(Need.EXAMINATION,)),
    LISTENERS_OF_RUN_TIME,
    check("BrokersAlike", find_differences, "the brokers have the same settings where controllers take them",
          needs=(Need.EXAMINATION,)),
    check("Features", find_features_that_change, "features that change were looked for", needs=(Need.EXAMINATION,)),
)


# --- controllers ----------------------------------------------------------------------------------------------------------
# Whether the controllers of the spec can be made for these brokers. Preflight looks, and so does ProvisionControllers
# right before it makes them: until then the spec may change, and so may the namespace.

def find_listener_names(picture: Picture) -> Iterator[Verdict]:
    listener = picture.spec.controllers.listener.name
    for found in configured(picture):
        if listener in {item.partition("://")[0].strip() for item in found.keys.get("listeners", "").split(",")}:
            subject = f"broker {found.broker_id}"
            yield fail(LISTENER_NAME_TAKEN, f"{subject} has a listener {listener} of its own", subject=subject,
                       unblocks=f"set spec.controllers.listener.name to a name that none has: KRAFT_{listener}, say")


def find_node_ids(picture: Picture) -> Iterator[Verdict]:
    brokers = {*brokers_by_pod(picture).values()}
    for shared in sorted(brokers & {*picture.controllers.values()}):
        yield fail(NODE_ID_TAKEN, f"controller id {shared} is taken by a broker", subject=f"broker {shared}",
                   unblocks=f"set spec.controllers.firstNodeId to {max(brokers) + 1} or more")


def find_budgets(picture: Picture) -> Iterator[Verdict]:
    """The controllers get a budget of their own: one more that selects them, such as the namespace's, would be too many."""
    own = picture.spec.controllers.name
    _, _, first = next(workloads(picture))
    labels = manifests.pod_labels(picture.name, picture.spec, first.template, (first.selector, *first.selectors.values()))
    selectors = {name: each for _, _, workload in workloads(picture) for name, each in workload.selectors.items()}
    for budget, selector in sorted(selectors.items()):
        if budget == own or not selects(selector, labels):
            continue
        but_them = {"key": names.CONTROLLERS_LABEL, "operator": "DoesNotExist"}
        expressions = [*((selector or {}).get("matchExpressions") or ()), but_them]
        subject = f"PodDisruptionBudget {budget}"
        yield fail(SEVERAL_BUDGETS, f"{subject} would select the controllers too: Kubernetes refuses to evict pods with two"
                   " budgets", subject=subject, observed=2, threshold=1,
                   unblocks=kubectl(picture.namespace, "patch poddisruptionbudget {} --type merge --patch {}", budget,
                                    {"spec": {"selector": {"matchExpressions": expressions}}}))


CONTROLLERS = (
    check("ListenerName", find_listener_names, "no broker has a listener of the controllers' name",
          needs=(Need.EXAMINATION,)),
    check("NodeIds", find_node_ids, "no broker has an id of a controller"),
    check("ControllersBudget", find_budgets, "one budget selects the controllers"),
)
OF_CONTROLLERS: tuple[Gate[Picture], ...] = (
    *CONTROLLERS, LISTENERS_OF_RUN_TIME, *security.CHECKS, objects.IMAGE_ALLOWED, objects.STORAGE, ownership.NAMES)
"""All of Preflight that reads spec.controllers, but for what only warns."""


# --- classes --------------------------------------------------------------------------------------------------------------
# Classes that are not Kafka's own: they go on to run on KRaft, and nobody but the user knows whether they can.

AUTHORIZER = "authorizer.class.name"
ON_BROKERS = ("remote.log.", "replica.selector.class")
"""What begins so runs on brokers alone."""
ON_CONTROLLERS = ("alter.config.policy.class.name", "create.topic.policy.class.name")
"""Policies: brokers on KRaft ask none."""
HIDDEN = "hidden by Kafka"


def find_foreign_classes(picture: Picture) -> Iterator[Verdict]:
    """Each setting once with each value; Kafka's own classes are in packages of its own."""
    told = dict(examined(picture))
    named = [((key, ", ".join(foreign(classes))), broker_id) for broker_id, each in told.items()
             for key, classes in each.classes.items() if foreign(classes)]
    hidden = [((key, HIDDEN), broker_id) for broker_id, each in told.items() for key in each.hidden if names_classes(key)]
    for (key, classes), broker_ids in sorted(grouped((*named, *hidden)).items()):
        where = _where(key)
        what = "is hidden by Kafka, and may not be" if classes == HIDDEN else f"is {classes}, not"
        message = (f"{key} of broker {several(broker_ids)} {what} Kafka's own: it will run on {where} on KRaft, without"
                   " ZooKeeper's settings")
        cure = "check that it supports KRaft, and try it on a KRaft cluster of Kafka 3.9"
        if key != AUTHORIZER or AcceptedRisk.FOREIGN_AUTHORIZER in picture.spec.accepted_risks:
            yield warn(FOREIGN_CLASS, message, subject=key, observed=classes, threshold="Kafka's own", cure=cure)
        else:
            yield fail(FOREIGN_AUTHORIZER, message, subject=key, observed=classes, threshold="Kafka's own",
                       unblocks=f"{cure}; then accept it by name: spec.acceptedRisks: [{AcceptedRisk.FOREIGN_AUTHORIZER}]")


def _where(setting: str) -> str:
    if setting in ON_CONTROLLERS:
        return "the controllers"
    return "brokers" if setting.startswith(ON_BROKERS) else "brokers and controllers"


CLASSES = (
    check("Classes", find_foreign_classes, "brokers run no classes but Kafka's own, or those were accepted",
          needs=(Need.EXAMINATION,)),
)
