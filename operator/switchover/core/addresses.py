"""IP addresses as addresses: Java, Go and people write the same one in different ways."""

from ipaddress import IPv6Address, ip_address


def canonical(text: str) -> str:
    """One spelling for each address (RFC 5952), IPv4 for one that is mapped into IPv6; what is no address stays as it is."""
    try:
        found = ip_address(text)
    except ValueError:
        return text
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(mapped or found)
