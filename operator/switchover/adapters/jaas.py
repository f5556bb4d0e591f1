"""A login line of the Java Authentication and Authorization Service, as in `sasl.jaas.config`."""

import shlex
from collections.abc import Mapping

from switchover.ports import Refused


def login(key: str, line: str) -> tuple[str, Mapping[str, str]]:
    """The login module's simple class name and its options. Refused names `key`, never the value: it is a secret."""
    form = f'{key} is not of the form: package.LoginModule required username="…" password="…";'
    try:
        module, flag, *options = shlex.split(line.strip().removesuffix(";"))
    except ValueError:                                  # too short, or a quote that never ends
        raise Refused(form) from None
    if flag not in ("required", "requisite", "sufficient", "optional") or not all("=" in option for option in options):
        raise Refused(form)
    return module.rpartition(".")[2], dict(option.split("=", 1) for option in options)
