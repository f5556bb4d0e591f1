"""Which container runs Kafka and where its image has its start script, told by templates as people have them; and what is
found of brokers comes back as it was kept.
"""

import json
from typing import Any

import pytest

from switchover.api.kafka_migration import BrokerSet, StartPreset
from switchover.cluster import modes, template
from switchover.cluster.door import brokers
from switchover.cluster.door.brokers import DATA_FIELD, LAYOUTS, SCRIPTS, Brokers, ContainerMissing, container_of, layout_of
from unit.pictures import Cluster, given, stateful_set

APACHE, BITNAMI, CONFLUENT = SCRIPTS
SCRAM_OFF = {"KAFKA_ZOOKEEPER_BOOTSTRAP_SCRAM_USERS": "false"}

DEMO: dict[str, Any] = stateful_set()["spec"]["template"]["spec"]["containers"][0]
BITNAMI_CHART: dict[str, Any] = {
    "name": "kafka", "image": "registry.example.org/mirror/kafka:3.9",
    "volumeMounts": [{"name": "data", "mountPath": "/bitnami/kafka"},
                     {"name": "kafka-config", "mountPath": "/opt/bitnami/kafka/config/server.properties",
                      "subPath": "server.properties"}]}
CP_CHART: dict[str, Any] = {
    "name": "cp-kafka-broker", "image": "confluentinc/cp-kafka:7.9.0", "command": ["sh", "-exc", (
        "export KAFKA_BROKER_ID=${HOSTNAME##*-} && \\\nexec /etc/confluent/docker/run")]}
EXPORTER = {"name": "prometheus-jmx-exporter", "image": "solsson/kafka-prometheus-jmx-exporter"}


def own(**fields: Any) -> BrokerSet:
    return BrokerSet.model_validate({"name": "kafka", **fields})


def calling(*command: str, **fields: Any) -> dict[str, Any]:
    return {"name": "kafka", "image": "registry.example.org/kafka", "command": [*command], **fields}


# --- the container ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("names", "named", "found"), [
    (["kafka"], None, "kafka"),
    (["broker"], None, "broker"),
    (["metrics", "kafka"], None, "kafka"),
    (["kafka-sidecar", "kafka", "kafka-exporter"], None, "kafka"),
    (["prometheus-jmx-exporter", "cp-kafka-broker"], None, "cp-kafka-broker"),
    (["kafka-exporter", "my-kafka"], None, "my-kafka"),
    (["a", "broker", "kafka"], "broker", "broker"),
])
def test_the_container_is_the_one_named_the_only_one_or_the_one_called_like_kafka(names, named, found):
    containers = [{"name": name} for name in names]
    assert container_of({"spec": {"containers": containers}}, own(container=named)) is containers[names.index(found)]


@pytest.mark.parametrize(("names", "named", "told"), [
    (["kafka"], "broker", "there is no container broker; the pod has: kafka"),
    (["broker", "metrics"], None, "there is no container whose name says that it runs Kafka; the pod has: broker, "),
    (["kafka-a", "kafka-b"], None, "the pod has: kafka-a, kafka-b"),
    ([], None, "there is no container"),
])
def test_a_container_that_cannot_be_told_is_missing_in_words(names, named, told):
    with pytest.raises(ContainerMissing) as missing:
        container_of({"spec": {"containers": [{"name": name} for name in names]}}, own(container=named))
    assert told in str(missing.value)


def test_a_template_without_containers_has_none():
    for pod in ({}, {"containers": None}):
        with pytest.raises(ContainerMissing):
            container_of({"spec": pod}, own())


def test_the_container_of_cp_helm_charts_is_found():
    assert container_of({"spec": {"containers": [EXPORTER, CP_CHART]}}, own()) is CP_CHART


