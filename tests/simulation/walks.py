"""Walks over the API: chains of what people do to a migration, each step judged.

Specs at the bounds of their schema and right behind them, objects changed by hand, another release that wrote the status,
the operator killed. Each step is refused in words, or obeyed, or can be put right; in the end the first spec comes back.
"""

import json
import random
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import pytest
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from fakes.api_server import Object, copied
from invariants.any_migration import differences
from simulation.group_migrations import GroupMigrationWorld, course_of
from simulation.migration_world import MigrationWorld
from simulation.moments import at_step, before_finalize, reference, second_batch, to_step
from simulation.operated import OperatedWorld
from simulation.roads import of_a_group
from simulation.test_rollback import assert_as_before, without_restarts
from simulation.test_troubles import undisturbed
from simulation.test_version_skew import as_the_release_before_wrote_it
from switchover.api.consumer_group_migration import ConsumerGroupMigration
from switchover.api.kafka_migration import KafkaMigration
from switchover.api.meta import CHANGEABLE
from switchover.cluster import modes
from unit.group_pictures import BRIDGED, workload_of
from unit.largest import Place, Schema, schema_of, smallest, type_of

PASSES_A_SECOND, STATUS_BYTES, LIMIT = 2.0, 60_000, 6_000.0
"""What a step may take: of passes, besides those of its begin; of a status; and the end, of virtual seconds."""
ALWAYS = {to_camel(each) for each in CHANGEABLE}
Values = Mapping[str, tuple[Any, ...]]
Undo = Callable[[], None]


class Edit(NamedTuple):
    """What a person writes into a field, `[]` being each item of a list; None takes it out."""

    place: Place
    value: Any

    def __str__(self) -> str:
        text = json.dumps(self.value, ensure_ascii=False)
        return f"{'.'.join(self.place)}={text if len(text) < 60 else f'{text[:40]}… ({len(text)})'}"


class Act(NamedTuple):
    """A step: an edit, something by hand, or the first spec again. An edit that does not stay is taken back after it."""

    seconds: float
    seed: int
    what: Edit | str = ""
    stays: bool = False

    def __str__(self) -> str:
        back = "" if self.stays or isinstance(self.what, str) else ", and back"
        return f"{self.what or 'the first spec'} for {self.seconds:.0f} s{back}"


class Chain(NamedTuple):
    """`begin` names a moment of the sort's."""

    begin: str
    acts: tuple[Act, ...]
    back: bool

    def __str__(self) -> str:
        return " | ".join([self.begin, *map(str, self.acts), "in the end back" if self.back else "to the end"])


# --- what can be written ------------------------------------------------------------------------------------------------

_EITHER = (("pods", "percent"), ("takenTime", "skipReason"), ("preset", "script"), ("protocol", "assignmentStrategy"))
ALONE = {one: other for pair in _EITHER for one, other in (pair, pair[::-1])}
"""What cannot stand next to a field."""


def leaves(schema: Schema, at: Place = ()) -> Iterator[tuple[Place, Schema]]:
    """Fields that hold a value; those below an affinity are one: it is Kubernetes' own, and given with every field."""
    if at[-1:] == ("affinity",) or not {"properties", "items"} & schema.keys():
        yield at, schema
        return
    for name, each in {**schema.get("properties", {}), **({"[]": schema["items"]} if "items" in schema else {})}.items():
        yield from leaves(each, (*at, name))


def full(schema: Schema) -> Any:
    """Something with every field that there is."""
    if "properties" in schema:
        return {name: full(each) for name, each in schema["properties"].items()}
    return [full(schema["items"])] if "items" in schema else {"a": "b"} if type_of(schema) == "map" else smallest(schema)


def bounds(schema: Schema) -> tuple[Any, ...]:
    """What is at its bounds, and right behind them."""
    if "enum" in schema:
        return (*schema["enum"], "Odd")
    if type_of(schema) == "integer":
        return schema["minimum"], schema["maximum"], schema["minimum"] - 1, schema["maximum"] + 1
    return (full(schema),) if "properties" in schema else (True, False) if type_of(schema) == "boolean" else ()


