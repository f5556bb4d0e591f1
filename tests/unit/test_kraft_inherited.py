"""The controllers get of the brokers' pod what the brokers' file names, and nothing else."""

from copy import deepcopy
from typing import Any

from switchover.core.kraft import controllers, inherited
from unit.pictures import CLUSTER_ID, Cluster, spec_of

TEXT = """\
ssl.truststore.location=/keys/trust.p12
ssl.truststore.password=${env:STORE_PASSWORD}
zookeeper.ssl.keystore.location=/etc/zookeeper-keys/client.pem
log.dirs=/data
"""
POD = {"volumes": [
    {"name": "keys", "secret": {"secretName": "kafka-keys"}},
    {"name": "zookeeper", "projected": {"sources": []}},
    {"name": "login", "configMap": {"name": "kafka-login"}},
    {"name": "other", "secret": {"secretName": "other"}},
    {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
]}
CONTAINER = {
    "env": [
        {"name": "STORE_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "kafka-keys", "key": "password"}}},
        {"name": "LOGIN", "value": "/etc/login"},
        {"name": "OTHER", "value": "x"},
        {"name": "KAFKA_OPTS", "value": "-javaagent:/opt/jmx.jar=7071 -Djava.security.auth.login.config=$(LOGIN)/jaas.conf "
                                        "-Dpath=/etc/login"},
    ],
    "volumeMounts": [
        {"name": "keys", "mountPath": "/keys/"}, {"name": "zookeeper", "mountPath": "/etc/zookeeper-keys"},
        {"name": "login", "mountPath": "/etc/login"}, {"name": "other", "mountPath": "/other"},
        {"name": "data", "mountPath": "/data"},
    ],
}


def made(text: str = TEXT, container: dict[str, Any] = CONTAINER) -> tuple[dict[str, Any], dict[str, Any]]:
    """The controllers' StatefulSet without and with it."""
    spec = spec_of()
    manifests = controllers.manifests("to-kraft", spec, spec.brokers[0], Cluster().workload(), CLUSTER_ID, "3.9")
    bare = next(manifest for manifest in manifests if manifest["kind"] == "StatefulSet")
    before = deepcopy(bare)
    whole = inherited.completed(bare, POD, container, text)
    assert bare == before, "nothing is changed in place"
    return bare, whole


def pod_of(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = manifest["spec"]["template"]["spec"]
    return found


def test_stores_and_login_files_are_mounted_where_the_file_looks_for_them():
    bare, whole = made()
    added = pod_of(whole)["containers"][0]["volumeMounts"][len(pod_of(bare)["containers"][0]["volumeMounts"]):]
    assert {mount["mountPath"]: mount["name"] for mount in added} == {
        "/keys/": "brokers-keys", "/etc/zookeeper-keys": "brokers-zookeeper", "/etc/login": "brokers-login"}
    assert all(mount["readOnly"] for mount in added)
    assert pod_of(whole)["volumes"][len(pod_of(bare)["volumes"]):] == [
        {"name": "brokers-keys", "secret": {"secretName": "kafka-keys"}},
        {"name": "brokers-zookeeper", "projected": {"sources": []}},
        {"name": "brokers-login", "configMap": {"name": "kafka-login"}},
    ]


def test_variables_that_are_read_come_before_those_that_read_them():
    _, whole = made()
    names = [entry["name"] for entry in pod_of(whole)["containers"][0]["env"]]
    assert names[:2] == ["STORE_PASSWORD", "LOGIN"]
    assert "OTHER" not in names
    options = next(entry["value"] for entry in pod_of(whole)["containers"][0]["env"] if entry["name"] == "KAFKA_OPTS")
    assert "-Djava.security.auth.login.config=$(LOGIN)/jaas.conf" in options
    assert "javaagent" not in options


def test_a_plain_cluster_shares_nothing():
    bare, whole = made("listeners=PLAINTEXT://:9092\n", {**CONTAINER, "env": []})
    assert whole == bare


def test_a_place_of_our_own_is_not_given_away():
    bare, whole = made("a=/etc/switchover/x\n", {"volumeMounts": [{"name": "keys", "mountPath": "/etc/switchover"},
                                                                  {"name": "keys", "mountPath": "/etc"}]})
    assert whole == bare


def test_other_objects_come_back_as_they_are():
    spec = spec_of()
    for manifest in controllers.manifests("m", spec, spec.brokers[0], Cluster().workload(), CLUSTER_ID, "3.9"):
        if manifest["kind"] != "StatefulSet":
            assert inherited.completed(manifest, POD, CONTAINER, TEXT) == manifest
