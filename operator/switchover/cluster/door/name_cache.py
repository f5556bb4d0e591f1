"""How long the nodes' JVMs remember names: pods get new addresses at every move (docs/decisions/0002-addresses.md).

With Java's default of 30 seconds the controller goes on calling a restarted broker at its old address for so long.
"""

from collections.abc import Mapping, Sequence
from typing import Any

VARIABLE = "JAVA_TOOL_OPTIONS"
"""The JVM itself reads it, so it works whatever an image's start script does."""
OPTIONS = "-Dsun.net.inetaddr.ttl=1"


def short(environment: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """A container's `env` with the name cache cut to a second; the user's own options stay.

    A variable that takes its value from elsewhere is left alone: what it says cannot be known here.
    """
    own = next((item for item in environment if item["name"] == VARIABLE), None)
    if own is None:
        return [*environment, {"name": VARIABLE, "value": OPTIONS}]
    if "valueFrom" in own or OPTIONS in own.get("value", ""):
        return list(environment)
    longer = {"name": VARIABLE, "value": f"{own.get('value', '')} {OPTIONS}".strip()}
    return [longer if item is own else item for item in environment]


def as_before(environment: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What `short` was given."""
    found: list[Mapping[str, Any]] = []
    for item in environment:
        own = item.get("value", "") if item["name"] == VARIABLE else ""
        if OPTIONS in own:
            left = own.replace(OPTIONS, "").strip()
            found += [{"name": VARIABLE, "value": left}] if left else []
        else:
            found.append(item)
    return found
