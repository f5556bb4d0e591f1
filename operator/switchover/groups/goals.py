"""Goals of the steps: what must be true of the workloads while in a step, and the effects that make it so."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from switchover.answers.observed import Known
from switchover.api.consumer_group_migration import Workload
from switchover.api.job_message import Job
from switchover.api.meta import API_VERSION
from switchover.engine.effects import Apply, Create, Effect
from switchover.engine.gate import Verdict, passed, wait
from switchover.groups.picture import ORIGINAL, TARGET, Fleet, Picture
from switchover.groups.reading import fleet_of
from switchover.groups.workloads import autoscalers, change, kinds, leaving
from switchover.groups.workloads.autoscalers import scale
from switchover.kubernetes import launch, names
from switchover.kubernetes.members import MemberWorkload
from switchover.reasons.walk import AWAITING_APPROVAL


def _fleet(picture: Picture) -> Fleet | None:
    return picture.facts.fleet.value if isinstance(picture.facts.fleet, Known) else None


def _sources(picture: Picture) -> Iterator[tuple[Workload, MemberWorkload]]:
    for workload in picture.spec.workloads:
        source = picture.source(workload.name)
        if isinstance(source, Known):
            yield workload, source.value


def claim(picture: Picture) -> tuple[Effect, ...]:
    """Each workload is claimed, what it was is stored, and its autoscalers leave it alone: in this order."""
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
    touched, as nothing is stored that it could be given back.
    """
    fleet = _fleet(picture)
    if fleet is None:
        return ()
    return tuple(
        pause for workload, source in _sources(picture) if source.claimed_by == picture.uid
        for each in source.autoscalers if autoscalers.is_stored(each, fleet.originals.get(workload.name))
        and not autoscalers.in_the_way(each) and (pause := autoscalers.pause(each)) is not None)


def corrections(picture: Picture) -> tuple[Effect, ...]:
    """What others undid is done again: autoscalers are paused, and Deployments held whose pods are being moved."""
    return autoscalers_paused(picture) or held(picture)


def held(picture: Picture) -> tuple[Effect, ...]:
    """Each Deployment whose template or pods are not as they were is held, by a strategy of this migration's: nobody leaves,
    whoever changed that.
    """
    return tuple(effect for _, source in _sources(picture)
                 if source.claimed_by == picture.uid and kinds.of(source).find_lost_hold(picture, source) is not None
                 for effect in kinds.of(source).hold_again(source))


def release(picture: Picture) -> tuple[Effect, ...]:
    """No pod is marked, workloads roll by their own settings, autoscalers are as they were, and the claims are taken off: in
    this order.
    """
    fleet = _fleet(picture)
    effects: list[Effect] = []
    for workload, source in _sources(picture):
        assert fleet is not None
        original = fleet.originals.get(workload.name)
        if source.claimed_by != picture.uid:
            continue
        if original is None:                                # nothing was changed before it was stored
            effects.append(change.release(source))
            continue
        resumed = [again for each in source.autoscalers if autoscalers.is_stored(each, original)
                   and (again := autoscalers.resume(each, original["autoscalers"][str(each)])) is not None]
        if spared := leaving.spared(source):
            effects += spared
        elif not kinds.of(source).is_restored(source, original):
            effects += kinds.of(source).restore(source, original)
        elif resumed:
            effects += resumed
        else:
            effects.append(change.release(source))
    return tuple(effects)


def is_released(picture: Picture, name: str) -> bool:
    """Nothing of ours is left on a workload."""
    source = picture.source(name)
    return isinstance(source, Known) and source.value.claimed_by != picture.uid


def check_release_begun(picture: Picture) -> Verdict:
    """What cannot be undone of `release` is seen: a claim is off, or a Deployment rolls by its own settings."""
    fleet_of(picture)
    for _, source in _sources(picture):
        if source.claimed_by != picture.uid or kinds.of(source).is_given_back(picture, source):
            return passed(f"{source} is handed over")
    return wait(AWAITING_APPROVAL, "every workload is claimed and held: HandOver has not begun",
                unblocks="the first workload is given back")


def template(mode: str) -> Callable[[Picture], tuple[Effect, ...]]:
    """The goal that each workload has its template of a mode, and no pod is replaced by that alone."""
    return lambda picture: tuple(
        effect for workload, source in _sources(picture) for effect in _at_rest(picture, workload, source, mode))


def _at_rest(picture: Picture, workload: Workload, source: MemberWorkload, mode: str) -> Iterable[Effect]:
    wanted = picture.template(workload.name, mode)
    if wanted is None or not change.differing(source, workload.container, wanted):
        return ()
    return kinds.of(source).write(picture, source, wanted, f"{mode.lower()} template")


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


def job_name(picture: Picture) -> str:
    """Of the audit of one attempt."""
    return names.job(picture.name, "audit", (picture.uid, picture.position.attempt))


def audit_job(picture: Picture) -> tuple[Effect, ...]:
    """The Job of the audit by the pipeline, created once: whoever deletes it has it run again."""
    found = picture.facts.audit
    if not isinstance(found, Known) or found.value is not None:
        return ()
    return (Create(launch.manifest(_run(picture))),)


def _run(picture: Picture) -> launch.Run:
    wanted = picture.spec.audit
    assert wanted.image is not None
    assert wanted.claim is not None
    owner = {"apiVersion": API_VERSION, "kind": "ConsumerGroupMigration", "name": picture.name, "uid": picture.uid}
    return launch.Run(
        name=job_name(picture), nonce=names.digest([picture.uid, picture.now]), job=Job.AUDIT.value, image=wanted.image,
        config=json.dumps(_config(picture), sort_keys=True), claim=wanted.claim, cpu=wanted.cpu, memory=wanted.memory,
        deadline_seconds=wanted.deadline_seconds, labels=names.labels(picture.name), owner=owner)


def _config(picture: Picture) -> dict[str, Any]:
    """From the first step of this migration to now, of what others capture: it asks no broker. JSON is YAML."""
    wanted = picture.spec.audit
    since = min(picture.entered.values(), default=picture.now)
    return {
        "cluster": wanted.cluster, "store": launch.STORE, "spark": {"master": "local[1]", "memory": "700m"},
        "audit": {
            "groups": [{"name": picture.spec.group}], "since": round(since * 1000), "until": round(picture.now * 1000),
            "guardBandMs": wanted.guard_band_seconds * 1000, "capture": False, "waitSeconds": wanted.wait_seconds},
    }
