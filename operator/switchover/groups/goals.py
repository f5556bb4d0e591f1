"""Goals of the steps: what must be true of the workloads while in a step, and the effects that make it so."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from switchover.answers.observed import Known
from switchover.api.consumer_group_migration import Workload, WorkloadKind
from switchover.api.status import Direction
from switchover.engine.effects import Apply, Effect
from switchover.engine.gate import Verdict, passed, unknown, wait
from switchover.groups.picture import ORIGINAL, TARGET, Fleet, Picture
from switchover.groups.workloads import autoscalers, change, deployment, leaving, stateful_set
from switchover.groups.workloads.replicas import scale
from switchover.kubernetes import names
from switchover.kubernetes.members import MemberWorkload
from switchover.reasons.walk import AWAITING_APPROVAL, NOT_OBSERVED


def _fleet(picture: Picture) -> Fleet | None:
    return picture.facts.fleet.value if isinstance(picture.facts.fleet, Known) else None


def _sources(picture: Picture) -> Iterator[tuple[Workload, MemberWorkload]]:
    for workload in picture.spec.workloads:
        source = picture.source(workload.name)
        if isinstance(source, Known):
            yield workload, source.value


def claim(picture: Picture) -> tuple[Effect, ...]:
    """Each workload is claimed, what it was is kept, and its autoscalers leave it alone: in this order."""
    fleet = _fleet(picture)
    effects: list[Effect] = []
    for workload, source in _sources(picture):
        assert fleet is not None
        if not source.claimed_by:
            effects.append(change.claim(source, picture.uid))
        elif source.claimed_by != picture.uid:
            continue                                    # the gate that waits for the claim tells whose it is
        elif fleet.originals.get(workload.name) is None:
            labels = names.labels(picture.name)
            effects.append(Apply(change.original_manifest(source, picture.uid, picture.position.attempt, labels)))
        else:
            effects += (pause for each in source.autoscalers
                        if not autoscalers.in_the_way(each) and (pause := autoscalers.pause(each)) is not None)
    return tuple(effects)


def autoscalers_paused(picture: Picture) -> tuple[Effect, ...]:
    """Each autoscaler that was paused is so still: whatever applied it again has woken it. One that came since is not
    touched, as nothing is kept that it could be given back.
    """
    fleet = _fleet(picture)
    if fleet is None:
        return ()
    return tuple(
        pause for workload, source in _sources(picture) if source.claimed_by == picture.uid
        for each in source.autoscalers if autoscalers.is_kept(each, fleet.originals.get(workload.name))
        and not autoscalers.in_the_way(each) and (pause := autoscalers.pause(each)) is not None)


def kept(picture: Picture) -> tuple[Effect, ...]:
    """What others undid is done again: autoscalers are paused, and Deployments held whose pods are being moved."""
    return autoscalers_paused(picture) or held(picture)


def held(picture: Picture) -> tuple[Effect, ...]:
    """Each Deployment whose template or pods are not as they were is held, by a strategy of this migration's: nobody leaves,
    whoever changed that.
    """
    return tuple(deployment.hold_again(source) for workload, source in _sources(picture)
                 if source.claimed_by == picture.uid and (
                     is_let_go(picture, workload, source) or is_reset(picture, workload, source)))


def is_let_go(picture: Picture, workload: Workload, source: MemberWorkload) -> bool:
    """A Deployment that is in the middle, and whose own settings would roll it on."""
    return _in_the_middle(picture, workload, source) and not deployment.is_held(source)


def is_reset(picture: Picture, workload: Workload, source: MemberWorkload) -> bool:
    """One that is in the middle and held, and whose strategy would let other pods rise or fall than the batch's."""
    return _in_the_middle(picture, workload, source) and deployment.is_held(source) and not deployment.is_shaped(source)


def _in_the_middle(picture: Picture, workload: Workload, source: MemberWorkload) -> bool:
    if workload.kind is not WorkloadKind.DEPLOYMENT or source.replicas == 0:
        return False
    if picture.template(workload.name, ORIGINAL) is None or not picture.rolls:
        return False
    return picture.live_mode(workload.name) != ORIGINAL or deployment.earlier(source) > 0


def release(picture: Picture) -> tuple[Effect, ...]:
    """No pod is marked, workloads roll by their own settings, autoscalers are as they were, and the claims are taken off: in
    this order.
    """
    fleet = _fleet(picture)
    effects: list[Effect] = []
    for workload, source in _sources(picture):
        assert fleet is not None
        kept = fleet.originals.get(workload.name)
        if source.claimed_by != picture.uid:
            continue
        if kept is None:                                # nothing was changed before it was kept
            effects.append(change.release(source))
            continue
        resumed = [again for each in source.autoscalers if autoscalers.is_kept(each, kept)
                   and (again := autoscalers.resume(each, kept["autoscalers"][str(each)])) is not None]
        if spared := leaving.spared(source):
            effects += spared
        elif not _rolls_by_itself(source, kept):
            effects += _own_settings(source, kept)
        elif resumed:
            effects += resumed
        else:
            effects.append(change.release(source))
    return tuple(effects)


