"""Both sides of the comparison, read as the operator reads them: the one module of the pipeline on the operator's adapters.

Drift is what the migration's own gate would say, so it must be read by the same readers.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from switchover.answers.errors import Refused, Unreachable
from switchover.kafka.client.nodes import KafkaWire
from switchover.metadata.image import LogImage
from switchover.metadata.parity import TreeReading
from switchover.network.access import Access
from switchover.network.addresses import Address
from switchover.pipeline.config import Config, properties
from switchover.pipeline.drift.judgement import Unread
from switchover.pipeline.outcome import BadConfig
from switchover.zookeeper.client.zookeeper import KazooZooKeeper

_VOTER = re.compile(r"(\d{1,9})@\[?([^\s@,]+?)\]?:(\d{1,5})")


class BothSides:
    """ZooKeeper's tree and the metadata log of the quorum."""

    def __init__(self, tree: KazooZooKeeper, nodes: KafkaWire, voters: Mapping[int, Address], secret: str | None) -> None:
        self._tree = tree
        self._nodes = nodes
        self._voters = voters
        self._secret = secret

    async def zookeeper(self) -> TreeReading:
        """All metadata in the tree. Raises Unread."""
        try:
            return await self._tree.metadata(self._secret)
        except (Unreachable, Refused) as error:
            raise Unread(str(error), refused=isinstance(error, Refused)) from None

    async def kraft(self) -> LogImage:
        """The log up to its high watermark; what was read stays for the next time. Raises Unread."""
        try:
            return await self._nodes.log(self._voters)
        except (Unreachable, Refused) as error:
            raise Unread(str(error), refused=isinstance(error, Refused)) from None

    async def close(self) -> None:
        """End the session with ZooKeeper."""
        await self._tree.close()


def both_sides(config: Config) -> BothSides:
    """Raises BadConfig for what is missing, or cannot be used. Nothing is connected yet."""
    settings = config.drift
    if config.zookeeper is None:
        raise BadConfig("drift: zookeeper.connect is missing: the brokers' own zookeeper.connect, chroot included")
    if settings.quorum_voters is None:
        raise BadConfig("drift: drift.quorumVoters is missing: the controllers as their controller.quorum.voters names them")
    ours = settings.controllers_config or (config.kafka.command_config if config.kafka is not None else None)
    try:
        return BothSides(
            KazooZooKeeper(Access(config.zookeeper.connect, properties(config.zookeeper.command_config)),
                           seconds=settings.seconds),
            KafkaWire(properties(ours), seconds=settings.seconds),
            voters(settings.quorum_voters),
            _secret(settings.password_encoder_secret))
    except Refused as error:
        raise BadConfig(f"drift: {error}") from None


def voters(text: str) -> dict[int, Address]:
    """ID@HOST:PORT,… as node id -> address. Raises BadConfig."""
    found: dict[int, Address] = {}
    for part in text.split(","):
        match = _VOTER.fullmatch(part.strip())
        if match is None or int(match[3]) > 65535:
            raise BadConfig(f"drift.quorumVoters: {part.strip()!r:.80} is not ID@HOST:PORT")
        if int(match[1]) in found:
            raise BadConfig(f"drift.quorumVoters names node {match[1]} twice")
        try:
            found[int(match[1])] = Address(match[2], int(match[3]))
        except ValueError as error:
            raise BadConfig(f"drift.quorumVoters: {error}") from None
    return found


def _secret(file: Path | None) -> str | None:
    """Its one line; a file made by an editor or a heredoc ends with a line feed that Kafka's property does not have."""
    if file is None:
        return None
    try:
        return file.read_text(encoding="utf-8").removesuffix("\n")
    except OSError as error:
        raise BadConfig(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadConfig(f"{file} is not UTF-8") from None
