"""The states of a member, as tables: what can happen in each state, and the state that follows. Nothing else can happen.

A member is in one state of LIFE, SESSION, GROUP and MODE, and each partition that it wants or has in one of PARTITION.
docs/consumer.md#its-states shows them, drawn from these tables. What is asked because of a state stands in the other rooms.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from switchover.consumer.messages import Claim, Commit, ReadOffsets, Release, Request, Stop
from switchover.coordination.mode import Mode

State = TypeVar("State")


class Impossible(Exception):
    """What its table does not let happen in a state: a defect of ours. It ends the membership, and another one begins."""


class Cause(StrEnum):
    """What can happen, in short."""

    # to a partition
    WANTED = "wanted"
    CLAIMED = "claimed"
    REFUSED = "another owns it"
    READ = "offsets read"
    BEHIND = "unwanted, one store behind"
    UNWANTED = "unwanted"
    STOPPED = "stopped"
    COMMITTED = "committed"
    COMMITTED_WITH_OLD = "committed, old members there"
    LINGERED = "a moment later"
    FENCED = "fenced by Kafka"
    RELEASED = "released"
    NODE_GONE = "owner node gone"
    GIVEN_UP = "given up"
    EXPIRED = "session expired"

    # to the session with ZooKeeper, apart from its expiry
    CONNECTED = "connected"
    SUSPENDED = "suspended"
    RESUMED = "resumed"
    REGISTERED = "registered"
    UNREGISTERED = "registration gone"

    # to the member of Kafka's group
    ASSIGNED = "assigned"
    REVOKED = "revoked"
    LOST = "put out"
    ALL_RELEASED = "all released"

    # to the mode, apart from the session's expiry
    TO_KAFKA = "to kafka"
    TO_ZOOKEEPER = "to zookeeper"
    KAFKA_CONSUMER = "a KafkaConsumer is there"

    # to the membership
    CLOSED = "closed"
    EMPTY = "nothing held"


Table = Mapping[State, Mapping[Cause, State]]


def after(table: Table[State], state: State, cause: Cause) -> State:
    """The state that follows. Raises Impossible."""
    try:
        return table[state][cause]
    except KeyError:
        raise Impossible(f"{cause!r} in state {state}") from None


# --- a partition --------------------------------------------------------------------------------------------------------


class Phase(StrEnum):
    """Of a partition. The owner node is the fence in both modes (R1): the mode says only which partitions are wanted."""

    FREE = "Free"                       # not ours: it is forgotten
    CLAIMING = "Claiming"               # the owner node is being created
    READING = "Reading"                 # ours; the offsets of both stores are being read
    FETCHING = "Fetching"               # handed to the application
    STOPPING = "Stopping"               # until the application has done with what it was given
    COMMITTING = "Committing"           # until the store that the next owner reads has the position
    LINGERING = "Lingering"             # the node stays a moment (D1 of docs/facts/coordination.md#its-defects)
    RELEASING = "Releasing"             # the owner node is being deleted, or replaced by a guard


_WITH_NODE: Mapping[Cause, Phase] = {
    Cause.NODE_GONE: Phase.FREE,
    Cause.GIVEN_UP: Phase.RELEASING,            # in kafka mode others may have it
    Cause.EXPIRED: Phase.FREE,
}
PARTITION: Table[Phase] = {
    Phase.FREE: {
        Cause.WANTED: Phase.CLAIMING,
    },
    Phase.CLAIMING: {
        Cause.CLAIMED: Phase.READING,
        Cause.REFUSED: Phase.FREE,              # tried again when its node goes, or later
        Cause.UNWANTED: Phase.RELEASING,        # after a claim that failed: it may have been done
        Cause.GIVEN_UP: Phase.RELEASING,
        Cause.EXPIRED: Phase.FREE,
    },
    Phase.READING: {
        Cause.READ: Phase.FETCHING,
        Cause.BEHIND: Phase.COMMITTING,         # whoever comes next finds the position, also of what nobody fetched
        Cause.UNWANTED: Phase.RELEASING,
        **_WITH_NODE,
    },
    Phase.FETCHING: {
        Cause.UNWANTED: Phase.STOPPING,
        **_WITH_NODE,
    },
    Phase.STOPPING: {
        Cause.STOPPED: Phase.COMMITTING,
        **_WITH_NODE,
    },
    Phase.COMMITTING: {
        Cause.COMMITTED: Phase.RELEASING,
        Cause.COMMITTED_WITH_OLD: Phase.LINGERING,
        Cause.FENCED: Phase.RELEASING,          # others have it: nothing is committed again
        **_WITH_NODE,
    },
    Phase.LINGERING: {
        Cause.LINGERED: Phase.RELEASING,
        **_WITH_NODE,
    },
    Phase.RELEASING: {
        Cause.RELEASED: Phase.FREE,
        Cause.NODE_GONE: Phase.FREE,
        Cause.EXPIRED: Phase.FREE,
    },
}
ASKS: Mapping[Phase, type[Request]] = {
    Phase.CLAIMING: Claim, Phase.READING: ReadOffsets, Phase.STOPPING: Stop, Phase.COMMITTING: Commit,
    Phase.RELEASING: Release,
}
"""What is asked for a partition in a phase: at most one request is under way for it."""
HANDED = frozenset({Phase.FETCHING, Phase.STOPPING})
"""Phases in which the application has records of a partition."""
ENDING = frozenset({Phase.STOPPING, Phase.COMMITTING, Phase.LINGERING, Phase.RELEASING})
"""What follows Fetching, before a partition is Free."""


# --- the member ---------------------------------------------------------------------------------------------------------


class Session(StrEnum):
    """Of the member in ZooKeeper. While the connection is gone nobody knows whether the session lives."""

    NONE = "None"
    NEW = "New"                                 # its registration is being written
    REGISTERED = "Registered"
    NEW_SUSPENDED = "New suspended"
    SUSPENDED = "Suspended"


SESSION: Table[Session] = {
    Session.NONE: {
        Cause.CONNECTED: Session.NEW,
    },
    Session.NEW: {
        Cause.REGISTERED: Session.REGISTERED,
        Cause.SUSPENDED: Session.NEW_SUSPENDED,
        Cause.RESUMED: Session.NEW,
        Cause.EXPIRED: Session.NONE,
    },
    Session.REGISTERED: {
        Cause.UNREGISTERED: Session.NEW,        # somebody deleted it
        Cause.SUSPENDED: Session.SUSPENDED,
        Cause.RESUMED: Session.REGISTERED,
        Cause.EXPIRED: Session.NONE,
    },
    Session.NEW_SUSPENDED: {
        Cause.REGISTERED: Session.SUSPENDED,    # the answer was on its way
        Cause.SUSPENDED: Session.NEW_SUSPENDED,
        Cause.RESUMED: Session.NEW,
        Cause.EXPIRED: Session.NONE,
    },
    Session.SUSPENDED: {
        Cause.UNREGISTERED: Session.NEW_SUSPENDED,
        Cause.SUSPENDED: Session.SUSPENDED,
        Cause.RESUMED: Session.REGISTERED,
        Cause.EXPIRED: Session.NONE,
    },
}
CONNECTED = frozenset({Session.NEW, Session.REGISTERED})
"""In these ZooKeeper can be asked."""
SUSPENDED = frozenset({Session.NEW_SUSPENDED, Session.SUSPENDED})
"""In these it cannot, and the session may live."""


class Group(StrEnum):
    """Of the embedded member in Kafka's group."""

    OUTSIDE = "Outside"                         # or on its way in
    ASSIGNED = "Assigned"
    REVOKING = "Revoking"                       # it joins again when the member allows it (R2)


