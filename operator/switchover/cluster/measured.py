"""What is measured of a cluster in the course of its migration: dual write, the named groups, restarts."""

from collections.abc import Mapping
from math import ceil
from typing import NamedTuple

from switchover.answers.observed import Known
from switchover.cluster.picture import Picture
from switchover.cluster.reading import silence
from switchover.engine.gate import Unseen
from switchover.engine.measurements import GROUPS, group_figures
from switchover.metadata.image import MigrationState


class DualWrite(NamedTuple):
    """How far ZooKeeper is behind: records of the metadata log, and seconds since it was written to last."""

    lag: int | None = None
    age: float | None = None


def dual_write(picture: Picture) -> DualWrite:
    """None for what could not be observed, and unless there is dual write: nothing else makes a lag mean something."""
    log, zookeeper, quorum = picture.facts.log, picture.facts.zookeeper, picture.facts.quorum
    node = zookeeper.value.migration if isinstance(zookeeper, Known) else None
    writes = isinstance(log, Known) and log.value.migration_state is MigrationState.MIGRATION
    if not writes or node is None or node.offset < 0:
        return DualWrite()
    written = quorum.value.high_watermark if isinstance(quorum, Known) else -1
    lag = None if written < 0 else max(0, written - 1 - node.offset)
    try:
        return DualWrite(lag, silence(picture))
    except Unseen:
        return DualWrite(lag)


def measured(picture: Picture, restarts: int) -> Mapping[str, int]:
    """The figures of this pass. `restarts` are the pods put on record to be replaced so far."""
    lag, age = dual_write(picture)
    groups = {group.name: (found.value.lag or 0, found.value.stood) for group in picture.spec.gates.groups[:GROUPS]
              if isinstance(found := picture.facts.groups.get(group.name), Known)}
    return {
        **({"DualWriteLag": lag} if lag is not None else {}), **({"DualWriteAge": ceil(age)} if age is not None else {}),
        **dict(group_figures(groups)), "Restarts": restarts}
