"""Figures of the load that runs beside the migration, from the histories that its pods keep (sandbox/apps/load)."""

import json
import time
from typing import Any

from demo.cluster import Cluster, CommandFailed
from demo.summary import Gaps, Traffic
from load.accounting import longest_gap
from patience import Patience

_LOAD = ("python", "-m", "load")


def gaps(cluster: Cluster, start: float, end: float) -> Gaps:
    """The longest gap of one partition between two times (seconds, epoch), acknowledged and delivered.

    Waits for histories that reach the end of the window: they are written once a second.
    """
    return Gaps(_longest(cluster, "producer", start, end), _longest(cluster, "consumer", start, end))


def verify(cluster: Cluster) -> Traffic:
    """Read the topic again completely and hold it against what was acknowledged. Raises CommandFailed."""
    answer = cluster.kubectl("exec", "deployment/producer", "--", *_LOAD, "verify", timeout=400)
    found: dict[str, Any] = json.loads(answer)
    if found["strangers"]:
        raise CommandFailed(f"the topic holds {found['strangers']} records that the producer did not write")
    return Traffic(acknowledged=found["acknowledged"], lost=found["lost"], duplicates=found["duplicates"])


def _longest(cluster: Cluster, app: str, start: float, end: float) -> float:
    patience = Patience(60)
    while True:
        histories = [_history(cluster, pod["metadata"]["name"]) for pod in cluster.items("pods", "-l", f"app={app}")]
        if all(history["written"] >= end for history in histories):
            return round(longest_gap(histories, start, end).seconds, 2)
        if patience.over:
            raise CommandFailed(f"a pod of app={app} does not write its history any more; look at its log")
        time.sleep(1)


def _history(cluster: Cluster, pod: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cluster.kubectl("exec", pod, "--", *_LOAD, "history"))
    return found
