"""Configuration by environment variables: names both ways, what a kubelet makes of a container's variables, the pod's file.

What shells and Kafka make of it is in tests/adapters/test_environment.py.
"""

import shlex
from copy import deepcopy
from typing import Any

import javaproperties
import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchover.api.kafka_migration import BrokerSet
from switchover.core.kraft import environment, modes, template
from switchover.core.kraft.environment import (
    Unusable,
    Variable,
    assigned,
    changes,
    property_of,
    read_configuration,
    resolve,
    sources,
    variable_of,
)
from switchover.core.kraft.facts import Workload
from unit.pictures import BROKERS, Cluster, moment, stateful_set

KAFKA, BITNAMI = "KAFKA_", "KAFKA_CFG_"
VOTERS = moment("Preflight").voters
VARIABLES = [
    {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    {"name": "KAFKA_HEAP_OPTS", "value": "-Xmx256m"},
    {"name": "KAFKA_ZOOKEEPER_CONNECT", "value": "zookeeper:2181"},
    {"name": "KAFKA_BROKER_ID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['apps.kubernetes.io/pod-index']"}}},
    {"name": "KAFKA_LISTENERS", "value": "INTERNAL://:9092"},
    {"name": "KAFKA_ADVERTISED_LISTENERS", "value": "INTERNAL://$(POD).kafka-headless:9092"},
    {"name": "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", "value": "INTERNAL:PLAINTEXT"},
    {"name": "KAFKA_INTER_BROKER_LISTENER_NAME", "value": "INTERNAL"},
    {"name": "KAFKA_INTER_BROKER_PROTOCOL_VERSION", "value": "3.9"},
    {"name": "KAFKA_MIN_INSYNC_REPLICAS", "value": "2"},
]


def container(*variables: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"name": "kafka", "image": "cp-kafka", "env": [*deepcopy(VARIABLES), *variables], **fields}


def configuration(found: dict[str, Any], read: dict[Any, Any] | None = None, prefix: str = KAFKA) -> str:
    return read_configuration("the environment", resolve(found, read or {}, "kafka"), prefix).text


# --- names --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "kafka", "bitnami"), [
    ("zookeeper.connect", "ZOOKEEPER_CONNECT", "ZOOKEEPER_CONNECT"),
    ("process.roles", "PROCESS_ROLES", "PROCESS_ROLES"),
    ("zookeeper.clientCnxnSocket", "ZOOKEEPER_CLIENT_CNXN_SOCKET", "ZOOKEEPER_CLIENTCNXNSOCKET"),
    ("listener.name.sasl_ssl.plain.sasl.jaas.config", "LISTENER_NAME_SASL__SSL_PLAIN_SASL_JAAS_CONFIG",
     "LISTENER_NAME_SASL_SSL_PLAIN_SASL_JAAS_CONFIG"),
    ("listener.name.a-b.ssl.keystore.type", "LISTENER_NAME_A___B_SSL_KEYSTORE_TYPE", None),
    ("listener.name.a_b.ssl.keystore.type", "LISTENER_NAME_A__B_SSL_KEYSTORE_TYPE", None),
])
def test_a_property_has_the_variable_that_its_image_reads(key, kafka, bitnami):
    assert variable_of(key, KAFKA) == f"KAFKA_{kafka}"
    assert property_of(f"KAFKA_{kafka}", KAFKA) == key
    if bitnami is None:
        with pytest.raises(Unusable, match=r"no variable for the property listener\.name"):
            variable_of(key, BITNAMI)
    else:
        assert variable_of(key, BITNAMI) == f"KAFKA_CFG_{bitnami}"
        assert property_of(f"KAFKA_CFG_{bitnami}", BITNAMI) == key


def test_what_kafkas_scripts_read_is_no_property():
    assert [property_of(f"KAFKA_{name}", KAFKA) for name in sorted(environment.NOT_PROPERTIES)] == [
        None] * len(environment.NOT_PROPERTIES)
    assert property_of("PATH", KAFKA) is None
    assert property_of("KAFKA_HEAP_OPTS", BITNAMI) is None


@pytest.mark.parametrize(("key", "prefix"), [
    ("camelCase", KAFKA), ("space in it", KAFKA), ("ümlaut", BITNAMI), ("camelCase", BITNAMI), ("a..b", KAFKA),
    ("a--b", KAFKA), ("a-b", BITNAMI)])