def put(into: dict[str, Any], edit: Edit, given: Values, at: int = 0) -> None:
    """Write it. A list that is empty has what is `given` for it first."""
    name, rest = edit.place[at], edit.place[at + 1:]
    if edit.value is not None:
        into.pop(ALONE.get(name, ""), None)
    if not rest and edit.value is None:
        into.pop(name, None)
    elif not rest:
        into[name] = deepcopy(edit.value)
    elif rest == ("[]",):
        into[name] = [] if edit.value is None else [edit.value]
    elif rest[0] == "[]":
        into[name] = into.get(name) or deepcopy(given[".".join(edit.place[:at + 1])][0])
        for each in into[name]:
            put(each, edit, given, at + 2)
    else:
        put(into.setdefault(name, {}), edit, given, at + 1)


KAFKA: Values = {
    "approvals": ([{"name": "Finalize", "planHash": "0" * 16, "approver": "mallory", "reason": "r" * 1024}],
                  [{"name": f"Step{n}", "planHash": "f" * 64, "approver": "m" * 253} for n in range(32)],
                  [{"name": "Finalize", "planHash": "THE PLAN", "approver": "alice"}]),
    "rollout.steps": ([{"pods": 1, "bakeSeconds": 0}], [{"percent": 100, "bakeSeconds": 5}], []),
    "windows": ([{"name": "night", "cron": "0 3 * * *", "durationSeconds": 3600, "timeZone": "Europe/Berlin"}],
                [{"name": "all-day", "cron": "* * * * *", "durationSeconds": 604800}]),
    "windows.[].name": ("w" * 253, "Night"), "windows.[].cron": ("*/5 * * * *", "0 0 30 2 *"),
    "windows.[].timeZone": ("Asia/Kathmandu", "Mars/Base"),
    "kafka.bootstrapServers": ("elsewhere:9092", "kafka:9092/x"),
    "kafka.credentialsRef.name": ("nobody", "../x"), "zookeeper.credentialsRef.name": ("nobody", "../x"),
    "zookeeper.connect": ("elsewhere:2181", "zookeeper:2181/chroot", "zookeeper"),
    "gates.groups": ([{"name": "orders"}], [{"name": "nobody"}], [{"name": f"orders-{n}"} for n in range(100)]),
    "gates.groups.[].name": ("é" * 16_383, "é" * 16_384),
    "gates.acceptedTopics.[]": ("orders", "o" * 249, "with blanks"),
    "brokers": ([{"name": "kafka"}], [{"name": "kafka"}, {"name": "ghost"}], [{"name": "kafka"}, {"name": "kafka"}], []),
    "brokers.[].name": ("kafak", "Kafka", "kafka-controller"), "brokers.[].container": ("kafka", "none", "None"),
    "brokers.[].start.script": ("/kafka/start.sh", "bin/start.sh"), "upgrade.image": ("kafka:3.9.1", ""),
    "controllers.name": ("kafka-kraft", "kafka", "k" * 53), "controllers.replicas": (5, 4),
    "controllers.listener": ({"securityProtocol": "SSL", "credentialsRef": {"name": "tls"}},),
    "controllers.listener.name": ("QUORUM", "PLAINTEXT", "quorum"), "controllers.listener.credentialsRef.name": ("tls", "T"),
    "controllers.storage.size": ("2Gi", "much"), "controllers.storage.storageClassName": ("fast", "Fast"),
    "controllers.template.image": ("kafka:3.9.1", ""),
    "controllers.template.heapOptions": ("-Xms1g -Xmx1g", "-XX:OnOutOfMemoryError=reboot"),
    "controllers.template.resources.requests": ({"memory": "1Gi"}, {"cpu": "lots"}),
    "controllers.template.resources.limits": ({"cpu": "2", "memory": "4Gi"}, {"memory": "1Ki"}),
    "controllers.template.omit.[]": ("sidecar", "kafka", "A"),
    "controllers.template.nodeSelector": ({"disk": "ssd"}, {"a" * 318: "b"}),
    "controllers.template.tolerations": ([{"key": "k" * 317, "operator": "Exists"}],),
    "controllers.template.tolerations.[].key": ("dedicated", ""), "controllers.template.tolerations.[].value": ("v" * 63,),
    "controllers.template.labels": ({"team": "a"}, {"app": "kafka"}, {"team": "a" * 64}),
    "controllers.template.annotations": ({"example.com/note": "x" * 4096}, {"example.com/note": "x" * 4097}),
    "rehearsal.resources.requests": ({"memory": "8Gi"}, {"cpu": "lots"}),
    "rehearsal.resources.limits": ({"memory": "8Gi"}, {"memory": "1Mi"}),
    "backups.takenTime": ("2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z", "yesterday"),
    "backups.location": ("s3://" + "x" * 1019,), "backups.skipReason": ("x" * 1024, ""),
}
_ENV = [{"name": "EXTRA", "value": "1"}]
_CHANGES = {
    "image": ("orders:2", ""), "env": (_ENV, [*_ENV, *_ENV]), "env.[].name": ("GROUP", "1"), "env.[].value": ("v" * 4096,),
    "args.[]": ("--again",), "patch": ("spec: {terminationGracePeriodSeconds: 5}", "spec: [", "kind: Pod")}
