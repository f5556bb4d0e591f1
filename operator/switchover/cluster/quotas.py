"""Quotas at which dual write stands still, and what is done about them: by then they are in KRaft's metadata, where no tool
of Kafka's gets at them while brokers are not told who leads (docs/facts/rehearsal.md)."""

from switchover.cluster.effects import SetQuota
from switchover.cluster.picture import Picture
from switchover.cluster.reading import leading_address, log_left_behind
from switchover.engine.effects import Effect
from switchover.metadata.kafka_config import Unwritable, unwritable


def in_the_way(picture: Picture) -> tuple[Unwritable, ...]:
    """Those that KRaft has while dual write does not come on; none where it does, or where that cannot be seen."""
    log = log_left_behind(picture)
    return unwritable(log.metadata.quotas) if log is not None else ()


def put_right(picture: Picture) -> tuple[Effect, ...]:
    """One that Kafka does not know is removed: it has no effect. One with a decimal becomes the whole number below."""
    leader = leading_address(picture)
    if leader is None:
        return ()
    return tuple(SetQuota(leader, each.entity, each.key, each.instead) for each in in_the_way(picture))


def told(found: Unwritable) -> str:
    """What becomes of one, with its value of before: it can be set again."""
    return f"{found} = {found.value!r} " + ("removed" if found.instead is None else f"set to {found.instead:.0f}")
