"""What our own pods ask of a node by default, in a namespace whose quota wants each container to say it."""

from collections.abc import Mapping
from typing import Any

COUNTED = ("cpu", "memory", "ephemeral-storage")
"""What a ResourceQuota refuses a pod for that does not say it (quota/v1/evaluator/core/pods.go)."""


def as_counted(default: Mapping[str, Mapping[str, Any]], kafka: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The default, and of what it leaves out what the brokers' container `kafka` says.

    We limit no CPU by ourselves: it would hold a controller back that has to answer. Where a quota counts limits.cpu the
    brokers have such a limit, or were not admitted; theirs is enough for a controller.
    """
    theirs = kafka.get("resources") or {}
    return {kind: {**{name: value for name, value in (theirs.get(kind) or {}).items() if name in COUNTED}, **own}
            for kind, own in default.items()}
