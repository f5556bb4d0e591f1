"""Whether old consumers would find the brokers: where one runs on KRaft, the way back to them is lost."""

from switchover.engine.gate import Gate, Verdict
from switchover.groups.coordination.visible_brokers import check_brokers_visible
from switchover.groups.picture import Picture
from switchover.outside.observed import Known

RESTART = 60.0
"""Seconds for which a broker in ZooKeeper mode may be missing in ZooKeeper: it restarts."""


def check_brokers(picture: Picture) -> Verdict:
    """Every broker that Kafka lists is registered in ZooKeeper."""
    seen = picture.facts.zookeeper
    return check_brokers_visible(Known(picture.facts.brokers, picture.now),
                                 Known(seen.value.brokers, seen.at) if isinstance(seen, Known) else seen)


BROKERS_VISIBLE: Gate[Picture] = Gate("BrokersVisible", check_brokers, grace=RESTART)
