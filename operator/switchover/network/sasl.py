"""SASL out of the client properties of a credentials Secret: the mechanism, the JAAS login line, user and password."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from switchover.answers.errors import Refused


@dataclass(frozen=True, slots=True)
class Login:
    """A login module's full class name and its options, which may be secret."""

    module: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def simple_name(self) -> str:
        return self.module.rpartition(".")[2]

    def __str__(self) -> str:
        """The line again, secrets included."""
        options = " ".join(f"{name}={_quoted(value)}" for name, value in self.options.items())
        return f"{self.module} required {options};"


def parse(key: str, line: str) -> Login:
    """Raises ValueError, which names `key` and never the value: it is a secret."""
    form = f'{key} is not of the form: package.LoginModule required username="…" password="…";'
    try:
        module, flag, *options = shlex.split(line.strip().removesuffix(";"))
    except ValueError:                                  # too short, or a quote that never ends
        raise ValueError(form) from None
    if flag not in ("required", "requisite", "sufficient", "optional") or not all("=" in option for option in options):
        raise ValueError(form)
    return Login(module, dict(option.split("=", 1) for option in options))


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


LOGIN_MODULES = {
    "PLAIN": "PlainLoginModule", "SCRAM-SHA-256": "ScramLoginModule", "SCRAM-SHA-512": "ScramLoginModule",
}


@dataclass(frozen=True, slots=True)
class Credentials:
    """With which mechanism, and as whom."""

    mechanism: str
    username: str
    password: str = field(repr=False)


def login(key: str, line: str) -> Login:
    """`parse` for adapters: raises Refused."""
    try:
        return parse(key, line)
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
