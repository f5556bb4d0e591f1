"""Whether controllers reach the brokers, reported by an init container when a controller's pod starts.

Once Kafka has claimed the cluster its controllers tell every broker who leads what, over the brokers' own inter-broker
listener. A network that lets nobody but brokers in there shows only then, as brokers that hear of nothing. So brokers are
asked before, from the very pods; and where one answers, the door tries whether it lets them in (door/door.sh).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from switchover.cluster.door import mount
from switchover.cluster.door.scripts import REACH
from switchover.kubernetes.reports import REACH as REACH_CONTAINER


def init_container(addresses: Sequence[str], controller: Mapping[str, Any]) -> dict[str, Any]:
    """The init container for these `host:port`, or tls://host:port, with the image, resources and security of
    `controller`."""
    return mount.beside(controller, REACH_CONTAINER, ["bash", "-c", REACH, REACH_CONTAINER, *addresses],
                        [{"name": mount.FILES_VOLUME, "mountPath": mount.RUN}])
