"""Whether old consumers would find the brokers: they look into `/brokers/ids`, and KRaft writes none. Where a broker runs on
KRaft, the way back to them is lost."""

from collections.abc import Iterable

from switchover.answers.observed import Known, Observed
from switchover.engine.gate import Gate, Verdict, fail, passed, seen, unknown
from switchover.groups.picture import Picture
from switchover.reasons.cluster import BROKERS_ON_KRAFT, BROKERS_UNKNOWN, ZOOKEEPER_UNKNOWN


def check_brokers_visible(listed: Observed[Iterable[int]], registered: Observed[Iterable[int]]) -> Verdict:
    """Consumers that ZooKeeper coordinates find every broker, so a coordination may go back to ZooKeeper.

    `listed` is what the Kafka protocol lists, `registered` what `/brokers/ids` holds. One that restarts in ZooKeeper mode
    may be missing there for a moment.
    """
    brokers = frozenset(seen(listed, BROKERS_UNKNOWN, "brokers"))
    known = seen(registered, ZOOKEEPER_UNKNOWN, "/brokers/ids")
    if not brokers:
        return unknown(BROKERS_UNKNOWN, "Kafka lists no broker", subject="brokers")
    if invisible := sorted(brokers.difference(known)):
        named = ", ".join(map(str, invisible))
        return fail(BROKERS_ON_KRAFT, f"not registered in ZooKeeper: {named}. Brokers on KRaft are not, and consumers that"
                    " ZooKeeper coordinates do not find them", subject=f"broker {named}",
                    observed=f"{len(invisible)} of {len(brokers)} brokers", threshold="0",
                    unblocks="roll the KafkaMigration back until every broker runs in ZooKeeper mode; once it has finalized,"
                    " nothing does")
    return passed("every broker is registered in ZooKeeper")


RESTART = 60.0
"""Seconds for which a broker in ZooKeeper mode may be missing in ZooKeeper: it restarts."""


def check_brokers(picture: Picture) -> Verdict:
    """Every broker that Kafka lists is registered in ZooKeeper."""
    world = picture.facts.zookeeper
    return check_brokers_visible(Known(picture.facts.brokers, picture.now),
                                 Known(world.value.brokers, world.at) if isinstance(world, Known) else world)


BROKERS_VISIBLE: Gate[Picture] = Gate("BrokersVisible", check_brokers, grace=RESTART)
