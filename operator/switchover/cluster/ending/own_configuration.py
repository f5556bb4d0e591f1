"""What a broker would run with by a configuration of the user's own, compared with what it runs with by its edits.

Asked is what decides whether it comes back as the same broker: its id, quorum, listeners, disks and who may do what. Values
are compared as Kafka 3.9 reads them, with its defaults (docs/facts/hand-over.md).
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from posixpath import normpath

from switchover.api.kafka_migration import StartPreset
from switchover.cluster.door.brokers import LAYOUTS, PROTOCOL_MAP, between_brokers, protocols
from switchover.cluster.modes import DEFAULT_PROTOCOL_MAP, MIGRATION_FLAG
from switchover.network.addresses import canonical, is_an_ip
from switchover.text.visible import shown

# --- own settings ---------------------------------------------------------------------------------------------------------
# What a configuration of the user's own must say for the brokers to run on KRaft without Switchover's edits.
#
# It is read off the edits of the mode KRaft, for `switchover export`: HandOver rolls the brokers to a template that has it.

PREFIXES = {StartPreset.CONFLUENT: "KAFKA_", StartPreset.BITNAMI: "KAFKA_CFG_"}
"""What the variables of images begin with that make properties of them."""


def lines(edits: Mapping[str, str], script: str, cluster_id: str) -> Iterator[str]:
    """Of the edits of each pod in the mode KRaft, which are the same but for the node's id. `script` shows whose image it
    is."""
    preset = next((preset for preset, layout in LAYOUTS.items() if layout.script == script), None)
    prefix = PREFIXES.get(preset) if preset is not None else None
    own = {pod: dict(_settings(text)) for pod, text in edits.items()}
    first = next(iter(edits.values()), "")
    for key in dict.fromkeys(key for settings in own.values() for key in settings):
        values = {pod: settings[key] for pod, settings in own.items() if key in settings}
        each = ", ".join(f"{pod} {value}" for pod, value in values.items())
        wanted = f": {each}" if len(set(values.values())) > 1 else f"={next(iter(values.values()))}"
        yield f"{key}{wanted}{_variable(key, prefix)}"
    for directive in first.split("\n"):
        operation, _, rest = directive.partition(" ")
        given = rest.split(" ")
        if operation == "join":
            yield f"{given[0]}: add {given[1]}; where it is not set, to {given[2]}{_variable(given[0], prefix)}"
        elif operation == "swap":
            yield f"{given[0]}={given[2]} where it is {given[1]}{_variable(given[0], prefix)}"
        elif operation == "copy":
            yield f"{given[0]}: as {given[1]} was, where it is not set{_variable(given[0], prefix)}"
    if dropped := [directive.partition(" ")[2] for directive in first.split("\n") if directive.startswith("drop ")]:
        yield f"and without: {', '.join(f'{key}*' if key.endswith('.') else key for key in dropped)}"
    if preset is StartPreset.CONFLUENT:
        yield f"CLUSTER_ID={cluster_id} as a variable, which the image formats with"
    elif preset is StartPreset.BITNAMI:
        yield "with Bitnami's chart set its values, not these variables: docs/charts/bitnami.md"


def _settings(text: str) -> Iterator[tuple[str, str]]:
    for directive in text.split("\n"):
        if directive.startswith("set "):
            key, _, value = directive.removeprefix("set ").partition("=")
            yield key, shown(key, value)


def _variable(key: str, prefix: str | None) -> str:
    """As images read it: a dot is an underscore."""
    return f"   ({prefix}{key.replace('.', '_').upper()})" if prefix else ""


Settings = Mapping[str, str]

VOTERS, BOOTSTRAP = "controller.quorum.voters", "controller.quorum.bootstrap.servers"
CONTROLLERS = "controller.listener.names"
LISTENERS, ADVERTISED = "listeners", "advertised.listeners"
AS_NOW = {
    "authorizer.class.name": "",
    "sasl.mechanism.controller.protocol": "GSSAPI",
    "sasl.mechanism.inter.broker.protocol": "GSSAPI",
}
"""Keys whose value must be what it is now -> Kafka's default."""
KEYS = ("process.roles", "node.id", "broker.id", VOTERS, BOOTSTRAP, CONTROLLERS, LISTENERS, ADVERTISED, PROTOCOL_MAP,
        "inter.broker.listener.name", "security.inter.broker.protocol", "log.dirs", "log.dir", "metadata.log.dir",
        MIGRATION_FLAG, *AS_NOW)
