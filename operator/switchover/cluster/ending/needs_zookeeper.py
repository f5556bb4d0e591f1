"""What of a pod asks for ZooKeeper by itself, whatever Kafka does: with ZooKeeper gone, such a pod never starts again."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from switchover.cluster.door.layout import waits_for_zookeeper
from switchover.cluster.ending.zookeeper_servers import hosts

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
    return (*(who for who, _, words in _named(template["spec"]) if asks.search(" ".join(map(str, words)))),
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
    for who, words, variables in _resolved(pod, kafka):
        text = " ".join((*words, *(f"{name}={value}" for name, value in variables.items())))
        if who not in known and seems.search(_KAFKAS.sub("", text)):
            found.append(who)
    return tuple(found)


def _resolved(pod: Mapping[str, Any], kafka: str) -> Iterator[tuple[str, Sequence[str], Mapping[str, str]]]:
    """Each command with its variables' values in it, and the variables that somebody else than Kafka reads."""
    own = {container["name"]: {item["name"]: str(item.get("value", "")) for item in container.get("env") or ()}
           for container in (*(pod.get("initContainers") or ()), *(pod.get("containers") or ()))}
    for who, name, words in _named(pod):
        yield who, [_expanded(str(word), own[name]) for word in words], {} if name == kafka else own[name]
    for container in pod.get("containers") or ():
        if (name := container["name"]) != kafka:
            words = (*(container.get("command") or ()), *(container.get("args") or ()))
            yield f"container {name}", [_expanded(str(word), own[name]) for word in words], own[name]


def _expanded(word: str, variables: Mapping[str, str]) -> str:
    """With $(NAME), ${NAME} and $NAME as they are set; what is not stays, since its name may tell."""
    return re.sub(r"\$(?:\((\w+)\)|\{(\w+)[^}]*\}|(\w+))",
                  lambda at: f"{at[0]} {variables.get(at[1] or at[2] or at[3], '')}".rstrip(), word)


def _entrypoints(pod: Mapping[str, Any]) -> Iterator[str]:
    for container in pod.get("containers") or ():
        if waits_for_zookeeper(container):
            yield f"the entrypoint of container {container['name']} (KAFKA_ZOOKEEPER_CONNECT)"


def _named(pod: Mapping[str, Any]) -> Iterator[tuple[str, str, Sequence[Any]]]:
    """What runs a command beside the containers' own, in words, its container, and the command."""
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
