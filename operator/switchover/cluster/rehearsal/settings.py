"""The configurations of a replica's processes: all on one host's loopback, with nothing of the user's cluster but its
metadata, so that a replica cannot claim anything but itself."""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from switchover.kafka.ports import LISTENER
from switchover.metadata.kafka_config import BROKER, CLIENT_QUOTAS, IP_QUOTAS, TOPIC, Definition, is_whole
from switchover.metadata.names import SCRAM_MECHANISMS, STANDARD_AUTHORIZER
from switchover.shared import foreign_json

FIRST_ID = 3000
TOKEN_SECRET = "switchover-rehearsal"
"""Without one Kafka does not read delegation tokens; no token of the user's is ever verified with it."""
JUTE_MAXBUFFER = 8 * 1024 * 1024
"""Bytes of ZooKeeper's largest answer."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a replica is: its directory, and its ports on a loopback address."""

    directory: str
    host: str = "127.0.0.1"
    zookeeper: int = 2181
    controller: int = 9093
    broker: int = 9092


@dataclass(frozen=True, slots=True)
class Ids:
    """Of the controller and the canary; no broker has one of them, and no assignment names it."""

    controller: int
    canary: int

    @classmethod
    def beside(cls, used: Set[int]) -> "Ids":
        """Two that nobody uses."""
        free = (number for number in range(FIRST_ID, FIRST_ID + len(used) + 2) if number not in used)
        return cls(next(free), next(free))


def zookeeper(place: Place) -> str:
    """Of a standalone server."""
    return _text({
        "dataDir": f"{place.directory}/zookeeper-data",
        "clientPort": place.zookeeper,
        "clientPortAddress": place.host,
        "tickTime": 2000,
        "maxClientCnxns": 0,
        "admin.enableServer": "false",
    })


@dataclass(frozen=True, slots=True)
class Attempt:
    """One claim: its tree lies below a chroot of its own, and its controller has a log of its own."""

    number: int
    place: Place
    ids: Ids

    @property
    def chroot(self) -> str:
        return f"/{self.number}"

    @property
    def zookeeper(self) -> str:
        """The connect string."""
        return f"{self.place.host}:{self.place.zookeeper}{self.chroot}"

    @property
    def log_dir(self) -> str:
        return f"{self.place.directory}/controller-data-{self.number}"

    def migrating(self) -> str:
        """Of the controller that claims. `password.encoder.secret` is not set: passwords are masked, in plain text."""
        return _text({
            **self._controller(),
            "zookeeper.metadata.migration.enable": "true",
            "zookeeper.connect": self.zookeeper,
            "inter.broker.listener.name": LISTENER,
        })

    def finalized(self, classes: Mapping[str, str] | None = None) -> str:
        """Of the same controller once the migration is finalized, with these settings of the brokers' own."""
        return _text({**self._controller(), **(classes or {})})

    def canary(self, classes: Mapping[str, str] | None = None) -> str:
        """Of a KRaft broker, of as little memory as one needs, with these settings of the brokers' own."""
        return _text({
            **self._common(),
            "process.roles": "broker",
            "node.id": self.ids.canary,
            "listeners": f"{LISTENER}://{self.place.host}:{self.place.broker}",
            "log.dirs": self.canary_dir,
            "log.cleaner.dedupe.buffer.size": 8 * 1024 * 1024,
            **(classes or {}),
        })

    @property
    def canary_dir(self) -> str:
        return f"{self.place.directory}/canary-data-{self.number}"

    def _controller(self) -> Mapping[str, object]:
        return {
            **self._common(),
            "process.roles": "controller",
            "node.id": self.ids.controller,
            "listeners": f"CONTROLLER://{self.place.host}:{self.place.controller}",
            "log.dirs": self.log_dir,
            "auto.leader.rebalance.enable": "false",
        }

    def _common(self) -> Mapping[str, object]:
        return {
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"{self.ids.controller}@{self.place.host}:{self.place.controller}",
            "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{LISTENER}:PLAINTEXT",
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:ANONYMOUS",
            "delegation.token.secret.key": TOKEN_SECRET,
        }


