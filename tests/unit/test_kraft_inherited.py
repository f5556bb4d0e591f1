"""The controllers get of the brokers' pod what the brokers' file names, and nothing else."""

from copy import deepcopy
from typing import Any

import pytest

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


def made(text: str = TEXT, container: dict[str, Any] = CONTAINER,
         pod: dict[str, Any] = POD) -> tuple[dict[str, Any], dict[str, Any]]:
    """The controllers' StatefulSet without and with it."""
    spec = spec_of()
    manifests = controllers.manifests("to-kraft", spec, spec.brokers[0], Cluster().workload(), CLUSTER_ID, "3.9")
    bare = next(manifest for manifest in manifests if manifest["kind"] == "StatefulSet")
    before = deepcopy(bare)
    whole = inherited.completed(bare, pod, container, text)
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


def test_a_volume_of_a_csi_driver_can_be_mounted_again():
    pod = {"volumes": [{"name": "keys", "csi": {"driver": "csi.cert-manager.io"}}]}
    mounted = {"volumeMounts": [{"name": "keys", "mountPath": "/keys"}]}
    _, whole = made("ssl.keystore.location=/keys/store.p12\n", mounted, pod)
    assert {"name": "brokers-keys", "csi": {"driver": "csi.cert-manager.io"}} in pod_of(whole)["volumes"]


def test_variables_that_come_as_a_whole_go_along_as_a_whole():
    of_a_secret = [{"secretRef": {"name": "passwords"}}]
    _, whole = made("ssl.key.password=${env:KEY_PASSWORD}\n", {"envFrom": of_a_secret})
    assert pod_of(whole)["containers"][0]["envFrom"] == of_a_secret
    _, whole = made("ssl.key.password=${env:HERE}\n", {"envFrom": of_a_secret, "env": [{"name": "HERE", "value": "x"}]})
    assert "envFrom" not in pod_of(whole)["containers"][0], "every variable that is read is known"


def test_options_that_cannot_be_read_here_go_along_with_every_file():
    options = {"name": "KAFKA_OPTS", "valueFrom": {"configMapKeyRef": {"name": "options", "key": "kafka"}}}
    _, whole = made("", {**CONTAINER, "env": [options]})
    assert options in pod_of(whole)["containers"][0]["env"]
    assert {mount["mountPath"] for mount in pod_of(whole)["containers"][0]["volumeMounts"]} >= {
        "/keys/", "/etc/zookeeper-keys", "/etc/login", "/other"}


FILLING = {"name": "fill", "volumeMounts": [{"name": "keys", "mountPath": "/out"}]}


@pytest.mark.parametrize(("others", "lacks"), [
    ({}, False), ({"initContainers": [FILLING]}, True), ({"containers": [FILLING, {"name": "kafka", "volumeMounts": [
        {"name": "keys", "mountPath": "/keys"}]}]}, True)], ids=["nobody", "an init container", "a sidecar"])
def test_an_empty_directory_is_one_anywhere_unless_another_container_fills_it(others, lacks):
    mounts = {"volumeMounts": [{"name": "keys", "mountPath": "/keys"}]}
    pod = {"volumes": [{"name": "keys", "emptyDir": {}}], "containers": [{"name": "kafka", **mounts}], **others}
    assert inherited.lacking(pod, mounts, {"a": "/keys/tmp"}) == (("keys (emptyDir)",) if lacks else ())
    _, whole = made("a=/keys/tmp\n", mounts, pod)
    found = [mount for mount in pod_of(whole)["containers"][0]["volumeMounts"] if mount["mountPath"] == "/keys"]
    assert found == ([] if lacks else [{"name": "brokers-keys", "mountPath": "/keys", "readOnly": False}])


@pytest.mark.parametrize(("volume", "kind"), [
    ({"hostPath": {"path": "/keys"}}, "hostPath"), ({"ephemeral": {}}, "ephemeral"),
    ({"persistentVolumeClaim": {"claimName": "x"}}, "persistentVolumeClaim")])
def test_what_no_other_pod_can_mount_is_lacking(volume, kind):
    pod = {"volumes": [{"name": "keys", **volume}]}
    container = {"volumeMounts": [{"name": "keys", "mountPath": "/keys"}, {"name": "data", "mountPath": "/data"}]}
    assert inherited.lacking(pod, container, {"ssl.keystore.location": "/keys/store", "log.dirs": "/data/logs"}) == (
        f"keys ({kind})",)
    assert inherited.lacking(pod, container, {"log.dirs": "/data/logs,/keys/too"}) == ()
    assert inherited.lacking(pod, container, {"a": "/keys2/x", "b": "http://host/keys", "c": "/other/keys"}) == ()
    login = {**container, "env": [{"name": "KAFKA_OPTS", "value": "-Djava.security.auth.login.config=/data/jaas.conf"}]}
    assert inherited.lacking(pod, login, {"log.dirs": "/data/logs"}) == ("data (volumeClaimTemplate)",)