def test_what_has_no_variable_is_refused_in_words(key, prefix):
    with pytest.raises(Unusable, match="propert"):
        variable_of(key, prefix)


def test_four_underscores_are_refused():
    with pytest.raises(Unusable, match="KAFKA_A____B has four underscores"):
        property_of("KAFKA_A____B", KAFKA)


WORDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=8)
SIGNS = st.sampled_from([".", ".", ".", "_", "-"])


@given(WORDS, st.lists(st.tuples(SIGNS, WORDS), max_size=6))
def test_whatever_the_key_it_comes_back_from_its_variable(first, rest):
    key = first + "".join(sign + word for sign, word in rest)
    if property_of("KAFKA_" + key.upper().replace(".", "_"), KAFKA) is not None:
        assert property_of(variable_of(key, KAFKA), KAFKA) == key
    if set(key) <= set(".abcdefghijklmnopqrstuvwxyz0123456789") and "sasl.ssl" not in key and "sasl.plaintext" not in key:
        assert property_of(variable_of(key, BITNAMI), BITNAMI) == key


# --- the container's variables ------------------------------------------------------------------------------------------


def test_variables_are_expanded_as_a_kubelet_does_it():
    found = resolve({"env": [
        {"name": "A", "value": "a"}, {"name": "B", "value": "$(A)-$$(A)-$(LATER)-$A-$(a b"}, {"name": "LATER", "value": "x"},
        {"name": "NONE"}, {"name": "NS", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
        {"name": "URL", "value": "zookeeper.$(NS):2181"},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "HOST", "value": "$(IP):9092"},
    ]}, {}, "shop")
    assert found["B"].text == "a-$(A)-$(LATER)-$A-$(a b"
    assert "known to the kubelet alone" in found["B"].why, "a Service's variable could be meant"
    assert (found["NONE"], found["URL"]) == (Variable(""), Variable("zookeeper.shop:2181"))
    assert found["HOST"] == Variable("$(status.podIP):9092", "it comes from status.podIP of each pod")


def test_sources_are_named_and_read_in_their_order():
    found = {"envFrom": [{"configMapRef": {"name": "base"}}, {"prefix": "KAFKA_", "secretRef": {"name": "more"}}],
             "env": [{"name": "KAFKA_A", "value": "own"},
                     {"name": "KAFKA_D", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "d"}}},
                     {"name": "KAFKA_B", "valueFrom": {"configMapKeyRef": {"name": "base", "key": "no", "optional": True}}},
                     {"name": "KAFKA_E", "valueFrom": {"configMapKeyRef": {"name": "gone", "key": "e", "optional": True}}}]}
    assert sources(found) == {("ConfigMap", "base"), ("Secret", "more"), ("Secret", "keys"), ("ConfigMap", "gone")}
    read = {("ConfigMap", "base"): {"KAFKA_A": "1", "KAFKA_B": "1", "KAFKA_C": "1"},
            ("Secret", "more"): {"B": "2", "C": "2"}, ("Secret", "keys"): {"d": "4"}, ("ConfigMap", "gone"): None}
    assert {name: variable.text for name, variable in resolve(found, read, "").items()} == {
        "KAFKA_A": "own", "KAFKA_B": "2", "KAFKA_C": "2", "KAFKA_D": "4"}


@pytest.mark.parametrize(("found", "told"), [
    ({"envFrom": [{"configMapRef": {"name": "gone"}}]}, "ConfigMap gone, of which the container takes variables, does not"),
    ({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "gone", "key": "a"}}}]}, "Secret gone"),
    ({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "there", "key": "no"}}}]}, "Secret there has no key no"),
    ({"env": [{"name": "a.b", "value": ""}]}, "variable a.b would not reach the broker"),
    ({"envFrom": [{"secretRef": {"name": "there"}}]}, "variable x-y would not reach the broker"),
])
def test_what_cannot_be_carried_through_a_shell_or_does_not_exist_is_refused(found, told):
    with pytest.raises(Unusable, match=told):
        resolve(found, {("Secret", "there"): {"x-y": "1"}}, "kafka")


