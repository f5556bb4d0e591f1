"""Pods and label selectors as the Kubernetes API writes them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from switchover.api.job_message import NONCE
from switchover.kubernetes import reports
from switchover.kubernetes.client.ownership import controls
from switchover.kubernetes.members import COST, MemberPod
from switchover.kubernetes.names import TOKEN
from switchover.kubernetes.workloads import NAMES_REMEMBERED, JobRun, JobState, Pod, Reached, Stage
from switchover.network.addresses import canonical
from switchover.text.command import kubectl

_STARTING = frozenset({"ContainerCreating", "PodInitializing"})
_LONGEST = 600
"""Characters of a termination message that are shown, its last ones: it may be the end of a whole log."""
_NAME_CACHE = re.compile(r"-Dsun\.net\.inetaddr\.ttl=(\d{1,5})\b")
_CREDENTIAL = re.compile(r"((?:password|secret|salt|stored_key|server_key)\s*[=:]\s*)[^\s,;]+", re.IGNORECASE)


def never_allows(budget: Mapping[str, Any]) -> bool:
    """Whether a PodDisruptionBudget allows no disruption even while every pod is healthy, as its controller reckons."""
    status = budget.get("status") or {}
    current = status.get("observedGeneration") == budget["metadata"].get("generation")
    expected, desired = status.get("expectedPods", 0), status.get("desiredHealthy", 0)
    return current and bool(0 < expected <= desired)


def read_pod(pod: Mapping[str, Any], cordoned: frozenset[str] | None, claims: Mapping[str, str],
             budgets: tuple[str, ...] = ()) -> Pod:
    """A pod of the API as a fact; `cordoned` are the nodes that are, None when that cannot be known.

    `claims` has the uid of every volume claim of the namespace.
    """
    status = pod.get("status") or {}
    node = pod["spec"].get("nodeName", "")
    return Pod(
        name=pod["metadata"]["name"],
        uid=pod["metadata"]["uid"],
        node=node,
        ready=_condition(status, "Ready").get("status") == "True",
        terminating="deletionTimestamp" in pod["metadata"],
        revision=(pod["metadata"].get("labels") or {}).get("controller-revision-hash", ""),
        started_at=_started_at(status),
        cordoned=None if cordoned is None else node in cordoned,
        trouble=_trouble(status),
        disks=reports.disks(_report(status, reports.DISKS)),
        volumes=_volumes(pod["spec"], claims),
        ips=tuple(canonical(each["ip"]) for each in status.get("podIPs") or ()),
        host_ports=_host_ports(pod["spec"]),
        reached=_reached(pod["spec"], status),
        unreached=reports.unreached(_report(status, reports.REACH)),
        with_token=frozenset(
            container["name"] for kind in ("initContainers", "containers") for container in pod["spec"].get(kind) or ()
            if any(mount["mountPath"] == TOKEN for mount in container.get("volumeMounts") or ())),
        budgets=budgets,
        remembers=_remembers(pod["spec"]),
    )


def read_member_pod(pod: Mapping[str, Any]) -> MemberPod:
    """A pod of the API as a fact about a group's members."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return MemberPod(
        name=metadata["name"],
        uid=metadata["uid"],
        ips=frozenset(canonical(each["ip"]) for each in status.get("podIPs") or ()),
        node=pod["spec"].get("nodeName", ""),
        ready=_condition(status, "Ready").get("status") == "True",
        terminating="deletionTimestamp" in metadata,
        revision=labels.get("controller-revision-hash") or labels.get("pod-template-hash", ""),
        restarts=sum(container.get("restartCount", 0) for container in status.get("containerStatuses") or ()),
        trouble=_trouble(status),
        started_at=_started_at(status),
        resource_version=metadata.get("resourceVersion", ""),
        annotated=bool(annotations),
        cost=annotations.get(COST, ""),
    )


def _condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """Empty while it is not there."""
    return next((each for each in status.get("conditions") or () if each["type"] == kind), {})


