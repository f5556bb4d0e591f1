"""Which StatefulSets of ZooKeeper `zookeeper.connect` tells, and the commands that stop and start them."""

import re
from collections import Counter

from switchover.cluster.picture import Picture

_POD = re.compile(r"(?P<set>[a-z0-9.-]*[a-z0-9])-\d+\.[a-z0-9-]+(\.(?P<namespace>[a-z0-9-]+)(\.svc(\..*)?)?)?\.?")
"""The name of a StatefulSet's pod behind its Service: POD.SERVICE, with the namespace or without."""


def hosts(connect: str) -> tuple[str, ...]:
    """The hosts of a connect string."""
    return tuple(server.rpartition(":")[0] or server for server in connect.partition("/")[0].split(","))


def stop(picture: Picture) -> str:
    """The commands that scale ZooKeeper to 0."""
    return _scale(picture, "0")


def start(picture: Picture) -> str:
    """The commands that scale ZooKeeper to as many servers as are named."""
    return _scale(picture, "")


def _scale(picture: Picture, replicas: str) -> str:
    named = hosts(picture.spec.zookeeper.connect)
    pods = [found for host in named if (found := _POD.fullmatch(host.lower())) is not None]
    if len(pods) < len(named):
        command = (f"kubectl --namespace {picture.namespace} scale statefulset/NAME --replicas={replicas or 'N'}, where NAME"
                   f" is the StatefulSet behind {', '.join(named)}")
        return command if replicas else f"{command} and N the number of its servers"
    sets = Counter((found["namespace"] or picture.namespace, found["set"]) for found in pods)
    return " && ".join(f"kubectl --namespace {namespace} scale statefulset/{name} --replicas={replicas or servers}"
                       for (namespace, name), servers in sets.items())
