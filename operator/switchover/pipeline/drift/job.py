"""drift: the job. It reads both sides as the operator does: the one module of the pipeline on the operator's adapters.

Drift is what the migration's own gate would say, so it must be read by the same readers.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from switchover.answers.errors import Refused, Unreachable
from switchover.kafka.client.nodes import KafkaWire
from switchover.metadata.parity import LogImage, TreeReading
from switchover.network.addresses import Address
from switchover.network.credentials import Access
from switchover.pipeline.config import Config, properties
from switchover.pipeline.drift.judgement import COLUMNS, Judgement, Row, Sides, Unread, judged, kind, rows, sentence
from switchover.pipeline.outcome import BadConfig, Outcome, Progress
from switchover.pipeline.session import session
from switchover.pipeline.store import Store
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


SENTENCES = 5
"""How many differences the summary lists."""
NOT_COMPARED = ("leaders and in-sync replicas, which change all the time", "registrations", "features",
                "configurations of anything but topics and brokers")
"""As `metadata.cluster` says: dual write does not carry it, or it belongs to one side alone."""


def run(config: Config, progress: Progress) -> Outcome:
    """Compare ZooKeeper's metadata with KRaft's and leave what differs. Raises JobFailed."""
    sides = both_sides(config)
    judgement = asyncio.run(_read(sides, config, progress))
    progress.say(f"{judgement.verdict}: {judgement.reason}")
    written = rows(judgement.found)
    manifest = {"verdict": judgement.verdict, "reason": judgement.reason, "notCompared": NOT_COMPARED,
                "snapshots": [asdict(each) for each in judgement.snapshots]}
    with Store(config.store, config.cluster).results("drift", manifest) as directory:
        _write(config, progress, written, directory / "differences")
    return Outcome(judgement.entries or 0, summary(judgement), judgement.verdict)


def summary(judgement: Judgement) -> dict[str, Any]:
    """Of the last snapshot; without numbers where nothing could be compared."""
    persistent = [each.difference for each in judgement.found if each.persistent]
    known = judgement.entries is not None
    return {
        "reason": judgement.reason,
        "driftPersistent": len(persistent) if known else None,
        "unsettled": len(judgement.found) - len(persistent) if known else None,
        "classes": dict(Counter(str(kind(each)) for each in persistent)),
        "first": [sentence(each) for each in persistent[:SENTENCES]],
    }


async def _read(sides: Sides, config: Config, progress: Progress) -> Judgement:
    try:
        return await judged(sides, config.drift.snapshots, config.drift.pause_seconds, progress.say)
    finally:
        await sides.close()


def _write(config: Config, progress: Progress, written: list[Row], directory: Path) -> None:
    spark = session(config.spark, "drift")
    with progress.of(spark, f"writing {len(written)} differences"):
        spark.createDataFrame(written, COLUMNS).coalesce(1).write.parquet(str(directory))
