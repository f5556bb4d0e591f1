"""What must hold before anything is touched; docs/preflight.md lists it.

A chain of pure checks over facts that were gathered once. A check finds Blockers, which shut its gate, Warnings and Infos,
which do not, each with its cure. docs/preflight.md lists them.
"""

from switchover.cluster.picture import Picture
from switchover.cluster.preflight import (
    brokers,
    classes,
    clocks,
    cluster,
    configuration,
    controllers,
    disks,
    ensemble,
    objects,
    ownership,
    residue,
    rights,
    security,
    topic_ids,
    watched_groups,
    windows,
    zookeeper_groups,
)
from switchover.cluster.preflight.cluster import BROKERS_IDENTIFIED as BROKERS_IDENTIFIED
from switchover.cluster.preflight.cluster import BROKERS_ON_RECORD as BROKERS_ON_RECORD
from switchover.cluster.preflight.controllers import OF_CONTROLLERS as OF_CONTROLLERS
from switchover.engine.gate import Gate

GATES: tuple[Gate[Picture], ...] = (
    *configuration.CHECKS,
    *controllers.CHECKS,
    *classes.CHECKS,
    *security.CHECKS,
    *rights.CHECKS,
    *objects.CHECKS,
    *ownership.CHECKS,
    *residue.CHECKS,
    *ensemble.CHECKS,
    *zookeeper_groups.CHECKS,
    *watched_groups.CHECKS,
    *cluster.CHECKS,
    *topic_ids.CHECKS,
    *brokers.CHECKS,
    *disks.CHECKS,
    *windows.CHECKS,
    *clocks.CHECKS,
)
