"""What of a broker's pod asks for ZooKeeper by itself."""

import pytest

from switchover.cluster.ending.zookeeper_users import suspects, users

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


def waiting(*command, **more):
    return {"spec": {"containers": [{"name": "kafka"}], "initContainers": [{"name": "wait", "command": [*command], **more}]}}


INIT = ("init container wait",)


@pytest.mark.parametrize(("template", "found"), [
    (waiting("sh", "-c", "until nc -z zk-client 2181; do sleep 1; done"), INIT),
    (waiting("sh", "-c", "until nc -z $ZOOKEEPER_HOST $PORT; do sleep 1; done"), INIT),
    (waiting("nslookup", "zookeeper-headless"), INIT),
    (waiting("nc", "-z", "coordination", "2181"), INIT),
    (waiting("nc", "-z", "$(HOST)", "$(PORT)", env=[{"name": "HOST", "value": "my-zk"}]), INIT),
    (waiting("wait-for-it", env=[{"name": "WAIT_FOR", "value": "tcp://coordination:2181"}]), INIT),
    (pod(readinessProbe=executing("sh", "-c", "nc -z ${DEPENDENCY}"), env=[{"name": "DEPENDENCY", "value": "zk-client"}]),
     ("readinessProbe of container kafka",)),
    ({"spec": {"containers": [{"name": "kafka"}, {"name": "exporter", "args": ["--ensemble=zk3-client:2182"]}]}},
     ("container exporter",)),
    (waiting("sh", "-c", "until nc -z zookeeper.old 2181; do sleep 1; done"), ()),                    # `users` names it
    (waiting("sh", "-c", "echo zookeeper.connect=$SERVERS >> /cfg/server.properties"), ()),
    (waiting("sh", "-c", "sed -i s/zookeeper.session.timeout.ms=1/2/ /cfg"), ()),
    (waiting("chown", "-R", "1000", "/data21810", "/zkfoo"), ()),
    (pod(command=["start", "zk:2181"], env=CONFLUENT, readinessProbe=executing("nc", "-z", "localhost", "9092")), ()),
    (pod(), ()),
])
def test_what_seems_to_ask_is_named_apart(template, found):
    """By an alias, a variable or its port alone; what Kafka reads asks for nothing."""
    assert suspects(template, "zookeeper.old:2181/kafka", "kafka") == found
