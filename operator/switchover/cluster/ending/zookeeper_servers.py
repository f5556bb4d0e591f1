"""Which StatefulSets of ZooKeeper stand behind `zookeeper.connect`, and the commands that stop and start them."""

import re
from collections import Counter
from collections.abc import Iterator

from switchover.answers.observed import Known
from switchover.cluster.picture import Picture
from switchover.text.command import kubectl

_POD = re.compile(r"(?P<set>[a-z0-9.-]*[a-z0-9])-\d+\.[a-z0-9-]+(\.(?P<namespace>[a-z0-9-]+)(\.svc(\..*)?)?)?\.?")
"""The name of a StatefulSet's pod behind its Service: POD.SERVICE, with the namespace or without."""
_SERVICE = re.compile(r"(?P<service>[a-z]([a-z0-9-]*[a-z0-9])?)(\.(?P<namespace>[a-z0-9-]+)(\.svc(\..*)?)?)?\.?")


def hosts(connect: str) -> tuple[str, ...]:
    """The hosts of a connect string."""
    return tuple(server.rpartition(":")[0] or server for server in connect.partition("/")[0].split(","))


def services(connect: str, namespace: str) -> tuple[str, ...]:
    """What may be a Service of this namespace among the hosts."""
    found = (_service(host, namespace) for host in hosts(connect))
    return tuple(dict.fromkeys(name for name in found if name))


def _service(host: str, namespace: str) -> str:
    found = _SERVICE.fullmatch(host.lower())
    return found["service"] if found is not None and found["namespace"] in (None, namespace) else ""


def stop(picture: Picture) -> str:
    """The commands that scale ZooKeeper to 0."""
    return _scale(picture, "0")


def start(picture: Picture) -> str:
    """The commands that scale ZooKeeper to as many servers as are named; those behind a Service cannot be counted."""
    return _scale(picture, "")


def _scale(picture: Picture, replicas: str) -> str:
    named = hosts(picture.spec.zookeeper.connect)
    behind = [tuple(_sets(picture, host)) for host in named]
    sets = Counter(each for found in behind for each in found)
    kafka = {(picture.namespace, name) for name in (*picture.broker_sets, picture.spec.controllers.name)}
    if not all(behind) or any((namespace, name) in kafka for namespace, name, _ in sets):
        scaled = (f"{kubectl(picture.namespace, 'scale statefulset/NAME --replicas={}', replicas or 'N')}, where NAME"
                  f" is the StatefulSet behind {', '.join(named)}")
        return scaled if replicas else f"{scaled} and N the number of its servers"
    commands = " && ".join(
        kubectl(namespace, "scale statefulset/{} --replicas={}", name, replicas or (servers if counted else "N"))
        for (namespace, name, counted), servers in sets.items())
    all_counted = all(counted for _, _, counted in sets)
    return commands if replicas or all_counted else f"{commands}, where N is the number of servers of each"


def _sets(picture: Picture, host: str) -> Iterator[tuple[str, str, bool]]:
    """Namespace and name of each StatefulSet behind a host, and whether the host is one server of it."""
    told, service = picture.facts.zookeeper_sets, _service(host, picture.namespace)
    if isinstance(told, Known) and service in told.value:
        yield from ((picture.namespace, name, False) for name in told.value[service])
    elif (pod := _POD.fullmatch(host.lower())) is not None:
        yield pod["namespace"] or picture.namespace, pod["set"], True
