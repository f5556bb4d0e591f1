"""Addresses: one spelling for each IP address, and names as whoever wrote them means them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address


def canonical(text: str) -> str:
    """One spelling for each address (RFC 5952), IPv4 for one that is mapped into IPv6; what is no address stays as it is."""
    try:
        found = ip_address(text)
    except ValueError:
        return text
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(mapped or found)


_NDOTS = 5
"""A name with fewer dots is sought in the search list first (docs/facts/kubernetes.md#names)."""


def search_list(resolv_conf: str, home: str, namespace: str) -> tuple[str, ...]:
    """Where a pod of the namespace looks for a name, by the resolver's configuration of a pod in `home`."""
    lists = [line.split()[1:] for line in resolv_conf.splitlines() if line.split()[:1] == ["search"]]
    own = f"{home}.svc."
    return tuple(f"{namespace}.svc.{domain.removeprefix(own)}" if domain.startswith(own) else domain
                 for domain in (lists[-1] if lists else ()))


def looked_up(host: str, search: Sequence[str]) -> tuple[str, ...]:
    """The names under which a host is sought, in their order: the first that exists is meant. Without a search list that of
    our own resolver does it.
    """
    if not search or not host or host.endswith(".") or host == "localhost" or is_an_ip(host):
        return (host,)
    found = tuple(f"{host}.{domain.rstrip('.')}." for domain in search)
    return (*found, f"{host}.") if host.count(".") < _NDOTS else (f"{host}.", *found)


def is_an_ip(host: str) -> bool:
    """Whether it is an address and no name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


_HOST = re.compile(r"[0-9A-Za-z_:.%][0-9A-Za-z_:.%-]{0,254}")
"""What Kafka takes for a host (`EndPoint.UriParseExp`), underscores and zones of IPv6 too; no dash begins one."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a Kafka node or ZooKeeper server listens. Raises ValueError for what is no host."""

    host: str
    port: int

    def __post_init__(self) -> None:
        if _HOST.fullmatch(self.host) is None:
            raise ValueError(f"{self.host[:60]!r} is no name or address of a host")

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
