"""What the door changes of the file that Kafka would get, as its directives: the modes without the user's file.

Nothing of that file need be known here, since the door reads it in the pod, passwords included. What must be known is asked
of the live brokers: whether their protocol version is raised, and which of their listeners use the stores of all listeners.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from switchover.core.kraft import modes
from switchover.core.kraft.modes import Voters


@dataclass(frozen=True, slots=True)
class Brokers:
    """What the edits need to know of the brokers: `raised` where their own protocol version is too old for a migration, and
    the names of the listeners that encrypt."""

    raised: bool = False
    encrypted: tuple[str, ...] = ()


def broker(mode: str, node_id: int, voters: Voters, brokers: Brokers) -> tuple[str, ...]:
    """Of a broker in mode A, R, B or C. Raises ValueError for another one."""
    raised = [_set(modes.PROTOCOL_VERSION, modes.RAISED)] if brokers.raised else []
    match mode:
        case "A":
            return ("mode A",)
        case "R":
            return ("mode R", *raised)
        case "B":
            return ("mode B", *_quorum(voters, brokers), *raised, _set(modes.MIGRATION_FLAG, "true"))
        case "C":
            return ("mode C", *_drop(modes.ZOOKEEPER_ONLY), *_quorum(voters, brokers), _AUTHORIZER,
                    _set("process.roles", "broker"), _set("node.id", str(node_id)))
    raise ValueError(f"a broker has no mode {mode!r}")


def controller(mode: str, node_id: int, voters: Voters, brokers: Brokers, log_dir: str) -> tuple[str, ...]:
    """Of a controller in mode P, F or Stopped, whose pod starts with a broker's file. Raises ValueError for another one."""
    own = (*_quorum(voters, brokers), _AUTHORIZER, _set("process.roles", "controller"), _set("node.id", str(node_id)),
           _set("listeners", f"{voters.listener.name}://:{voters.listener.port}"), _set("log.dirs", log_dir))
    match mode:
        case "Stopped":
            return ("mode Stopped",)
        case "P":
            # Controllers connect to ZooKeeper-mode brokers there; registration wants it named (KAFKA-16468).
            named = "copy inter.broker.listener.name security.inter.broker.protocol PLAINTEXT"
            return ("mode P", named, *_drop((*modes.BROKER_ONLY, "security.inter.broker.protocol")), *own,
                    _set(modes.MIGRATION_FLAG, "true"))
        case "F":
            return ("mode F", *_drop((*modes.BROKER_ONLY, *modes.MIGRATION_ONLY)), *own)
    raise ValueError(f"a controller has no mode {mode!r}")


_AUTHORIZER = f"swap authorizer.class.name {modes.ACL_AUTHORIZER} {modes.STANDARD_AUTHORIZER}"


def _quorum(voters: Voters, brokers: Brokers) -> Iterator[str]:
    listener = voters.listener
    if moved := modes.moved_stores(voters):
        for name in brokers.encrypted:
            yield from (f"copy listener.name.{name.lower()}.{key} {key}" for key in moved)
        yield from _drop(moved)
    yield _set("controller.quorum.voters", str(voters))
    yield _set("controller.listener.names", listener.name)
    yield (f"join listener.security.protocol.map {listener.name}:{listener.security_protocol}"
           f" {modes.DEFAULT_PROTOCOL_MAP}")
    yield from (_set(key, value) for key, value in sorted(listener.settings.items()))


def _drop(keys: Iterable[str]) -> Iterator[str]:
    return (f"drop {key}" for key in keys)


def _set(key: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\f", "\\f")
    return f"set {key}={escaped}"
