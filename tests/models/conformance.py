"""Whether what the real operator lived in a simulated world is a behaviour of the model (trace validation).

Each look at the world is abstracted to the variables of `models.kraft`, and the model must be able to be there at most
`MOVES` moves after the look before. What cannot be seen, such as what the operator knows, may be anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from models.guarded import Model, follow
from models.kraft import BROKERS, CONSTANTS
from simulation.migration_world import MigrationWorld
from simulation.virtual_time import BURIAL_SECONDS, LOOK_SECONDS, RESTART_SECONDS
from switchover.api.kafka_migration import KafkaMigrationStep as Step
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.status import Direction
from switchover.cluster import modes
from switchover.metadata.parity import MigrationState

MOVES = 4
"""From look to look, at most: a broker stops, another one becomes the controller, and the operator goes on, say."""
REGISTERS_BEFORE = 0.7
"""Seconds before its port opens in which a broker of the simulated world is heard by the controllers."""
MODES = {Mode.ZOOKEEPER: "ON_ZOOKEEPER", Mode.MIGRATION: "IN_MIGRATION", Mode.KRAFT: "ON_KRAFT"}
STEPS = {
    Step.PROVISION_CONTROLLERS: "PROVISION_CONTROLLERS", Step.ENABLE_MIGRATION: "ENABLE_MIGRATION",
    Step.COPY_METADATA: "COPY_METADATA", Step.DUAL_WRITE: "COPY_METADATA", Step.MOVE_BROKERS: "MOVE_BROKERS",
    Step.SOAK: "SOAK", Step.FINALIZE: "FINALIZE"}
"""Those of the product; what comes before is "not begun" in the model."""
BEYOND = (Step.HAND_OVER, Step.RELEASE_ZOOKEEPER)
"""Steps after the end of the model."""


@dataclass
class Life:
    """What was seen of one world: the time, and the values of variables."""

    looks: list[tuple[float, Mapping[str, int]]] = field(default_factory=list)

    def look(self, world: MigrationWorld) -> None:
        """Look at the world; of looks that find the same the first one counts."""
        if world.step in BEYOND:
            return
        seen = abstracted(world)
        if not self.looks or self.looks[-1][1] != seen:
            self.looks.append((world.timeline.now(), seen))

    def before(self, world: MigrationWorld) -> "Life":
        """The part of it that had been when this world was left: since then the operator has ended, and none lived."""
        left = world.timeline.now() - RESTART_SECONDS - 2 * BURIAL_SECONDS - LOOK_SECONDS / 2
        return Life([each for each in self.looks if each[0] < left])


def abstracted(world: MigrationWorld) -> dict[str, int]:
    """The world of this moment in the model's variables, as far as they can be seen."""
    return _brokers(world) | _controllers(world) | _zookeeper(world) | _operator(world)


def _brokers(world: MigrationWorld) -> dict[str, int]:
    """A broker whose pod is away may have any mode."""
    seen = {}
    for i in BROKERS:
        node = world.kafka.nodes.get(f"kafka-{i}")
        seen[f"up_{i}"] = int(node is not None and world.timeline.now() >= node.open_at - REGISTERS_BEFORE)
        if node is not None:
            seen[f"mode_{i}"] = CONSTANTS[MODES[Mode(node.mode)]]
            by_kraft = node.mode == Mode.MIGRATION and node.names is not None and not node.names.ephemeral
            seen[f"names_kraft_{i}"] = int(by_kraft)
    return seen


def _controllers(world: MigrationWorld) -> dict[str, int]:
    """The log is seen where a controller runs that has it: the simulated world remembers logs of deleted volumes."""
    kafka = world.kafka
    runs = any(node.mode in modes.RUNNING_CONTROLLERS for node in kafka.nodes.values())
    stands = any(node.mode == Mode.STOPPED for node in kafka.nodes.values())
    seen = {"controllers": CONSTANTS["RUNNING" if runs else "STOPPED" if stands else "ABSENT"],
            "leader": int(kafka.leader is not None)}
    if kafka.log is not None and kafka.leader is not None:
        state = kafka.log.state
        seen["log"] = CONSTANTS["FINAL" if state is MigrationState.POST_MIGRATION else
                                "COPIED" if state is MigrationState.MIGRATION else "EMPTY"]
        seen["raft_epoch"] = kafka.log.epoch
        seen |= {f"registered_{i}": int(i + 1 in kafka.log.brokers) for i in BROKERS}
        seen["unwritten"] = int(kafka.log.copied and bool(kafka.log.pending))
    return seen


def _zookeeper(world: MigrationWorld) -> dict[str, int]:
    tree = world.kafka.tree
    holder = CONSTANTS["NOBODY"] if tree.controller is None else (
        CONSTANTS["KRAFT"] if tree.claimed else tree.controller.node_id)
    offset = CONSTANTS["NO_NODE"] if tree.migration is None else (
        CONSTANTS["WITH_OFFSET" if tree.migration.offset > 0 else "WITHOUT_OFFSET"])
    return {"controller": holder, "controller_epoch": tree.controller_epoch, "migration": offset,
            "partition_epoch": tree.partition_epoch}


def _operator(world: MigrationWorld) -> dict[str, int]:
    """What is on record. The way from the soak back begins in MoveBrokers for the model."""
    progress = world.status.get("progress") or {}
    back = progress.get("direction") == Direction.BACKWARD
    step = STEPS.get(progress.get("step", ""), "NOT_BEGUN")
    return {"direction": CONSTANTS["BACK" if back else "FORWARD"],
            "step": CONSTANTS["MOVE_BROKERS" if back and step == "SOAK" else step]}


def validated(model: Model, life: Life) -> int:
    """In how many states the model may have been at one look, at most; AssertionError at the first look that fits none."""
    return max(map(len, follow(model, (seen for _, seen in life.looks), MOVES)))
