"""What must hold before anything is touched; docs/preflight.md lists it.

A chain of pure checks over facts that were gathered once. A check finds Blockers, which shut its gate, Warnings and Infos,
which do not, each with its cure. docs/preflight.md lists them.
"""

from switchover.cluster.picture import Picture
from switchover.cluster.preflight import (
    brokers,
    cluster,
    configuration,
    ensemble,
    groups,
    objects,
    ownership,
    security,
    times,
    topic_ids,
)
from switchover.cluster.preflight.cluster import BROKERS_IDENTIFIED as BROKERS_IDENTIFIED
from switchover.cluster.preflight.cluster import BROKERS_ON_RECORD as BROKERS_ON_RECORD
from switchover.cluster.preflight.configuration import OF_CONTROLLERS as OF_CONTROLLERS
from switchover.engine.gate import Gate

GATES: tuple[Gate[Picture], ...] = (
    *configuration.CHECKS,
    *configuration.CONTROLLERS,
    *configuration.CLASSES,
    *security.CHECKS,
    *security.RIGHTS,
    *objects.CHECKS,
    *ownership.CHECKS,
    *ensemble.CHECKS,
    *groups.CHECKS,
    *cluster.CHECKS,
    *topic_ids.CHECKS,
    *brokers.CHECKS,
    *times.CHECKS,
)
