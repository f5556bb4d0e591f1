"""What of a pod asks for ZooKeeper by itself, whatever Kafka does: with ZooKeeper gone, such a pod never starts again."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from switchover.cluster.door.layout import waits_for_zookeeper
from switchover.cluster.ending.zookeeper_servers import hosts

_TOOLS = r"zookeeper-shell|zkCli|zkServer|zk-ready|/brokers/ids|\bruok\b"
_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


def users(template: Mapping[str, Any], connect: str) -> tuple[str, ...]:
    """Init containers, probes and hooks whose command names a server of `zookeeper.connect`, or a tool of ZooKeeper's.

    The containers' own commands are not looked at: a file or an override that names ZooKeeper is Kafka's to read, and in
    KRaft mode it does not.
    """
    named = "|".join(map(re.escape, hosts(connect)))
    asks = re.compile(rf"(?<![\w.-])({named})(?![\w-])|{_TOOLS}", re.IGNORECASE)
    return (*(who for who, words in _commands(template["spec"]) if asks.search(" ".join(map(str, words)))),
            *_entrypoints(template["spec"]))


def _entrypoints(pod: Mapping[str, Any]) -> Iterator[str]:
    for container in pod.get("containers") or ():
        if waits_for_zookeeper(container):
            yield f"the entrypoint of container {container['name']} (KAFKA_ZOOKEEPER_CONNECT)"


def _commands(pod: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[Any]]]:
    for container in pod.get("initContainers") or ():
        yield f"init container {container['name']}", (*(container.get("command") or ()), *(container.get("args") or ()))
    for container in pod.get("containers") or ():
        for probe in _PROBES:
            yield f"{probe} of container {container['name']}", _executed(container.get(probe))
        for hook in ("postStart", "preStop"):
            yield f"{hook} of container {container['name']}", _executed((container.get("lifecycle") or {}).get(hook))


def _executed(handler: Mapping[str, Any] | None) -> Sequence[Any]:
    return ((handler or {}).get("exec") or {}).get("command") or ()
