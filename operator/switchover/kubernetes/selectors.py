"""Label selectors as the Kubernetes API has them."""

from collections.abc import Mapping
from typing import Any


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Does a label selector match? One that is absent matches nothing, an empty one everything (policy/v1)."""
    if selector is None:
        return False
    equal = all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
    return equal and all(_meets(rule, labels) for rule in selector.get("matchExpressions") or ())


def required(selector: Mapping[str, Any] | None) -> Mapping[str, str]:
    """Labels that all it matches carry: by these a collection is asked for, where what matches is a small part of it."""
    return (selector or {}).get("matchLabels") or {}


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
