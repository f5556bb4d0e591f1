"""Client properties that a `commandConfig` names: of brokers, controllers and ZooKeeper alike."""

from collections.abc import Mapping
from pathlib import Path

from switchover.pipeline.outcome import BadConfig
from switchover.text.properties_file import Unreadable, read_file_or_secret


def properties(command_config: Path | str | None) -> Mapping[str, str]:
    """A file of client properties, as for Kafka's own tools, or a directory with a file for each, as a Secret is mounted.

    Raises BadConfig when it cannot be read.
    """
    if command_config is None:
        return {}
    try:
        return read_file_or_secret(Path(command_config))
    except Unreadable as error:
        raise BadConfig(str(error)) from None
