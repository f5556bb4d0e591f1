"""What the invariants remember of the history so far."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from invariants.events import (
    Asked,
    Cluster,
    Effect,
    Event,
    Leased,
    Recorded,
    RolledByKubernetes,
    Started,
    Told,
    Wanted,
)
from switchover.cluster.plan import PLAN

OUR_KINDS = {"controllerrevisions": "original", "services": "service", "poddisruptionbudgets": "budget",
             "persistentvolumeclaims": "claim", "leases": "lease", "events": "event", "znodes": "znode",
             "kafkamigrations": "migration", "jobs": "rehearsal", "configmaps": "rehearsal"}


@dataclass
class Limits:
    """What a run may take, in seconds; tests that make trouble of their own widen them."""

    without_controller: float = 120.0
    without_leader: float = 10.0
    wish_is_seen: float = 30.0         # where the history does not tell what an actor had read
    heartbeat: float = 25.0            # 0 where the history does not tell one process from the next
    silence: float = 25.0
    dual_write_age: float = 15.0
    min_insync: int = 2
    records_a_step: int = 400
    namespace: str = ""
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Course:
    """The plan of a migration, by its steps. `untouched` is from where a spec that was changed is checked again; from the
    last one until it has begun. `places` is where an effect on a resource (plural) belongs; empty for a cluster, whose
    effects are told by more than their resource."""

    steps: tuple[str, ...]
    point_of_no_return: str
    untouched: tuple[str, ...]
    places: Mapping[str, frozenset[str]] = field(default_factory=dict)


OF_A_CLUSTER = Course(tuple(step.name for step in PLAN.steps), PLAN.point_of_no_return, ("Rehearse>", "UpgradeBrokers>"))


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a recorded status says that the migration stands."""

    status: Mapping[str, Any]

    @property
    def _progress(self) -> Mapping[str, Any]:
        return self.status.get("progress") or {}

    @property
    def step(self) -> str:
        return str(self._progress.get("step", ""))

    @property
    def is_remedy(self) -> bool:
        return bool(self._progress.get("batchIsRemediation", False))

    @property
    def backward(self) -> bool:
        return self._progress.get("direction") == "Backward"

    @property
    def place(self) -> str:
        """The step with its direction: `MoveBrokers>` forward, `MoveBrokers<` back."""
        return self.step + ("<" if self.backward else ">")

    @property
    def attempt(self) -> int:
        return int(self.status.get("attempt", 1))

    @property
    def opened(self) -> bool:
        return bool(self._progress.get("openTime"))

    @property
    def finished(self) -> bool:
        return bool(self._progress.get("completeTime"))

    @property
    def batch(self) -> int:
        return int(self._progress.get("batch", 0))

    @property
    def batch_nodes(self) -> tuple[str, ...]:
        return tuple(self._progress.get("batchNodes") or ())

    def gave_up(self, before: "Standing") -> bool:
        """The restart that was to prove something is void: it is to be done again."""
        return before.place == self.place == "ReleaseZooKeeper>" and self.batch < before.batch

    @property
    def baking_since(self) -> float | None:
        since = self._progress.get("bakeStartTime")
        return datetime.fromisoformat(since).timestamp() if since else None

    @property
    def nodes(self) -> Mapping[str, Mapping[str, Any]]:
        return {node["name"]: node for node in self.status.get("nodes") or self.status.get("slots") or ()}

    @property
    def position(self) -> object:
        """Everything that decisions rest on."""
        progress = self._progress
        keys = ("step", "direction", "openTime", "batch", "batchNodes", "bakeStartTime", "completeTime")
        nodes = [(name, node.get("assigned"), node.get("evicting"), node.get("settled"))
                 for name, node in self.nodes.items()]
        failure = (self.status.get("rollback") or {}).get("failure")
        return self.attempt, [progress.get(key) or None for key in keys], nodes, failure

    @property
    def telling(self) -> object:
        """What is worth a write at once; figures alone are not."""
        waiting = [(item["gate"], item["verdict"], item["reason"], item.get("subject"))
                   for item in self.status.get("waitingFor") or ()]
        conditions = [(item["type"], item["status"], item["reason"]) for item in self.status.get("conditions") or ()]
        keys = ("observedGeneration", "phase", "planHash", "metadataState", "nodes", "approvals", "rollback", "findings",
                "highWatermark", "migrationNode", "clusterId", "made", "slots")
        group = self.status.get("group") or {}
        of_group = [group.get(key) for key in (
            "type", "state", "coordinator", "members", "mode", "oldMembers", "baseline")]
        plan = {**(self.status.get("plan") or {}), "estimatedCompletionTime": None}
        return self.position, plan, waiting, conditions, of_group, [self.status.get(key) for key in keys]


