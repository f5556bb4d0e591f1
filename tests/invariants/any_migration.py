"""O1 to O11 of docs/testing.md#invariants: what holds for every migration, whatever it moves."""

from collections.abc import Iterator
from typing import Any

from invariants.events import Asked, Effect, Event, Recorded, Told
from invariants.memory import Course, Memory, Standing

SAMPLES = {"DualWrite": 5}
"""Gates that want several passes in a row before they open."""
NODE, DISCOVERY = "/api/v1/nodes/", ("/api", "/apis", "/version")
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
"""A question about our own rights, asked by POST; it changes nothing."""
RAISE = {f"{step}{way}" for step in ("UpgradeBrokers", "RaiseProtocolVersion") for way in "><"}
BROKERS_MOVE = {"UpgradeBrokers>", "RaiseProtocolVersion>", "EnableMigration>", "CopyMetadata>", "DualWrite>",
                "MoveBrokers>", "Soak>", "Finalize>", "HandOver>", "MoveBrokers<", "DualWrite<", "EnableMigration<"}
PLACES = {
    "broker set": {*RAISE, "ProvisionControllers>", "EnableMigration>", "EnableMigration<", "ProvisionControllers<",
                   "HandOver>"},
    "broker brake": BROKERS_MOVE,
    "broker files": {*RAISE, "EnableMigration>", "CopyMetadata>", "MoveBrokers>", "HandOver>", "MoveBrokers<",
                     "EnableMigration<"},
    "broker pod": {*RAISE, "EnableMigration>", "CopyMetadata>", "DualWrite>", "MoveBrokers>", "Soak>", "HandOver>",
                   "ReleaseZooKeeper>", "MoveBrokers<", "EnableMigration<"},
    "controller set": {"ProvisionControllers>", "EnableMigration<", "ProvisionControllers<"},
    "controller files": {"ProvisionControllers>", "Soak>", "Finalize>", "EnableMigration<", "ProvisionControllers<"},
    "controller pod": {"ProvisionControllers>", "Finalize>", "CopyMetadata>", "DualWrite>", "MoveBrokers>", "Soak>",
                       "HandOver>", "ReleaseZooKeeper>", "MoveBrokers<", "CopyMetadata<", "EnableMigration<",
                       "ProvisionControllers<"},
    "original": {*RAISE, "ProvisionControllers>", "EnableMigration>", "HandOver>", "EnableMigration<"},
    "service": {"ProvisionControllers>", "ProvisionControllers<"},
    "budget": {"ProvisionControllers>", "ProvisionControllers<"},
    "claim": {"ProvisionControllers<"},
    "trial": {"HandOver>"},
    "rehearsal": {"Rehearse>", "CopyMetadata>", "Rehearse<"},
    "znode": {"EnableMigration<", "ProvisionControllers<"},
    "missing state": {"DualWrite>", "MoveBrokers>", "Soak>", "Finalize>", "MoveBrokers<", "CopyMetadata<"},
}
"""Where an effect on each kind of thing belongs: `>` forward, `<` on the way back."""
NO_EFFECT = ("lease", "event", "migration")


def phase_moves_along_the_edges(memory: Memory, event: Event) -> Iterator[str]:
    """O1."""
    assert isinstance(event, Recorded)
    now, steps = Standing(event.status), memory.course.steps
    if memory.recorded is None:
        return
    if memory.recorded.uid != event.uid:
        if now.step not in ("", steps[0]):
            yield f"the first record of another object stands at {now.step}"
        return
    before = memory.standing
    if event.status.get("observedGeneration", -1) < memory.recorded.status.get("observedGeneration", -1):
        yield "observedGeneration goes back"
    if not before.step or (before.step == now.step and (before.backward, before.attempt) == (now.backward, now.attempt)):
        if before.finished and not now.finished:
            yield f"{before.place} was finished and is not any more"
        return
    if before.backward is not now.backward or before.attempt != now.attempt:
        yield from _turned(memory.course, before, now)
        return
    if now.place == f"{steps[0]}>":
        untouched = memory.course.untouched
        if before.nodes or before.place not in untouched or (before.place == untouched[-1] and before.opened):
            yield f"{before.place} is checked again although something is touched"
        return
    onward = -1 if now.backward else 1
    if now.step not in steps or steps.index(now.step) != steps.index(before.step) + onward:
        yield f"{before.place} is followed by {now.place}"
    if not before.opened or before.batch_nodes:
        yield f"{before.place} is left in its middle"
    if now.opened:
        yield f"{now.place} is entered and opened at once"


def _turned(course: Course, before: Standing, now: Standing) -> Iterator[str]:
    irreversible = before.step == course.point_of_no_return
    again = before.finished and before.backward
    if now.attempt != before.attempt + again:
        yield f"attempt {before.attempt} is followed by {now.attempt} ({before.place}, finished: {before.finished})"
    begun = irreversible and before.opened
    if begun or (before.finished and not before.backward):
        yield f"{before.place} is turned after the point of no return"
    unbegun = irreversible and not before.opened
    if now.step != (course.steps[course.steps.index(before.step) - 1] if unbegun else before.step):
        yield f"{before.place} is turned to {now.place}"
    if now.opened or now.batch_nodes:
        yield f"{now.place} is turned to with something under way"


