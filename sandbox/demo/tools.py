"""Kafka's own command line tools, run in their own pod (sandbox/manifests/tools.yaml)."""

import time

from demo.cluster import Cluster, CommandFailed
from patience import Patience

PAUSE_SECONDS = 2.0


def run(cluster: Cluster, script: str, seconds: float = 240, pause: float = PAUSE_SECONDS) -> str:
    """What the script prints. It is run again until the cluster takes all of it, so it must bear that.

    A cluster in the middle of a migration may refuse for a moment what it takes later: a topic of three replicas, for
    example, while one broker is not registered. Raises CommandFailed with the last refusal once patience is over.
    """
    patience = Patience(seconds)
    while True:
        try:
            return cluster.kubectl("exec", "deployment/tools", "--", "bash", "-ec", script, timeout=seconds)
        except CommandFailed:
            if patience.over:
                raise
            time.sleep(pause)
