"""How to reach Kafka and ZooKeeper, and where credentials may go: to the servers that their own Secret names, and encrypted
unless the spec accepts otherwise.

Whoever may create a migration names both the Secret and the servers; whoever owns the Secret says which servers it is for
(docs/decisions/0011-credentials.md).
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from switchover.answers.errors import Refused
from switchover.api.meta import AcceptedRisk
from switchover.network.addresses import Address
from switchover.text.command import kubectl

KAFKA, ZOOKEEPER = "bootstrap.servers", "zookeeper.connect"
"""The key of a Secret that names the servers it is for."""
_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?"
_SERVER = re.compile(rf"(?P<host>(\*\.)?{_LABEL}(\.{_LABEL})*\.?|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{{1,5}}))?")
_A_POD = re.compile(r"[a-z0-9.-]+-[0-9]+")


class Unusable(ValueError):
    """The Secret cannot be used as it is; says why, without any of its values but the servers that it names."""


@dataclass(frozen=True, slots=True)
class AllowedServers:
    """The servers that a Secret names: (host, port), where host may begin with `*.` for one label, and no port means any.

    None: no Secret, or a file of the user's own, whose servers are named on the same command line.
    """

    servers: tuple[tuple[str, int | None], ...] | None = None
    secret: str = ""
    namespace: str = ""
    key: str = ""

    def why_not(self, wanted: Iterable[Address]) -> str:
        """Which of these servers are not named, and how the Secret's owner names them; empty when all are."""
        if self.servers is None:
            return ""
        missing = dict.fromkeys(_suggested(server) for server in wanted if not self._names(server))
        if not missing:
            return ""
        named = ",".join([*(_written(*server) for server in self.servers), *missing])
        patch = kubectl(self.namespace, "patch secret {} --patch {}", self.secret, {"stringData": {self.key: named}})
        return (f"Secret {self.secret} does not name {', '.join(missing)} in its key {self.key}, so its credentials are not"
                f" sent there; if they may be: {patch}")

    def _names(self, server: Address) -> bool:
        host = _plain(server.host)
        return any(port in (None, server.port) and pattern in (host, f"*.{host.partition('.')[2]}")
                   for pattern, port in self.servers or ())


ANYWHERE = AllowedServers()


def allowed_servers(secret: str, namespace: str, properties: Mapping[str, str], key: str) -> AllowedServers:
    """What the Secret names. Raises Unusable for what is no server."""
    entries = [entry.strip() for entry in properties.get(key, "").partition("/")[0].split(",") if entry.strip()]
    found = [_SERVER.fullmatch(entry) for entry in entries]
    if not all(found):
        raise Unusable(f"{key} is not made of host:port pairs, separated by commas, such as kafka:9092,*.kafka:9092")
    return AllowedServers(tuple((_plain(match["host"]), int(match["port"]) if match["port"] else None)
                                for match in found if match), secret, namespace, key)


def check_encrypted(properties: Mapping[str, str], accepted: Collection[AcceptedRisk]) -> None:
    """Raises Unusable where these client properties send a password unencrypted, and nobody has accepted that."""
    if (password := _in_clear(properties)) and AcceptedRisk.PASSWORDS_IN_CLEAR not in accepted:
        raise Unusable(f"{password} would travel unencrypted; encrypt the connection, or accept it by name:"
                       f" spec.acceptedRisks: [{AcceptedRisk.PASSWORDS_IN_CLEAR}]")


def _in_clear(properties: Mapping[str, str]) -> str:
    if properties.get("sasl.mechanism") == "PLAIN" and properties.get("security.protocol", "").upper() == "SASL_PLAINTEXT":
        return "the password of PLAIN (security.protocol SASL_PLAINTEXT)"
    if properties.get("zookeeper.digest") and properties.get("zookeeper.ssl.client.enable", "").strip().lower() != "true":
        return "zookeeper.digest (zookeeper.ssl.client.enable is not true)"
    return ""


def checks_hosts(properties: Mapping[str, str]) -> bool:
    """Whether a server must have a certificate for its own name, wherever there is TLS."""
    return all(properties.get(f"{prefix}ssl.endpoint.identification.algorithm", "https").strip()
               for prefix in ("", "zookeeper."))


def _plain(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()


def _written(host: str, port: int | None) -> str:
    return (f"[{host}]" if ":" in host else host) + (f":{port}" if port is not None else "")


def _suggested(server: Address) -> str:
    """A pod by the Service of its StatefulSet, for pods come and go; any other server by its name."""
    host = _plain(server.host)
    pod, _, service = host.partition(".")
    inside = service and ("." not in service or "svc" in service.split("."))
    return _written(f"*.{service}" if inside and _A_POD.fullmatch(pod) else host, server.port)


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a Kafka cluster or ZooKeeper: address list and the client properties of the credentials Secret.

    A server that another one named gets the credentials only if `allowed` has it. `search` is where names are sought
    (network/addresses.py), empty where they were written for the namespace that we run in.
    """

    servers: str
    properties: Mapping[str, str] = field(default_factory=dict)
    allowed: AllowedServers = ANYWHERE
    search: tuple[str, ...] = ()

    def __repr__(self) -> str:                     # secrets never reach a log
        return f"Access({self.servers!r})"

    @property
    def addresses(self) -> Sequence[Address]:
        """The servers of the list, in their order. Raises Refused for what is none."""
        found = []
        for server in self.servers.partition("/")[0].split(","):
            host, _, port = server.strip().rpartition(":")
            if not host or not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
                raise Refused(f"server {server.strip()!r} is not of the form HOST:PORT")
            try:
                found.append(Address(host.removeprefix("[").removesuffix("]"), int(port)))
            except ValueError as error:
                raise Refused(f"server {server.strip()!r}: {error}") from None
        return found
