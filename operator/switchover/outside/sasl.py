"""User and password of SASL, out of the client properties of a credentials Secret."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from switchover.outside import jaas
from switchover.outside.errors import Refused

LOGIN_MODULES = {
    "PLAIN": "PlainLoginModule", "SCRAM-SHA-256": "ScramLoginModule", "SCRAM-SHA-512": "ScramLoginModule",
}


@dataclass(frozen=True, slots=True)
class Credentials:
    """With which mechanism, and as whom."""

    mechanism: str
    username: str
    password: str = field(repr=False)


def login(key: str, line: str) -> jaas.Login:
    """`jaas.parse` for adapters: raises Refused."""
    try:
        return jaas.parse(key, line)
    except ValueError as why:
        raise Refused(str(why)) from None


def credentials(properties: Mapping[str, str]) -> Credentials:
    """`sasl.mechanism` and `sasl.jaas.config`. Raises Refused, naming the property and what it must be."""
    mechanism = properties.get("sasl.mechanism", "")
    if mechanism not in LOGIN_MODULES:
        raise Refused(f"sasl.mechanism {mechanism or '(absent)'} is none of {', '.join(LOGIN_MODULES)}")
    found = login("sasl.jaas.config", properties.get("sasl.jaas.config", ""))
    if found.simple_name != LOGIN_MODULES[mechanism] or not {"username", "password"} <= found.options.keys():
        raise Refused(f"sasl.jaas.config must name {LOGIN_MODULES[mechanism]} with username and password "
                      f"for sasl.mechanism {mechanism}")
    return Credentials(mechanism, found.options["username"], found.options["password"])
