"""The audit of a migration by the pipeline, as a Job."""

import json
from typing import Any

from switchover.answers.observed import Known
from switchover.api.job_message import Job
from switchover.api.meta import API_VERSION
from switchover.engine.effects import Create, Effect
from switchover.groups.picture import Picture
from switchover.kubernetes import launch, names


def job_name(picture: Picture) -> str:
    """Of one attempt."""
    return names.job(picture.name, "audit", (picture.uid, picture.position.attempt))


def job(picture: Picture) -> tuple[Effect, ...]:
    """The Job, created once: whoever deletes it has it run again."""
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
