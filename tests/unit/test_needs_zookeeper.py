"""What of a broker's pod asks for ZooKeeper by itself."""

import pytest

from switchover.cluster.ending.needs_zookeeper import users

CONFLUENT = [{"name": "KAFKA_ZOOKEEPER_CONNECT", "value": "zk:2181"}]
TLS = {"name": "KAFKA_ZOOKEEPER_SSL_CLIENT_ENABLE", "value": "true"}


def pod(**container):
    return {"spec": {"containers": [{"name": "kafka", **container}]}}


def executing(*command):
    return {"exec": {"command": list(command)}}


@pytest.mark.parametrize(("template", "found"), [
    (pod(), ()),
    (pod(command=["kafka-server-start.sh", "--override", "zookeeper.connect=zookeeper:2181/kafka"]), ()),
    (pod(readinessProbe={"tcpSocket": {"port": 9092}}), ()),
    (pod(readinessProbe=executing("sh", "-c", "zookeeper-shell.sh zk:2181 ls /brokers/ids")),
     ("readinessProbe of container kafka",)),
    (pod(livenessProbe=executing("check", "zk-0.zk.kafka.svc")), ("livenessProbe of container kafka",)),
    (pod(lifecycle={"postStart": executing("curl", "http://zk-1.zk.kafka.svc:8080")}), ("postStart of container kafka",)),
    (pod(lifecycle={"preStop": executing("sleep", "5")}), ()),
    (pod(image="confluentinc/cp-kafka:7.9.0", env=CONFLUENT),
     ("the entrypoint of container kafka (KAFKA_ZOOKEEPER_CONNECT)",)),
    (pod(image="confluentinc/cp-kafka:7.9.0", env=[*CONFLUENT, TLS]), ()),
    (pod(image="confluentinc/cp-kafka:7.9.0", env=[{"name": "KAFKA_PROCESS_ROLES", "value": "broker"}]), ()),
    (pod(image="confluentinc/cp-kafka:7.9.0", env=[*CONFLUENT, {"name": "KAFKA_PROCESS_ROLES", "value": "broker"}]), ()),
    (pod(image="kafka:3.9", env=CONFLUENT), ()),
    ({"spec": {"containers": [], "initContainers": [
        {"name": "wait", "command": ["sh"], "args": ["-c", "until nc -z zk-0.zk.kafka.svc 2181; do sleep 1; done"]},
        {"name": "other", "args": ["not-zk-0.zk.kafka.svc", "zk-0.zk.kafka.svc-too"]}]}}, ("init container wait",)),
])
def test_it_is_named(template, found):
    assert users(template, "zk-0.zk.kafka.svc:2181,zk-1.zk.kafka.svc:2181/kafka") == found