def intent_comes_first(memory: Memory, event: Event) -> Iterator[str]:
    """O2: the step, its direction, the batch and the assignment are on record before the effect."""
    assert isinstance(event, Effect)
    standing, kind = memory.standing, memory.kind(event)
    if kind in NO_EFFECT or not kind:
        return
    what, places = f"{event.verb} {event.resource} {event.name}", (memory.course.places or PLACES)[kind]
    if standing.place not in places:
        yield f"{what} in {standing.place or 'no step'}, and belongs to {', '.join(sorted(places))}"
        return
    if kind not in ("broker brake", "rehearsal", "missing state") and (not standing.opened or standing.finished):
        # a brake takes back what others did; a rehearsal comes before the step that it is for; dual write goes on in a hold
        yield f"{what} while {standing.place} is not open"
    if kind.endswith(" pod") and event.name not in standing.batch_nodes:
        yield f"{what}, but the batch on record is {list(standing.batch_nodes)}"
    for pod, mode in (event.assigns or {}).items():
        if (on_record := standing.nodes.get(pod, {}).get("assigned")) != mode:
            yield f"the file of {pod} is written for mode {mode}, on record is {on_record}"


def one_actor(memory: Memory, event: Event) -> Iterator[str]:
    """O3: who does not hold the Lease changes nothing that the other side would not fence."""
    assert isinstance(event, Effect)
    if memory.kind(event) in NO_EFFECT or not event.actor or not memory.holder:
        return
    if event.actor.partition("#")[0] != memory.holder.rpartition("/")[2] and not event.fenced:
        yield f"{event.actor} does {event.verb} {event.resource} {event.name}; the Lease is {memory.holder}'s"


def only_what_is_on_record(memory: Memory, event: Event) -> Iterator[str]:
    """O4: a pod is replaced by the uid that was recorded for it; another object is another migration."""
    assert isinstance(event, Effect)
    if event.resource == "pods" and event.verb in ("evict", "delete"):
        node = memory.standing.nodes.get(event.name, {})
        if not event.uid or node.get("evicting") != event.uid:
            yield f"pod {event.name} ({event.uid}) is replaced, on record is {node.get('evicting') or 'none'}"


def destroys_what_it_has_just_read(memory: Memory, event: Event) -> Iterator[str]:
    """O5: after the intent was stored it was read again, and the request insists on what was read."""
    assert isinstance(event, Effect)
    if event.verb not in ("delete", "evict") and event.resource not in ("znodes", "statefulsets", "secrets"):
        return
    kind = memory.kind(event)
    if kind in NO_EFFECT or event.verb == "create":
        return
    if not event.fenced and kind != "broker set":        # the claim is an annotation of our own field manager
        yield f"{event.verb} {event.resource} {event.name} insists on nothing"
    if event.read_at is not None and event.read_at < memory.moved_at:
        yield f"{event.verb} {event.resource} {event.name} rests on a reading from before its intent was stored"


def unknown_opens_nothing(memory: Memory, event: Event) -> Iterator[str]:
    """O6: a move forward in a walk is recorded with no gate closed, and only after as many passes as it wants."""
    assert isinstance(event, Recorded)
    before, now = memory.standing, Standing(event.status)
    if memory.recorded is None or before.position == now.position or _steps_aside(memory.course, before, now):
        return
    closed = [item for item in event.status.get("waitingFor") or () if _counts(str(item["gate"]))]
    if now.is_remedy and not before.is_remedy and {item["reason"] for item in closed} <= RESCUED:
        closed = []
    for item in closed:
        yield f"{before.place} moves on while gate {item['gate']} says {item['verdict']} {item['reason']}"
    for gate in event.status.get("gates") or ():
        if gate["name"] in SAMPLES and gate.get("passes", 0) < SAMPLES[gate["name"]]:
            yield f"{before.place} moves on after {gate.get('passes', 0)} passes of {gate['name']}"


RESCUED = {"ControllerNotReady", "DualWriteStuck", "MetadataDiffers", "LeaderStuck", "OutOfSync", "ForwardingStuck",
           "BrokerFenced"}
"""What a remediation begins for: who cannot do what is asked for is replaced (`Leg.rescues`)."""


def _counts(gate: str) -> bool:
    """The others of a batch may be under way while one of them moves on."""
    return not gate.startswith("Replace/") and gate not in ("Bake", "Lease", "Effects", "Paused", "Deletion", "Rollback")


def _steps_aside(course: Course, before: Standing, now: Standing) -> bool:
    """Turning, beginning with Preflight again, and taking back a proof or what was to become one: these need no gate."""
    turned = (before.backward, before.attempt) != (now.backward, now.attempt)
    unproven = before.baking_since is not None and now.baking_since is None and bool(now.batch_nodes)
    told = (before.status.get("rollback") or {}).get("failure") != (now.status.get("rollback") or {}).get("failure")
    closed = before.place == now.place and before.opened and not now.opened          # its approval does not count any more
    rescue = bool(before.batch_nodes) and bool(now.batch_nodes) and before.batch_nodes != now.batch_nodes
    return (turned or unproven or told or rescue or closed or now.gave_up(before) or not before.step
            or now.place == f"{course.steps[0]}>")


