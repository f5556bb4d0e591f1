"""What Kubernetes' Deployment controller does with ReplicaSets, as its source has it (1.27 to 1.36: rolling.go, sync.go,
recreate.go) and as it was seen on a real one (docs/facts/deployments.md).

Its view of what is available is that of the tick before: a ReplicaSet that becomes the newest again still counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class ReplicaSet:
    """`ready` is what its pods are now; `available` what its status says, which is of the tick before."""

    size: int = 0
    ready: int = 0
    min_ready: int = 0
    available: int = 0


@dataclass
class Controller:
    """The ReplicaSets of a Deployment by revision; those that became empty stay."""

    sets: dict[str, ReplicaSet] = field(default_factory=dict)
    desired: int | None = None
    """The Deployment's replicas as the ReplicaSets' annotations have them."""

    @property
    def sizes(self) -> dict[str, int]:
        return {revision: each.size for revision, each in self.sets.items()}

    def tick(self, spec: Mapping[str, Any], revision: str) -> None:
        """One sync of the Deployment; afterwards its ReplicaSets' statuses follow."""
        replicas, paused = spec["replicas"], spec.get("paused", False)
        newest = self.sets.get(revision)
        scaled, self.desired = self.desired not in (None, replicas), replicas
        if newest is None and not paused:
            newest = self.sets[revision] = ReplicaSet()
        if newest is not None:
            newest.min_ready = spec.get("minReadySeconds", 0)
        if paused or scaled:
            self._share(spec, newest)
        elif spec["strategy"]["type"] == "Recreate":
            self._recreate(replicas, newest)
        else:
            self._roll(spec, newest)

    def told(self, ready: Mapping[str, int]) -> None:
        """The ReplicaSets' own controller counts; a day is longer than any test."""
        for revision, each in self.sets.items():
            each.ready = ready.get(revision, 0)
            each.available = each.ready if each.min_ready < 86_400 else 0

    def _share(self, spec: Mapping[str, Any], newest: ReplicaSet | None) -> None:
        """`scale`: one ReplicaSet gets all, several share by their sizes. What is left over goes to the largest."""
        replicas = spec["replicas"]
        active = [each for each in self.sets.values() if each.size > 0]
        if len(active) <= 1:
            only = active[0] if active else newest
            if only is not None:
                only.size = replicas
            return
        if newest is not None and newest.size == replicas == newest.available:
            for each in active:
                each.size = replicas if each is newest else 0
            return
        total, allowed = sum(each.size for each in active), replicas + _shape(spec)[0] if replicas else 0
        left = allowed - total
        for each in active:
            share = round(each.size * allowed / total) - each.size
            share = max(-each.size, min(share, left) if left > 0 else max(share, left))
            each.size, left = each.size + share, left - share
        largest = max(active, key=lambda each: each.size)
        largest.size = max(0, largest.size + left)

    def _recreate(self, replicas: int, newest: ReplicaSet | None) -> None:
        for each in self.sets.values():
            if each is not newest:
                each.size = 0
        if newest is not None and not any(each.ready for each in self.sets.values() if each is not newest):
            newest.size = replicas

    def _roll(self, spec: Mapping[str, Any], newest: ReplicaSet | None) -> None:
        assert newest is not None
        replicas, (surge, unavailable) = spec["replicas"], _shape(spec)
        old = [each for each in self.sets.values() if each is not newest]
        total = newest.size + sum(each.size for each in old)
        if newest.size > replicas:
            newest.size = replicas
            return
        if newest.size < replicas and total < replicas + surge:
            newest.size = min(replicas, newest.size + replicas + surge - total)
            return
        fewest = replicas - unavailable
        room = total - fewest - (newest.size - newest.available)
        if room <= 0:
            return
        for each in old:                                # those that are not well first
            ill = min(max(0, each.size - each.available), room)
            each.size, room = each.size - ill, room - ill
        spare = min(room, newest.available + sum(min(each.available, each.size) for each in old) - fewest)
        for each in old:
            gone = min(each.size, max(0, spare))
            each.size, spare = each.size - gone, spare - gone


def _shape(spec: Mapping[str, Any]) -> tuple[int, int]:
    """maxSurge, rounded up, and maxUnavailable, rounded down; a half is a whole one where both would be none."""
    rolling = spec["strategy"].get("rollingUpdate") or {}
    surge = _of(rolling.get("maxSurge", "25%"), spec["replicas"], up=True)
    unavailable = _of(rolling.get("maxUnavailable", "25%"), spec["replicas"], up=False)
    return (surge, unavailable) if surge or unavailable else (surge, 1)


def _of(value: int | str, replicas: int, *, up: bool) -> int:
    if isinstance(value, int):
        return value
    share = int(value.removesuffix("%")) * replicas
    return -(-share // 100) if up else share // 100
