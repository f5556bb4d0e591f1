"""Which of a Deployment's pods leave first: those whose partitions are worth the least.

Of one ReplicaSet the pods that are not Ready leave first, then those of the lower `pod-deletion-cost`
(docs/facts/deployments.md). So those that are to leave are marked with the lowest cost that there is, in a pass before their
number falls. The cost is the mark: what is on the pods says who was chosen. It is taken off again of a pod that stayed.

Who has costs of his own on some pod chooses himself: nothing is marked then.
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from switchover.answers.observed import Known
from switchover.engine.effects import Patch
from switchover.groups.picture import Picture
from switchover.kubernetes.json_patch import annotation, as_read
from switchover.kubernetes.members import COST, MemberPod, MemberWorkload
from switchover.lag.group import TopicPartition

_PATH = annotation(COST)
FIRST = "-2147483648"
"""The lowest cost that Kubernetes reads (pkg/apis/core/helper: 32 bits)."""

Worth = Mapping[str, tuple[float, int]]
"""By the pod's name: records that its partitions have not committed, and how many partitions; of no pod that nobody can tell
it of."""


def worth(picture: Picture, source: MemberWorkload) -> Worth:
    """What each pod's partitions had not committed, summed up over all sweeps that are known, and how many they are. One on
    which nobody has committed counts for more than any. Nothing while the coordinator tells of no partition whose it is.
    """
    owned = {pod.name: picture.owned_by(pod) for pod in source.pods.values()}
    if not isinstance(picture.facts.samples, Known) or not any(owned.values()):
        return {}
    waiting: dict[TopicPartition, float] = defaultdict(float)
    for sample in picture.facts.samples.value:
        for partition, (committed, end) in sample.offsets.items():
            waiting[partition] += math.inf if committed is None and end else end - (committed or 0)
    return {pod: (sum(waiting[each] for each in partitions), len(partitions)) for pod, partitions in owned.items()}


def is_marked(pod: MemberPod) -> bool:
    return pod.cost == FIRST


def chosen(workload: MemberWorkload, leave: int, worth: Worth) -> tuple[Patch, ...]:
    """Marks for as many pods of templates before as will leave and are not marked yet; none where all leave, or where nobody
    can tell what they are worth.
    """
    before = [pod for _, pod in sorted(workload.pods.items())
              if pod.revision != workload.update_revision and not pod.terminating]
    theirs = any(pod.cost and not is_marked(pod) for pod in before)
    if leave >= len(before) or theirs or not worth.keys() >= {pod.name for pod in before if pod.ready}:
        return ()
    by_themselves = sum(is_marked(pod) or not pod.ready for pod in before)
    free = sorted((pod for pod in before if pod.ready and not is_marked(pod)), key=lambda pod: worth[pod.name])
    return tuple(_mark(pod) for pod in free[: max(0, leave - by_themselves)])


def spared(workload: MemberWorkload, *, all_left: bool = True) -> tuple[Patch, ...]:
    """The marks taken off pods that stay: of the template as it is now, and once `all_left` that were to, of any."""
    return tuple(_unmark(pod) for _, pod in sorted(workload.pods.items()) if is_marked(pod) and not pod.terminating
                 and (all_left or pod.revision == workload.update_revision))


def _mark(pod: MemberPod) -> Patch:
    if pod.annotated:
        return _patch(pod, {"op": "add", "path": _PATH, "value": FIRST}, "among the first to leave")
    return _patch(pod, {"op": "add", "path": "/metadata/annotations", "value": {COST: FIRST}}, "among the first to leave")


def _unmark(pod: MemberPod) -> Patch:
    return _patch(pod, {"op": "remove", "path": _PATH}, "leaves no sooner than others")


def _patch(pod: MemberPod, operation: Mapping[str, Any], purpose: str) -> Patch:
    return Patch("v1", "Pod", pod.name, (*as_read(pod.uid, pod.resource_version), operation), purpose)
