"""Addresses: one spelling for each IP address, and names as whoever wrote them means them."""

import re
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


_POD = re.compile(r"[a-z0-9-]+-[0-9]+")


def looked_up(host: str, namespace: str) -> str:
    """The name under which a host is found from another namespace than this one, where somebody wrote it.

    A Service of that namespace, and a pod behind one, get it; a name that says where it belongs stays, and an address does.
    """
    service, _, rest = host.partition(".")
    if not namespace or host.endswith(".") or ":" in host or canonical(host) != host or service in ("", "localhost"):
        return host
    is_pod = rest not in ("", namespace) and "." not in rest and _POD.fullmatch(service)
    return f"{host}.{namespace}.svc" if not rest or is_pod else host


@dataclass(frozen=True, slots=True)
class Address:
    """Where a Kafka node or ZooKeeper server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
