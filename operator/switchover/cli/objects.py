"""The migrations of a namespace, which of them a NAME means, and what each says of itself by its own models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import ValidationError

from switchover.answers.errors import Refused
from switchover.api.consumer_group_migration import ConsumerGroupMigrationSpec, ConsumerGroupMigrationStatus, Slot
from switchover.api.kafka_migration import (
    KafkaMigration,
    KafkaMigrationSpec,
    KafkaMigrationStatus,
    KafkaMigrationStep,
    NodeStatus,
)
from switchover.api.lenient import given, lenient
from switchover.api.meta import API_VERSION, GROUP, VERSION, DesiredState, MigrationSpec
from switchover.api.plan_preview import PlanPreview
from switchover.api.schema import mistakes
from switchover.api.status import MigrationStatus, Phase, StepRecord
from switchover.engine.intent import RETRY, retry_of
from switchover.engine.plan import Plan
from switchover.engine.record import without_foreign_record
from switchover.kubernetes.client.api_server import ApiServer, NotFound
from switchover.kubernetes.ports import Migrations
from switchover.text.nearest import meant

Resource = Mapping[str, Any]

_GROUP = "ConsumerGroupMigration"
UNREAD = "left out, since this program cannot read it"
_OPTIONAL = {KafkaMigrationStep.RAISE_PROTOCOL_VERSION}


def status_in(resource: Resource) -> tuple[MigrationStatus, str]:
    """Its status as far as it can be read, and what was left out."""
    of_group = resource.get("kind") == _GROUP
    return lenient(ConsumerGroupMigrationStatus if of_group else KafkaMigrationStatus, resource.get("status"))


def mode_of(node: NodeStatus | Slot) -> str:
    """What it starts as next: "" for as it was, unknown where that cannot be read."""
    mode = given(node, "assigned")
    return "unknown" if mode is None else str(mode)


def spec_in(resource: Resource) -> tuple[MigrationSpec | None, str]:
    """Its spec, and what of it cannot be read: all of it where it lacks what it must have."""
    of_group = resource.get("kind") == _GROUP
    try:
        return lenient(ConsumerGroupMigrationSpec if of_group else KafkaMigrationSpec, resource.get("spec"))
    except ValidationError as error:
        return None, mistakes(error)


def phase_of(status: MigrationStatus) -> str:
    """Its phase; Pending before an operator has looked at it, Unknown where another release calls it something else."""
    return str(given(status, "phase") or ("Unknown" if status.observed_generation >= 0 else Phase.PENDING))


def nodes_of(status: MigrationStatus) -> tuple[NodeStatus | Slot, ...]:
    """Kafka's nodes, or a group's slots."""
    if isinstance(status, KafkaMigrationStatus):
        return status.nodes
    return status.slots if isinstance(status, ConsumerGroupMigrationStatus) else ()


def preview_of(status: MigrationStatus) -> PlanPreview:
    """What Preflight computed, of a cluster; else an empty one."""
    return (status.plan if isinstance(status, KafkaMigrationStatus) else None) or PlanPreview()


def plan_in(resource: Resource) -> Plan[Any]:
    """Its plan. Raises ValidationError for a spec that this program cannot read.

    A plan stands on everything that a step may need: whoever asks for none, such as a shell that completes a name, need not
    wait for it.
    """
    if resource.get("kind") == _GROUP:
        from switchover.groups.plan import plan_of

        return plan_of(ConsumerGroupMigrationSpec.model_validate(resource.get("spec")))
    from switchover.cluster.plan import PLAN

    return PLAN


def steps_of(resource: Resource) -> list[str]:
    """The steps of its plan in their order; of a spec that cannot be read those on record."""
    status, _ = status_in(resource)
    recorded = [name for name in dict.fromkeys((*(record.name for record in status.steps), status.progress.step)) if name]
    try:
        return [name for name in plan_in(resource).names if name not in _OPTIONAL or name in recorded]
    except ValidationError:
        return recorded


def step_record(status: MigrationStatus, name: str) -> StepRecord | None:
    """The record of a step, None before it began."""
    return next((record for record in status.steps if record.name == name), None)


APPLY_CRDS = "install this release's chart, or kubectl apply --server-side --filename crds/"
"""What brings the CRDs."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of resource, by its names."""

    name: str
    plural: str
    short: str

    def goes_by(self, word: str) -> bool:
        """Whether it is what a person calls so."""
        return word.lower() in (self.short, self.plural, self.name.lower())


KINDS = (Kind("KafkaMigration", "kafkamigrations", "kmig"),
         Kind("ConsumerGroupMigration", "consumergroupmigrations", "cgmig"))
KAFKA_MIGRATION, CONSUMER_GROUP_MIGRATION = KINDS


@dataclass(frozen=True, slots=True)
class Found:
    """An object as the API server has it."""

    kind: Kind
    resource: Resource

    @property
    def name(self) -> str:
        """As it is named on the command line, without doubt: kmig/kafka."""
        return f"{self.kind.short}/{self.resource['metadata']['name']}"

    @property
    def named(self) -> Resource:
        """The object with its kind, which an item of a list may lack."""
        return {"kind": self.kind.name, **self.resource}

    @property
    def status(self) -> MigrationStatus:
        """Its status as far as it can be read, of defaults before an operator has looked at it."""
        return status_in(self.named)[0]

    @property
    def is_retried(self) -> bool:
        """Whether another attempt is wanted after the one that is on record."""
        metadata, wanted = self.resource["metadata"], (self.resource.get("spec") or {}).get("desiredState")
        asked = (metadata.get("annotations") or {}).get(RETRY)
        own = retry_of(metadata.get("uid", ""), self.status.attempt)
        return wanted in (None, DesiredState.RUNNING) and asked == own

    def plan(self) -> Plan[Any]:
        """Its steps. Refused for a spec that this program cannot read."""
        try:
            return plan_in(self.named)
        except ValidationError as error:
            raise Refused(f"{self.name} cannot be read by this version of Switchover: {mistakes(error)}") from None


