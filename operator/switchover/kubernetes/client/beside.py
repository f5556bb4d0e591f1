"""What stands beside workloads, which are budgets, claims and autoscalers, by what it is about.

A namespace with a thousand workloads has a thousand of them: each workload finds its own without a look at the others.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from switchover.kubernetes.selectors import required

Object = Mapping[str, Any]
Subject = tuple[str, str, str]
"""What something is about: a sort, and two words that tell it from others of that sort."""

ANYTHING: Subject = ("anything", "", "")
"""Of what may be about every workload."""
AUTOSCALERS = frozenset({"horizontalpodautoscalers", "scaledobjects", "verticalpodautoscalers"})
SUBJECTS = AUTOSCALERS | {"poddisruptionbudgets", "persistentvolumeclaims"}


def subject(plural: str, found: Object) -> Subject:
    """What an object of one of SUBJECTS is about; ANYTHING where that cannot be read."""
    try:
        if plural in AUTOSCALERS:
            return ("target", *_words(target(found)))
        if plural == "persistentvolumeclaims":
            return "claim", str(found["metadata"]["name"]), ""
        return next((("label", *_words(pair)) for pair in required(found["spec"].get("selector")).items()), ANYTHING)
    except (AttributeError, KeyError, TypeError):
        return ANYTHING


def target(found: Object) -> tuple[str, str]:
    """Kind and name of what an autoscaler scales: a VerticalPodAutoscaler calls it targetRef."""
    spec = found.get("spec") or {}
    named = spec.get("scaleTargetRef") or spec.get("targetRef") or {}
    return named.get("kind", "Deployment"), named.get("name", "")


def subjects(kind: str, workload: Object, pods: Iterable[Object] = ()) -> frozenset[Subject]:
    """What may be about a workload, or about one of its pods, is about one of these."""
    template = workload["spec"]["template"]
    return frozenset({
        ANYTHING, ("target", kind, workload["metadata"]["name"]),
        *(("label", key, value) for each in (template, *pods) for key, value in labels(each).items()),
        *(("claim", name, "") for name in claims(template))})


def labels(found: Object) -> Mapping[str, str]:
    """Of a pod, or of a template of pods."""
    return (found.get("metadata") or {}).get("labels") or {}


def claims(template: Object) -> frozenset[str]:
    """The names of those that its volumes are of."""
    volumes = template["spec"].get("volumes") or ()
    return frozenset(claim["claimName"] for volume in volumes if (claim := volume.get("persistentVolumeClaim")))


def _words(pair: tuple[object, object]) -> tuple[str, str]:
    return str(pair[0]), str(pair[1])
