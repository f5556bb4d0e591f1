"""The state that the metadata log of a KRaft quorum describes, as plain immutable values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from switchover.metadata.cluster import ClusterMetadata


class MigrationState(IntEnum):
    """`ZkMigrationState` as the metadata log stores it; 1 and 2 look swapped on purpose
    (docs/facts/kraft.md#the-metadata-log-over-the-wire)."""

    NONE = 0
    MIGRATION = 1
    PRE_MIGRATION = 2
    POST_MIGRATION = 3


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """The last RegisterBroker record of a broker, with the changes of fencing since."""

    epoch: int
    migrating_zk: bool
    fenced: bool


@dataclass(frozen=True, slots=True)
class LogImage:
    """The metadata log replayed up to `offset`, the last committed record read, of leader epoch `epoch`.

    Records of the open transaction are read, but not yet part of this.
    """

    offset: int
    epoch: int
    migration_state: MigrationState | None          # None until the record is seen
    metadata_version: int | None
    controllers: Mapping[int, bool]                 # RegisterController: node id -> ZkMigrationReady
    brokers: Mapping[int, BrokerRegistration]
    open_transaction: str | None                    # name of a transaction begun and not ended
    aborted_transactions: int
    metadata: ClusterMetadata = field(default_factory=ClusterMetadata)