# --- the script ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("container", "script", "environment"), [
    (DEMO, "/opt/kafka/bin/kafka-server-start.sh", {}),
    (BITNAMI_CHART, BITNAMI, SCRAM_OFF),
    (CP_CHART, CONFLUENT, {}),
    ({"name": "kafka", "image": "apache/kafka:3.9.2"}, APACHE, {}),
    ({"name": "kafka"}, APACHE, {}),
    ({"name": "kafka", "image": "bitnami/kafka", "command": None, "args": None, "volumeMounts": None}, BITNAMI, SCRAM_OFF),
    ({"name": "kafka", "image": "own", "command": ["/opt/bitnami/scripts/kafka/entrypoint.sh"]}, BITNAMI, SCRAM_OFF),
    ({"name": "kafka", "image": "confluentinc/cp-server"}, CONFLUENT, {}),
    ({"name": "kafka", "image": "registry/cp-kafka@sha256:0"}, CONFLUENT, {}),
    ({"name": "kafka", "image": "registry/mcp-kafkaesque"}, APACHE, {}),
], ids=["the demo", "Bitnami's chart", "cp-helm-charts", "Apache's image", "no image", "Bitnami's image, nothing else",
        "Bitnami's entrypoint", "cp-server", "cp-kafka of a mirror", "another name"])
def test_the_layout_is_told_by_the_template(container, script, environment):
    found = layout_of(container, own())
    assert (found.script, found.environment) == (script, environment)


@pytest.mark.parametrize("command", [
    "exec /kafka/bin/kafka-server-start.sh /etc/kafka/server.properties",
    '"/kafka/bin/kafka-server-start.sh" /etc/server.properties',
    "cd /tmp; '/kafka/bin/kafka-server-start.sh' x",
    "(/kafka/bin/kafka-server-start.sh x)",
    "x=/kafka/bin/kafka-server-start.sh;exec $x",
    "/kafka/bin/kafka-server-start.sh",
    "set -e\n/kafka/bin/kafka-server-start.sh x --override a=$B || /kafka/bin/kafka-server-start.sh x",
])
def test_an_absolute_path_in_the_command_is_the_answer(command):
    assert layout_of(calling("bash", "-c", command), own()).script == "/kafka/bin/kafka-server-start.sh"
    assert layout_of(calling("bash", args=["-c", command]), own()).script == "/kafka/bin/kafka-server-start.sh"
    assert layout_of({**CP_CHART, "command": ["bash", "-c", command]}, own()).script == "/kafka/bin/kafka-server-start.sh"


def test_a_path_that_is_a_word_of_its_own_is_the_answer():
    """Confluent's has no ending; a number is no word, and does no harm."""
    assert layout_of(calling("/opt/confluent-7/bin/kafka-server-start", 1), own()).script == (  # type: ignore[arg-type]
        "/opt/confluent-7/bin/kafka-server-start")


@pytest.mark.parametrize("command", [
    "exec ${KAFKA_HOME}/bin/kafka-server-start.sh x",
    "exec $KAFKA_HOME/bin/kafka-server-start.sh x",
    'exec "$KAFKA_HOME"/bin/kafka-server-start.sh x',
    "exec $(KAFKA_HOME)/bin/kafka-server-start.sh x",
    "exec $(dirname $0)/../bin/kafka-server-start.sh x",
    "exec /opt/kafka_$VERSION/bin/kafka-server-start.sh x",
    "exec /opt/${NAME}/bin/kafka-server-start.sh x",
    "exec /opt/kafka_*/bin/kafka-server-start.sh x",
    "exec ~/bin/kafka-server-start.sh x",
    "exec bin/kafka-server-start.sh x",
    "exec ./bin/kafka-server-start.sh x",
    "exec kafka-server-start.sh x",
    "exec /kafka/bin/kafka-server-start.sh.orig x",
    "exec /kafka/bin/kafka-server-start-all.sh x",
    "curl https://example.org/bin/kafka-server-start.sh",
])
def test_a_path_with_a_variable_or_none_is_no_answer(command):
    assert layout_of(calling("bash", "-c", command), own()).script == APACHE
    assert layout_of(calling("bash", "-c", command, image="bitnami/kafka"), own()).script == BITNAMI


def test_of_several_paths_none_is_the_answer():
    command = "[ -x /a/bin/kafka-server-start.sh ] && exec /a/bin/kafka-server-start.sh x || exec /b/kafka-server-start.sh x"
    assert layout_of(calling("bash", "-c", command), own()).script == APACHE


