"""Where Kafka is, for commands that need no Kubernetes: given as to its own tools."""

from collections.abc import Mapping
from pathlib import Path

from switchover.answers.errors import Refused
from switchover.network.access import Access
from switchover.text import properties_file


def access_to(servers: str, file: Path | None) -> Access:
    """The cluster with the rights of those client properties. Refused when they cannot be read."""
    return Access(servers, _properties(file))


def _properties(file: Path | None) -> Mapping[str, str]:
    if file is None:
        return {}
    try:
        return properties_file.read(file)
    except properties_file.Unreadable as error:
        raise Refused(str(error)) from None