def a_wish_is_heard(memory: Memory, event: Event) -> Iterator[str]:
    """O7: no disruption begins after a pause or the wish to go back was visible."""
    assert isinstance(event, Effect)
    if event.resource != "pods" or memory.wanted is None:
        return
    seen = event.wish_read_at >= memory.wish_changed if event.wish_read_at is not None else (
        event.at > memory.wish_changed + memory.limits.wish_is_seen)
    wish, standing = memory.spec.get("desiredState", "Running"), memory.standing
    stopping = any(node.get("assigned") == "Stopped" for node in standing.nodes.values())
    if not seen or stopping or (memory.cluster is not None and memory.cluster.rules == ""):
        return                                           # between KRaft and ZooKeeper nobody may stand still
    if wish in ("Paused", "Planned"):
        yield f"pod {event.name} is replaced while {wish} is wanted"
    if wish == "RolledBack" and not standing.backward and not (
            standing.step == memory.course.point_of_no_return and standing.opened):
        yield f"pod {event.name} is moved on in {standing.place} while RolledBack is wanted"


def differences(end: Any, reference: Any) -> list[str]:
    """O8: where an end differs from the reference. Both are dataclasses or mappings of plain values."""
    left, right = (item if isinstance(item, dict) else vars(item) if hasattr(item, "__dict__") else {
        name: getattr(item, name) for name in item.__slots__} for item in (end, reference))
    return [f"{name}: {left.get(name)!r} instead of {right.get(name)!r}"
            for name in sorted(left.keys() | right.keys()) if left.get(name) != right.get(name)]


def writes_are_bounded(memory: Memory, event: Event) -> Iterator[str]:
    """O9: nothing new, no write but the heartbeat; and no step writes for ever."""
    assert isinstance(event, Recorded)
    before, now = memory.recorded, Standing(event.status)
    if before is None or before.actor != event.actor or before.uid != event.uid:
        return
    if memory.standing.telling == now.telling and event.at - before.at < memory.limits.heartbeat:
        yield f"a status that says nothing new, {event.at - before.at:.1f} s after the last"
    if memory.standing.finished and now.finished and memory.standing.telling == now.telling:
        yield "a finished migration is written again"
    if memory.idle_records > memory.limits.records_a_step:
        yield f"{memory.idle_records} records in {now.place}"


def always_says_what_it_waits_for(memory: Memory, event: Event) -> Iterator[str]:
    """L1: a migration that does not move names a reason."""
    assert isinstance(event, Recorded)
    before, now = memory.recorded, Standing(event.status)
    if before is None or before.actor != event.actor or now.finished or not memory.quiet:
        return
    stands = memory.standing.position == now.position and event.at - before.at > memory.limits.silence
    if stands and not event.status.get("waitingFor") and not before.status.get("waitingFor"):
        yield f"{now.place} stands and waits for nothing"


def stays_in_its_namespace(memory: Memory, event: Event) -> Iterator[str]:
    """O10."""
    if isinstance(event, Effect) and memory.limits.namespace and event.namespace not in ("", memory.limits.namespace):
        yield f"{event.verb} {event.resource} {event.name} in namespace {event.namespace}"
    if isinstance(event, Asked) and memory.limits.namespace:
        inside = f"/namespaces/{memory.limits.namespace}/" in f"{event.path}/"
        looks = event.verb == "GET" and (event.path.startswith(NODE) or event.path in (*DISCOVERY, CLASSES))
        if not inside and not looks and (event.verb, event.path) != ("POST", REVIEWS):
            yield f"{event.verb} {event.path}"


def tells_no_secret(memory: Memory, event: Event) -> Iterator[str]:
    """O11: canary strings that were planted in secrets are told nowhere."""
    text, where = "", ""
    if isinstance(event, Told):
        text, where = event.text, event.where
    elif isinstance(event, Recorded) and memory.limits.secrets:
        text, where = repr(event.status), "status"
    for secret in memory.limits.secrets:
        if secret in text:
            yield f"a secret is told in {where}"


RULES = (
    ("O1", Recorded, phase_moves_along_the_edges),
    ("O2", Effect, intent_comes_first),
    ("O3", Effect, one_actor),
    ("O4", Effect, only_what_is_on_record),
    ("O5", Effect, destroys_what_it_has_just_read),
    ("O6", Recorded, unknown_opens_nothing),
    ("O7", Effect, a_wish_is_heard),
    ("O9", Recorded, writes_are_bounded),
    ("O10", Effect, stays_in_its_namespace),
    ("O10", Asked, stays_in_its_namespace),
    ("O11", Told, tells_no_secret),
    ("O11", Recorded, tells_no_secret),
    ("L1", Recorded, always_says_what_it_waits_for),
)