def kinds_of(text: str) -> tuple[tuple[Kind, ...], str]:
    """The kinds that a NAME may mean, and the name without its kind. Refused for a kind that there is not."""
    word, slash, name = text.rpartition("/")
    if not slash:
        return KINDS, text
    kinds = tuple(kind for kind in KINDS if kind.goes_by(word))
    if not kinds or not name:
        raise Refused(f"{text} is neither kmig/NAME nor cgmig/NAME")
    return kinds, name


def bare(text: str, kind: Kind) -> str:
    """The name alone, where only one kind will do. Refused for the other."""
    kinds, name = kinds_of(text)
    if kind not in kinds:
        raise Refused(f"{text} is no {kind.name}")
    return name


def chosen(text: str, found: Sequence[Found], namespace: str) -> Found:
    """The one that the NAME means among all of a namespace. Refused where it is none, or two; the refusal names them."""
    kinds, name = kinds_of(text)
    fitting = [each for each in found if each.kind in kinds and each.resource["metadata"]["name"] == name]
    match fitting:
        case [one]:
            return one
        case []:
            there = ", ".join(each.name for each in found) or ("none" if kinds == KINDS else "none of this kind")
            raise Refused(f"there is no migration {text} in namespace {namespace}; there is {there}"
                          f"{meant(name, {each.resource['metadata']['name'] for each in found} - {name})}")
        case _:
            raise Refused(f"{name} may be {' or '.join(each.name for each in fitting)}: say which")


NOT_APPLIED = "not-applied"
"""The uid of a migration that no API server has: nothing is claimed by it, and what is claimed by nobody has the uid ""."""


def in_file(text: str, namespace: str, kinds: Sequence[Kind] = KINDS) -> Found:
    """The one migration of a manifest, as if it had just been applied in the namespace. Raises Refused."""
    names = " or ".join(kind.name for kind in kinds)
    try:
        documents = [each for each in yaml.safe_load_all(text) if isinstance(each, dict)]
    except (yaml.YAMLError, RecursionError) as error:
        raise Refused(f"the file is no YAML: {_where(error)}") from None
    fitting = [(kind, each) for each in documents for kind in kinds if each.get("kind") == kind.name]
    if len(fitting) != 1:
        raise Refused(f"the file must hold one {names}, and holds {len(fitting) or 'none'}")
    if not isinstance(fitting[0][1].get("metadata") or {}, dict):
        raise Refused("the file's metadata is no object: it must be such as {name: kafka}")
    [(kind, found)] = fitting
    metadata = {"namespace": namespace, "uid": NOT_APPLIED, "resourceVersion": "", "generation": 1,
                **(found.get("metadata") or {})}
    return Found(kind, {**found, "metadata": metadata, "status": {}})


def _where(error: Exception) -> str:
    """What is wrong in a file, and at which line of it."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"{error.problem} (line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1})"
    return " ".join(str(error).split())


async def every(server: ApiServer, kinds: Sequence[Kind] = KINDS, *, everywhere: bool = False) -> list[Found]:
    """All objects of these kinds, by name. Refused where the API server does not know the kinds."""
    found = [Found(kind, item) for kind in kinds for item in await _items(server, kind, everywhere)]
    return sorted(found, key=lambda each: (each.resource["metadata"]["namespace"], each.name))


async def find(server: ApiServer, text: str) -> Found:
    """The object that a NAME means."""
    return chosen(text, await every(server, kinds_of(text)[0]), server.namespace)


async def again(server: ApiServer, found: Found) -> Found | None:
    """The same object as it is now; None once it is gone."""
    now, uid = await server.find(path(server, found)), found.resource["metadata"]["uid"]
    return Found(found.kind, now) if now is not None and now["metadata"]["uid"] == uid else None


def path(server: ApiServer, found: Found) -> str:
    """Where the API server has it."""
    return server.resource_path(API_VERSION, found.kind.plural, found.resource["metadata"]["name"])


async def _items(server: ApiServer, kind: Kind, everywhere: bool) -> list[dict[str, Any]]:
    collection = f"/apis/{API_VERSION}/{kind.plural}" if everywhere else server.resource_path(API_VERSION, kind.plural)
    try:
        items = await server.items(collection)
    except NotFound:
        raise Refused(await _not_served(server)) from None
    return [{"apiVersion": API_VERSION, "kind": kind.name, **item} for item in items]   # a list leaves both out


async def _not_served(server: ApiServer) -> str:
    try:
        group = await server.get(f"/apis/{GROUP}")
    except NotFound:
        return f"Switchover's CRDs are not installed on {server.address}: {APPLY_CRDS}"
    served = ", ".join(sorted(str(each.get("version")) for each in group.get("versions", ())))
    return (f"the CRDs on {server.address} are of another release: they serve {served}, this program needs {VERSION}; "
            f"{APPLY_CRDS}")


async def read_migration(name: str, migrations: Migrations) -> KafkaMigration:
    """The KafkaMigration of that name. Raises Refused when there is none, or it cannot be read."""
    raw = await migrations.get(name)
    if raw is None:
        raise Refused(f"KafkaMigration {name} does not exist in this namespace")
    try:
        return KafkaMigration.model_validate(without_foreign_record(raw, 0.0)[0])
    except ValidationError as error:
        raise Refused(f"KafkaMigration {name} cannot be read: {mistakes(error)}") from None
