"""What a KafkaMigration will do, by the functions that render its files, and without doing any of it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from switchover.api.plan_preview import LINES_SHOWN, Basis, PlannedChange, PlannedNodes, PlannedStep, PlanPreview
from switchover.core.kraft import modes
from switchover.core.kraft.controllers import METADATA_DIR
from switchover.core.kraft.estimate import Work, ahead, measured, restart_seconds, seconds_until_done
from switchover.core.kraft.facts import ServerConfiguration
from switchover.core.kraft.picture import Picture
from switchover.core.kraft.plan import PLAN
from switchover.core.observed import Known

SECRET = re.compile(r"password|secret|jaas|token|credential|private|certificate|(^|[._])key$", re.IGNORECASE)
"""Keys whose values are hidden: Kafka's settings of type PASSWORD, and what is named like one."""
TELLTALE = re.compile(r"password|-----BEGIN", re.IGNORECASE)
"""Values that are hidden whatever their key is called."""
HIDDEN, EACH_ITS_OWN = "<hidden>", "<each its own>"
CONTROLLER_MODES = ("P", "F")


@dataclass(frozen=True, slots=True)
class Change:
    """What one restart changes: key -> (before, after), None where absent; `own` are keys with a value for each pod."""

    workload: str
    mode: str
    common: Mapping[str, tuple[str | None, str | None]]
    own: Mapping[str, Mapping[str, tuple[str | None, str | None]]]      # key -> pod -> (before, after)


def broker_steps(picture: Picture) -> tuple[str, ...]:
    """The modes that every broker goes through."""
    return ("A", "R", "B", "C") if picture.raises else ("A", "B", "C")


def changes(picture: Picture) -> tuple[Change, ...]:
    """Of every node, restart by restart. Nothing while a node or a file is not known, or a file is malformed."""
    pods, state, voters = picture.broker_pods(), picture.facts.kubernetes, picture.voters
    if not isinstance(pods, Known) or not isinstance(state, Known) or voters is None:
        return ()
    found: list[Change] = []
    texts = {name: item.text for name, item in state.value.configurations.items() if isinstance(item, ServerConfiguration)}
    if texts.keys() != picture.broker_sets.keys():
        return ()
    try:
        for before, after in pairwise(broker_steps(picture)):
            for name, text in texts.items():
                found.append(_change(name, after, {
                    pod: (modes.properties(modes.render_broker(text, before, broker_id, voters)),
                          modes.properties(modes.render_broker(text, after, broker_id, voters)))
                    for pod, broker_id in pods.value.items() if pod.rpartition("-")[0] == name}))
        first, own = texts[picture.spec.brokers[0].name], picture.spec.controllers.name
        files = {pod: {mode: modes.properties(modes.render_controller(first, mode, node_id, voters, METADATA_DIR))
                       for mode in CONTROLLER_MODES} for pod, node_id in picture.controllers.items()}
        brokers_own = modes.properties(first)
    except ValueError:
        return ()                                            # Preflight tells it
    return (*found, _change(own, "P", {pod: (brokers_own, of["P"]) for pod, of in files.items()}),
            _change(own, "F", {pod: (of["P"], of["F"]) for pod, of in files.items()}))


def _change(workload: str, mode: str, files: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]]) -> Change:
    keys = sorted({key for before, after in files.values() for key in {**before, **after}})
    by_key = {key: {pod: (before.get(key), after.get(key)) for pod, (before, after) in files.items()} for key in keys}
    changed = {key: values for key, values in by_key.items() if any(old != new for old, new in values.values())}
    common = {key: next(iter(values.values())) for key, values in changed.items() if len(set(values.values())) == 1}
    return Change(workload, mode, common, {key: values for key, values in changed.items() if key not in common})


def shown(key: str, value: str) -> str:
    """A value, unless it is a secret."""
    return HIDDEN if value and (SECRET.search(key) or TELLTALE.search(value)) else value


def lines(change: Change) -> tuple[str, ...]:
    """The change as it is read by people, key by key."""
    told = {**change.common, **{key: _each(values.values()) for key, values in change.own.items()}}
    return tuple(
        f"{sign} {key}={shown(key, value)}"
        for key, (old, new) in sorted(told.items()) for sign, value in (("-", old), ("+", new)) if value is not None
    )


def _each(values: Iterable[tuple[str | None, str | None]]) -> tuple[str | None, str | None]:
    olds, news = zip(*values, strict=True)
    return _one(olds), _one(news)


def _one(values: Sequence[str | None]) -> str | None:
    return values[0] if len(set(values)) == 1 else EACH_ITS_OWN


def preview(picture: Picture) -> PlanPreview | None:
    """The plan from here to its end, for the status. None while nobody can tell how many nodes there are."""
    work = ahead(picture)
    found = changes(picture)
    if not work or not isinstance(picture.facts.kubernetes, Known) or not found:
        return None
    seconds = seconds_until_done(work, picture.spec.windows, picture.now)
    by_pods = {name: len(workload.pods) for name, workload in picture.facts.kubernetes.value.brokers.items() if workload}
    kinds = ("B", "F")
    return PlanPreview(
        steps=tuple(_step(picture, step.name, step.hold, work) for step in PLAN.steps
                    if step.hold or step.name in picture.spec.holds or any(each.step == step.name for each in work)),
        nodes=(
            *(PlannedNodes(name=name, nodes=pods, restarts_each=len(broker_steps(picture)) - 1)
              for name, pods in by_pods.items()),
            PlannedNodes(name=picture.spec.controllers.name, nodes=len(picture.controllers), restarts_each=1),
        ),
        changes=_bounded(found),
        restarts=sum(each.restarts for each in work),
        basis=Basis.MEASURED if all(measured(picture, mode) for mode in kinds) else Basis.ASSUMED,
        broker_restart_seconds=round(restart_seconds(picture, "B")),
        controller_restart_seconds=round(restart_seconds(picture, "F")),
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
        told = lines(change)
        planned.append(PlannedChange(name=f"{change.workload}/{change.mode}", lines=told[:left],
                                     own=tuple(change.own)[:LINES_SHOWN], omitted=max(0, len(told) - left)))
        left = max(0, left - len(told))
    return tuple(planned)