GROUP: Values = {
    **{name: KAFKA[name] for name in KAFKA if name.partition(".")[0] in ("approvals", "rollout", "windows", "kafka")},
    "holds.[]": ("Canary", "HandOver", "canary"), "group": ("nobody", "é" * 16_384),
    "gates.baselineRef.name": ("nobody", "../x"),
    "workloads": ([workload_of()], [workload_of(), workload_of(name="ghost")], [workload_of(**BRIDGED)], []),
    "workloads.[].name": ("odrers", "Orders"), "workloads.[].container": ("none", "None"),
    **{f"workloads.[].{part}.{name}": each for part in ("template", "bridge") for name, each in _CHANGES.items()},
    "protocol.to": ("Classic", "Consumer", "Odd"), "protocol.remoteAssignor": ("range", "r" * 249, ""),
    "assignmentStrategy": ({"to": "cooperative-sticky"}, {"to": "range", "clientFamily": "Librdkafka"}, {}),
    "assignmentStrategy.to": ("cooperative-sticky", ""), "assignmentStrategy.clientFamily": ("Odd",),
    "audit": ({"enabled": True, "image": "pipeline:1", "claim": "pipeline"}, {"enabled": True}),
    "audit.image": ("pipeline:2", ""), "audit.claim": ("store", ""), "audit.cluster": ("other", ""),
    "audit.cpu": ("2", ""), "audit.memory": ("4Gi", ""),
    "rollout.surge": (0, 1),
}
NOT_HERE = {"zookeeper": "a simulated group has none", "coordination": "it needs zookeeper"}
"""Fields of a group that no walk touches: simulation/test_coordination.py and the sandbox do."""


# --- what is done by hand -----------------------------------------------------------------------------------------------


def _status(world: OperatedWorld, change: Callable[[Object], None]) -> None:
    """Somebody writes the status; the jury takes it for what is on record."""
    world.api.edit(world.of.plural, world.of.name, change)
    if (recorded := world.jury.memory.recorded) is not None:
        world.jury.memory.recorded = replace(recorded, status=world.status) if world.status.get("progress") else None


def _put_back(world: OperatedWorld, newest: Object) -> None:
    """What is printed for a record that is contradicted: the newest status again."""
    stalled = next((each for each in world.status.get("conditions", ()) if each["type"] == "Stalled"), {})
    if (stalled.get("status"), stalled.get("reason")) == ("True", "RecordContradicted"):
        world.say("a person puts the newest status back")
        _status(world, lambda found: found.update(status=copied(newest)))


def another_status(choose: Callable[["Walk"], Object], walk: "Walk") -> Undo:
    newest = copied(walk.world.status)
    _status(walk.world, lambda found: found.update(status=copied(choose(walk))))
    return partial(_put_back, walk.world, newest)