def _rolls_by_itself(source: MemberWorkload, kept: Mapping[str, Any]) -> bool:
    if source.kind == WorkloadKind.DEPLOYMENT:
        return deployment.is_restored(source, kept)
    return bool(source.update_strategy == kept["updateStrategy"])


def _own_settings(source: MemberWorkload, kept: Mapping[str, Any]) -> Iterator[Effect]:
    """Given back once nothing would restart under them."""
    if source.kind == WorkloadKind.DEPLOYMENT:
        if deployment.is_of_one(source):
            yield deployment.restore(source, kept)
    elif not stateful_set.would_restart(source, kept["updateStrategy"]):
        yield stateful_set.restore_strategy(source, kept["updateStrategy"])


def is_released(picture: Picture, name: str) -> bool:
    """Nothing of ours is left on a workload."""
    source = picture.source(name)
    return isinstance(source, Known) and source.value.claimed_by != picture.uid


def check_release_begun(picture: Picture) -> Verdict:
    """What cannot be undone of `release` is seen: a claim is off, or a Deployment rolls by its own settings."""
    if not isinstance(picture.facts.fleet, Known):
        return unknown(NOT_OBSERVED, picture.facts.fleet.why)
    for workload, source in _sources(picture):
        given_back = picture.rolls and workload.kind is WorkloadKind.DEPLOYMENT and not deployment.is_held(source)
        if source.claimed_by != picture.uid or given_back:
            return passed(f"{source} is handed over")
    return wait(AWAITING_APPROVAL, "every workload is claimed and held: HandOver has not begun",
                unblocks="the first workload is given back")


def template(mode: str) -> Callable[[Picture], tuple[Effect, ...]]:
    """The goal that each workload has its template of a mode, and no pod is replaced by that alone."""
    return lambda picture: tuple(
        effect for workload, source in _sources(picture) for effect in _at_rest(picture, workload, source, mode))


def _at_rest(picture: Picture, workload: Workload, source: MemberWorkload, mode: str) -> Iterator[Effect]:
    wanted = picture.template(workload.name, mode)
    if wanted is None or not change.differing(source, workload.container, wanted):
        return
    purpose = f"{mode.lower()} template"
    if workload.kind is WorkloadKind.DEPLOYMENT:
        if picture.offline:
            yield change.write(source, workload.container, wanted, purpose, change.EMPTY)
        elif deployment.is_held(source) or deployment.is_whole(source):
            yield change.write(source, workload.container, wanted, purpose, *deployment.holding(source))
    else:
        yield from _behind_partition(picture, workload, source, wanted, purpose)


def _behind_partition(picture: Picture, workload: Workload, source: MemberWorkload, wanted: Mapping[str, Any],
                      purpose: str) -> Iterator[Effect]:
    """Hold and only then write; on the way forward not before a pod that goes away would come back as what is here."""
    if picture.position.direction is Direction.FORWARD and not stateful_set.comes_back(source):
        if source.update_strategy.get("type") == "OnDelete" and source.caught_up and not stateful_set.would_restart(
                source, {"type": "RollingUpdate"}):
            yield stateful_set.settle(source)
    elif not stateful_set.is_held(source):
        yield stateful_set.hold(source)
    else:
        yield change.write(source, workload.container, wanted, purpose, stateful_set.holding(source))


def stopped(picture: Picture) -> tuple[Effect, ...]:
    """No workload has a pod."""
    return tuple(scale(source, 0) for _, source in _sources(picture) if source.replicas > 0)


def started(picture: Picture) -> tuple[Effect, ...]:
    """Each workload has the pods that it had."""
    return tuple(scale(source, len(picture.slots(workload.name))) for workload, source in _sources(picture)
                 if source.replicas < len(picture.slots(workload.name)))


def started_as_target(picture: Picture) -> tuple[Effect, ...]:
    """With the template of the spec first, and only then with pods."""
    return _written(picture, TARGET) or started(picture)


def stopped_as_original(picture: Picture) -> tuple[Effect, ...]:
    """Without pods first, and only then with the template that it had."""
    return stopped(picture) or _written(picture, ORIGINAL)


def _written(picture: Picture, mode: str) -> tuple[Effect, ...]:
    """Only while they have no pods."""
    return tuple(effect for workload, source in _sources(picture) if not source.replicas
                 for effect in _at_rest(picture, workload, source, mode))
