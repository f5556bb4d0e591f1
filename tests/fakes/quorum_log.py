"""The metadata log of the simulated quorum: what the controllers' volumes keep."""

from ast import literal_eval
from dataclasses import dataclass, field

from switchover.metadata.cluster import TOPIC, Acl, Assignment, ClusterMetadata, Hidden, Resource, Scram, Topic
from switchover.metadata.parity import BrokerRegistration, MigrationState

RECORDS_OF_A_COPY = 200
QUOTAS = {"quota": "producer_byte_rate", "unknown-quota": "foo_rate"}
"""Kind of item -> key of the quota."""


@dataclass
class QuorumLog:
    """One log. Volumes that were wiped know nothing of it: a quorum of such begins another one.

    `pending` holds changes of the metadata that are in the log and not in ZooKeeper yet: name -> when they will be.
    """

    epoch: int = 0
    offset: int = 0
    state: MigrationState | None = None
    controllers: dict[int, bool] = field(default_factory=dict)
    brokers: dict[int, BrokerRegistration] = field(default_factory=dict)
    transaction: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    pending: dict[str, float] = field(default_factory=dict)
    pending_since: int = 0

    @property
    def copied(self) -> bool:
        """The metadata is in the log: from then on the log leads and ZooKeeper follows."""
        return self.state in (MigrationState.MIGRATION, MigrationState.POST_MIGRATION)

    def register_controller(self, node_id: int, migration_ready: bool) -> None:
        """RegisterController, when it tells something new."""
        if self.controllers.get(node_id) != migration_ready:
            self.controllers[node_id] = migration_ready
            self.offset += 1

    def register_broker(self, node_id: int, registration: BrokerRegistration) -> None:
        """RegisterBroker or BrokerRegistrationChange."""
        self.brokers[node_id] = registration
        self.offset += 1

    def copy(self, metadata: dict[str, str]) -> None:
        """The transaction `ZK Migration` ends."""
        self.transaction, self.state = None, MigrationState.MIGRATION
        self.metadata = dict(metadata)
        self.offset += RECORDS_OF_A_COPY

    def change(self, name: str, value: str | None, written_at: float) -> None:
        """An administrator's change: at once in the log, later in ZooKeeper."""
        if not self.pending:
            self.pending_since = self.offset
        put(self.metadata, name, value)
        self.pending[name] = written_at
        self.offset += 1

    def write_behind(self, tree: dict[str, str], now: float) -> int:
        """Bring to ZooKeeper what is due; the offset up to which everything is there."""
        for name in [name for name, due in self.pending.items() if due <= now]:
            del self.pending[name]
            put(tree, name, self.metadata.get(name))
        return self.pending_since - 1 if self.pending else self.offset - 1


def put(metadata: dict[str, str], name: str, value: str | None) -> None:
    """Set a value; None removes it."""
    if value is None:
        metadata.pop(name, None)
    else:
        metadata[name] = value


def as_metadata(items: dict[str, str]) -> ClusterMetadata:
    """The same in the words of the operator. Names: `topic T`, `config T`, `acl T`, `quota USER`, `scram USER`,
    `unknown-quota USER` for one that Kafka does not know."""
    kinds: dict[str, dict[str, str]] = {
        kind: {} for kind in ("topic", "config", "acl", "scram", *QUOTAS)}
    for item, value in items.items():
        kind, _, name = item.partition(" ")
        kinds[kind][name] = value
    return ClusterMetadata(
        topics={name: Topic(f"id-of-{name}", {
            index: Assignment(replicas) for index, replicas in literal_eval(value).items()})
            for name, value in kinds["topic"].items()},
        configs={Resource(TOPIC, name): dict([value.split("=")]) for name, value in kinds["config"].items()},
        acls=frozenset(Acl("User:alice", "*", "Allow", value, "Topic", "LITERAL", name)
                       for name, value in kinds["acl"].items()),
        quotas={(("user", name),): {key: float(value)}
                for kind, key in QUOTAS.items() for name, value in kinds[kind].items()},
        scram={(name, "SCRAM-SHA-512"): Scram(8192, Hidden(value)) for name, value in kinds["scram"].items()},
    )
