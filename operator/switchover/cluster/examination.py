"""What is looked at in Preflight alone: facts that only its checks read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from switchover.outside.observed import NOT_ASKED, Observed
from switchover.zookeeper.groups import IdleGroups


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """A log directory of a broker; one that failed is offline until the broker restarts."""

    path: str
    offline: bool


@dataclass(frozen=True, slots=True)
class BrokerExamination:
    """What one broker tells of itself. `operations` are those that our user may do on the cluster, as Kafka names them.

    `static_settings` are the values from its file and command line, without defaults and dynamic values. Of what it keeps
    to itself only the names are told, in `hidden`: secrets, and every key that Kafka's own configuration does not define,
    such as `super.users`.
    """

    static_settings: Mapping[str, str]
    log_directories: tuple[LogDirectory, ...]
    operations: frozenset[str]
    hidden: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ZooKeeperRights:
    """What our credentials may do, by path: READ, WRITE, CREATE, DELETE, ADMIN.

    `unjudged` names, by path, the schemes of entries that cannot be judged from here, such as ip and x509.
    """

    granted: Mapping[str, frozenset[str]]
    unjudged: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class TemplateChange:
    """What the API server would make of the template change: template and update strategy after a dry run."""

    template: Mapping[str, object]
    update_strategy: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class StorageClasses:
    """Names of the classes that exist, and of the default one; "" when there is none."""

    existing: frozenset[str]
    default: str


@dataclass(frozen=True, slots=True)
class Examination:
    """All of it, each item known or unknown."""

    brokers: Mapping[int, Observed[BrokerExamination]] = field(default_factory=dict)
    zookeeper_rights: Observed[ZooKeeperRights] = NOT_ASKED
    zookeeper_modes: Mapping[str, Observed[str]] = field(default_factory=dict)     # server -> standalone, leader, follower
    objects: Observed[Mapping[str, str]] = NOT_ASKED          # "Service kafka" -> its app.kubernetes.io/managed-by label
    missing_rights: Observed[tuple[str, ...]] = NOT_ASKED     # "patch statefulsets.apps"
    storage_classes: Observed[StorageClasses] = NOT_ASKED
    classes_in_use: Observed[frozenset[str]] = NOT_ASKED      # of bound claims in the namespace
    template_changes: Mapping[str, Observed[TemplateChange]] = field(default_factory=dict)    # by StatefulSet, dry run
    malformed: Observed[Mapping[str, str]] = NOT_ASKED        # nodes that Kafka could not have written: path -> why
    ahead: Observed[float] = NOT_ASKED                        # by how many seconds the API server's clock is ahead of ours
    idle_groups: Observed[IdleGroups] = NOT_ASKED