def test_the_properties_are_those_that_the_image_writes():
    assert modes.properties(configuration(container())) == {
        "zookeeper.connect": "zookeeper:2181",
        "broker.id": "$(metadata.labels['apps.kubernetes.io/pod-index'])",
        "listeners": "INTERNAL://:9092",
        "advertised.listeners": "INTERNAL://$(metadata.name).kafka-headless:9092",
        "listener.security.protocol.map": "INTERNAL:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "inter.broker.protocol.version": "3.9",
        "min.insync.replicas": "2",
    }


@pytest.mark.parametrize(("variables", "prefix", "told"), [
    ([{"name": "KAFKA_SUPER_USERS", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}], KAFKA,
     "value of KAFKA_SUPER_USERS cannot be known: it comes from spec.nodeName of each pod. The controllers need it"),
    ([{"name": "KAFKA_SUPER_USERS", "value": "$(KAFKA_SERVICE_HOST)"}], KAFKA, "known to the kubelet alone"),
    ([{"name": "KAFKA_listeners", "value": "x"}], KAFKA, "KAFKA_listeners is read by images as listeners"),
    ([], BITNAMI, "no variable KAFKA_CFG_ZOOKEEPER_CONNECT"),
])
def test_an_environment_that_cannot_be_carried_on_is_refused_in_words(variables, prefix, told):
    with pytest.raises(Unusable, match=told):
        configuration(container(*variables), prefix=prefix)


@pytest.mark.parametrize(("field", "text"), [
    ("command", "export KAFKA_BROKER_ID=${HOSTNAME##*-}; exec /etc/confluent/docker/run"), ("args", "KAFKA_BROKER_ID=7")])
def test_variables_that_the_command_sets_are_known(field, text):
    found = assigned({field: ["bash", "-c", text, "MY_KAFKA_X=1 KAFKA_A____B=1 KAFKA_HEAP_OPTS=-Xmx1g"]}, KAFKA)
    assert list(found) == ["broker.id"]


# --- the pod's file -----------------------------------------------------------------------------------------------------


def script(mode: str, prefix: str = KAFKA) -> list[str]:
    text = configuration(container())
    return changes(text, modes.render_broker(text, mode, 1, VOTERS), prefix).splitlines()[1:]


def test_mode_a_changes_nothing():
    assert script("A") == []


