"""What was read of a consumer group's partitions, poll after poll, as arrays.

A sample is one reading of one partition: first the committed offset, then the end offset, then the log start, stamped with
the collector's clock at the request for the end offset. So the end is never behind the commit unless the log shrank, and
negative lag is evidence.
"""

from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

NONE: Final = -1
"""No committed offset, as OffsetFetch says it; no commit time; no figure in a baseline."""


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """P partitions × N samples (N ≥ 1), oldest first: int64 offsets, int64 milliseconds since the epoch.

    A failed reading stays in its place with `valid` False, and its numbers are never looked at. `committed` is NONE where
    the group has no commit. `end` is the last stable offset for a group that reads committed records only, and then
    `high` is the high watermark; without `high` the end is the high watermark. `commit_time` is when the broker or
    ZooKeeper wrote the commit (NONE where it is not known: the Admin API never has it). `transactional` (P) marks
    partitions with transactional producers: the last marker stays uncommitted for ever. `readable` (P) is the first offset
    behind the newest commit, or behind the log start without one, at which there may be a record (NONE, or not behind it:
    nobody has looked).

    Raises ValueError for shapes or types that do not fit.
    """

    time: Ints
    committed: Ints
    end: Ints
    start: Ints
    valid: Bools
    high: Ints | None = None
    commit_time: Ints | None = None
    transactional: Bools | None = None
    readable: Ints | None = None

    def __post_init__(self) -> None:
        shape = self.time.shape
        if len(shape) != 2 or shape[1] < 1:
            raise ValueError(f"time must be partitions × samples with at least one sample, not {shape}")
        for field in fields(self):
            array = getattr(self, field.name)
            flag = field.name in ("valid", "transactional")
            wanted = shape[:1] if field.name in ("transactional", "readable") else shape
            if array is not None and (array.shape != wanted or array.dtype != (np.bool_ if flag else np.int64)):
                raise ValueError(f"{field.name} must be {wanted} of {'bool' if flag else 'int64'}, "
                                 f"not {array.shape} of {array.dtype}")

    def packed(self, usable: Bools) -> "Samples":
        """Only the usable samples, at the right edge; on their left the oldest of them again and again.

        There it changes no maximum, no sum of differences and no longest hole, so column 0 is the first sample and
        column -1 the newest in every row. A row without a usable sample means nothing.
        """
        if usable.all():
            return self
        width = self.time.shape[1]
        order = np.argsort(usable, axis=1, kind="stable")
        oldest = np.minimum(width - usable.sum(axis=1), width - 1)
        columns = np.take_along_axis(order, np.maximum(np.arange(width), oldest[:, None]), axis=1)

        def pick(array: Ints) -> Ints:
            return np.take_along_axis(array, columns, axis=1)

        return replace(
            self, time=pick(self.time), committed=pick(self.committed), end=pick(self.end), start=pick(self.start),
            valid=np.take_along_axis(self.valid, columns, axis=1),
            high=None if self.high is None else pick(self.high),
            commit_time=None if self.commit_time is None else pick(self.commit_time))
