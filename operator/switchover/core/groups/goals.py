"""Goals of the steps: what must be true of the workloads while in a step, and the effects that make it so."""

from collections.abc import Iterator

from switchover.api.consumer_group_migration import Workload, WorkloadKind
from switchover.api.status import Direction
from switchover.core import names
from switchover.core.effects import Apply, Create, Delete, Effect
from switchover.core.gate import Verdict, passed, unknown, wait
from switchover.core.groups import autoscalers, change, clone, partition
from switchover.core.groups.picture import INTERMEDIATE, ORIGINAL, TARGET, Fleet, Picture
from switchover.core.groups.replicas import scale
from switchover.core.groups.workloads import MemberWorkload
from switchover.core.observed import Known


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


def release(picture: Picture) -> tuple[Effect, ...]:
    """Clones go, update strategies and autoscalers are as they were, and the claims are taken off: in this order."""
    fleet = _fleet(picture)
    effects: list[Effect] = []
    for workload, source in _sources(picture):
        assert fleet is not None
        kept, own = fleet.originals.get(workload.name), picture.clone(workload.name)
        if source.claimed_by != picture.uid:
            continue
        if kept is None:                                # nothing was changed before it was kept
            effects.append(change.release(source))
            continue
        resumed = [again for each in source.autoscalers if autoscalers.is_kept(each, kept)
                   and (again := autoscalers.resume(each, kept["autoscalers"][str(each)])) is not None]
        if own is not None:
            if own.replicas == 0 and not own.pods:
                effects.append(Delete("apps/v1", "Deployment", own.name, own.uid))
        elif source.kind == WorkloadKind.STATEFUL_SET and source.update_strategy != kept["updateStrategy"]:
            if not partition.would_restart(source, kept["updateStrategy"]):
                effects.append(partition.restore_strategy(source, kept["updateStrategy"]))
        elif resumed:
            effects += resumed
        else:
            effects.append(change.release(source))
    return tuple(effects)


def is_released(picture: Picture, name: str) -> bool:
    """Nothing of ours is left on a workload or beside it."""
    source = picture.source(name)
    return isinstance(source, Known) and source.value.claimed_by != picture.uid and picture.clone(name) is None


def check_release_begun(picture: Picture) -> Verdict:
    """What cannot be undone of `release` is seen: a claim is off, or a clone gone that the plan has made."""
    protocol = picture.spec.protocol
    cloned = picture.replaces and (protocol is None or protocol.strategy != "Offline")
    if not isinstance(picture.facts.fleet, Known):
        return unknown("NotObserved", picture.facts.fleet.why)
    for workload, source in _sources(picture):
        gone = cloned and workload.kind is WorkloadKind.DEPLOYMENT and picture.clone(workload.name) is None
        if source.claimed_by != picture.uid or gone:
            return passed(f"{source} is handed over")
    return wait("AwaitingApproval", "every workload is claimed, with its clone: HandOver has not begun")


def clones(picture: Picture) -> tuple[Effect, ...]:
    """Each Deployment has its clone, and each StatefulSet the template that its batches go to, at rest."""
    effects: list[Effect] = []
    for workload, source in _sources(picture):
        original = picture.template(workload.name, ORIGINAL)
        if original is None:
            continue
        if workload.kind is WorkloadKind.DEPLOYMENT:
            if picture.clone(workload.name) is None:
                between = workload.bridge or workload.template
                effects.append(Create(clone.manifest(
                    source, original, workload.container, between, picture.name, picture.uid)))
        else:
            effects += _at_rest(picture, workload, source, INTERMEDIATE if picture.bridged else TARGET)
    return tuple(effects)


def targets(picture: Picture) -> tuple[Effect, ...]:
    """Each workload has the template of the spec: a Deployment while it has no pods, a StatefulSet behind its partition."""
    effects: list[Effect] = []
    for workload, source in _sources(picture):
        if workload.kind is WorkloadKind.DEPLOYMENT:
            effects += _while_empty(picture, workload, source, TARGET)
        elif picture.bridged:
            effects += _at_rest(picture, workload, source, TARGET)
    return tuple(effects)


def intermediates(picture: Picture) -> tuple[Effect, ...]:
    """The way back from the target: a StatefulSet has the bridge again; a Deployment's clone has it still."""
    effects: list[Effect] = []
    for workload, source in _sources(picture):
        if workload.kind is WorkloadKind.STATEFUL_SET and picture.bridged:
            effects += _at_rest(picture, workload, source, INTERMEDIATE)
    return tuple(effects)


def originals(picture: Picture) -> tuple[Effect, ...]:
    """Each workload has the template that it had: what is kept of it, at 0 replicas or behind the partition."""
    effects: list[Effect] = []
    for workload, source in _sources(picture):
        if workload.kind is WorkloadKind.DEPLOYMENT:
            effects += _while_empty(picture, workload, source, ORIGINAL)
        else:
            effects += _at_rest(picture, workload, source, ORIGINAL)
    return tuple(effects)


def _while_empty(picture: Picture, workload: Workload, source: MemberWorkload, mode: str) -> Iterator[Effect]:
    wanted = picture.template(workload.name, mode)
    if wanted is not None and source.replicas == 0 and change.differing(source, workload.container, wanted):
        yield change.write(source, workload.container, wanted, f"{mode.lower()} template")


def _at_rest(picture: Picture, workload: Workload, source: MemberWorkload, mode: str) -> Iterator[Effect]:
    """Hold and only then write; on the way forward not before a pod that goes away would come back as what is here."""
    wanted = picture.template(workload.name, mode)
    if wanted is None or not change.differing(source, workload.container, wanted):
        return
    if picture.position.direction is Direction.FORWARD and not partition.comes_back(source):
        if source.update_strategy.get("type") == "OnDelete" and source.caught_up and not partition.would_restart(
                source, {"type": "RollingUpdate"}):
            yield partition.settle(source)
    elif not partition.is_held(source):
        yield partition.hold(source)
    else:
        yield change.write(source, workload.container, wanted, f"{mode.lower()} template")


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
    effects: list[Effect] = []
    for workload, source in _sources(picture):
        if workload.kind is WorkloadKind.STATEFUL_SET and source.replicas == 0:
            effects += _at_rest(picture, workload, source, mode)
        else:
            effects += _while_empty(picture, workload, source, mode)
    return tuple(effects)
