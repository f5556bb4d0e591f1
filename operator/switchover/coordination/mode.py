"""The mode znode of KIP-125: who coordinates a group whose members are all migration-enabled."""

from enum import StrEnum


class Mode(StrEnum):
    """Its data, byte for byte."""

    ZOOKEEPER = "zookeeper"
    KAFKA = "kafka"


def parsed(data: bytes | None) -> Mode | None:
    """The mode that the node's data names; None for anything else, a trailing newline included."""
    try:
        return Mode((data or b"").decode())
    except ValueError:
        return None