_BY_KAFKA: Mapping[Cause, Group] = {Cause.ASSIGNED: Group.ASSIGNED, Cause.REVOKED: Group.REVOKING, Cause.LOST: Group.OUTSIDE}
GROUP: Table[Group] = {
    Group.OUTSIDE: _BY_KAFKA,
    Group.ASSIGNED: _BY_KAFKA,
    Group.REVOKING: {Cause.ALL_RELEASED: Group.OUTSIDE, **_BY_KAFKA},
}

MODE: Table[Mode | None] = {
    None: {                                     # has not begun
        Cause.TO_ZOOKEEPER: Mode.ZOOKEEPER,
        Cause.TO_KAFKA: Mode.KAFKA,
        Cause.KAFKA_CONSUMER: Mode.KAFKA,             # its share is right in kafka mode alone (R11)
        Cause.EXPIRED: None,
    },
    Mode.ZOOKEEPER: {
        Cause.TO_ZOOKEEPER: Mode.ZOOKEEPER,
        Cause.TO_KAFKA: Mode.KAFKA,
        Cause.EXPIRED: None,                    # its acknowledgement is gone: KafkaConsumers may come
    },
    Mode.KAFKA: {
        Cause.TO_ZOOKEEPER: Mode.ZOOKEEPER,
        Cause.TO_KAFKA: Mode.KAFKA,
        Cause.EXPIRED: Mode.KAFKA,              # what forbids to leave it holds all the same
    },
}


class Life(StrEnum):
    """Of the membership."""

    OPEN = "Open"
    CLOSING = "Closing"                         # everything is released
    LEFT = "Left"


LIFE: Table[Life] = {
    Life.OPEN: {Cause.CLOSED: Life.CLOSING},
    Life.CLOSING: {Cause.CLOSED: Life.CLOSING, Cause.EMPTY: Life.LEFT},
    Life.LEFT: {Cause.CLOSED: Life.LEFT},
}