@dataclass(frozen=True, slots=True)
class Command:
    """What one process runs: a class of Kafka's or ZooKeeper's, its arguments, and the files that it reads by name."""

    main: str
    arguments: tuple[str, ...]
    heap: str
    files: Mapping[str, str] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """As run.sh reads it."""
        yield self.heap
        yield self.main
        yield from self.arguments


def _text(settings: Mapping[str, object]) -> str:
    return "".join(f"{key}={value}\n" for key, value in settings.items())


# --- mask -----------------------------------------------------------------------------------------------------------------
# No credential enters a replica: in a node of /config only the values stay that belong to a key of Kafka's own which is no
# secret. Any other gives way to one of the same form, always the same, with which Kafka does the same: it copies settings
# that it does not know as texts, and quotas as numbers. What it cannot read stays unreadable, with nothing of what it was.
#
# Kafka reads more than it writes (its fields in another order, text after a document), and so does this.

PLACEHOLDER, NUMBER = "masked", "1"
UNREADABLE = b"{"
KNOWN: Mapping[str, Collection[str]] = {
    "topics": {*TOPIC, "message.format.version"}, "brokers": BROKER, "users": CLIENT_QUOTAS, "clients": CLIENT_QUOTAS,
    "ips": IP_QUOTAS}
"""By the place below /config, the keys whose values stay."""

_USER = re.compile(r"/config/users/[^/]+")
_NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?\s*")
_KEYS = ("salt", "stored_key", "server_key")
_INT = Definition("INT")


def masked(nodes: Mapping[str, bytes | None]) -> dict[str, bytes | None]:
    """The nodes without SCRAM keys, passwords, and values of keys that Kafka does not know."""
    return {path: _node(path, data) if data and path.startswith("/config/") else data for path, data in nodes.items()}


def _node(path: str, data: bytes) -> bytes:
    """Of Kafka's node that says nothing but its version and settings; other fields nobody reads."""
    try:
        found = foreign_json.first(data)
    except ValueError:
        return UNREADABLE
    if not isinstance(found, dict):
        return json.dumps(_alike(found)).encode()
    config = found.get("config")
    if isinstance(config, dict):
        config = {key: _value(path, key, value) for key, value in config.items()}
    fields = {"version": 1, "config": config if isinstance(config, dict) else _alike(config)}
    return json.dumps({key: value for key, value in fields.items() if key in found}).encode()


def _value(path: str, key: str, value: Any) -> Any:
    if key in KNOWN.get(path.split("/")[2], ()) and not isinstance(value, list | dict):
        return value
    if _USER.fullmatch(path) and key in SCRAM_MECHANISMS.values() and isinstance(value, str):
        return _scram(value)
    return _alike(value)


def _alike(value: Any) -> Any:
    """A value of the same type; a text that is a number stays one."""
    match value:
        case bool() | None | "":
            return value
        case str():
            return NUMBER if _NUMBER.fullmatch(value) else PLACEHOLDER
        case list() | dict():
            return type(value)()
    return 1


def _scram(value: str) -> str:
    """As `ScramCredentialUtils` reads it: four fields in any order, of which the last one of a name counts."""
    items = value.rstrip(",").split(",")
    fields = dict(item.split("=", 1) for item in items if item.partition("=")[0] and "=" in item)
    try:
        keys = {name: _nothing_of(fields[name]) for name in _KEYS}
        iterations = fields["iterations"]
    except (KeyError, ValueError):
        return PLACEHOLDER
    if len(fields) != len(_KEYS) + 1 or not all("=" in item[1:] for item in items) or not is_whole(iterations, _INT):
        return PLACEHOLDER
    return ",".join(f"{name}={text}" for name, text in {**keys, "iterations": str(int(iterations))}.items())


def _nothing_of(text: str) -> str:
    """Zeros of the same length, for Base64 with or without its padding. Raises ValueError for what is not Base64."""
    padded = text if "=" in text else text + "=" * (-len(text) % 4)
    return b64encode(bytes(len(b64decode(padded, validate=True)))).decode()
