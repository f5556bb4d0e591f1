"""The five stories of the demo, each a ConsumerGroupMigration with the end that it is meant to have."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from demo.cluster import Cluster
from demo_groups import world

SHORT: Mapping[str, Any] = {
    "rollout": {"steps": [{"pods": 2, "bakeSeconds": 10}, {"pods": 2, "bakeSeconds": 5}]},
    "gates": {"lagPassSeconds": 5},
    "soakSeconds": 10,
}
"""Times of a demo, not of production."""
TURNS_BACK: Mapping[str, Any] = {"gates": {"lagPassSeconds": 5, "maxStallSeconds": 20}, "onFailure": "RollBack"}
"""Of a story that is to turn back. Every other one pauses: on a busy machine it is late, and nothing else."""


@dataclass(frozen=True, slots=True)
class Story:
    """`before_canary` is done while the migration stands at the hold before its canary, which is then approved."""

    name: str
    words: str
    group: str
    spec: Mapping[str, Any]
    end: str
    because: str = ""
    """The reason that must be on record where it is to end as RolledBack."""
    before_canary: Callable[[Cluster], None] | None = None

    def manifest(self) -> dict[str, Any]:
        """The resource."""
        holds = {"holds": ["Canary"]} if self.before_canary is not None else {}
        return {
            "apiVersion": "switchover.dev/v1alpha1", "kind": "ConsumerGroupMigration",
            "metadata": {"name": self.name.lower()},
            "spec": {"group": self.group, "kafka": {"bootstrapServers": "kafka:9092"}, **SHORT, **holds, **self.spec},
        }


def workload(name: str, template: Mapping[str, str], bridge: Mapping[str, str] | None = None,
             kind: str = "Deployment", images: Mapping[str, str] | None = None) -> dict[str, Any]:
    """An item of spec.workloads whose changes are these variables, and these images: template or bridge -> its full name."""
    changes = {"template": template} | ({"bridge": bridge} if bridge is not None else {})
    item: dict[str, Any] = {"name": name, "kind": kind, "container": "member"}
    for change, env in changes.items():
        item[change] = {"env": [{"name": key, "value": value} for key, value in env.items()]}
    for change, image in (images or {}).items():
        item[change]["image"] = image
    return item


BY_FILE = {"name": "orders", "kind": "Deployment", "container": "member", "template": {
    "patch": "spec: {volumes: [{name: settings, configMap: {name: orders-settings-consumer}}]}"}}
"""An item of spec.workloads by which another ConfigMap is mounted, whose file says the protocol."""
STALLED_CANARY = Story(
    "stalledCanary", "a canary with a bad build, which stalls on one partition", "orders",
    {"protocol": {"to": "Consumer"}, **TURNS_BACK,
     "workloads": [workload("orders", {"GROUP_PROTOCOL": "consumer", "STALL_PARTITION": "first"})]},
    end="RolledBack", because="PartitionStalled")
PROTOCOL_UPGRADE = Story(
    "protocolUpgrade", "from the classic to the consumer protocol, canary first", "orders",
    {"protocol": {"to": "Consumer"}, "workloads": [workload("orders", {"GROUP_PROTOCOL": "consumer"})]},
    end="Succeeded")
DOWNGRADE = Story(
    "downgrade", "and back to the classic protocol", "orders",
    {"protocol": {"to": "Classic"}, "workloads": [workload("orders", {"GROUP_PROTOCOL": "classic"})]},
    end="Succeeded")
REFUSED_CANARY = Story(
    "refusedCanary", "a canary that the brokers refuse: their policy becomes `disabled` behind our back", "orders",
    {"protocol": {"to": "Consumer"}, **TURNS_BACK, "workloads": [workload("orders", {"GROUP_PROTOCOL": "consumer"})]},
    end="RolledBack", because="NotAMember", before_canary=lambda cluster: world.set_policy(cluster, "disabled"))
ASSIGNMENT_STRATEGY = Story(
    "assignmentStrategy", "from range to cooperative-sticky in two bounces, in Java", "payments",
    {"assignmentStrategy": {"to": "cooperative-sticky", "clientFamily": "Java"},
     "workloads": [workload("payments", {"ASSIGNOR": "cooperative-sticky"}, {"ASSIGNOR": "cooperative-sticky,range"})]},
    end="Succeeded")
