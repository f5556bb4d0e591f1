"""A login line of the Java Authentication and Authorization Service, as in `sasl.jaas.config`."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field


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