def of_the_release_before(walk: "Walk") -> None:
    """A mode by its letter is the same mode."""
    world = walk.world
    if (nodes := copied(world.status.get("nodes"))) and world.status.get("plan"):
        _status(world, lambda found: as_the_release_before_wrote_it(found, 0.0))
        world.jury.memory.recorded = replace(world.jury.memory.recorded, status={**world.status, "nodes": nodes})


def of_a_release_to_come(walk: "Walk") -> None:
    def write(found: Object) -> None:
        status = found.setdefault("status", {})
        status.setdefault("conditions", []).append({
            "type": "Tomorrow", "status": "True", "reason": "Tomorrow", "lastTransitionTime": "2026-01-01T00:00:00Z"})
        status.setdefault("gates", []).append({"name": "Tomorrow", "passes": 1, "verdict": "Perhaps"})
        status.update(phase="Tomorrow", tomorrow={"a": 1})

    _status(walk.world, write)


def gone(plural: str, part: str, walk: "Walk") -> None:
    """Somebody deletes it, while it is the operator's."""
    for each in [each["metadata"]["name"] for each in walk.world.api.of(plural) if part in each["metadata"]["name"]
                 and not walk.world.finished]:
        walk.world.api.remove(plural, each)


def original_gone(walk: "Walk") -> Undo:
    """It comes back from a backup."""
    objects = walk.world.api.objects
    backup = {key: found for key, found in objects.items() if key[0] == "controllerrevisions"}
    for key in backup:
        del objects[key]
    return lambda: objects.update({key: found for key, found in backup.items() if key not in objects})


def restarted(walk: "Walk") -> Undo | None:
    """`kubectl rollout restart` of brokers that Kubernetes does not roll."""
    edit = partial(walk.world.api.edit, "statefulsets", "kafka")
    if walk.world.api.objects["statefulsets", "kafka"]["spec"]["updateStrategy"]["type"] != "OnDelete":
        return None
    edit(lambda found: found["spec"]["template"]["metadata"].update(annotations={"restartedAt": "now"}))
    return lambda: edit(lambda found: found["spec"]["template"]["metadata"].pop("annotations", None))


