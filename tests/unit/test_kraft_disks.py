"""The report of a broker's disks: what its init container is like, how its message is read, and what gates make of it."""

from typing import Any

import pytest

from switchover.api.status import Verdict as Outcome
from switchover.cluster.door import mount
from switchover.cluster.door.mount import disks_container
from switchover.kubernetes import reports
from switchover.kubernetes.reports import DiskReport
from unit.kraft_gates import GATES, outcome, to_b
from unit.kraft_spoilers import FORMATTED, NAMELESS, pod, silent
from unit.pictures import stateful_set


def spec() -> dict[str, Any]:
    found: dict[str, Any] = stateful_set()["spec"]["template"]["spec"]
    return found


def reporter(pod: dict[str, Any]) -> dict[str, Any]:
    return disks_container(pod, pod["containers"][0])


def test_it_sees_the_data_and_nothing_else_and_cannot_write():
    container = reporter(spec())
    assert container["volumeMounts"] == [{"name": "data", "mountPath": "/var/lib/kafka", "readOnly": True}]
    assert container["command"] == ["/bin/sh", "-c", mount.DISKS_SCRIPT, "switchover-disks", "/var/lib/kafka"]


def test_it_sees_every_log_directory_of_many_volumes_where_the_broker_sees_it():
    pod = spec()
    pod["volumes"] += [{"name": "fast", "hostPath": {"path": "/ssd"}}, {"name": "tokens", "projected": {"sources": []}},
                       {"name": "keys", "secret": {"secretName": "keys"}}, {"name": "info", "downwardAPI": {}}]
    pod["containers"][0]["volumeMounts"] += [
        {"name": "fast", "mountPath": "/ssd", "subPath": "kafka", "mountPropagation": "None"},
        *({"name": name, "mountPath": f"/etc/{name}"} for name in ("tokens", "keys", "info"))]
    container = reporter(pod)
    assert container["volumeMounts"][1:] == [{"name": "fast", "mountPath": "/ssd", "subPath": "kafka", "readOnly": True}]
    assert container["command"][-2:] == ["/var/lib/kafka", "/ssd"]
    assert "env" not in container, "secrets of the broker are none of its business"


def test_an_expression_finds_the_variables_that_it_names():
    pod = spec()
    pod["containers"][0]["volumeMounts"][1] = {"name": "data", "mountPath": "/var/lib/kafka", "subPathExpr": "$(NAMESPACE)"}
    assert reporter(pod)["env"] == pod["containers"][0]["env"]


def test_whatever_admits_the_broker_admits_it_too():
    pod = spec()
    security = {"runAsNonRoot": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
                "seccompProfile": {"type": "RuntimeDefault"}}
    pod["containers"][0]["securityContext"] = security
    broker, container = pod["containers"][0], reporter(pod)
    for key in ("image", "imagePullPolicy", "securityContext", "resources"):
        assert container[key] == broker[key]
    for key in ("securityContext", "resources"):
        del broker[key]
    assert reporter(pod).keys() & {"securityContext", "resources"} == set()


def test_a_broker_without_volumes_is_asked_all_the_same():
    pod = {"containers": [{"name": "kafka", "image": "kafka:3.9"}]}
    assert reporter(pod)["command"][3:] == [reports.DISKS]


def test_a_report_is_read():
    assert reports.disks("disks 1 2 30 0 0\n") == DiskReport(2, 30, 0, 0)
    told = "disks 1 2 30 1 2\nformatted /data/one two\nnameless /data/a-0\nnameless /data/.b-1\n"
    assert reports.disks(told) == DiskReport(2, 30, 1, 2, ("/data/one two",), ("/data/a-0", "/data/.b-1"))


@pytest.mark.parametrize("message", [
    "", "\n", "sh: 1: Syntax error", "disks 2 1 1 0 0", "disks 1 1 1 0", "disks 1 1 1 0 0\nnoise /data", "disks 1 x 1 0 0"])
def test_what_is_no_report_is_none(message):
    assert reports.disks(message) is None


# --- its gates ----------------------------------------------------------------------------------------------------------


def test_a_broker_on_plain_zookeeper_that_has_not_started_since_we_ask_needs_no_report():
    picture = pod("kafka-1", disks=None)(to_b())
    for name in ("DisksAllowRollback", "TopicIdsOnDisk"):
        assert outcome(name, picture) is Outcome.PASS
        assert outcome(name, silent("answers", 1)(picture)) is Outcome.UNKNOWN


def test_what_the_disks_tell_names_directory_and_cure():
    formatted = GATES["DisksAllowRollback"].check(pod("kafka-0", disks=FORMATTED)(to_b()))
    assert "/var/lib/kafka/data-2" in formatted.message
    assert "kubectl --namespace kafka delete pod kafka-0" in formatted.unblocks
    nameless = GATES["TopicIdsOnDisk"].check(pod("kafka-0", disks=NAMELESS)(to_b()))
    assert "/var/lib/kafka/data/orders-0" in nameless.message
    assert "kubectl --namespace kafka delete pod kafka-0" in nameless.unblocks
