"""Pictures of brokers, controllers and ZooKeeper at the end of each step, made from the plan. `make pictures` writes them.

The plan's own rollouts say which node is in which mode, and its gates when Kafka's controllers claim the cluster, when they
write to ZooKeeper, when they cease to, and when ZooKeeper stands still.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from switchover.api.kafka_migration import NodeMode
from switchover.cluster import goals, modes, nodes, rollback
from switchover.cluster.gates import dual_write, ending
from switchover.cluster.picture import Picture
from switchover.cluster.plan import PLAN
from switchover.engine.plan import Plan, Step
from switchover.engine.rollout import Rollout

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
BROKERS: Mapping[str, tuple[str, str]] = {
    NodeMode.ZOOKEEPER: ("ZooKeeper", "as it was"), NodeMode.ZOOKEEPER_PINNED: ("ZooKeeper", "Kafka 3.9"),
    NodeMode.ZOOKEEPER_RAISED: ("ZooKeeper", "protocol 3.9"), NodeMode.MIGRATION: ("ZooKeeper", "migration flag"),
    NodeMode.KRAFT: ("KRaft", "by edits"), NodeMode.OWN_KRAFT: ("KRaft", "your settings"),
}
"""The mode of a broker in two lines."""
CONTROLLERS: Mapping[str, tuple[str, str]] = {
    NodeMode.MIGRATION_CONTROLLER: ("controller", "migrating"), NodeMode.KRAFT_CONTROLLER: ("controller", "finalized")}
ONLY = {"UpgradeBrokers": "only with spec.upgrade", "RaiseProtocolVersion": "only where the protocol version is too old",
        "HandOver": "brokers: only with handOver OwnConfiguration"}
"""Steps that restart nothing in many migrations."""
ALL, FIRST = (0, 1, 2), (0,)
WHICH = {
    nodes.brokers_to_pinned: ALL, nodes.brokers_to_raised: ALL, nodes.all_but_the_last_to_migration: (0, 1),
    nodes.the_last_to_migration: (2,), nodes.brokers_to_kraft: ALL, nodes.brokers_to_own_kraft: ALL,
    rollback.to_fail_over: FIRST, nodes.controllers_to_kraft: ALL,
    nodes.controller_to_start_again: FIRST, nodes.controller_to_start_without_zookeeper: FIRST,
}
"""Which of three nodes a rollout is about."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The cluster at the end of a step, with three brokers, and what the step did to come there."""

    brokers: tuple[str, ...] = (NodeMode.ZOOKEEPER,) * 3
    controllers: tuple[str, ...] = ()
    restarted: frozenset[tuple[str, int]] = frozenset()
    claimed: bool = False
    dual_write: bool = False
    zookeeper: bool = True


def after(step: Step[Picture], scene: Scene) -> Scene:
    """The scene at the end of a step that began in that one. Raises ValueError for a mode that has no picture."""
    leg = step.forward
    scene = replace(scene, restarted=frozenset())
    if leg.goal is goals.claim_and_provision:
        scene = replace(scene, controllers=(NodeMode.MIGRATION_CONTROLLER,) * 3,
                        restarted=frozenset(("controller", index) for index in range(3)))
    for rollout in leg.rollouts:
        scene = rolled(rollout, scene)
    if dual_write.CLAIMED in leg.done:
        scene = replace(scene, claimed=True)
    if dual_write.DUAL_WRITE in leg.done:
        scene = replace(scene, dual_write=True)
    if ending.DUAL_WRITE_ENDED in leg.done:
        scene = replace(scene, dual_write=False)
    return replace(scene, zookeeper=ending.ZOOKEEPER_STOPPED not in leg.void)


def rolled(rollout: Rollout[Picture], scene: Scene) -> Scene:
    """The scene after a rollout: the restart of one broker in the mode that it has, or another mode for some nodes."""
    if rollout.mode in BROKERS and rollout.restart:
        return replace(scene, restarted=scene.restarted | {("broker", 0)}) if rollout.mode in scene.brokers else scene
    if rollout.left not in WHICH or rollout.mode not in {**BROKERS, **CONTROLLERS}:
        raise ValueError(f"a rollout to mode {rollout.mode} has no picture")
    which = WHICH[rollout.left]
    if rollout.mode in BROKERS:
        now = tuple(rollout.mode if at in which else mode for at, mode in enumerate(scene.brokers))
        return replace(scene, brokers=now, restarted=scene.restarted | {("broker", at) for at in which})
    now = tuple(rollout.mode if at in which else mode for at, mode in enumerate(scene.controllers))
    return replace(scene, controllers=now, restarted=scene.restarted | {("controller", at) for at in which})


def scenes(plan: Plan[Picture] = PLAN) -> Iterator[tuple[Step[Picture], Scene]]:
    """Each step with the scene at its end. What only some migrations do is not there any more in the next one."""
    scene = Scene()
    for step in plan.steps:
        end = after(step, scene)
        yield step, end
        scene = scene if step.name in ONLY else end


# --- drawing ------------------------------------------------------------------------------------------------------------

INK, PALE, OLD, NEW, ACT = "#1f2933", "#9aa5b1", "#b35c00", "#0b6e4f", "#c4314b"
HEAD = ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 330" role="img" '
        'font-family="sans-serif" font-size="13">'
        '<title>{title}</title><desc>{says}</desc>'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{INK}"/></marker></defs><rect width="760" height="330" rx="8" fill="#ffffff"/>')