def strategy(walk: "Walk") -> None:
    """By a manifest of before, where no pod is older than its template."""
    made = walk.world.api.objects["statefulsets", "kafka"]
    if all(pod["metadata"]["labels"].get("controller-revision-hash") == (made.get("status") or {}).get("updateRevision")
           for pod in walk.world.api.of("pods") if pod["metadata"]["name"] in ("kafka-0", "kafka-1", "kafka-2")):
        original = copied(made["spec"]["updateStrategy"]) | {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
        walk.world.api.edit("statefulsets", "kafka", lambda found: found["spec"].update(updateStrategy=original))


def elsewhere(walk: "Walk") -> None:
    """A backup of the object is restored, with its status, into another cluster: there it begins from the start."""
    other = walk.sort.world(walk.patch)
    here = walk.world.migration
    other.api.edit(other.of.plural, other.of.name, lambda found: found.update(
        spec=copied(here["spec"]), status={**copied(here.get("status") or {}), "uid": "of-another"}))
    own = other.migration["metadata"]["uid"]
    other.say("an object is restored with its status")
    assert other.live(lambda: other.status.get("uid") == own, limit=60)
    assert (other.step, other.status["attempt"]) == ("Preflight", 1), "it goes on with the record of another object"
    begun = other.timeline.now()
    assert other.live(lambda: other.timeline.now() > begun + 10)


Hands = Mapping[str, Callable[["Walk"], Undo | None]]
OF_A_GROUP: Hands = {
    "its status is cleared": partial(another_status, lambda _: {"observedGeneration": -1}),
    "its status is one of before": partial(another_status, lambda walk: walk.dice.choice(walk.seen or [walk.world.status])),
    "the release to come was here": of_a_release_to_come, "restored into another cluster": elsewhere,
    "what was there before is lost for a while": original_gone}
OF_A_CLUSTER: Hands = {
    **OF_A_GROUP, "the release before was here": of_the_release_before, "rollout restart": restarted,
    "the old update strategy": strategy, "the brokers' Secret is deleted": partial(gone, "secrets", "kafka-switchover"),
    "the controllers' Secret is deleted": partial(gone, "secrets", "kafka-controller-switchover"),
    "a rehearsal's ConfigMaps are deleted": partial(gone, "configmaps", "-rehearsal-")}


# --- the two kinds ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sort:
    """One kind: its worlds, the moments at which chains begin, what can be written and done, and what the end must be."""

    model: Any
    world: Callable[[pytest.MonkeyPatch], Any]
    begins: Mapping[str, Callable[[Any], None]]
    given: Values
    hands: Hands
    is_there: Callable[["Walk"], list[str]]
    is_back: Callable[["Walk"], list[str]]

    def fields(self) -> Mapping[Place, Schema]:
        return dict(leaves(schema_of(self.model.__name__)["properties"]["spec"]))

    def edits(self) -> list[Edit]:
        """All that is in the table, at the bounds, and nothing."""
        at_bounds = {".".join(place): bounds(schema) for place, schema in self.fields().items()}
        return [Edit(tuple(name.split(".")), value) for name, each in {**at_bounds, **self.given}.items()
                if name.partition(".")[0] not in NOT_HERE or self.model is KafkaMigration for value in (*each, None)]

    def chain(self, number: int, length: int) -> Chain:
        """From a deck that is shuffled again when it is empty, so that everything has its turn. Every second one begins
        before anything is touched, with what can be changed until then alone."""
        early, turn, dice = number % 2 == 0, number // 2, random.Random(number)
        deck: list[Edit | str] = [each for each in self.edits() if not early or each.place[0] not in ALWAYS]
        deck += [] if early else 3 * [*self.hands]
        dealt = [each for n in range(turn * length // len(deck), ((turn + 1) * length - 1) // len(deck) + 1)
                 for each in random.Random(f"{early} {n}").sample(deck, len(deck))]
        acts: list[Act] = []
        for card in dealt[turn * length % len(deck):][:length]:
            seconds, seed = dice.choice([2.0, 10.0] if early else [2.0, 10.0, 30.0, 90.0]), dice.randrange(1_000_000)
            acts += [Act(seconds, seed)] if dice.random() < 0.1 else []
            acts.append(Act(seconds, seed, card, stays=dice.random() < 0.4))
        acts += [Act(90.0, number, Edit(("desiredState",), "Running"), stays=True)] if early else []
        return Chain("planned" if early else dice.choice([*self.begins]), tuple(acts), dice.random() < 0.5)


def frozen(status: Mapping[str, Any], old: Any, new: Any) -> list[str]:
    """Parts of a spec that the API server lets nobody change now, as `api.crds.frozen` has it."""
    progress, nodes = status.get("progress") or {}, status.get("nodes") or status.get("slots") or ()
    step, first = progress.get("step"), type(new).untouched[""].step
    free = not status.get("planHash") or (not nodes and (
        step == "Rehearse" or (step == first and not progress.get("openTime"))))
    plain = bool(nodes) and all(each.get("assigned") in {*modes.WITHOUT_QUORUM} for each in nodes)
    found = []
    for attribute in type(new).model_fields:
        mine, theirs = getattr(old, attribute), getattr(new, attribute)
        if always := type(new).changeable.get(attribute):
            mine, theirs = (each.model_copy(update=dict.fromkeys(always)) for each in (mine, theirs))
        if attribute not in CHANGEABLE and mine != theirs and not free and not (attribute == "controllers" and plain):
            found.append(to_camel(attribute))
    return found


def compared(end: Any, ideal: Any) -> list[str]:
    """But for rehearsals, what workloads were, and what another release has written."""
    for each in (end, ideal):
        each.others[:] = [(plural, other) for plural, other in each.others
                          if "-rehearsal" not in other and plural != "controllerrevisions"]
        each.status.get("conditions", {}).pop("Tomorrow", None)
    return differences(end, ideal)


def cluster_is_there(walk: "Walk") -> list[str]:
    """As without trouble, but for how often nodes were started; with controllers of another spec at its end at least."""
    if walk.left:
        return [] if walk.world.phase == "Succeeded" else [walk.world.phase]
    return compared(without_restarts(walk.world.end_state()), without_restarts(deepcopy(reference()[0])))


def cluster_is_back(walk: "Walk") -> list[str]:
    assert_as_before(walk.world)
    return []


PLAN = "Deployment"


def group_is_there(walk: "Walk") -> list[str]:
    return compared(walk.world.end_state(), deepcopy(undisturbed(PLAN)[0]))


def group_is_back(walk: "Walk") -> list[str]:
    end, ideal = walk.world.end_state(), undisturbed(f"{PLAN}, back")[0]
    return compared(replace(end, status={}), replace(deepcopy(ideal), status={}))


_STEPS = ("EnableMigration", "CopyMetadata", "DualWrite", "Soak", "Finalize")
CLUSTERS = Sort(
    KafkaMigration, MigrationWorld,
    {"at the start": lambda _: None, "at Rehearse": partial(at_step, step="Rehearse"),
     "at ProvisionControllers": partial(at_step, step="ProvisionControllers"),
     **{f"in {step}": partial(to_step, step=step) for step in _STEPS}, "in MoveBrokers": second_batch,
     "before Finalize": before_finalize},
    KAFKA, OF_A_CLUSTER, cluster_is_there, cluster_is_back)


def _to(share: float, world: GroupMigrationWorld) -> None:
    """A step of the plan."""
    assert world.live(lambda: world.step == world.steps[int(len(world.steps) * share)])


GROUPS = Sort(
    ConsumerGroupMigration, partial(of_a_group, PLAN),
    {"at the start": lambda _: None, "in its first steps": partial(_to, 0.4), "in its last steps": partial(_to, 0.7)},
    GROUP, OF_A_GROUP, group_is_there, group_is_back)
SORTS = {"clusters": CLUSTERS, "groups": GROUPS}


# --- a walk -------------------------------------------------------------------------------------------------------------


@dataclass
class Walk:
    """One chain, walked. `left` are parts of the first spec that nobody can bring back without a rollback."""

    sort: Sort
    chain: Chain
    patch: pytest.MonkeyPatch
    world: Any = None
    dice: random.Random = field(default_factory=random.Random)
    seen: list[Object] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def go(self) -> None:
        """Raises AssertionError where something is wrong."""
        self.world = self.sort.world(self.patch)
        self.sort.begins.get(self.chain.begin, lambda _: None)(self.world)
        self.first = self.defaulted(self.world.migration["spec"])
        if self.chain.begin == "planned":
            self.write({**self.first, "desiredState": "Planned"})
        for act in self.chain.acts:
            self.dice = random.Random(act.seed)
            self.world.say(f"a person: {act}")
            undo = self.do(act)
            self.pass_time(act.seconds)
            if undo is not None:
                undo()
            self.seen.append(copied(self.world.status))
        self.end()

    def do(self, act: Act) -> Undo | None:
        before = self.defaulted(self.world.migration["spec"])
        if act.what and isinstance(act.what, str):
            return self.sort.hands[act.what](self)
        spec = copied(before) if act.what else self.first
        if isinstance(act.what, Edit):
            put(spec, act.what, self.sort.given)
        self.write(spec)
        return None if act.stays or not act.what else lambda: self.write(before)

    def defaulted(self, spec: Object) -> Object:
        """As the API server keeps it."""
        found: Object = self.sort.model.model_validate({**self.world.migration, "spec": spec, "status": {}}).spec.manifest()
        return found

    def write(self, spec: Object) -> None:
        """What a person writes, where the API server takes it."""
        try:
            old, new = (self.sort.model.model_validate({**self.world.migration, "spec": each, "status": {}}).spec
                        for each in (self.world.migration["spec"], spec))
        except ValidationError:
            return
        if frozen(self.world.status, old, new):
            return
        if self.sort is GROUPS:
            self.world.jury.memory.course = course_of(new)
            if new.rollout.surge == 0 or (new.protocol is not None and new.protocol.strategy == "Offline"):
                self.world.floor = 0                                    # the person allows it
        self.world.api.edit(self.world.of.plural, self.world.of.name, lambda found: found.update(spec=new.manifest()))
        self.world.witness.wish()

    def pass_time(self, seconds: float) -> None:
        """An operator lives for a while, and dies at a write of chance, and another one."""
        begun = self.world.timeline.now()
        while self.world.timeline.now() < begun + seconds:
            since = self.world.timeline.now()
            self.world.live(self.world.approved_and(lambda: self.world.timeline.now() > begun + seconds),
                            kill_when=lambda: self.dice.random() < 0.01)
            passes = sum(sample.value for registry in self.world.metrics for metric in registry.collect()
                         for sample in metric.samples if sample.name == "switchover_pass_seconds_count")
            lasted = self.world.timeline.now() - since
            assert passes <= 10 + PASSES_A_SECOND * lasted, f"{passes:.0f} passes in {lasted:.0f} s"
        size = len(json.dumps(self.world.status))
        assert size < STATUS_BYTES, f"a status of {size} bytes"
        assert self.world.finished or self.world.status.get("waitingFor") or self.world.step, "it says nothing"

    def end(self) -> None:
        """The first spec comes back, as far as it may; what was made by another one is taken back first."""
        world = self.world
        self.bring_back()
        rolled = world.phase == "RolledBack" or (world.status.get("rollback") or {}).get("failure")
        can_go_back = (world.status.get("rollback") or {}).get("available", True)
        world.say(f"the first spec is back, but {', '.join(self.left) or 'nothing'}")
        if rolled if world.finished else can_go_back and (self.left or rolled or self.chain.back):
            self.reach("RolledBack")
            assert (found := self.sort.is_back(self)) == [], found
            if self.chain.back:
                return
            self.bring_back()
            assert not self.left, self.left
        self.reach("Running")
        assert (found := self.sort.is_there(self)) == [], found

    def bring_back(self) -> None:
        """First what may always change, then all, then one part after the other; the API server judges each."""
        every = {*self.first, *self.world.migration["spec"]} - {"desiredState"}
        for part in [every & ALWAYS, every, *({each} for each in sorted(every - ALWAYS))]:
            now = self.defaulted(self.world.migration["spec"])
            self.write({name: value for name, value in now.items() if name not in part} | {
                name: value for name, value in self.first.items() if name in part})
        now = self.defaulted(self.world.migration["spec"])
        self.left = [name for name in sorted(every) if self.first.get(name) != now.get(name)]

    def reach(self, state: str) -> None:
        self.write({**self.world.migration["spec"], "desiredState": state})
        world = self.world
        is_over = (lambda: world.phase == "RolledBack") if state == "RolledBack" else (
            lambda: world.finished and world.phase != "RolledBack")
        try:
            assert world.live(world.approved_and(is_over), limit=LIMIT)
        except AssertionError as error:
            waits = [f"{each['reason']}: {each['message'][:120]}" for each in world.status.get("waitingFor") or ()]
            raise AssertionError(f"no end ({state}) at {world.step} {world.phase}, waits for {waits}: {error}") from error


def walked(sort: Sort, chain: Chain) -> str:
    """What is wrong, "" where nothing is."""
    with pytest.MonkeyPatch.context() as patch:
        try:
            Walk(sort, chain, patch).go()
        except Exception as error:  # noqa: BLE001 - a fault of any kind is what is looked for
            return f"{type(error).__name__}: {str(error)[:1500]}"
        return ""


def shortened(sort: Sort, chain: Chain) -> Chain:
    """The chain with fewer acts, as far as the same is still wrong with it."""
    found = walked(sort, chain)
    for act in chain.acts:
        fewer = chain._replace(acts=tuple(each for each in chain.acts if each is not act))
        if walked(sort, fewer)[:40] == found[:40]:
            chain = fewer
    return chain
