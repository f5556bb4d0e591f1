"""Pictures of a group's pods at the end of each batch, made from the plans of a ConsumerGroupMigration. `make pictures`
writes them.

The plans' own rollouts say which batches there are and how large they are, which pods they take, and what these become.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from step_pictures import ACT, INK, NEW, OLD, PICTURES, text
from switchover.api.consumer_group_migration import ConsumerGroupMigrationSpec
from switchover.engine.plan import Step
from switchover.engine.position import NodeRecord, Position
from switchover.engine.rollout import Rollout, size_of
from switchover.groups import slots
from switchover.groups.picture import ORIGINAL, Facts, Picture
from switchover.groups.plan import plan_of

PODS = 5
WORKLOAD = {"name": "orders", "kind": "StatefulSet", "container": "app", "template": {"env": []}}
BATCHES = {"steps": [{"pods": 1, "bakeSeconds": 300}, {"pods": 2, "bakeSeconds": 60}]}
SPECS: Mapping[str, Mapping[str, Any]] = {
    "protocol": {"protocol": {"to": "Consumer"}},
    "protocol-bridged": {"protocol": {"to": "Consumer"}, "bridge": True},
    "strategy": {"assignmentStrategy": {"to": "cooperative-sticky"}, "bridge": True},
    "coordination": {"coordination": {"to": "Kafka"}, "zookeeper": {"connect": "zookeeper:2181"}, "bridge": True},
}
"""The plans that are drawn: what is asked for, and whether the clients are changed in two goes."""
COLOURS = {"Original": OLD, "Intermediate": "#5b3fa8", "Target": NEW}
DIM = "#52606d"
WORDS = {"Original": "as it was", "Intermediate": "bridge", "Target": "template"}


@dataclass(frozen=True, slots=True)
class Scene:
    """The modes of the pods at the end of a batch, or of a step that replaces none of them (batch 0)."""

    step: Step[Picture]
    batch: int
    modes: tuple[str, ...]
    replaced: frozenset[int] = frozenset()


def spec_of(name: str) -> ConsumerGroupMigrationSpec:
    """A migration of one workload, with a canary and batches of two."""
    asked = dict(SPECS[name])
    bridge: Mapping[str, Any] = {"bridge": {"env": []}} if asked.pop("bridge", False) else {}
    return ConsumerGroupMigrationSpec.model_validate({
        "kafka": {"bootstrapServers": "kafka:9092"}, "group": "orders", "rollout": BATCHES,
        "workloads": [{**WORKLOAD, **bridge}], **asked})


def scenes(spec: ConsumerGroupMigrationSpec) -> Iterator[Scene]:
    """Every step in its order, one scene for each of its batches."""
    at = Position(nodes={f"orders/{index}": NodeRecord(index, ORIGINAL) for index in range(PODS)})
    for step in plan_of(spec).steps:
        at = at.enter(step.name, 0.0)
        for rollout in step.forward.rollouts:
            for nodes in _batches(rollout, spec, at):
                at = at.with_batch(nodes, rollout.mode, 0.0)
                yield Scene(step, at.batches_done + 1, _modes(at), frozenset(at.nodes[name].node_id for name in nodes))
                at = at.batch_done()
        if not step.forward.rollouts:
            yield Scene(step, 0, _modes(at))


def _batches(rollout: Rollout[Picture], spec: ConsumerGroupMigrationSpec, at: Position) -> Iterator[Sequence[str]]:
    """The pods of one batch after the other; of a canary's rollout the first batch alone."""
    while left := at.left(sorted(at.nodes, reverse=True), rollout.mode):
        size = size_of(rollout, Picture("orders", "default", "", spec, at, Facts(), 0.0))
        yield left[: size.pods]
        at = at.with_batch(left[: size.pods], rollout.mode, 0.0).batch_done()
        if rollout.sizes is slots.canary_size:
            return


def _modes(at: Position) -> tuple[str, ...]:
    return tuple(at.nodes[name].assigned for name in sorted(at.nodes))


# --- drawing ------------------------------------------------------------------------------------------------------------

HEAD = ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" role="img" font-family="sans-serif" '
        'font-size="13"><title>{title}</title><desc>{says}</desc>'
        '<rect width="760" height="{height}" rx="8" fill="#ffffff"/>')
ROW = 58


def says(found: Sequence[Scene]) -> str:
    """The picture in words."""
    told = [f"{scene.step.name}, batch {scene.batch}: {', '.join(f'orders-{index}' for index in sorted(scene.replaced))} "
            f"to {WORDS[scene.modes[max(scene.replaced)]]}" for scene in found if scene.replaced]
    return "; ".join(told) + "."


def drawn(name: str, found: Sequence[Scene]) -> str:
    """The picture of a plan as SVG, a row for each batch; a red dot marks the pods that the batch replaces."""
    height = 20 + ROW * len(found) + 34
    parts = [HEAD.format(height=height, title=f"The batches of {name}", says=says(found))]
    for at, scene in enumerate(found):
        y = 20 + ROW * at
        first = at == 0 or found[at - 1].step is not scene.step
        parts.append(text(20, y + 16, scene.step.name if first else "", more='font-weight="bold"'))
        if scene.step.back is None:
            parts.append(text(20, y + 34, "the point of no return", ACT))
        elif scene.batch:
            parts.append(text(20, y + 34, f"batch {scene.batch}", DIM))
        for pod, mode in enumerate(scene.modes):
            x = 270 + 96 * pod
            parts.append(f'<rect x="{x}" y="{y + 2}" width="88" height="42" rx="6" fill="#ffffff" stroke="{COLOURS[mode]}" '
                         f'stroke-width="{3 if pod in scene.replaced else 1.5}"/>'
                         + text(x + 44, y + 19, f"orders-{pod}", INK, 'text-anchor="middle"')
                         + text(x + 44, y + 36, WORDS[mode], COLOURS[mode], 'text-anchor="middle"'))
            if pod in scene.replaced:
                parts.append(f'<circle cx="{x + 81}" cy="{y + 8}" r="5" fill="{ACT}"/>')
    parts.append(f'<circle cx="28" cy="{height - 14}" r="5" fill="{ACT}"/>' + text(42, height - 9, "replaced in this batch"))
    return "".join(parts) + "</svg>\n"


def pictures() -> Mapping[str, str]:
    """Every picture by its name."""
    return {f"group-{name}.svg": drawn(name, tuple(scenes(spec_of(name)))) for name in SPECS}


if __name__ == "__main__":
    for name, picture in pictures().items():
        (PICTURES / name).write_text(picture)
