"""Rollouts of slots, there and back, as every plan of a ConsumerGroupMigration has them."""

from switchover.engine.gate import Gate
from switchover.engine.rollout import Rollout
from switchover.groups import slots
from switchover.groups.picture import ORIGINAL, Picture

Gates = tuple[Gate[Picture], ...]


def to(mode: str, *, before: Gates, after: Gates, canary: bool = False, after_canary: bool = False) -> Rollout[Picture]:
    """A rollout of slots forward. `canary` is the first batch alone, `after_canary` the rest."""
    sizes = slots.canary_size if canary else slots.sizes_after_canary if after_canary else slots.sizes
    return Rollout(
        mode=mode, left=slots.left(mode, only_canary=canary), sight=slots.sight, assign=slots.assign,
        replace=slots.evict, sizes=sizes, before=before, after=after)


def back_to(mode: str, *, after: Gates, before: Gates = ()) -> Rollout[Picture]:
    """A rollout of slots back. It asks for members and not for health: what is not healthy may be why it goes back."""
    return Rollout(
        mode=mode, left=slots.left(mode), sight=slots.sight, assign=slots.assign, replace=slots.evict,
        sizes=slots.sizes_without_bake, before=before, after=after)


def restart_one(*, after: Gates) -> Rollout[Picture]:
    """One pod is replaced where it is."""
    return Rollout(
        mode=ORIGINAL, left=slots.to_cure, sight=slots.sight, assign=slots.assign, replace=slots.evict,
        sizes=slots.one, before=(), after=after, restart=True)
