"""Label selectors as the Kubernetes API has them."""

import re
from collections.abc import Mapping
from typing import Any

POD_NAME = "statefulset.kubernetes.io/pod-name"
"""A label that each pod of a StatefulSet has, and its template has not."""


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Does a label selector match? One that is absent matches nothing, an empty one everything (policy/v1)."""
    if selector is None:
        return False
    equal = all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
    return equal and all(_meets(rule, labels) for rule in selector.get("matchExpressions") or ())


def required(selector: Mapping[str, Any] | None) -> Mapping[str, str]:
    """Labels that all it matches carry: by these a collection is asked for, where what matches is a small part of it."""
    return (selector or {}).get("matchLabels") or {}


def leads_to(service: Mapping[str, Any], stateful_set: Mapping[str, Any]) -> bool:
    """Does a Service select pods of a StatefulSet, whether there are some or not? One without a selector selects none."""
    wanted = dict(service["spec"].get("selector") or {})
    pod = wanted.pop(POD_NAME, "")
    name, template = stateful_set["metadata"]["name"], stateful_set["spec"]["template"]
    labels = (template.get("metadata") or {}).get("labels") or {}
    own = re.fullmatch(rf"{re.escape(name)}-\d+", pod) is not None if pod else bool(wanted)
    return own and wanted.items() <= labels.items()


def keys(selector: Mapping[str, Any] | None) -> frozenset[str]:
    """The labels that it looks at."""
    found = selector or {}
    return frozenset((*(found.get("matchLabels") or {}), *(rule["key"] for rule in found.get("matchExpressions") or ())))


def _meets(rule: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(rule["key"]), rule.get("values") or ()
    match rule["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case _:  # DoesNotExist
            return value is None