def _host_ports(spec: Mapping[str, Any]) -> frozenset[int] | None:
    """What the scheduler keeps free for it on its node; None where it has a network of its own.

    On its node's network the API server makes every `containerPort` a `hostPort` (`SetHostNetworkPorts` in
    pkg/apis/core/v1/defaults.go).
    """
    if not spec.get("hostNetwork"):
        return None
    ports = (port for container in spec["containers"] for port in container.get("ports") or ())
    return frozenset(port["hostPort"] for port in ports if "hostPort" in port and port.get("protocol", "TCP") == "TCP")


def _remembers(spec: Mapping[str, Any]) -> int:
    """Seconds for which a JVM keeps addresses, by the options in its variables: the longest that is named."""
    named = [int(seconds) for container in spec.get("containers") or () for variable in container.get("env") or ()
             for seconds in _NAME_CACHE.findall(variable.get("value") or "")]
    return max(named, default=NAMES_REMEMBERED)


def _volumes(spec: Mapping[str, Any], claims: Mapping[str, str]) -> tuple[str, ...]:
    named = [claim["claimName"] for volume in spec.get("volumes") or () if (claim := volume.get("persistentVolumeClaim"))]
    return tuple(sorted(f"{name}/{claims[name]}" for name in named if name in claims))


def _started_at(status: Mapping[str, Any]) -> float | None:
    """When the last of its containers started; None while one of them does not run."""
    containers = status.get("containerStatuses") or ()
    starts: list[str] = []
    for container in containers:
        running = (container.get("state") or {}).get("running")
        if running is None:
            return None
        starts.append(running["startedAt"])
    return max((datetime.fromisoformat(start).timestamp() for start in starts), default=None)


def _report(status: Mapping[str, Any], name: str) -> str:
    """What an init container of ours left as its termination message; "" while or where it did not."""
    for container in status.get("initContainerStatuses") or ():
        if container["name"] == name:
            return ((container.get("state") or {}).get("terminated") or {}).get("message") or ""
    return ""


def _trouble(status: Mapping[str, Any]) -> str:
    """Why it does not come up, as the scheduler or kubelet says it; empty while nothing is wrong."""
    scheduled = _condition(status, "PodScheduled")
    if scheduled.get("status") == "False":
        return reason_text(scheduled)
    for container in _in_turn(status):
        state = container.get("state") or {}
        waiting, terminated = state.get("waiting"), state.get("terminated")
        last = (container.get("lastState") or {}).get("terminated") or {}
        ended = f"ended with {last['exitCode']}: {reason_text(last)}" if last.get("exitCode") else ""
        if waiting and waiting.get("reason") not in _STARTING:
            return "; it ".join(filter(None, (f"container {container['name']}: {reason_text(waiting)}", ended)))
        if terminated and terminated.get("exitCode") != 0:
            return f"container {container['name']} ended with {terminated.get('exitCode')}: {reason_text(terminated)}"
        if state.get("running") and container.get("ready") is False and ended:
            return f"container {container['name']} runs again, and is not ready; it {ended}"
    if status.get("phase") == "Failed":
        return reason_text(status)
    return ""


