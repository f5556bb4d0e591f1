"""What happened, in the words of the invariants: the same for virtual time and for the recorded history of a real run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Wanted:
    """The spec of a migration, as it was created or changed. Times are seconds."""

    at: float
    uid: str
    generation: int
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A status that was written, by which process."""

    at: float
    uid: str
    status: Mapping[str, Any]
    actor: str


@dataclass(frozen=True, slots=True)
class Leased:
    """The Lease of the Kafka cluster was taken or renewed."""

    at: float
    holder: str


@dataclass(frozen=True, slots=True)
class Effect:
    """A write of the operator that took effect: on a Kubernetes object (plural), or on ZooKeeper (`znodes`, name = path).

    `verb` is create, change, delete or evict. `assigns` is what a Secret of node files says: pod -> mode; None where the
    history does not tell. `uid` is the uid that the request insisted on, `fenced` whether it insisted on anything (uid,
    version, test). `read_at` is when the actor last read the object, `wish_read_at` when it last read the migration; None
    where the history does not tell. `brake` tells that Kubernetes was only kept from replacing pods by itself. `content` is
    what else was written.
    """

    at: float
    verb: str
    resource: str
    name: str
    actor: str = ""
    namespace: str = ""
    uid: str = ""
    fenced: bool = True
    assigns: Mapping[str, str] | None = None
    read_at: float | None = None
    wish_read_at: float | None = None
    brake: bool = False
    content: Mapping[str, Any] = field(default_factory=dict)


def is_brake(body: Any) -> bool:
    """Whether a JSON patch does nothing but make an update strategy OnDelete."""
    written = [(item["path"], item.get("value")) for item in body if item["op"] != "test"] if isinstance(body, list) else []
    return written == [("/spec/updateStrategy", {"type": "OnDelete"})]


@dataclass(frozen=True, slots=True)
class Asked:
    """Any request of the operator, for the questions of where and how often."""

    at: float
    verb: str
    path: str


@dataclass(frozen=True, slots=True)
class Told:
    """Text that left the operator: a log line, an event, an annotation, a metric."""

    at: float
    where: str
    text: str


@dataclass(frozen=True, slots=True)
class Started:
    """A Kafka process started in a mode ("" for a configuration that cannot be); `empty` tells of its volume."""

    at: float
    pod: str
    mode: str
    empty: bool


@dataclass(frozen=True, slots=True)
class RolledByKubernetes:
    """A StatefulSet replaced a pod by itself."""

    at: float
    pod: str


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster at one moment, as far as it is known: None for what is not.

    `brokers` and `controllers` give the mode that runs in each pod, "" while none does. `rules` says who can act as
    controller: ZooKeeper, KRaft or "" for nobody. `stuck` holds brokers that take no replica back in sync, `caught_up` what
    they would take back. `names_kraft` holds the brokers that would ask KRaft for their controlled
    shutdown and find nobody.
    """

    at: float
    brokers: Mapping[str, str]
    controllers: Mapping[str, str] = field(default_factory=dict)
    cluster_id: str = ""
    leader: str = ""                                  # the pod that leads the quorum
    quorum: bool = False
    state: str | None = None                          # ZkMigrationState of the log
    dual_write_age: float | None = None
    rules: str | None = None
    claimed: bool | None = None
    migration_offset: int | None = None               # in /migration; None where it is not there
    registered: frozenset[str] | None = None          # brokers in /brokers/ids
    names_kraft: frozenset[str] = frozenset()
    zookeeper_stopped: bool | None = None
    in_sync: Mapping[tuple[str, int], frozenset[str]] | None = None
    replicas: Mapping[tuple[str, int], frozenset[str]] = field(default_factory=dict)
    stuck: frozenset[str] = frozenset()
    caught_up: Mapping[tuple[str, int], frozenset[str]] = field(default_factory=dict)
    leaderless: frozenset[tuple[str, int]] | None = None
    epoch: int | None = None                          # /controller_epoch
    partition_epoch: int | None = None
    metadata: Mapping[str, str] | None = None         # what rules now, and what administrators made of it
    metadata_wanted: Mapping[str, str] | None = None
    lost_records: int | None = None                   # acknowledged and not readable


Event = Wanted | Recorded | Leased | Effect | Asked | Told | Started | RolledByKubernetes | Cluster
