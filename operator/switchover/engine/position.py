"""The position of a migration: all that is on record in `status` and that decisions rest on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from switchover.api.status import Direction

PREFLIGHT = "Preflight"
"""The first step of every plan. It changes nothing, and there is a plan to approve only after it: it cannot be held."""


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """What is on record for one node: the mode assigned to it and the pod to be evicted for it.

    `settled` is False from the choice of its batch until that batch is done: until then the node may run in either mode.
    """

    node_id: int
    assigned: str
    evicting: str = ""
    evictions: int = 0
    settled: bool = True


@dataclass(frozen=True, slots=True)
class Batch:
    """The nodes that are moved together; `proven` is when their gates had all passed and the bake began. A `rescue` is the
    remediation of a step.
    """

    index: int
    nodes: tuple[str, ...]
    started: float
    proven: float | None = None
    rescue: bool = False


@dataclass(frozen=True, slots=True)
class Position:
    """Where the migration stands. Times are seconds since the epoch.

    `opened` is when the step's entry gates had passed: no effect of the step happens before it is on record.
    `finished` is True at either end of the plan. `failure` is the reason for which the migration rolled back by itself.
    `rescued` are the nodes that the step has restarted as its remediation: each once.
    """

    attempt: int = 1
    step: str = ""
    direction: Direction = Direction.FORWARD
    entered: float = 0.0
    opened: float | None = None
    batch: Batch | None = None
    batches_done: int = 0
    finished: bool = False
    failure: str = ""
    nodes: Mapping[str, NodeRecord] = field(default_factory=dict)
    rescued: tuple[str, ...] = ()

    def enter(self, step: str, now: float) -> "Position":
        """The same migration at the start of `step`."""
        return replace(self, step=step, entered=now, opened=None, batch=None, batches_done=0, rescued=())

    def turn(self, direction: Direction, now: float) -> "Position":
        """The same step the other way. A batch is dropped: its nodes have not settled. From an end, a new attempt begins."""
        again = self.enter(self.step, now)
        if self.finished:
            return replace(again, direction=direction, finished=False, failure="", attempt=self.attempt + 1, nodes={})
        return replace(again, direction=direction)

    def with_batch(self, nodes: Iterable[str], mode: str, now: float) -> "Position":
        """The next batch with its nodes assigned to `mode`; "": each to the mode that it has."""
        chosen = tuple(nodes)
        return replace(
            self,
            batch=Batch(self.batches_done + 1, chosen, now),
            nodes={
                **self.nodes,
                **{name: replace(self.nodes[name], assigned=mode or self.nodes[name].assigned, evicting="", evictions=0,
                                 settled=False) for name in chosen},
            },
        )

    def as_rescue(self) -> "Position":
        """The same, with the batch on record as the remediation of the step."""
        assert self.batch is not None
        return replace(self, batch=replace(self.batch, rescue=True), rescued=(*self.rescued, *self.batch.nodes))

    def batch_done(self) -> "Position":
        """The batch's nodes have settled in their mode. A rescue is none of the batches that the rollout counts."""
        assert self.batch is not None
        return replace(self.batch_void(), batches_done=self.batches_done + (not self.batch.rescue))

    def batch_void(self) -> "Position":
        """A batch of restarts is off: its nodes have settled in their mode as before, and count as not restarted."""
        assert self.batch is not None
        settled = {name: replace(self.nodes[name], settled=True) for name in self.batch.nodes}
        return replace(self, batch=None, nodes={**self.nodes, **settled})

    def unproven(self) -> "Position":
        """The bake of the batch is off: its gates must pass again first."""
        assert self.batch is not None
        return replace(self, batch=replace(self.batch, proven=None))

    def left(self, nodes: Iterable[str], mode: str) -> list[str]:
        """Those of `nodes` that are not assigned to `mode` yet, or were and have not settled in it."""
        return [name for name in nodes if self.nodes[name].assigned != mode or not self.nodes[name].settled]

    def with_node(self, name: str, record: NodeRecord) -> "Position":
        return replace(self, nodes={**self.nodes, name: record})