@pytest.mark.parametrize(("start", "script", "environment"), [
    ({"preset": "Apache"}, APACHE, {}),
    ({"preset": "Bitnami"}, BITNAMI, SCRAM_OFF),
    ({"preset": "Confluent"}, CONFLUENT, {}),
    ({"script": "/kafka/start.sh"}, "/kafka/start.sh", {}),
])
def test_what_the_spec_says_comes_before_what_is_told(start, script, environment):
    for container in (DEMO, CP_CHART):
        found = layout_of(container, own(start=start))
        assert (found.script, found.environment) == (script, environment)


def test_a_script_of_the_spec_leaves_the_image_what_it_is():
    """Bitnami's entrypoint stands before it all the same."""
    found = layout_of(BITNAMI_CHART, own(start={"script": "/kafka/start.sh"}))
    assert (found.script, found.environment) == ("/kafka/start.sh", SCRAM_OFF)


def test_every_preset_has_a_layout():
    assert [layout_of(DEMO, own(start={"preset": each})) for each in StartPreset] == [LAYOUTS[each] for each in StartPreset]


# --- what is known of brokers -------------------------------------------------------------------------------------------


def find(settings: dict[str, str], **fields: Any) -> Brokers:
    return brokers.find(stateful_set()["spec"]["template"], own(**fields), settings)


def test_what_is_found_of_the_demos_brokers():
    assert find(given()) == Brokers("kafka", "/opt/kafka/bin/kafka-server-start.sh", "/var/lib/kafka/data", "3.9", False, (),
                                    "", "3.9", listener="INTERNAL")
    assert find(given("3.5")).raised
    assert find(given("3.5")).release == modes.RAISED
    assert find(given(), start={"script": "/x/y"}).script == "/x/y"
    with pytest.raises(ContainerMissing):
        find(given(), container="broker")


@pytest.mark.parametrize(("version", "release", "raised"), [
    ("3.9-IV0", "3.9", False), ("3.6-IV2", "3.6", False), ("3.6", "3.6", False), (" 3.7.2 ", "3.7", False),
    ("3.5-IV2", "3.9", True), ("2.8", "3.9", True), ("0.10.0-IV1", "3.9", True)])
def test_a_version_too_old_for_a_migration_is_raised(version, release, raised):
    found = find({modes.PROTOCOL_VERSION: version})
    assert (found.release, found.raised) == (release, raised)


@pytest.mark.parametrize(("settings", "directory"), [
    ({"log.dirs": "/a", "log.dir": "/tmp/kafka-logs"}, "/a"),
    ({"log.dirs": " /a , /b"}, "/a"),
    ({"log.dir": "/tmp/kafka-logs"}, "/tmp/kafka-logs"),
    ({"log.dirs": "", "log.dir": "/b"}, "/b"),
    ({}, ""),
])
def test_the_first_log_directory_is_known(settings, directory):
    assert find(settings).log_dir == directory


@pytest.mark.parametrize(("listed", "encrypted"), [
    ("A:SSL,B:PLAINTEXT,C:SASL_SSL,D:SASL_PLAINTEXT", ("A", "C")),
    (" A : ssl , B : sasl_ssl ", ("A", "B")),
    ("", ("SSL", "SASL_SSL")),
])
def test_the_listeners_that_encrypt_are_known(listed, encrypted):
    assert find({brokers.PROTOCOL_MAP: listed}).encrypted == encrypted
    assert find({}).encrypted == ("SSL", "SASL_SSL")


def test_what_is_found_comes_back_as_it_was_kept():
    """By way of the ControllerRevision, whose data is JSON."""
    found = find({"listener.security.protocol.map": "A:SSL,B:SASL_SSL", modes.PROTOCOL_VERSION: "3.5"})
    manifest = template.original_manifest(Cluster().workload(), found, 1, {})
    assert brokers.stored(json.loads(json.dumps(manifest["data"]))) == found
    assert manifest["data"][DATA_FIELD]["encrypted"] == ["A", "B"]


def test_a_release_that_kept_nothing_of_brokers_knows_nothing():
    assert brokers.stored({"template": {}, "updateStrategy": {}}) is None
