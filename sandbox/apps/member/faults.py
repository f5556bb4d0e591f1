"""Planted faults: what a bad build of the member does wrong, so that a gate or the oracle can be seen to find it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Faults:
    """None of them by default."""

    stall_partition: int | None = None
    """Nothing of this partition is delivered or committed, though the member owns it and sends heartbeats."""
    stall_first: bool = False
    """The same of the first partition that it is ever assigned, whichever that is."""
    double: bool = False
    """Goes on reading partitions that were revoked."""
    forget: int | None = None
    """Of so many records one is not delivered, and the commit goes past it all the same."""

    @staticmethod
    def planted(environment: Mapping[str, str]) -> "Faults":
        """From STALL_PARTITION=<number or first>, DOUBLE=<anything>, FORGET=<every how many>.

        Raises ValueError for a bad number.
        """
        stall, forget = environment.get("STALL_PARTITION"), environment.get("FORGET")
        return Faults(
            stall_partition=int(stall) if stall and stall != "first" else None, stall_first=stall == "first",
            double=bool(environment.get("DOUBLE")), forget=int(forget) if forget else None)

    def stalls(self, partition: int) -> bool:
        return partition == self.stall_partition

    def forgets(self, offset: int) -> bool:
        return self.forget is not None and offset % self.forget == self.forget - 1
