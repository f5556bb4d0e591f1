"""How to reach Kafka and ZooKeeper, and with which credentials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from switchover.answers.errors import Refused
from switchover.network.addresses import Address
from switchover.network.credentials import ANYWHERE, AllowedServers


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
