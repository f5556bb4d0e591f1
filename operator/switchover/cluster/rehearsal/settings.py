"""The configurations of a replica's processes: all on one host's loopback, with nothing of the user's cluster but its
metadata, so that a replica cannot claim anything but itself."""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field

from switchover.kafka.ports import LISTENER
from switchover.metadata.names import STANDARD_AUTHORIZER

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
