"""Both sides of `drift`, made up: each snapshot of a list in its turn, or the failure that stands in its place."""

from collections.abc import Sequence

from fakes.metadata_sides import from_nodes, nodes_of, records_of
from switchover.metadata.cluster import ClusterMetadata
from switchover.metadata.parity import LogImage, MigrationState, TreeReading
from switchover.metadata.replay import Replay
from switchover.pipeline.drift.judgement import Unread


def tree(metadata: ClusterMetadata, offset: int = 100) -> TreeReading:
    """As the operator's reader parses it from the nodes that Kafka would write."""
    return TreeReading(offset, from_nodes(nodes_of(metadata)), 1)


def log(metadata: ClusterMetadata, offset: int = 100, state: MigrationState | None = MigrationState.MIGRATION) -> LogImage:
    """As the replay has it after the records that Kafka would write."""
    replay = Replay()
    for number, record in enumerate(records_of(metadata)):
        replay.apply(record, number)
    return LogImage(offset, 1, state, 21, {}, {}, None, 0, replay.image().metadata)


class FakeSides:
    """Answers from two lists; whoever asks more often than they are long fails."""

    def __init__(self, trees: Sequence[TreeReading | Unread], logs: Sequence[LogImage | Unread]) -> None:
        self._trees, self._logs = list(trees), list(logs)

    async def zookeeper(self) -> TreeReading:
        answer = self._trees.pop(0)
        if isinstance(answer, Unread):
            raise answer
        return answer

    async def kraft(self) -> LogImage:
        answer = self._logs.pop(0)
        if isinstance(answer, Unread):
            raise answer
        return answer

    async def close(self) -> None:
        """Nothing is open."""
