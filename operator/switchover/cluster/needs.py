"""The rest of the condition under which a fact is read, where that is more than the leg on record."""

from collections.abc import Set

from switchover.answers.observed import Known, Observed
from switchover.cluster import modes
from switchover.cluster.door import brokers
from switchover.cluster.facts import KubernetesState, Need
from switchover.cluster.picture import Picture
from switchover.zookeeper.nodes import ZooKeeperState


def trials_are_read(picture: Picture, needs: Set[str]) -> bool:
    """Whether there may be any: not while a person has not approved it, which may take days."""
    return Need.TRIALS in needs and picture.position.opened is not None


def settings_are_read(picture: Picture, needs: Set[str], kubernetes: Observed[KubernetesState]) -> bool:
    """Whether every broker is asked for its settings."""
    if trials_are_read(picture, needs):
        return True
    if Need.BROKER_MODES not in needs or not isinstance(kubernetes, Known):
        return Need.BROKER_SETTINGS in needs
    stored = (brokers.stored(original) for original in kubernetes.value.originals.values() if original is not None)
    return Need.BROKER_SETTINGS in needs or any(each.raised or bool(each.image) for each in stored
                                                if isinstance(each, brokers.Brokers))


def identities_are_asked(picture: Picture, needs: Set[str]) -> bool:
    """Whether it must be found which pod is which broker: before they are on record, and whenever Preflight looks."""
    return not picture.brokers or Need.EXAMINATION in needs


def controllers_are_asked(picture: Picture, kubernetes: Observed[KubernetesState]) -> bool:
    """Whether controllers may be there to be asked; names of pods that are gone take time to be looked up in vain."""
    return bool(picture.position.nodes) and (not isinstance(kubernetes, Known) or kubernetes.value.controllers is not None)


def parity_is_read(picture: Picture, needs: Set[str]) -> bool:
    """Whether there is something to compare: not before a broker has joined the migration, nor once controllers stop."""
    assigned = [record.assigned for name, record in picture.position.nodes.items() if name not in picture.controllers]
    return Need.PARITY in needs and not picture.is_stopping and any(mode not in modes.WITHOUT_QUORUM for mode in assigned)


def epoch_is_read(needs: Set[str], zookeeper: Observed[ZooKeeperState]) -> bool:
    """Whether all partitions' states are read for their epoch: until KRaft's claim has ended. What a controller writes after
    that has the epoch of its claim."""
    holder = zookeeper.value.controller if isinstance(zookeeper, Known) else None
    return Need.PARTITION_EPOCH in needs and holder is not None and not holder.ephemeral
