"""What a KafkaMigration will do, by the functions that write its nodes' edits, and without doing any of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from switchover.answers.observed import Known
from switchover.api.kafka_migration import NodeMode
from switchover.api.plan_preview import LINES_SHOWN, Basis, PlannedChange, PlannedNodes, PlannedStep, PlanPreview
from switchover.cluster import modes
from switchover.cluster.controllers import manifests
from switchover.cluster.door import edits
from switchover.cluster.door.brokers import Brokers
from switchover.cluster.estimate import ahead, measured, restart_seconds
from switchover.cluster.picture import Picture
from switchover.cluster.plan import PLAN
from switchover.engine.windows import Work, seconds_until_done
from switchover.kafka.node import BrokerExamination
from switchover.text.visible import EACH_ITS_OWN, HIDDEN, shown


@dataclass(frozen=True, slots=True)
class Change:
    """What one restart changes: key -> (before, after), None where absent; `own` are keys with a value for each pod."""

    workload: str
    mode: NodeMode
    common: Mapping[str, tuple[str | None, str | None]]
    own: Mapping[str, Mapping[str, tuple[str | None, str | None]]]      # key -> pod -> (before, after)


def broker_steps(picture: Picture) -> tuple[NodeMode, ...]:
    """The modes that every broker goes through."""
    pinned = (NodeMode.ZOOKEEPER_PINNED,) if picture.upgrades else ()
    raised = (NodeMode.ZOOKEEPER_RAISED,) if picture.raises else ()
    return (NodeMode.ZOOKEEPER, *pinned, *raised, NodeMode.MIGRATION, NodeMode.KRAFT)


def changes(picture: Picture) -> tuple[Change, ...]:
    """Of every node, restart by restart, from what the brokers run with. Nothing while that is not known of one of them."""
    pods, voters = picture.broker_pods(), picture.voters
    if not isinstance(pods, Known) or not picture.cluster_id or voters is None:
        return ()
    given = {broker_id: _given(found.value) for broker_id, found in picture.facts.examination.brokers.items()
             if isinstance(found, Known)}
    sets = {name: known.value for name in picture.broker_sets if isinstance(known := picture.brokers_of(name), Known)}
    if not given.keys() >= set(pods.value.values()) or sets.keys() != picture.broker_sets.keys():
        return ()
    found: list[Change] = []
    for before, after in pairwise(broker_steps(picture)):
        for name, brokers in sets.items():
            own = {pod: broker_id for pod, broker_id in pods.value.items() if pod.rpartition("-")[0] == name}
            found.append(_change(name, after, {pod: (
                edits.applied(edits.broker(before, broker_id, voters, brokers), given[broker_id]),
                edits.applied(edits.broker(after, broker_id, voters, brokers), given[broker_id]))
                for pod, broker_id in own.items()}))
    first, name = picture.spec.brokers[0].name, picture.spec.controllers.name
    of_the_first = given[min(broker_id for pod, broker_id in pods.value.items() if pod.rpartition("-")[0] == first)]
    place = _metadata_directory(picture, first, sets[first])
    migrating, finalized = ({pod: edits.applied(edits.controller(
        mode, node_id, voters, sets[first], picture.cluster_id, place), of_the_first)
        for pod, node_id in picture.controllers.items()} for mode in modes.RUNNING_CONTROLLERS)
    return (
        *found,
        _change(name, NodeMode.MIGRATION_CONTROLLER, {pod: (of_the_first, file) for pod, file in migrating.items()}),
        _change(name, NodeMode.KRAFT_CONTROLLER, {pod: (file, finalized[pod]) for pod, file in migrating.items()}))


def _given(broker: BrokerExamination) -> Mapping[str, str]:
    return {**broker.static_settings, **dict.fromkeys(broker.hidden, HIDDEN)}


def _metadata_directory(picture: Picture, name: str, brokers: Brokers) -> str:
    state = picture.facts.kubernetes
    workload = state.value.brokers.get(name) if isinstance(state, Known) else None
    return manifests.log_dir({"template": workload.template}, brokers) if workload is not None else brokers.log_dir


def _change(workload: str, mode: NodeMode, files: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]]) -> Change:
    keys = sorted({key for before, after in files.values() for key in {**before, **after}})
    by_key = {key: {pod: (before.get(key), after.get(key)) for pod, (before, after) in files.items()} for key in keys}
    changed = {key: values for key, values in by_key.items() if any(old != new for old, new in values.values())}
    common = {key: next(iter(values.values())) for key, values in changed.items() if len(set(values.values())) == 1}
    return Change(workload, mode, common, {key: values for key, values in changed.items() if key not in common})


def lines(change: Change) -> tuple[str, ...]:
    """The change as it is read by people, key by key."""
    every = {**change.common, **{key: _each(values.values()) for key, values in change.own.items()}}
    return tuple(
        f"{sign} {key}={shown(key, value)}"
        for key, (old, new) in sorted(every.items()) for sign, value in (("-", old), ("+", new)) if value is not None
    )


def _each(values: Iterable[tuple[str | None, str | None]]) -> tuple[str | None, str | None]:
    olds, news = zip(*values, strict=True)
    return _one(olds), _one(news)


def _one(values: Sequence[str | None]) -> str | None:
    return values[0] if len(set(values)) == 1 else EACH_ITS_OWN


def preview(picture: Picture) -> PlanPreview | None:
    """The plan from here to its end, for the status. None while it is not known how many nodes there are."""
    work = ahead(picture)
    found = changes(picture)
    if not work or not isinstance(picture.facts.kubernetes, Known) or not found:
        return None
    seconds = seconds_until_done(work, picture.spec.windows, picture.now)
    by_pods = {name: len(workload.pods) for name, workload in picture.facts.kubernetes.value.brokers.items() if workload}
    kinds = (NodeMode.MIGRATION, NodeMode.KRAFT_CONTROLLER)
    return PlanPreview(
        steps=tuple(_step(picture, step.name, bool(step.hold), work) for step in PLAN.steps
                    if step.hold or step.name in picture.spec.holds or any(each.step == step.name for each in work)),
        nodes=(
            *(PlannedNodes(name=name, nodes=pods, restarts_each=len(broker_steps(picture)) - 1)
              for name, pods in by_pods.items()),
            PlannedNodes(name=picture.spec.controllers.name, nodes=len(picture.controllers), restarts_each=1),
        ),
        changes=_bounded(found),
        restarts=sum(each.restarts for each in work),
        basis=Basis.MEASURED if all(measured(picture, mode) for mode in kinds) else Basis.ASSUMED,
        broker_restart_seconds=round(restart_seconds(picture, NodeMode.MIGRATION)),
        controller_restart_seconds=round(restart_seconds(picture, NodeMode.KRAFT_CONTROLLER)),
        estimated_seconds=round(seconds_until_done(work, (), picture.now) or 0),
        estimated_completion_time=None if seconds is None else datetime.fromtimestamp(picture.now + seconds, UTC),
    )


def _step(picture: Picture, name: str, hold: bool, work: Iterable[Work]) -> PlannedStep:
    own = [each for each in work if each.step == name]
    return PlannedStep(name=name, restarts=sum(each.restarts for each in own), hold=hold or name in picture.spec.holds,
                       estimated_seconds=round(seconds_until_done(own, (), picture.now) or 0))


def _bounded(found: Iterable[Change]) -> tuple[PlannedChange, ...]:
    left, planned = LINES_SHOWN, []
    for change in found:
        changed = lines(change)
        planned.append(PlannedChange(name=f"{change.workload}/{change.mode}", lines=changed[:left],
                                     own=tuple(change.own)[:LINES_SHOWN], omitted=max(0, len(changed) - left)))
        left = max(0, left - len(changed))
    return tuple(planned)
