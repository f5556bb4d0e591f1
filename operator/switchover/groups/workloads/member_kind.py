"""What a plan wants of a workload whose pods are members: each kind of workload answers it by one class (`kinds.py`).

A source is the workload as it was seen, an original what is on record of it from before. What is not abstract holds for a
kind whose controller takes a pod away before it makes the next, by its own settings alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from switchover.engine.effects import Effect
from switchover.engine.gate import Verdict
from switchover.groups.picture import Picture
from switchover.kubernetes.members import MemberPod, MemberWorkload


class MemberKind(ABC):
    """One kind of workload."""

    rises: bool = False
    """Whether new pods run next to those that they are to follow, unless `spec.rollout.surge` is 0."""

    def check_movable(self, picture: Picture, source: MemberWorkload) -> None:
        """Raises Unsupported where its pods cannot be replaced batch by batch."""
        return

    def is_whole(self, source: MemberWorkload) -> bool:
        """Whether no pod of an earlier template is left, where that is asked."""
        return True

    def own_marks(self, pod: MemberPod) -> Iterable[str]:
        """What of a pod's name its successor does not have."""
        return ()

    @abstractmethod
    def write(self, picture: Picture, source: MemberWorkload, wanted: Mapping[str, Any], purpose: str) -> Iterable[Effect]:
        """What gives it that template, with no pod replaced by that alone: it is held first. One change a pass."""

    @abstractmethod
    def roll(self, picture: Picture, source: MemberWorkload) -> Iterable[Effect]:
        """What makes as many of its pods be of the template as slots are assigned to it. One change a pass."""

    @abstractmethod
    def pod_in(self, picture: Picture, source: MemberWorkload, slot: str) -> MemberPod | None:
        """The pod of its template that fills a slot, once it is Ready; it has the template of the slot's mode."""

    def fall(self, source: MemberWorkload) -> Iterable[Effect]:
        """What has pods of earlier templates leave, Ready or not, where those of the template have risen next to them."""
        return ()

    def find_lost_hold(self, picture: Picture, source: MemberWorkload) -> Verdict | None:
        """Who has changed, while its pods are moved, what holds them; None where it stands, or is not looked for."""
        return None

    def hold_again(self, source: MemberWorkload) -> Iterable[Effect]:
        """After `find_lost_hold`: nobody leaves from now on."""
        return ()

    def can_undo(self, source: MemberWorkload) -> bool:
        """Whether `kubectl rollout undo` does something to it as it is now."""
        return True

    def is_given_back(self, picture: Picture, source: MemberWorkload) -> bool:
        """Whether it rolls by its own settings, claimed as it is, so that it cannot be rolled back any more."""
        return False

    @abstractmethod
    def is_restored(self, source: MemberWorkload, original: Mapping[str, Any]) -> bool:
        """Whether it has its own settings."""

    @abstractmethod
    def restore(self, source: MemberWorkload, original: Mapping[str, Any]) -> Iterable[Effect]:
        """What gives them back, once no pod would be replaced by that."""

    def left_held(self, source: MemberWorkload) -> str:
        """What of our hold is left on it, for people; "" for nothing."""
        return ""
