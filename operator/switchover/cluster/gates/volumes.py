"""Volumes: a claim that was made anew holds none of a node's data. That is an incident, and is told as one.

The claims are put on record while the controllers are provisioned. A node with another claim is waited for until it has
caught up; then that one is on record. The majority of the controllers cannot catch up: there is nobody to learn from.
"""

from collections.abc import Mapping

from switchover.api.kafka_migration import KafkaMigrationStep as Step
from switchover.cluster.gates.quorum import QUORUM_UP
from switchover.cluster.gates.replicas import ALL_IN_SYNC
from switchover.cluster.picture import Picture
from switchover.cluster.reading import kubernetes_of
from switchover.engine.gate import Gate, Verdict, fail, passed, wait
from switchover.kubernetes.workloads import Pod
from switchover.reasons.cluster import QUORUM_VOLUMES_LOST, VOLUME_REPLACED

SETTLING = (Step.PREFLIGHT, Step.PROVISION_CONTROLLERS)
"""Steps in which no node depends on the controllers' volumes; on the way back they are removed there."""
CAUGHT_UP_SECONDS = 60.0
"""A pod must be older before its replicas count: until a broker's session is over, others may list the one before it."""


def check_volumes_kept(picture: Picture) -> Verdict:
    kubernetes_of(picture)
    replaced = _replaced(picture)
    if not replaced:
        return passed("every node has the volumes that it had")
    lost = _controllers_among(picture, replaced)
    name, (before, now) = next(iter(replaced.items()))
    if _is_majority(picture, lost):
        return fail(QUORUM_VOLUMES_LOST, f"the volumes of {', '.join(lost)} are not the ones on record: the majority of the"
                    " controllers has lost the metadata log", subject=lost[0], observed=", ".join(replaced[lost[0]][1]),
                    threshold=", ".join(replaced[lost[0]][0]),
                    unblocks="delete no other volume and restart no broker; the runbook has the offline ways")
    return wait(VOLUME_REPLACED, f"{name} runs on another volume than the one on record: its data is gone from it",
                subject=name, observed=", ".join(now) or "none", threshold=", ".join(before),
                unblocks=f"{name} catches up from the other nodes; find out who deleted the claim")


def volumes_on_record(picture: Picture) -> tuple[Mapping[str, tuple[str, ...]], str]:
    """The claims to keep on record for each node, and a note on those that have just caught up on another one."""
    replaced = _replaced(picture)
    kept, caught_up = dict(picture.volumes), []
    for name in picture.position.nodes:
        pod = picture.pod_of(name)
        if pod is None:
            continue
        if name not in replaced:
            kept[name] = pod.volumes
        elif _has_caught_up(picture, name, pod, replaced):
            kept[name] = pod.volumes
            caught_up.append(name)
    note = f"{', '.join(caught_up)} caught up on another volume than before" if caught_up else ""
    return kept, note


def _replaced(picture: Picture) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Node -> the claims on record and those that its pod has, where these are others."""
    if picture.position.step in SETTLING:
        return {}
    pods = {name: picture.pod_of(name) for name in picture.position.nodes}
    return {name: (before, pod.volumes) for name, pod in pods.items()
            if pod is not None and (before := picture.volumes.get(name)) and pod.volumes != before}


def _controllers_among(picture: Picture, replaced: Mapping[str, object]) -> list[str]:
    return [name for name in replaced if name in picture.controllers]


def _is_majority(picture: Picture, controllers: list[str]) -> bool:
    return len(controllers) * 2 > len(picture.controllers)


def _has_caught_up(picture: Picture, name: str, pod: Pod, replaced: Mapping[str, object]) -> bool:
    if not pod.ready or pod.started_at is None or picture.now - pod.started_at < CAUGHT_UP_SECONDS:
        return False
    if name not in picture.controllers:
        return ALL_IN_SYNC.check(picture).outcome == "Pass"
    return not _is_majority(picture, _controllers_among(picture, replaced)) and QUORUM_UP.check(picture).outcome == "Pass"


VOLUMES_KEPT: Gate[Picture] = Gate("VolumesKept", check_volumes_kept)