def _reached(spec: Mapping[str, Any], status: Mapping[str, Any]) -> Reached:
    """The stage of the first container that does not do yet what it shall; the one that started last, where all run."""
    scheduled = _condition(status, "PodScheduled")
    before = _seconds(scheduled.get("lastTransitionTime"))            # when the last thing before ended
    if scheduled.get("status") == "False":
        return Reached(Stage.PENDING, "", before)
    sidecars = {each["name"] for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"}
    for container in _in_turn(status):
        name, state = container["name"], container.get("state") or {}
        waiting, running, ended = state.get("waiting"), state.get("running"), state.get("terminated")
        last = ended or (container.get("lastState") or {}).get("terminated") or {}
        is_init = container in (status.get("initContainerStatuses") or ())
        if ended is not None and ended.get("exitCode") == 0 and is_init:
            before = _seconds(ended.get("finishedAt")) or before
        elif ended is not None or (waiting is not None and last):
            return Reached(Stage.ENDED, name, _seconds(last.get("finishedAt")))
        elif running is None:
            return Reached(Stage.PREPARING, name, before)
        elif is_init and name not in sidecars:
            return Reached(Stage.INITIALIZING, name, _seconds(running["startedAt"]))
    containers = status.get("containerStatuses") or ()
    if not containers:
        return Reached(Stage.PREPARING, "", before)
    unready = [each for each in containers if each.get("ready") is False] or containers
    slowest = max(unready, key=lambda each: str(each["state"]["running"]["startedAt"]))
    return Reached(Stage.RUNNING, slowest["name"], _seconds(slowest["state"]["running"]["startedAt"]))


def _in_turn(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The statuses of all containers, in the order in which they start."""
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()


def _seconds(time: str | None) -> float | None:
    return datetime.fromisoformat(time).timestamp() if time else None


def reason_text(source: Mapping[str, Any]) -> str:
    return ": ".join(part for part in (source.get("reason"), _last_lines(source.get("message") or "")) if part)


def _last_lines(message: str) -> str:
    """Its last lines, without what looks like a credential, and without Java's stack: what was thrown stands above it."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    said = [line for line in lines if not (line.startswith("at ") and line.endswith(")"))]
    text = _CREDENTIAL.sub(r"\1(hidden)", " / ".join(said))
    return text if len(text) <= _LONGEST else f"… {text[-_LONGEST:]}"


JOB_POD = "batch.kubernetes.io/job-name"
"""Label that Kubernetes puts on the pods of a Job (1.27)."""
GIVEN = "SWITCHOVER_"
BACKOFF = "BackoffLimitExceeded"
"""Why a Job has failed of which a pod has."""


def read_job(job: Mapping[str, Any], pods: Iterable[Mapping[str, Any]], why_none: str = "") -> JobRun:
    """A Job of the API as a fact, with its pods, or with why it has none, where that is known. Others of `pods` may have its
    label: those of an earlier one of its name that still end, or anybody's."""
    metadata, variables = job["metadata"], given(job)
    ended = {item["type"]: item for item in (job.get("status") or {}).get("conditions") or () if item["status"] == "True"}
    state = (JobState.SUCCEEDED if "Complete" in ended else JobState.FAILED if "Failed" in ended else JobState.RUNNING)
    own = (pod for pod in pods if controls({metadata["uid"]}, pod))
    newest = sorted(own, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    messages = [message for pod in newest for container in (pod.get("status") or {}).get("containerStatuses") or ()
                if (message := ((container.get("state") or {}).get("terminated") or {}).get("message", ""))]
    reported = [message for message in messages if variables.get(NONCE) and variables[NONCE] in message]
    trouble = _trouble(newest[-1].get("status") or {}) if newest else ""
    detail = ""
    if state is JobState.FAILED:
        failed = ended["Failed"]                           # of one that ran for too long the pods are ended
        detail = (trouble if failed.get("reason") == BACKOFF else "") or str(failed.get("message", ""))
    elif state is JobState.RUNNING and not newest:
        why = f": {why_none}" if why_none else ""
        detail = f"it has no pod{why}; {kubectl(metadata['namespace'], 'describe job {}', metadata['name'])} says more"
    elif state is JobState.RUNNING:
        detail = f"pod {newest[-1]['metadata']['name']}: {trouble or _at(newest[-1])}"
    created = datetime.fromisoformat(metadata["creationTimestamp"]).timestamp()
    return JobRun(metadata["name"], state, (reported or messages or [""])[-1], detail, metadata["uid"], created,
                  metadata.get("annotations") or {}, variables)


def given(job: Mapping[str, Any]) -> Mapping[str, str]:
    """The variables by which a Job says what it is made for. The first of a name counts: ours stand before a user's."""
    pod, found = job["spec"]["template"]["spec"], dict[str, str]()
    for container in (*(pod.get("initContainers") or ()), *pod["containers"]):
        for variable in container.get("env") or ():
            if variable["name"].startswith(GIVEN) and "value" in variable:
                found.setdefault(variable["name"], variable["value"])
    return found


def _at(pod: Mapping[str, Any]) -> str:
    """What a pod is at that nothing is wrong with."""
    status = pod.get("status") or {}
    stage, container, _ = _reached(pod["spec"], status)
    phase = str(status.get("phase", "Pending"))
    return f"{phase}, its init container {container} runs" if stage is Stage.INITIALIZING else phase