@dataclass
class Memory:
    """The newest of each kind of event, and since when what must not last has lasted."""

    limits: Limits = field(default_factory=Limits)
    course: Course = OF_A_CLUSTER
    wanted: Wanted | None = None
    wish_changed: float = 0.0          # desiredState
    recorded: Recorded | None = None
    moved_at: float = 0.0
    idle_records: int = 0              # statuses recorded since the step began
    cluster: Cluster | None = None
    holder: str = ""
    finalized: bool = False            # POST_MIGRATION was seen
    quorum_seen: bool = False
    whole: bool = False                # every replica has been in sync
    nobody_acts_since: float | None = None
    leaderless: dict[tuple[str, int], float] = field(default_factory=dict)
    restarted: set[str] = field(default_factory=set)       # brokers stopped by us and not seen in sync since
    quiet: bool = False                # no effect since the last record

    @property
    def standing(self) -> Standing:
        return Standing(self.recorded.status if self.recorded is not None else {})

    @property
    def spec(self) -> Mapping[str, Any]:
        return self.wanted.spec if self.wanted is not None else {}

    @property
    def broker_sets(self) -> frozenset[str]:
        return frozenset(item["name"] for item in self.spec.get("brokers") or ())

    @property
    def controller_set(self) -> str:
        return str((self.spec.get("controllers") or {}).get("name", ""))

    def kind(self, effect: Effect) -> str:
        """What an effect is done to: `broker pod`, `controller files` …; "" for what is nothing of this migration."""
        if self.course.places:
            return effect.resource if effect.resource in self.course.places else ""
        name, owners = effect.name, [*self.broker_sets, self.controller_set]
        sort = "brake" if effect.brake else "set"
        suffixes = {"pods": ("pod", name.rpartition("-")[0]), "statefulsets": (sort, name),
                    "secrets": ("files", name.removesuffix("-switchover"))}
        if effect.resource == "znodes" and effect.verb == "create":
            return "missing state"
        if effect.resource == "jobs" and name.partition("-trial-")[0] in self.broker_sets:
            return "trial"
        if effect.resource not in suffixes:
            known = OUR_KINDS.get(effect.resource) == "rehearsal" and "-rehearsal" in name
            own = known or effect.resource in ("leases", "events", "znodes", "kafkamigrations") or any(
                owner and owner in name for owner in owners)
            return OUR_KINDS.get(effect.resource, "") if own else ""
        what, owner = suffixes[effect.resource]
        if owner == self.controller_set:
            return f"controller {what}"
        return f"broker {what}" if owner in self.broker_sets else ""

    # --- taking an event in, after it was judged ----------------------------------------------------------------------

    def take(self, event: Event) -> None:
        """Remember an event."""
        match event:
            case Wanted():
                if self.wanted is None or self.wanted.spec.get("desiredState") != event.spec.get("desiredState"):
                    self.wish_changed = event.at
                self.wanted = event
            case Recorded():
                self._record(event)
            case Effect():
                self.quiet = self.quiet and event.resource in ("leases", "events", "kafkamigrations")
                if event.resource == "pods":
                    self.restarted.add(event.name)
            case Leased():
                self.holder = event.holder
            case Cluster():
                self._look(event)
            case Asked() | Told() | Started() | RolledByKubernetes():
                pass

    def _record(self, event: Recorded) -> None:
        before, now = self.standing, Standing(event.status)
        self.idle_records = self.idle_records + 1 if before.place == now.place else 0
        if before.position != now.position:
            self.moved_at = event.at
        self.recorded, self.quiet = event, True

    def _look(self, event: Cluster) -> None:
        self.finalized = self.finalized or event.state == "POST_MIGRATION"
        self.quorum_seen = self.quorum_seen or event.quorum
        if event.rules == "":
            self.nobody_acts_since = self.nobody_acts_since or event.at
        elif event.rules is not None:
            self.nobody_acts_since = None
        without = event.leaderless if self.whole and event.leaderless else ()      # a cluster that starts has none at first
        self.leaderless = {key: self.leaderless.get(key, event.at) for key in without}
        if event.in_sync is not None:
            back = {pod for pod in self.restarted if all(
                pod in event.in_sync[key] for key, pods in event.replicas.items() if pod in pods)}
            self.restarted -= back
            self.whole = self.whole or all(event.in_sync[key] == pods for key, pods in event.replicas.items())
        self.cluster = event