"""All that is compared; none of them holds a secret."""
_LISTENER = re.compile(r"(?P<name>[^:/,]+)://(?P<host>\[[^\]]*\]|[^:,]*):(?P<port>\d+)")


@dataclass(frozen=True, slots=True)
class Difference:
    """A key that would differ: what reaches Kafka, and what it must be, as a message says it."""

    key: str
    found: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.key} is {self.found or 'not set'}, and must {self.wanted}"


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker as it runs now: its pod and id, the addresses of the pod, which no other pod has, and its settings."""

    pod: str
    node_id: int
    addresses: Collection[str]
    settings: Settings


def log_dirs(settings: Settings) -> tuple[str, ...]:
    """Where a broker has its data."""
    listed = settings.get("log.dirs") or settings.get("log.dir") or "/tmp/kafka-logs"
    return tuple(normpath(each.strip()) for each in listed.split(",") if each.strip())


def metadata_dir(settings: Settings) -> str:
    """Where it has the metadata log."""
    return normpath(settings.get("metadata.log.dir", "").strip() or log_dirs(settings)[0])


def differences(found: Settings, broker: Broker) -> tuple[Difference, ...]:
    """In what a broker that is started with `found` would not be what it is now."""
    found = {key: value.strip() for key, value in found.items()}
    return tuple(each for check in (_identity, _quorum, _listeners, _directories, _as_now) for each in check(found, broker))


def _identity(found: Settings, broker: Broker) -> Iterator[Difference]:
    if (roles := found.get("process.roles", "")) != "broker":
        yield Difference("process.roles", roles, "be broker")
    ids = {key: found[key] for key in ("node.id", "broker.id") if key in found}     # either is enough
    for key, value in (ids or {"node.id": ""}).items():
        if value != str(broker.node_id):
            yield Difference(key, value, f"be {broker.node_id}, the id of {broker.pod}")
    if found.get(MIGRATION_FLAG, "false").lower() != "false":
        yield Difference(MIGRATION_FLAG, found[MIGRATION_FLAG], "not be set: the migration has ended")


def _quorum(found: Settings, broker: Broker) -> Iterator[Difference]:
    voters, wanted = found.get(VOTERS, ""), broker.settings.get(VOTERS, "")
    if not _same_voters(voters, wanted):
        instead = f" ({BOOTSTRAP} in its place leaves this cluster without a leader)" if found.get(BOOTSTRAP) else ""
        yield Difference(VOTERS, voters, f"be {wanted}{instead}")
    if _names(found.get(CONTROLLERS, "")) != _names(broker.settings.get(CONTROLLERS, "")):
        yield Difference(CONTROLLERS, found.get(CONTROLLERS, ""), f"be {broker.settings.get(CONTROLLERS, '')}")


def _same_voters(one: str, other: str) -> bool:
    """Of the same ids, at the same ports, by names that lead to the same pod: POD.SERVICE, however much follows."""
    left, right = (dict(_voter(each) for each in voters.split(",")) for voters in (one, other))
    return left.keys() == right.keys() and all(
        left[node][1] == right[node][1] and _leads_there(left[node][0], right[node][0]) for node in left)


def _voter(voter: str) -> tuple[str, tuple[str, str]]:
    node, _, address = voter.strip().partition("@")
    host, _, port = address.rpartition(":")
    return node, (host.lower(), port)


def _leads_there(one: str, other: str) -> bool:
    short, long = sorted((one.rstrip(".").split("."), other.rstrip(".").split(".")), key=len)
    return one == other or (len(short) > 1 and long[:len(short)] == short)


def _listeners(found: Settings, broker: Broker) -> Iterator[Difference]:
    now = broker.settings
    ports, advertised, theirs = _listen(now), _advertise(now), _advertise(found)
    raw = found.get(LISTENERS, "")
    if missing := {name: port for name, port in ports.items() if _listen(found).get(name) != port}:
        yield Difference(LISTENERS, raw, f"have {', '.join(f'{name} on port {port}' for name, port in missing.items())}")
    for name, (host, port) in advertised.items():
        there = theirs.get(name)
        if there is None or there[1] != port or not _same_host(there[0], host, broker.addresses):
            yield Difference(f"what is advertised for {name}", f"{there[0]}:{there[1]}" if there else "",
                             f"be {host}:{port}, where its clients find it now")
    yield from _protocols(found, now)
    if between_brokers(found).upper() != (wanted := between_brokers(now).upper()):
        yield Difference("inter.broker.listener.name", found.get("inter.broker.listener.name", ""), f"be {wanted}")


def _protocols(found: Settings, now: Settings) -> Iterator[Difference]:
    """Whatever Kafka listens on or calls has a protocol, and the one that it has now."""
    named = (*_listen(found), *_advertise(found), *_names(found.get(CONTROLLERS, "")))
    theirs, ours = _map(found), _map(now)
    missing = [f"{name}:{ours.get(name, 'a protocol')}" for name in dict.fromkeys(named)
               if name not in theirs or theirs[name] != ours.get(name, theirs[name])]
    if missing:
        yield Difference(PROTOCOL_MAP, found.get(PROTOCOL_MAP, ""), f"have {','.join(missing)}")


def _directories(found: Settings, broker: Broker) -> Iterator[Difference]:
    now = broker.settings
    if {*log_dirs(found)} != {*log_dirs(now)}:
        yield Difference("log.dirs", ",".join(log_dirs(found)), f"be {','.join(log_dirs(now))}, where its data is")
    elif metadata_dir(found) != metadata_dir(now):
        yield Difference("metadata.log.dir", metadata_dir(found), f"be {metadata_dir(now)}, where its metadata log is")


def _as_now(found: Settings, broker: Broker) -> Iterator[Difference]:
    for key, default in AS_NOW.items():
        wanted = broker.settings.get(key, default)
        if found.get(key, default) != wanted:
            yield Difference(key, found.get(key, ""), f"be {wanted}" if wanted else "not be set")


# --- as Kafka reads them ------------------------------------------------------------------------------------------------


def _names(listed: str) -> tuple[str, ...]:
    return tuple(sorted(each.strip().upper() for each in listed.split(",") if each.strip()))


def _endpoints(listed: str) -> dict[str, tuple[str, str]]:
    """By name, which Kafka reads in capitals."""
    return {each["name"].strip().upper(): (each["host"].strip("[]").lower(), each["port"])
            for each in _LISTENER.finditer(listed)}


def _listen(settings: Settings) -> dict[str, str]:
    return {name: port for name, (_, port) in _endpoints(settings.get(LISTENERS) or "PLAINTEXT://:9092").items()}


def _advertise(settings: Settings) -> dict[str, tuple[str, str]]:
    """What is advertised of it: what it listens on, where nothing else is said."""
    controllers = _names(settings.get(CONTROLLERS, ""))
    listed = settings.get(ADVERTISED) or settings.get(LISTENERS) or "PLAINTEXT://:9092"
    return {name: endpoint for name, endpoint in _endpoints(listed).items() if name not in controllers}


def _same_host(found: str, now: str, addresses: Collection[str]) -> bool:
    """An empty one is the pod's own name, and its own address is another with each restart."""
    return found == now or not now or (is_an_ip(now) and canonical(now) in addresses and is_an_ip(found))


def _map(settings: Settings) -> dict[str, str]:
    """Where it is not set, a controllers' listener is PLAINTEXT, unless something encrypts or authenticates."""
    setting = settings.get(PROTOCOL_MAP)
    found = protocols(setting or DEFAULT_PROTOCOL_MAP)
    controllers = _names(settings.get(CONTROLLERS, ""))
    if not setting and {*controllers, *_listen(settings)}.isdisjoint(found.keys() - {"PLAINTEXT"}):
        found |= dict.fromkeys((each for each in controllers if each != "PLAINTEXT"), "PLAINTEXT")
    return found
