"""Whether controllers reach the brokers, reported by an init container when a controller's pod starts.

Once Kafka has claimed the cluster its controllers tell every broker who leads what, over the brokers' own inter-broker
listener. A network that lets nobody but brokers in there shows only then, as brokers that hear of nothing. So it is tried
before, from the very pods; and where it reaches a broker, the door tries whether it is let in (door/door.sh).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from switchover.cluster.door import mount
from switchover.cluster.door.scripts import REACH

CONTAINER = "switchover-reach"
_FIRST, _ADDRESS = re.compile(r"reach 1 (\d+)"), re.compile(r"[\w.:\[\]%-]{1,300}", re.ASCII)


def init_container(addresses: Sequence[str], controller: Mapping[str, Any]) -> dict[str, Any]:
    """The init container for these `host:port`, with the image, resources and security of `controller`."""
    return mount.beside(controller, CONTAINER, ["bash", "-c", REACH, CONTAINER, *addresses],
                        [{"name": mount.RUN_VOLUME, "mountPath": mount.RUN}])


def parse(message: str) -> tuple[str, ...] | None:
    """The addresses that were not reached, in a termination message; None for one that is no report, or not whole."""
    first, *missed = message.rstrip("\n").split("\n")
    told = _FIRST.fullmatch(first)
    whole = told is not None and len(missed) <= int(told[1]) and all(map(_ADDRESS.fullmatch, missed))
    return tuple(sorted(missed)) if whole else None
