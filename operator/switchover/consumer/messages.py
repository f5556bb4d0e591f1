"""What the pure member hears and what it asks for: events in, requests out.

Requests to ZooKeeper are done in the order in which they were asked, and answered in that order; those to Kafka and to the
application go their own ways. A request that fails for want of a connection is answered with Failed and asked again: each
can be done twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from switchover.coordination.acknowledgement import Acknowledgement
from switchover.coordination.world import World
from switchover.shared.partition import TopicPartition

Partitions = frozenset[TopicPartition]

# --- events -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Connected:
    """A session with ZooKeeper has begun."""

    session: int


@dataclass(frozen=True, slots=True)
class Suspended:
    """The connection is gone; whether the session lives nobody knows. Nothing is handed out until GoOn."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """Connected again in the same session."""


@dataclass(frozen=True, slots=True)
class Expired:
    """The session has ended, and all that hung on it is gone."""


@dataclass(frozen=True, slots=True)
class Changed:
    """Something that was read of the group is not so any more."""


@dataclass(frozen=True, slots=True)
class OwnerGone:
    """Our owner node was deleted, and not by us (defect D3 of docs/facts/coordination.md#its-defects, or a person)."""

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class OwnerFreed:
    """The owner node on which a claim of ours failed has changed or gone."""

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class GroupAssigned:
    """Kafka assigned these partitions to the embedded member."""

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class GroupRevoking:
    """Kafka's group rebalances; the embedded member joins again when it is allowed to."""


@dataclass(frozen=True, slots=True)
class GroupLost:
    """The embedded member was put out of Kafka's group."""


@dataclass(frozen=True, slots=True)
class Closing:
    """The application closes the consumer."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


# --- answers ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Failed:
    """The request could not be done: no connection, or an error that may pass."""

    number: int
    why: str


@dataclass(frozen=True, slots=True)
class Registered:
    """Of Register."""

    number: int


@dataclass(frozen=True, slots=True)
class WorldRead:
    """Of ReadWorld."""

    number: int
    world: World


@dataclass(frozen=True, slots=True)
class Claimed:
    """Of Claim: which are ours; the others have another owner."""

    number: int
    held: Partitions


@dataclass(frozen=True, slots=True)
class OffsetsRead:
    """Of ReadOffsets: the position of each from now on, and which of them are not in both stores."""

    number: int
    starts: Mapping[TopicPartition, int]
    behind: Partitions


@dataclass(frozen=True, slots=True)
class Stopped:
    """Of Stop: nothing of these partitions is with the application any more."""

    number: int


@dataclass(frozen=True, slots=True)
class CommittedToZooKeeper:
    """Of Commit. `gone`: the owner node was not ours any more, and nothing was written."""

    number: int
    gone: Partitions = frozenset()


@dataclass(frozen=True, slots=True)
class CommittedToKafka:
    """Of Commit. `fenced`: Kafka's group does not know the embedded member, or knows a later generation."""

    number: int
    fenced: bool = False


@dataclass(frozen=True, slots=True)
class Released:
    """Of Release."""

    number: int


@dataclass(frozen=True, slots=True)
class Described:
    """Of Describe: what Kafka has assigned to each member, by its client id; nothing while the group rebalances."""

    number: int
    assigned: Mapping[str, Partitions]


Answer = Claimed | OffsetsRead | Stopped | CommittedToZooKeeper | CommittedToKafka | Released
Event = (Connected | Suspended | Resumed | Expired | Changed | OwnerGone | OwnerFreed | GroupAssigned | GroupRevoking
         | GroupLost | Closing | Tick | Failed | Registered | WorldRead | Described | Answer)

# --- requests ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Register:
    """Create `migration/ids` and `ids` in one transaction (R3), watched from then on together with mode and topics."""

    number: int


@dataclass(frozen=True, slots=True)
class ReadWorld:
    """Read the group at once, and watch all of it."""

    number: int


@dataclass(frozen=True, slots=True)
class Claim:
    """Create the owner nodes that are not there, or in place of a guard; never over another owner. Watch those held."""

    number: int
    threads: Mapping[TopicPartition, str]


@dataclass(frozen=True, slots=True)
class ReadOffsets:
    """Read both stores (offsets.py says which counts)."""

    number: int
    partitions: Partitions


@dataclass(frozen=True, slots=True)
class Start:
    """Call the application back, then fetch from these offsets. Not answered."""

    starts: Mapping[TopicPartition, int]
    threads: Mapping[TopicPartition, str]


@dataclass(frozen=True, slots=True)
class Stop:
    """Hand out nothing more; answered when the application has done with what it was given and was called back."""

    number: int
    partitions: Partitions


@dataclass(frozen=True, slots=True)
class Abandon:
    """Hand out nothing more from now on: others may have them already. Not answered."""

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class Commit:
    """Write the positions to both stores: to ZooKeeper only over our owner node, to Kafka by the embedded member."""

    number: int
    partitions: Partitions


@dataclass(frozen=True, slots=True)
class Release:
    """Delete our owner nodes, or put a guard in the place of each in the same transaction (R6)."""

    number: int
    partitions: Partitions
    guard: bool


@dataclass(frozen=True, slots=True)
class Guard:
    """Put a guard where no owner node is. Not answered."""

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class GoOn:
    """The owner nodes are still ours: what was suspended may be handed out again. Not answered."""


@dataclass(frozen=True, slots=True)
class Describe:
    """Ask Kafka who is in the group, and who has what."""

    number: int


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """To the operator. Not answered."""

    acknowledgement: Acknowledgement


@dataclass(frozen=True, slots=True)
class Wake:
    """Delete and create our registration in one transaction: old consumers that gave up try again. Not answered."""


@dataclass(frozen=True, slots=True)
class AllowRevoke:
    """Let the embedded member join again. Not answered."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Leave Kafka's group, then end the session. Not answered: it is the last request."""


Request = (Register | ReadWorld | Claim | ReadOffsets | Start | Stop | Abandon | Commit | Release | Guard | GoOn
           | Describe | Acknowledge | Wake | AllowRevoke | Leave)
