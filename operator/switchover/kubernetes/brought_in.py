"""What the change of a pod template brings into pods that whoever installed Switchover has to allow.

By annotations and labels others give pods volumes, Secrets, networks and rights: webhooks, runtimes, cloud identities. Which
do so is known to whoever runs the cluster, and to no list. The rest leads out of the pod: to ports of the node, to names
that stand for other addresses, to servers that the kubelet asks, to nodes that are set aside.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Template = Mapping[str, Any]

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
HOOKS = ("postStart", "preStop")


def brought_in(before: Template, after: Template) -> dict[str, tuple[str, ...]]:
    """By the chart's value (`allow.annotations` and so on) what that would have to name, without what was there before."""
    return {
        **{field: _changed(_object(before, "metadata", field), _object(after, "metadata", field))
           for field in ("annotations", "labels")},
        "pods": tuple(name for name, found in PODS.items()
                      if any(item not in [*found(before)] for item in found(after)))}


def _changed(before: Template, after: Template) -> tuple[str, ...]:
    return tuple(key for key in {**before, **after} if key not in before or key not in after or before[key] != after[key])


def _object(value: Any, *fields: str) -> Template:
    for field in fields:
        value = value.get(field) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _items(value: Any) -> Iterator[Template]:
    """What is no list of objects the API server refuses."""
    yield from (each for each in value if isinstance(each, Mapping)) if isinstance(value, list) else ()


def _containers(template: Template) -> Iterator[Template]:
    for field in ("initContainers", "containers"):
        yield from _items(_object(template, "spec").get(field))


def _host_ports(template: Template) -> Iterator[object]:
    ports = (port for container in _containers(template) for port in _items(container.get("ports")))
    yield from ((port["hostPort"], port.get("hostIP")) for port in ports if port.get("hostPort"))


def _probed_hosts(template: Template) -> Iterator[object]:
    for container in _containers(template):
        for handler in (*(_object(container, each) for each in PROBES),
                        *(_object(container, "lifecycle", each) for each in HOOKS)):
            yield from (host for kind in ("httpGet", "tcpSocket") if (host := _object(handler, kind).get("host")))


def _resolvers(template: Template) -> Iterator[object]:
    resolves = _object(template, "spec", "dnsConfig")
    yield from ((field, resolves[field]) for field in ("nameservers", "searches") if resolves.get(field))


PODS: Mapping[str, Callable[[Template], Iterator[object]]] = {
    "dnsConfig": _resolvers,
    "hostAliases": lambda template: _items(_object(template, "spec").get("hostAliases")),
    "hostPort": _host_ports,
    "probeHost": _probed_hosts,
    "tolerateAll": lambda template: (
        each.get("effect") or "" for each in _items(_object(template, "spec").get("tolerations"))
        if each.get("operator") == "Exists" and not each.get("key")),
}
"""What `allow.pods` may name, and where a template has it."""
