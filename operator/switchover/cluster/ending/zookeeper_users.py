"""What in a pod asks for ZooKeeper by itself, whatever Kafka does (once ZooKeeper is gone it never starts again), and where
ZooKeeper's servers run."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from switchover.answers.observed import Known
from switchover.cluster.door.brokers import waits_for_zookeeper
from switchover.cluster.picture import Picture
from switchover.text.command import kubectl

_TOOLS = r"zookeeper-shell|zkCli|zkServer|zk-ready|/brokers/ids|\bruok\b"
_SEEMS = r"zookeeper|(?<![a-z])zk(?![a-z])"
"""What a name of ZooKeeper's mostly has in it, whatever alias or variable it is."""
_KAFKAS = re.compile(
    r"\bzookeeper\.(connect|connection|session|sync|set|max|metadata|ssl|sasl|client)\b[\w.]*", re.IGNORECASE)
"""Kafka's own settings, and the client's: whoever writes them into a file asks nobody."""
_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


def users(template: Mapping[str, Any], connect: str) -> tuple[str, ...]:
    """Init containers, probes and hooks whose command names a server of `zookeeper.connect`, or a tool of ZooKeeper's.

    The containers' own commands are not looked at: a file or an override that names ZooKeeper is Kafka's to read, and in
    KRaft mode it does not.
    """
    named = "|".join(map(re.escape, hosts(connect)))
    asks = re.compile(rf"(?<![\w.-])({named})(?![\w-])|{_TOOLS}", re.IGNORECASE)
    return (*(who for who, _, command in _named(template["spec"]) if asks.search(" ".join(map(str, command)))),
            *_entrypoints(template["spec"]))


def suspects(template: Mapping[str, Any], connect: str, kafka: str) -> tuple[str, ...]:
    """What seems to ask for it and is none of `users`: an init container, a sidecar, probe or hook that has in its command
    or its variables a word such as ZooKeeper's names have, or its port. `kafka` is the container that runs Kafka, of which
    the command and variables are Kafka's to read.
    """
    pod, known = template["spec"], users(template, connect)
    ports = {server.rpartition(":")[2] for server in connect.partition("/")[0].split(",")}
    seems = re.compile(rf"{_SEEMS}|(?<![\w.])({'|'.join(map(re.escape, sorted(ports)))})(?![\w.])", re.IGNORECASE)
    found: list[str] = []
    for who, command, variables in _resolved(pod, kafka):
        text = " ".join((*command, *(f"{name}={value}" for name, value in variables.items())))
        if who not in known and seems.search(_KAFKAS.sub("", text)):
            found.append(who)
    return tuple(found)


def _resolved(pod: Mapping[str, Any], kafka: str) -> Iterator[tuple[str, Sequence[str], Mapping[str, str]]]:
    """Each command with its variables' values in it, and the variables that anything but Kafka reads."""
    own = {container["name"]: {item["name"]: str(item.get("value", "")) for item in container.get("env") or ()}
           for container in (*(pod.get("initContainers") or ()), *(pod.get("containers") or ()))}
    for who, name, command in _named(pod):
        yield who, [_expanded(str(word), own[name]) for word in command], {} if name == kafka else own[name]
    for container in pod.get("containers") or ():
        if (name := container["name"]) != kafka:
            command = (*(container.get("command") or ()), *(container.get("args") or ()))
            yield f"container {name}", [_expanded(str(word), own[name]) for word in command], own[name]


def _expanded(word: str, variables: Mapping[str, str]) -> str:
    """With $(NAME), ${NAME} and $NAME as they are set; what is not stays, since its name may tell."""
    return re.sub(r"\$(?:\((\w+)\)|\{(\w+)[^}]*\}|(\w+))",
                  lambda at: f"{at[0]} {variables.get(at[1] or at[2] or at[3], '')}".rstrip(), word)


def _entrypoints(pod: Mapping[str, Any]) -> Iterator[str]:
    for container in pod.get("containers") or ():
        if waits_for_zookeeper(container):
            yield f"the entrypoint of container {container['name']} (KAFKA_ZOOKEEPER_CONNECT)"


def _named(pod: Mapping[str, Any]) -> Iterator[tuple[str, str, Sequence[Any]]]:
    """What runs a command other than the containers' own, as a message names it, its container, and the command."""
    for container in pod.get("initContainers") or ():
        name = container["name"]
        yield f"init container {name}", name, (*(container.get("command") or ()), *(container.get("args") or ()))
    for container in pod.get("containers") or ():
        name = container["name"]
        for probe in _PROBES:
            yield f"{probe} of container {name}", name, _executed(container.get(probe))
        for hook in ("postStart", "preStop"):
            yield f"{hook} of container {name}", name, _executed((container.get("lifecycle") or {}).get(hook))


def _executed(handler: Mapping[str, Any] | None) -> Sequence[Any]:
    return ((handler or {}).get("exec") or {}).get("command") or ()


# --- zookeeper servers ----------------------------------------------------------------------------------------------------
# Which StatefulSets of ZooKeeper stand behind `zookeeper.connect`, and the commands that stop and start them.

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
    known, service = picture.facts.zookeeper_sets, _service(host, picture.namespace)
    if isinstance(known, Known) and service in known.value:
        yield from ((picture.namespace, name, False) for name in known.value[service])
    elif (pod := _POD.fullmatch(host.lower())) is not None:
        yield pod["namespace"] or picture.namespace, pod["set"], True
