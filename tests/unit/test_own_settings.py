"""What `switchover export` prints for a configuration of the user's own, in the words of their image."""

import pytest

from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster.controllers.manifests import voters
from switchover.cluster.door import edits
from switchover.cluster.door.brokers import Brokers
from switchover.cluster.ending import own_configuration
from unit.pictures import BROKERS, spec_of

BITNAMI, CONFLUENT = "/opt/bitnami/kafka/bin/kafka-server-start.sh", "/usr/bin/kafka-server-start"
OF_THE_DEMO = Brokers("kafka", "/opt/kafka/bin/kafka-server-start.sh", "/data", "3.9", raised=False, encrypted=())


def printed(script: str = "/srv/kafka/bin/kafka-server-start.sh") -> list[str]:
    quorum = voters(spec_of(), "kafka", {})
    found = {pod: edits.written(edits.broker(Mode.KRAFT, node_id, quorum, OF_THE_DEMO)) for pod, node_id in BROKERS.items()}
    return list(own_configuration.lines(found, script, "clusterAAAA"))


def test_every_key_that_the_edits_set_is_told_and_what_differs_for_each_broker():
    told = printed()
    assert "process.roles=broker" in told
    assert "controller.listener.names=CONTROLLER" in told
    assert "node.id: kafka-0 0, kafka-1 1, kafka-2 2" in told
    assert any(line.startswith("controller.quorum.voters=3000@kafka-controller-0.kafka-controller.kafka.svc:9093,")
               for line in told)
    assert any(line.startswith("listener.security.protocol.map: add CONTROLLER:PLAINTEXT;") for line in told)
    assert any(line.startswith("authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer where")
               for line in told)
    assert told[-1].startswith("and without: zookeeper.*, inter.broker.protocol.version,")


@pytest.mark.parametrize(("script", "variable"), [
    (BITNAMI, "KAFKA_CFG_CONTROLLER_QUORUM_VOTERS"), (CONFLUENT, "KAFKA_CONTROLLER_QUORUM_VOTERS")])
def test_images_that_read_variables_are_told_their_names(script: str, variable: str):
    assert any(line.startswith("controller.quorum.voters=") and line.endswith(f"({variable})") for line in printed(script))


def test_confluents_image_wants_the_clusters_id():
    assert printed(CONFLUENT)[-1].startswith("CLUSTER_ID=clusterAAAA ")
    assert not any("CLUSTER_ID" in line for line in printed(BITNAMI))


def test_a_password_is_not_printed():
    told = list(own_configuration.lines(
        {"kafka-0": "mode C\nset listener.name.controller.plain.sasl.jaas.config=x password=y\n"}, BITNAMI, "c"))
    assert told[0] == ("listener.name.controller.plain.sasl.jaas.config=<hidden>"
                       "   (KAFKA_CFG_LISTENER_NAME_CONTROLLER_PLAIN_SASL_JAAS_CONFIG)")


def test_bitnamis_image_is_led_to_the_values_of_its_chart():
    assert printed(BITNAMI)[-1] == "with Bitnami's chart set its values, not these variables: docs/charts/bitnami.md"
    assert "bitnami.md" not in "".join((*printed(CONFLUENT), *printed()))