def test_mode_b_adds_and_takes_nothing_away():
    assert script("B") == [
        "export KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER",
        f"export KAFKA_CONTROLLER_QUORUM_VOTERS={VOTERS}",
        "export KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "export KAFKA_ZOOKEEPER_METADATA_MIGRATION_ENABLE=true"]


def test_mode_c_takes_zookeeper_away():
    assert script("C") == [
        "unset KAFKA_BROKER_ID", "unset KAFKA_INTER_BROKER_PROTOCOL_VERSION", "unset KAFKA_ZOOKEEPER_CONNECT",
        "export KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER",
        f"export KAFKA_CONTROLLER_QUORUM_VOTERS={VOTERS}",
        "export KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "export KAFKA_NODE_ID=1", "export KAFKA_PROCESS_ROLES=broker"]


def test_a_bitnami_image_gets_its_own_names():
    text = "zookeeper.connect=z:2181\n"
    assert "export KAFKA_CFG_PROCESS_ROLES=broker" in changes(text, modes.render_broker(text, "C", 1, VOTERS), BITNAMI)


def test_controllers_get_what_is_no_brokers_alone():
    keys = modes.properties(modes.render_controller(configuration(container()), "P", 3000, VOTERS, "/log"))
    assert keys["zookeeper.connect"] == "zookeeper:2181"
    assert keys["min.insync.replicas"] == "2"
    assert not any("$(" in value for value in keys.values())


# --- the template -------------------------------------------------------------------------------------------------------


OWN = BrokerSet.model_validate({"name": "kafka", "configuration": {"environment": {"prefix": "KAFKA_"}}})


def manifest(**fields: Any) -> dict[str, Any]:
    found = stateful_set()
    pod = found["spec"]["template"]["spec"]
    before = pod["containers"][0]
    pod["containers"][0] = {**container(), "command": ["/etc/confluent/docker/run"], "args": ["KAFKA_X=$(POD)"],
                            "volumeMounts": [before["volumeMounts"][1]], **fields}
    del pod["volumes"]
    return found


def workload(found: dict[str, Any]) -> Workload:
    return Cluster(manifest=found).workload()


def patched(found: dict[str, Any]) -> dict[str, Any]:
    operations = template.patch(workload(found), OWN, BROKERS, (), "cluster-id")
    result: dict[str, Any] = jsonpatch.apply_patch(found, [dict(operation) for operation in operations])
    return result


def broker_of(found: dict[str, Any]) -> dict[str, Any]:
    broker: dict[str, Any] = found["spec"]["template"]["spec"]["containers"][0]
    return broker


def test_the_change_wraps_the_command_and_mounts_each_pods_own_file():
    before, after = manifest(), patched(manifest())
    assert template.is_ours(workload(after), OWN)
    assert not template.is_ours(workload(before), OWN)
    broker = broker_of(after)
    assert broker["command"] == ["/bin/sh", "-c", environment.WRAPPER, "switchover", "/etc/confluent/docker/run"]
    assert broker["args"] == broker_of(before)["args"], "Kubernetes appends them to the command, as before"
    assert broker["volumeMounts"] == [*broker_of(before)["volumeMounts"], {
        "name": template.VOLUME, "mountPath": "/etc/switchover", "subPathExpr": f"$({template.POD_NAME})", "readOnly": True}]
    assert broker["env"][1] == {"name": "CLUSTER_ID", "value": "cluster-id"}
    assert broker["env"][2:-1] == broker_of(before)["env"], "with all that they come from"
    items = after["spec"]["template"]["spec"]["volumes"][-1]["secret"]["items"]
    assert items == [{"key": f"{pod}.sh", "path": f"{pod}/environment.sh"} for pod in BROKERS]


def test_another_cluster_id_gives_way():
    broker = broker_of(patched(manifest(env=[*VARIABLES, {"name": "CLUSTER_ID", "value": "copied from a tutorial"}])))
    assert [item["value"] for item in broker["env"] if item["name"] == "CLUSTER_ID"] == ["cluster-id"]


def test_the_change_twice_is_the_change_once():
    once = patched(manifest())
    once["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
    assert not template.is_ours(workload(once), OWN)
    assert patched(once) == patched(manifest())


def test_a_command_that_somebody_changed_back_is_not_ours():
    ours = patched(manifest())
    broker_of(ours)["command"] = ["/etc/confluent/docker/run"]
    assert not template.is_ours(workload(ours), OWN)


def test_the_template_comes_back_as_it_was():
    before = manifest()
    original = template.original_manifest(workload(before), 1, {})["data"]
    ours = patched(before)
    operations = [*template.restore_template(workload(ours), original)]
    restored = jsonpatch.apply_patch(ours, [dict(operation) for operation in operations])
    assert restored["spec"]["template"] == before["spec"]["template"]


# --- any values at all --------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["a.b", "ssl.key", "num.io.threads", "listener.name.sasl_ssl.x", "super.users", "process.roles"])
VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


def as_an_image_writes_it(shell: str, before: dict[str, str]) -> dict[str, str]:
    """The properties after a file of ours, by a parser of the few shell words that stand in it."""
    variables = {variable_of(key, KAFKA): value for key, value in before.items()}
    words = iter(shlex.split(shell, comments=True))
    for word in words:
        if word == "unset":
            del variables[next(words)]
        else:
            assert word == "export"
            name, _, value = next(words).partition("=")
            variables[name] = value
    return modes.properties("".join(f"{property_of(name, KAFKA)}={value}\n" for name, value in variables.items()))


@settings(deadline=None)
@given(st.dictionaries(KEYS, VALUES), st.dictionaries(KEYS, VALUES))
def test_whatever_the_values_an_image_comes_to_the_properties_that_were_meant(old, new):
    before = {key: value.encode("ascii", "ignore").decode().replace("\\", "").strip() for key, value in old.items()}
    before = {key: value for key, value in before.items() if value.isprintable()}
    text = "".join(f"{key}={value}\n" for key, value in before.items())
    assert as_an_image_writes_it(changes(text, javaproperties.dumps(new, timestamp=None), KAFKA), before) == new
