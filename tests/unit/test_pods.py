"""Label selectors and the kubelet's words, as the Kubernetes API writes them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from switchover.api.job_message import NONCE
from switchover.kubernetes.client.pods import read_job, read_pod
from switchover.kubernetes.names import TOKEN
from switchover.kubernetes.selectors import selects
from switchover.kubernetes.workloads import JobRun, JobState, Reached, Stage

LABELS = {"app": "kafka", "tier": "data"}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "kafka"}}, True),
        ({"matchLabels": {"app": "kafka", "zone": "a"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["kafka", "zookeeper"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["kafka"]}]}, False),
        ({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, False),
        ({"matchLabels": {"app": "kafka"}, "matchExpressions": [{"key": "zone", "operator": "Exists"}]}, False),
    ],
)
def test_selectors(selector: dict[str, Any] | None, matches: bool) -> None:
    assert selects(selector, LABELS) is matches


def pod(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "kafka-0", "uid": "1"}, "spec": {}, "status": status}


SINCE = {"startedAt": "2026-11-21T20:00:00Z"}
OUT_OF_MEMORY = {"lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}


def container(**state: Any) -> dict[str, Any]:
    return {"name": "kafka", "state": state}


@pytest.mark.parametrize(
    ("status", "trouble"),
    [
        ({}, ""),
        ({"containerStatuses": [container(waiting={"reason": "ContainerCreating"})]}, ""),
        ({"containerStatuses": [container(running={"startedAt": "2026-11-21T20:00:00Z"})]}, ""),
        ({"containerStatuses": [container(terminated={"exitCode": 0, "reason": "Completed"})]}, ""),
        ({"containerStatuses": [container(terminated={"exitCode": 137, "reason": "OOMKilled"})]},
         "container kafka ended with 137: OOMKilled"),
        ({"containerStatuses": [
            container(waiting={"reason": "CrashLoopBackOff", "message": "back-off 40s"}) | OUT_OF_MEMORY]},
         "container kafka: CrashLoopBackOff: back-off 40s; it ended with 137: OOMKilled"),
        ({"containerStatuses": [container(running=SINCE) | {"ready": False}]}, ""),
        ({"containerStatuses": [container(running=SINCE) | {"ready": True} | OUT_OF_MEMORY]}, ""),
        ({"containerStatuses": [container(running=SINCE) | {"ready": False} | OUT_OF_MEMORY]},
         "container kafka runs again, and is not ready; it ended with 137: OOMKilled"),
        ({"initContainerStatuses": [container(waiting={"reason": "ImagePullBackOff", "message": "no such image"})]},
         "container kafka: ImagePullBackOff: no such image"),
        ({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}]},
         "Unschedulable: no room"),
        ({"phase": "Failed", "reason": "Evicted", "message": "disk pressure"}, "Evicted: disk pressure"),
    ],
)
def test_trouble_is_told_in_the_kubelets_words(status: dict[str, Any], trouble: str) -> None:
    assert read_pod(pod(**status), frozenset(), {}).trouble == trouble


NODE = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-21T19:59:00Z"}
BEFORE = {"name": "wait", "state": {"terminated": {"exitCode": 0, "finishedAt": "2026-11-21T19:59:30Z"}}}
CRASHED = {"exitCode": 1, "reason": "Error", "finishedAt": "2026-11-21T20:00:00Z"}
NOT_YET = container(waiting={"reason": "PodInitializing"})


def at(text: str) -> float:
    return datetime.fromisoformat(f"2026-11-21T{text}Z").timestamp()


@pytest.mark.parametrize(("status", "reached"), [
    ({"conditions": [{**NODE, "status": "False"}]}, Reached(Stage.PENDING, "", at("19:59:00"))),
    ({"conditions": [NODE]}, Reached(Stage.PREPARING, "", at("19:59:00"))),
    ({"conditions": [NODE], "initContainerStatuses": [{**NOT_YET, "name": "wait"}], "containerStatuses": [NOT_YET]},
     Reached(Stage.PREPARING, "wait", at("19:59:00"))),
    ({"conditions": [NODE], "initContainerStatuses": [{"name": "wait", "state": {"running": SINCE}}],
      "containerStatuses": [NOT_YET]}, Reached(Stage.INITIALIZING, "wait", at("20:00:00"))),
    ({"conditions": [NODE], "initContainerStatuses": [BEFORE], "containerStatuses": [container(
        waiting={"reason": "ImagePullBackOff"})]}, Reached(Stage.PREPARING, "kafka", at("19:59:30"))),
    ({"initContainerStatuses": [BEFORE, {"name": "log", "state": {"terminated": CRASHED}}], "containerStatuses": [NOT_YET]},
     Reached(Stage.ENDED, "log", at("20:00:00"))),
    ({"containerStatuses": [{**container(waiting={"reason": "CrashLoopBackOff"}), "lastState": {"terminated": CRASHED}}]},
     Reached(Stage.ENDED, "kafka", at("20:00:00"))),
    ({"initContainerStatuses": [BEFORE], "containerStatuses": [container(running=SINCE)]},
     Reached(Stage.RUNNING, "kafka", at("20:00:00"))),
    ({"containerStatuses": [{**container(running=SINCE), "ready": False}, {
        "name": "exporter", "ready": True, "state": {"running": {"startedAt": "2026-11-21T20:00:30Z"}}}]},
     Reached(Stage.RUNNING, "kafka", at("20:00:00"))),
], ids=["no node", "nothing yet", "images", "an init container", "no image", "an init container that ended", "a crash loop",
        "running", "a sidecar is ready"])
def test_how_far_the_kubelet_has_got(status: dict[str, Any], reached: Reached) -> None:
    assert read_pod(pod(**status), frozenset(), {}).reached == reached


def test_a_sidecar_among_the_init_containers_holds_nothing_back() -> None:
    found = pod(initContainerStatuses=[{"name": "proxy", "state": {"running": {"startedAt": "2026-11-21T19:00:00Z"}}}],
                containerStatuses=[container(running=SINCE)])
    found["spec"] = {"initContainers": [{"name": "proxy", "restartPolicy": "Always"}], "containers": []}
    assert read_pod(found, frozenset(), {}).reached == Reached(Stage.RUNNING, "kafka", at("20:00:00"))


def test_of_what_java_threw_the_words_are_told_and_not_the_stack() -> None:
    """The disk of a controller was full; the stack alone is longer than what is told."""
    log = "\n".join(["ERROR Encountered fatal fault: caught exception", "java.io.IOException: No space left on device",
                     *(f"\tat org.apache.kafka.storage.log.Frame{number}.call(Frame.java:24)" for number in range(40))])
    told = read_pod(pod(containerStatuses=[container(terminated={"exitCode": 1, "message": log})]), frozenset(), {}).trouble
    assert told == ("container kafka ended with 1: ERROR Encountered fatal fault: caught exception"
                    " / java.io.IOException: No space left on device")


def test_of_a_long_termination_message_the_last_words_are_told_without_credentials() -> None:
    end = ["", "salt=c2FsdA==,stored_key=a2V5", " Password: s3cret now "]
    log = "\n".join([*(f"line {number}" for number in range(200)), *end])
    ended = {"exitCode": 1, "reason": "Error", "message": log}
    told = read_pod(pod(containerStatuses=[container(terminated=ended)]), frozenset(), {}).trouble
    assert told.startswith("container kafka ended with 1: Error: … ")
    assert told.endswith("line 199 / salt=(hidden),stored_key=(hidden) / Password: (hidden) now")
    assert len(told) < 700


def test_a_pod_has_started_when_its_last_container_has() -> None:
    early = container(running={"startedAt": "2026-11-21T20:00:00Z"})
    late = container(running={"startedAt": "2026-11-21T20:00:30Z"})
    assert read_pod(pod(containerStatuses=[early, late]), frozenset(), {}).started_at == 1795291230.0
    assert read_pod(pod(containerStatuses=[early, container(waiting={})]), frozenset(), {}).started_at is None
    assert read_pod(pod(), frozenset(), {}).started_at is None


@pytest.mark.parametrize(("environment", "seconds"), [
    ([], 30),
    ([{"name": "JAVA_TOOL_OPTIONS", "value": "-Dmine=1 -Dsun.net.inetaddr.ttl=1"}], 1),
    ([{"name": "KAFKA_OPTS", "value": "-Dsun.net.inetaddr.ttl=60"}, {"name": "PASSWORD", "valueFrom": {}}], 60),
    ([{"name": "KAFKA_OPTS", "value": "-Dsun.net.inetaddr.ttl=-1"}], 30),
])
def test_how_long_its_jvm_remembers_an_address(environment: list[dict[str, Any]], seconds: int) -> None:
    found = pod()
    found["spec"] = {"containers": [{"name": "kafka", "env": environment}]}
    assert read_pod(found, frozenset(), {}).remembers == seconds


def test_volumes_are_told_by_claim_and_uid() -> None:
    found = pod()
    found["spec"]["volumes"] = [
        {"name": "b", "persistentVolumeClaim": {"claimName": "data-b"}}, {"name": "tmp", "emptyDir": {}},
        {"name": "a", "persistentVolumeClaim": {"claimName": "data-a"}}]
    assert read_pod(found, None, {"data-a": "1", "data-b": "2", "else": "3"}).volumes == ("data-a/1", "data-b/2")
    assert read_pod(found, None, {}).volumes == ()
    assert read_pod(found, None, {}).cordoned is None


def test_it_is_told_which_containers_have_a_token() -> None:
    mounted = {"volumeMounts": [{"name": "kube-api-access-x", "mountPath": TOKEN, "readOnly": True}]}
    found = pod() | {"spec": {"initContainers": [{"name": "init", **mounted}, {"name": "chown"}],
                              "containers": [{"name": "kafka", **mounted}]}}
    assert read_pod(found, frozenset(), {}).with_token == {"init", "kafka"}
    assert read_pod(pod(), frozenset(), {}).with_token == frozenset()


def test_a_pods_addresses_have_one_spelling_and_its_order() -> None:
    found = pod(podIP="10.0.0.1", podIPs=[{"ip": "10.0.0.1"}, {"ip": "fd00:0:0::1"}])
    assert read_pod(found, None, {}).ips == ("10.0.0.1", "fd00::1")
    assert read_pod(found, None, {}).host_ports is None
    assert read_pod(pod(), None, {}).ips == ()


def test_on_the_nodes_network_only_named_ports_are_a_pods_own() -> None:
    ports = [{"containerPort": 9092, "hostPort": 9092}, {"containerPort": 53, "hostPort": 53, "protocol": "UDP"}]
    found = pod()
    found["spec"] = {"hostNetwork": True, "containers": [{"name": "sidecar"}, {"name": "kafka", "ports": ports}]}
    assert read_pod(found, None, {}).host_ports == {9092}
    found["spec"]["hostNetwork"] = False
    assert read_pod(found, None, {}).host_ports is None


CREATED = datetime(2026, 11, 21, 20, tzinfo=UTC).timestamp()


def job(**conditions: str) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "pipeline", "env": [{"name": NONCE, "value": "n0nce"}]}]}}
    return {"metadata": {"name": "audit", "namespace": "kafka", "uid": "u", "creationTimestamp": "2026-11-21T20:00:00Z"},
            "spec": {"template": template}, "status": {
        "conditions": [{"type": kind, "status": "True", "message": words} for kind, words in conditions.items()]}}


def job_pod(name: str, created: str, owner: str = "u", controller: bool | None = True, **status: Any) -> dict[str, Any]:
    owners = [{"kind": "Job", "uid": owner, "controller": controller}]
    metadata = {"name": name, "uid": name, "creationTimestamp": created, "ownerReferences": owners}
    return {"metadata": metadata, "spec": {}, "status": status}


def left(message: str) -> dict[str, Any]:
    return {"containerStatuses": [container(terminated={"exitCode": 0, "message": message})]}


def test_a_job_is_told_with_what_its_newest_pod_left() -> None:
    pods = [job_pod("b", "2026-11-21T20:01:00Z", **left("second")), job_pod("a", "2026-11-21T20:00:00Z", **left("first"))]
    assert read_job(job(SuccessCriteriaMet="", Complete=""), pods) == JobRun(
        "audit", JobState.SUCCEEDED, "second", "", "u", CREATED, given={NONCE: "n0nce"})
    assert read_job(job(Failed="deadline exceeded"), pods) == JobRun(
        "audit", JobState.FAILED, "second", "deadline exceeded", "u", CREATED, given={NONCE: "n0nce"})


def test_a_job_that_runs_says_what_its_pod_waits_for() -> None:
    waiting = job_pod("a", "2026-11-21T20:00:00Z", containerStatuses=[
        container(waiting={"reason": "ErrImagePull", "message": "no such image"})])
    assert read_job(job(), [waiting]).detail == "pod a: container kafka: ErrImagePull: no such image"
    assert read_job(job(), [job_pod("a", "2026-11-21T20:00:00Z", phase="Running")]).detail == "pod a: Running"
    begins = job_pod("a", "2026-11-21T20:00:00Z", phase="Pending", initContainerStatuses=[
        container(running={"startedAt": "2026-11-21T20:00:00Z"})])
    assert read_job(job(), [begins]).detail == "pod a: Pending, its init container kafka runs"
    assert read_job(job(), []) == JobRun(
        "audit", JobState.RUNNING, "", "it has no pod; kubectl --namespace kafka describe job audit says more", "u", CREATED,
        given={NONCE: "n0nce"})


def test_pods_of_an_earlier_job_of_the_name_tell_nothing_of_this_one() -> None:
    """They still end while the Job that was made in its place begins."""
    before = job_pod("z", "2026-11-21T20:01:00Z", owner="of the one before", **left("its report"))
    assert read_job(job(), [before]).message == ""
    assert read_job(job(), [before]).detail == "it has no pod; kubectl --namespace kafka describe job audit says more"


@pytest.mark.parametrize("owner", [{"owner": ""}, {"controller": None}, {"controller": False}])
def test_a_pod_that_a_job_does_not_control_tells_nothing_of_it(owner: dict[str, Any]) -> None:
    """Whoever may create pods may give one its label, and name the Job among the owners."""
    planted = job_pod("z", "2026-11-21T20:01:00Z", **owner, **left("clean, n0nce"))
    assert read_job(job(Complete=""), [job_pod("a", "2026-11-21T20:00:00Z", **left("n0nce")), planted]).message == "n0nce"
    assert read_job(job(Complete=""), [planted]).message == ""


def test_what_repeats_the_jobs_nonce_counts_before_what_is_newer() -> None:
    planted = job_pod("z", "2026-11-21T20:01:00Z", **left("clean"))
    assert read_job(job(Complete=""), [job_pod("a", "2026-11-21T20:00:00Z", **left("n0nce")), planted]).message == "n0nce"


def test_a_job_whose_pod_failed_says_what_ended_it_and_one_that_ran_for_too_long_says_that() -> None:
    found = job(Failed="Job has reached the specified backoff limit")
    failed = found["status"]["conditions"][0]
    ended = job_pod("a", "2026-11-21T20:00:00Z", initContainerStatuses=[
        container(terminated={"exitCode": 1, "reason": "Error", "message": "no such variable; password=hunter2"})])
    failed["reason"] = "BackoffLimitExceeded"
    assert read_job(found, [ended]).detail == (
        "container kafka ended with 1: Error: no such variable; password=(hidden)")
    without_bash = job_pod("a", "2026-11-21T20:00:00Z", initContainerStatuses=[container(terminated={
        "exitCode": 128, "reason": "StartError", "message": 'exec: "bash": executable file not found in $PATH'})])
    assert read_job(found, [without_bash]).detail == (
        'container kafka ended with 128: StartError: exec: "bash": executable file not found in $PATH')
    assert read_job(found, []).detail == "Job has reached the specified backoff limit"
    failed |= {"reason": "DeadlineExceeded", "message": "Job was active longer than specified deadline"}
    assert read_job(found, [ended]).detail == "Job was active longer than specified deadline"
