"""What the door changes of the file that Kafka would get, as its directives.

The modes are those of docs/facts/kraft.md#configurations. To the door a mode is a letter: a marker begins with it, and must
not change while a broker runs (the table is in docs/guide/pods.md). Nothing of the user's file need be known here, since the
door reads it in the pod, passwords included.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from javaproperties import unescape

from switchover.api.kafka_migration import NodeMode
from switchover.cluster import modes
from switchover.cluster.door.brokers import PROTOCOL_MAP, SKIPPED, Brokers
from switchover.cluster.door.directives import Directive
from switchover.cluster.door.mount import DOOR
from switchover.cluster.modes import Voters
from switchover.kafka.node import MARKER
from switchover.metadata.names import STANDARD_AUTHORIZER

_set = Directive.setting


def broker(mode: str, node_id: int, voters: Voters | None, brokers: Brokers) -> tuple[Directive, ...]:
    """Of a broker in one of the modes that have edits; without the quorum only in modes.WITHOUT_QUORUM. Raises ValueError
    for another, and NotADirective.

    A newer Kafka takes its own protocol version for the one that is not set, so that of an upgraded broker is.
    """
    version = modes.RAISED if brokers.raised else brokers.version if brokers.image else ""
    held = [_set(modes.PROTOCOL_VERSION, version)] if version else []
    match mode, voters:
        case NodeMode.ZOOKEEPER, _:
            return (Directive("mode", "A"),)
        case NodeMode.ZOOKEEPER_PINNED, _:
            return (Directive("mode", "U"), _set(modes.PROTOCOL_VERSION, brokers.version))
        case NodeMode.ZOOKEEPER_RAISED, _:
            return (Directive("mode", "R"), *held)
        case NodeMode.MIGRATION, Voters():
            return (Directive("mode", "B"), *_quorum(voters, brokers), *held, _set(modes.MIGRATION_FLAG, "true"))
        case NodeMode.KRAFT, Voters():
            return (Directive("mode", "C"), *_drop(modes.ZOOKEEPER_ONLY), *_quorum(voters, brokers), _AUTHORIZER,
                    _set("process.roles", "broker"), _set("node.id", str(node_id)))
    raise ValueError(f"a broker has no mode '{mode}'")


def controller(mode: str, node_id: int, voters: Voters, brokers: Brokers, cluster_id: str,
               log_dir: str) -> tuple[Directive, ...]:
    """Of a running controller, whose pod starts as a copy of a broker's. Raises ValueError for another mode.

    A KRaft controller decides with its own copy of settings such as default.replication.factor and min.insync.replicas, so
    everything that is not a broker's alone stays.
    """
    own = (*_quorum(voters, brokers), _AUTHORIZER, _set("process.roles", "controller"), _set("node.id", str(node_id)),
           _set("listeners", f"{voters.listener.name}://:{voters.listener.port}"), _set("log.dirs", log_dir))
    begun = (Directive("format", cluster_id, brokers.release, rest=log_dir),
             Directive("names", *(address.host for _, address in sorted(voters.addresses.items()))))
    match mode:
        case NodeMode.MIGRATION_CONTROLLER:
            # Controllers connect to ZooKeeper-mode brokers there; registration wants it named (KAFKA-16468).
            named = Directive("copy", "inter.broker.listener.name", "security.inter.broker.protocol", "PLAINTEXT")
            made = (SKIPPED,) if brokers.waits else ()                 # of the variable that the controllers' pod has for it
            return (Directive("mode", "P"), *begun, named,
                    *_drop((*modes.BROKER_ONLY, "security.inter.broker.protocol", *made)), *own,
                    _set(modes.MIGRATION_FLAG, "true"))
        case NodeMode.KRAFT_CONTROLLER:
            return (Directive("mode", "F"), *begun, *_drop((*modes.BROKER_ONLY, *modes.MIGRATION_ONLY)), *own)
    raise ValueError(f"a controller has no mode '{mode}'")


STOPPED = (Directive("mode", "Stopped"),)
_AUTHORIZER = Directive("swap", "authorizer.class.name", modes.ACL_AUTHORIZER, STANDARD_AUTHORIZER)


def _quorum(voters: Voters, brokers: Brokers) -> Iterator[Directive]:
    listener = voters.listener
    if moved := modes.moved_stores(voters):
        for name in brokers.encrypted:
            if name == listener.name:                  # theirs may name it already; it has its own stores
                continue
            yield from (Directive("copy", f"listener.name.{name.lower()}.{key}", key) for key in moved)
        yield from _drop(moved)
    yield _set("controller.quorum.voters", str(voters))
    yield _set("controller.listener.names", listener.name)
    yield Directive("join", PROTOCOL_MAP, f"{listener.name}:{listener.security_protocol}", modes.DEFAULT_PROTOCOL_MAP)
    yield from (_set(key, value) for key, value in sorted(listener.settings.items()))


def _drop(keys: Iterable[str]) -> Iterator[Directive]:
    return (Directive("drop", key) for key in keys)


# --- the file of a pod ------------------------------------------------------------------------------------------------


def written(directives: Sequence[Directive]) -> str:
    """The file with these directives, and a marker that no other edits and no other script have."""
    mode, *others = directives
    digest = hashlib.sha256("\n".join((DOOR, *directives)).encode()).hexdigest()[:8]
    return "\n".join((mode, Directive("marker", f"{mode.partition(' ')[2]}.{digest}"), *others, ""))


def marker_of(file: str) -> str:
    """The marker that a process shows which was started with this file; "" when there is none."""
    return next((MARKER + line.partition(" ")[2] for line in file.split("\n") if line.startswith("marker ")), "")


def mode_of(file: str) -> NodeMode:
    """The mode that the file brings a node to; NONE where it names none of ours."""
    try:
        return NodeMode(file.partition("\n")[0].removeprefix("mode "))
    except ValueError:
        return NodeMode.NONE


def settings_of(file: str) -> Mapping[str, str]:
    """What the file sets."""
    pairs = (line.removeprefix("set ").partition("=") for line in file.split("\n") if line.startswith("set "))
    return {key: unescape(value) for key, _, value in pairs}


# --- what comes of it -------------------------------------------------------------------------------------------------


def applied(directives: Iterable[Directive], properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that the door makes of `properties`, those of the file and the command line together."""
    found = dict(properties)
    for directive in directives:
        operation, _, rest = directive.partition(" ")
        given = rest.split(" ")
        match operation:
            case "drop":
                for key in [key for key in found if key == rest or (rest.endswith(".") and key.startswith(rest))]:
                    del found[key]
            case "set":
                key, _, value = rest.partition("=")
                found[key] = unescape(value)
            case "join":
                found[given[0]] = _joined(found.get(given[0]) or " ".join(given[2:]), given[1])
            case "swap" if "".join(found.get(given[0], "").split()) == given[1]:
                found[given[0]] = given[2]
            case "copy" if given[0] not in found:
                if (value := found.get(given[1], " ".join(given[2:]))) or given[1] in found:
                    found[given[0]] = value
    return found


def _joined(listed: str, item: str) -> str:
    name = item.partition(":")[0]
    items = listed.removesuffix(",").split(",") if listed else []
    return ",".join([*(each for each in items if each.partition(":")[0].strip() != name), item])
