"""How to speak to ZooKeeper: the digest scheme, SASL and TLS, out of the properties of its credentials Secret.

* `zookeeper.digest`: `user:password` of ZooKeeper's digest scheme;
* `zookeeper.sasl.jaas.config`: a line as in a Java client's JAAS file, DigestLoginModule only (SASL DIGEST-MD5);
* `zookeeper.ssl.client.enable`: `true` for TLS, and then the names of KIP-651 behind `zookeeper.`, PEM only:
  `zookeeper.ssl.truststore.certificates`, `zookeeper.ssl.keystore.certificate.chain`, `zookeeper.ssl.keystore.key`,
  `zookeeper.ssl.key.password`, `zookeeper.ssl.endpoint.identification.algorithm` (empty: any name is accepted).
"""

import socket
import ssl
from collections.abc import Iterable, Mapping, Sequence
from select import POLLIN, POLLOUT, poll
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.security import ACL, Permissions, make_digest_acl_credential

from switchover.answers.errors import Refused
from switchover.network.credentials import ZOOKEEPER
from switchover.network.sasl import login
from switchover.network.security import tls_context

_SSL = "zookeeper.ssl."
_ENABLE = "zookeeper.ssl.client.enable"
_KEYS = frozenset({
    ZOOKEEPER, "zookeeper.digest", "zookeeper.sasl.jaas.config", _ENABLE, "zookeeper.ssl.truststore.certificates",
    "zookeeper.ssl.truststore.location", "zookeeper.ssl.keystore.location", "zookeeper.ssl.keystore.certificate.chain",
    "zookeeper.ssl.keystore.key", "zookeeper.ssl.key.password", "zookeeper.ssl.endpoint.identification.algorithm",
})


class TlsHandler(SequentialThreadingHandler):       # type: ignore[misc]
    """kazoo's threads, with connections in TLS where there is a context: kazoo itself takes keys from files only."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        super().__init__()
        self._context = context
        self.distrust = ""
        """Why the last server's certificate was not accepted; kazoo itself just goes on trying."""

    def create_connection(self, *, address: tuple[str, int], hostname: str, timeout: float, **_: Any) -> socket.socket:
        connection = socket.create_connection(address, timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._context is None:
            return connection
        try:
            secured = self._context.wrap_socket(connection, server_hostname=hostname)
        except ssl.SSLCertVerificationError as error:
            self.distrust = f"its certificate is not accepted ({error.verify_message})"
            connection.close()
            raise
        except OSError:
            connection.close()
            raise
        self.distrust = ""
        return secured

    def select(self, readable: Sequence[Any], writable: Sequence[Any], _: object, timeout: float | None = None
               ) -> tuple[list[Any], list[Any], list[Any]]:
        """kazoo's makes and closes an epoll each time, four times for a node: more than a quarter of what a tree costs."""
        waiting = poll()
        for each in readable:
            waiting.register(each, POLLIN)
        for each in writable:
            waiting.register(each, POLLOUT)
        ready = {file for file, _ in waiting.poll(None if timeout is None else timeout * 1000)}
        found = ([each for each in files if each.fileno() in ready] for files in (readable, writable))
        return next(found), next(found), []


def credentials(properties: Mapping[str, str]) -> dict[str, Any]:
    """KazooClient's arguments for the credentials. Raises Refused for a property that is malformed or not known."""
    if unknown := sorted(key for key in properties if key.startswith("zookeeper.") and key not in _KEYS):
        raise Refused(f"the credentials for ZooKeeper have {', '.join(unknown)}, which Switchover does not support")
    options: dict[str, Any] = {}
    if digest := properties.get("zookeeper.digest"):
        if ":" not in digest:
            raise Refused("zookeeper.digest in the credentials is not user:password")
        options["auth_data"] = [("digest", digest)]
    if line := properties.get("zookeeper.sasl.jaas.config"):
        found = login("zookeeper.sasl.jaas.config", line)
        if found.simple_name != "DigestLoginModule" or not {"username", "password"} <= found.options.keys():
            raise Refused("zookeeper.sasl.jaas.config must name DigestLoginModule with username and password")
        options["sasl_options"] = {
            "mechanism": "DIGEST-MD5", "username": found.options["username"], "password": found.options["password"],
        }
    return options


def tls(properties: Mapping[str, str]) -> ssl.SSLContext | None:
    """The TLS of our connections, None for plain ones. Refused where it is half asked for: never plain by accident."""
    enabled = properties.get(_ENABLE, "").strip().lower()
    if enabled not in ("", "true", "false"):
        raise Refused(f"{_ENABLE} is neither true nor false")
    given = sorted(key for key in properties if key.startswith(_SSL) and key != _ENABLE)
    if enabled == "true":
        return tls_context(properties, "zookeeper.")
    if given:
        raise Refused(f"the credentials for ZooKeeper have {given[0]}, but {_ENABLE} is not true")
    return None


EVERYTHING = frozenset({"READ", "WRITE", "CREATE", "DELETE", "ADMIN"})
_BITS = {Permissions.READ: "READ", Permissions.WRITE: "WRITE", Permissions.CREATE: "CREATE",
         Permissions.DELETE: "DELETE", Permissions.ADMIN: "ADMIN"}
_JUDGED = frozenset({"world", "digest", "sasl"})


def identities(properties: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Scheme and id of everybody whom these credentials make of us."""
    found = {("world", "anyone")}
    if digest := properties.get("zookeeper.digest"):
        user, _, password = digest.partition(":")
        found.add(("digest", make_digest_acl_credential(user, password)))
        if user == "super":
            found.add(("digest", "super"))
    if line := properties.get("zookeeper.sasl.jaas.config"):
        found.add(("sasl", login("zookeeper.sasl.jaas.config", line).options["username"]))
    return frozenset(found)


def granted(acl: Iterable[ACL], ours: frozenset[tuple[str, str]]) -> frozenset[str]:
    """The operations that the entries for one of our identities allow; ZooKeeper's `super` may do everything."""
    if ("digest", "super") in ours:
        return EVERYTHING
    bits = 0
    for entry in acl:
        if (entry.id.scheme, entry.id.id) in ours:
            bits |= entry.perms
    return frozenset(name for bit, name in _BITS.items() if bits & bit)


def unjudged(acl: Iterable[ACL]) -> tuple[str, ...]:
    """Schemes of entries of which nobody can say from here whether they mean us, such as ip and x509."""
    return tuple(sorted({entry.id.scheme for entry in acl} - _JUDGED))
