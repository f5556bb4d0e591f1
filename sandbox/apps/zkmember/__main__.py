"""A sample application of the migration-enabled consumer that writes its history: python -m zkmember.

Settings: HISTORY (a file, or - for standard output), TOPIC, STREAMS, COMMIT_INTERVAL (seconds), CLOSE_SECONDS, and what
`configuration` reads.
"""

import logging
import os
import sys
from collections.abc import Mapping
from typing import Any

from history.recorder import Recorder, opened
from switchover.consumer.migration_consumer import BadConfiguration, MigrationConsumer, Unreachable
from switchover.runtime.signals import on_signals
from zkmember.membership import Membership


def configuration(environment: Mapping[str, str]) -> dict[str, Any]:
    """From GROUP, ZOOKEEPER_CONNECT, BOOTSTRAP_SERVERS (may be absent), STRATEGY, COMMITS (automatic or manual) and
    CONSUMER_<KEY>, the consumer's own keys with _ for every dot.

    No consumer.id: the consumer names itself after its host as the old one does, and the operator finds the pod by that.
    """
    given = {
        "group.id": environment.get("GROUP", "orders"),
        "zookeeper.connect": environment.get("ZOOKEEPER_CONNECT", "zookeeper:2181"),
        "partition.assignment.strategy": environment.get("STRATEGY", "range"), "auto.offset.reset": "smallest",
        "enable.auto.commit": environment.get("COMMITS") == "automatic", "auto.commit.interval.ms": 500,
        "topic.metadata.refresh.interval.ms": 10_000,
    }
    if "BOOTSTRAP_SERVERS" in environment:
        given["bootstrap.servers"] = environment["BOOTSTRAP_SERVERS"]
    return given | {key.removeprefix("CONSUMER_").replace("_", ".").lower(): value for key, value in environment.items()
                    if key.startswith("CONSUMER_")}


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("kazoo").setLevel(logging.WARNING)
    stop = on_signals()
    environment = os.environ
    recorder = Recorder(opened(environment.get("HISTORY", "-")), environment.get("HOSTNAME", "member"),
                        words=f"group {environment.get('GROUP', 'orders')}, migration-enabled")
    try:
        membership = Membership(lambda on_commit: MigrationConsumer(configuration(environment) | {"on_commit": on_commit}),
                                recorder, manual=environment.get("COMMITS") != "automatic",
                                commit_interval=float(environment.get("COMMIT_INTERVAL", "1")))
        membership.join(environment.get("TOPIC", "orders"), int(environment.get("STREAMS", "1")))
    except (BadConfiguration, Unreachable) as problem:
        print(f"zkmember: {problem}", file=sys.stderr)
        return 2
    while not stop.is_set():
        membership.turn()
    membership.leave(float(environment.get("CLOSE_SECONDS", "15")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
