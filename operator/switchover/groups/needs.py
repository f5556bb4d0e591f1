"""What is read only where something needs it: gates of the plans name these facts, the observer reads what the leg on record
names, and whatever else Facts holds is read in every pass."""

from enum import StrEnum


class Need(StrEnum):
    """A fact to be named by what reads it."""

    RIGHTS = "missing_rights"
    RIGHTS_IN_ZOOKEEPER = "missing_zookeeper_rights"
    OTHERS = "others"
    """What has the name of a workload that is not there, and is of a kind that is not moved."""
    TRIALS = "trials"
    LOAD = "coordinated"
    """How many members every coordinator has: each group of the cluster is described."""
    READINESS = "readiness"
    """A probe; only where members of the consumer protocol are to come (`gates.protocol.to_consumer`)."""
    OFFERED = "offered"
    """Another, which leaves a pending member behind."""
    AUDIT = "audit"