def text(x: int, y: int, words: str, fill: str = INK, more: str = "") -> str:
    return f'<text x="{x}" y="{y}" fill="{fill}" {more}>{escape(words)}</text>'


def box(x: int, y: int, lines: Sequence[str], colour: str, restarted: bool, gone: bool = False) -> str:
    """A node in up to three lines; one that is not there is pale and dashed."""
    style = f'stroke="{colour}" stroke-width="{3 if restarted else 1.5}"'
    if gone:
        style = f'stroke="{PALE}" stroke-dasharray="5 4"'
    middle = 'text-anchor="middle"'
    return (f'<rect x="{x}" y="{y}" width="120" height="62" rx="6" fill="#ffffff" {style}/>'
            + "".join(text(x + 60, y + 18 + 18 * at, line, PALE if gone else INK, middle) for at, line in enumerate(lines))
            + (f'<circle cx="{x + 112}" cy="{y + 8}" r="6" fill="{ACT}"/>' if restarted else ""))


def arrow(x1: int, y1: int, x2: int, y2: int, words: str, colour: str) -> str:
    """An arrow with its words beside it: above one that falls or stands, below one that rises."""
    beside = 4 if x1 == x2 else 16 if (x1 < x2) is (y2 < y1) else -10
    return (f'<path d="M{x1} {y1}L{x2} {y2}" stroke="{colour}" stroke-width="2" fill="none" marker-end="url(#tip)"/>'
            + text((x1 + x2) // 2 + 10, (y1 + y2) // 2 + beside, words, colour))


def says(step: Step[Picture], scene: Scene) -> str:
    """The picture in words."""
    brokers = "; ".join(f"{scene.brokers.count(mode)} in {' '.join(BROKERS[mode])}" for mode in dict.fromkeys(scene.brokers))
    quorum = f"{len(scene.controllers)} {' '.join(CONTROLLERS[scene.controllers[0]])}" if scene.controllers else "none"
    return (f"At the end of {step.name}. Brokers: {brokers}. Controllers: {quorum}. ZooKeeper: {zookeeper(scene)}. "
            f"{end_of(step)}.")


def zookeeper(scene: Scene) -> str:
    """What ZooKeeper is to Kafka."""
    if not scene.zookeeper:
        return "stopped"
    if scene.dual_write:
        return "has a copy"
    if NodeMode.KRAFT_CONTROLLER in scene.controllers:
        return "not used"
    return "was copied" if scene.claimed else "has the metadata"


def end_of(step: Step[Picture]) -> str:
    """How the step can be left behind."""
    if step.name == PLAN.point_of_no_return:
        return "Waits for an approval: the point of no return"
    if step.back is None:
        return "No rollback"
    return "Can be taken back" + (", waits for an approval" if step.hold else "")


def drawn(step: Step[Picture], scene: Scene) -> str:
    """The picture of a step as SVG; a red dot marks what the step starts or restarts."""
    parts = [HEAD.format(title=escape(step.name), says=escape(says(step, scene))),
             text(20, 28, step.name, more='font-size="17" font-weight="bold"'),
             text(740, 28, end_of(step), ACT if step.back is None else NEW, 'text-anchor="end"')]
    for at, mode in enumerate(scene.brokers):
        colour = NEW if BROKERS[mode][0] == "KRaft" else OLD
        parts.append(box(20 + 140 * at, 50, (f"broker {at}", *BROKERS[mode]), colour, ("broker", at) in scene.restarted))
    for at in range(3):
        lines = CONTROLLERS[scene.controllers[at]] if scene.controllers else ("no controller",)
        parts.append(box(20 + 140 * at, 230, lines, NEW, ("controller", at) in scene.restarted, gone=not scene.controllers))
    parts.append(box(620, 140, ("ZooKeeper", zookeeper(scene)), OLD, False,
                     gone=not scene.zookeeper))
    if any(BROKERS[mode][0] == "ZooKeeper" for mode in scene.brokers):
        parts.append(arrow(424, 90, 616, 155, "registered", OLD))
    if any(mode not in modes.WITHOUT_QUORUM for mode in scene.brokers):
        parts.append(arrow(220, 116, 220, 226, "registered, led by the quorum" if scene.claimed else "registered", NEW))
    if scene.dual_write:
        parts.append(arrow(424, 255, 616, 185, "dual write", NEW))
    elif scene.claimed and NodeMode.MIGRATION_CONTROLLER in scene.controllers:
        parts.append(arrow(616, 185, 424, 255, "copy", NEW))
    elif NodeMode.MIGRATION_CONTROLLER in scene.controllers:
        parts.append(arrow(424, 255, 616, 185, "connected", NEW))
    parts.append(f'<circle cx="28" cy="314" r="6" fill="{ACT}"/>' + text(42, 319, "started or restarted in this step"))
    parts.append(text(740, 319, ONLY.get(step.name, ""), more='text-anchor="end"'))
    return "".join(parts) + "</svg>\n"


def pictures() -> Mapping[str, str]:
    """Every picture by its name."""
    return {f"{step.name}.svg": drawn(step, scene) for step, scene in scenes()}


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for name, picture in pictures().items():
        (PICTURES / name).write_text(picture)
