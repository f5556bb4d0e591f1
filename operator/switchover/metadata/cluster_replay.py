"""Replays the records that make up `ClusterMetadata`; follows Kafka's `MetadataDelta` and the deltas beneath it."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from switchover.metadata.cluster import (
    BROKER,
    TOPIC,
    Acl,
    Assignment,
    ClusterMetadata,
    Entity,
    Hidden,
    Resource,
    Scram,
    Token,
    Topic,
)
from switchover.metadata.decode import MetadataLogError
from switchover.metadata.names import (
    ACL_OPERATIONS,
    ACL_PERMISSIONS,
    PATTERN_TYPES,
    RESOURCE_TYPES,
    SCRAM_MECHANISMS,
    id_text,
)
from switchover.metadata.passwords import is_secret

_RESOURCES = {2: TOPIC, 4: BROKER}              # ConfigResource.Type; the others exist in KRaft alone


class InconsistentLogError(MetadataLogError):
    """A record that makes no sense after the ones before it."""


class ClusterReplay:
    """The cluster's metadata after the records given so far.

    What `image` handed out never changes: its dictionaries are copied before the next change, a topic's partitions only
    when that topic changes.
    """

    def __init__(self) -> None:
        self._names: dict[UUID, str] = {}
        self._topics: dict[str, Topic] = {}
        self._own: dict[str, dict[int, Assignment]] = {}    # partitions that nobody else has seen
        self._epochs: dict[tuple[str, int], int] = {}
        self._configs: dict[Resource, dict[str, str | Hidden]] = {}
        self._quotas: dict[Entity, dict[str, float]] = {}
        self._acls: dict[UUID, Acl] = {}
        self._scram: dict[tuple[str, str], Scram] = {}
        self._tokens: dict[str, Token] = {}
        self._next_producer_id: int | None = None
        self._assignments: dict[Assignment, Assignment] = {}        # a cluster has few different ones
        self._image: ClusterMetadata | None = None

    def copy(self) -> "ClusterReplay":
        """A second one that goes its own way."""
        other = ClusterReplay()
        other._names, other._topics, other._epochs = dict(self._names), dict(self._topics), dict(self._epochs)
        other._configs, other._quotas = dict(self._configs), dict(self._quotas)
        other._acls, other._scram, other._tokens = dict(self._acls), dict(self._scram), dict(self._tokens)
        other._next_producer_id, other._assignments = self._next_producer_id, self._assignments
        other._image = self._image
        self._own = {}
        return other

    def image(self) -> ClusterMetadata:
        """The state as it is now; the same object as before while nothing has changed."""
        if self._image is None:
            self._own = {}
            self._image = ClusterMetadata(
                dict(self._topics), dict(self._configs), dict(self._quotas), frozenset(self._acls.values()),
                dict(self._scram), dict(self._tokens), self._next_producer_id, epochs=dict(self._epochs))
        return self._image

    def apply(self, kind: str, fields: Mapping[str, Any], offset: int) -> bool:
        """Take in a record; False for a kind that is none of this class's. Raises InconsistentLogError."""
        if (apply := _APPLY.get(kind)) is None:
            return False
        self._image = None
        try:
            apply(self, fields, offset)
        except _UnknownCode as error:
            raise InconsistentLogError(offset, f"{kind}: {error}") from error
        return True

    # --- topics -------------------------------------------------------------------------------------------------------

    def _topic(self, fields: Mapping[str, Any], offset: int) -> None:
        topic_id, name = fields["topic_id"], fields["name"]
        self._names[topic_id] = name
        self._own[name] = {}
        self._topics[name] = Topic(id_text(topic_id), self._own[name])

    def _remove_topic(self, fields: Mapping[str, Any], offset: int) -> None:
        name = self._name_of(fields["topic_id"], offset)
        for index in self._topics[name].partitions:
            del self._epochs[name, index]
        del self._names[fields["topic_id"]], self._topics[name]
        self._own.pop(name, None)
        self._configs.pop(Resource(TOPIC, name), None)

    def _partition(self, fields: Mapping[str, Any], offset: int) -> None:
        name = self._name_of(fields["topic_id"], offset)
        self._assign(name, fields["partition_id"], Assignment(
            fields["replicas"], fields["adding_replicas"], fields["removing_replicas"]))
        self._epochs[name, fields["partition_id"]] = fields["partition_epoch"]

    def _change_partition(self, fields: Mapping[str, Any], offset: int) -> None:
        name, index = self._name_of(fields["topic_id"], offset), fields["partition_id"]
        before = self._topics[name].partitions.get(index)
        if before is None:
            raise InconsistentLogError(offset, f"partition {name}-{index} changes, but does not exist")
        replicas, adding, removing = fields["replicas"], fields["adding_replicas"], fields["removing_replicas"]
        self._assign(name, index, Assignment(
            before.replicas if replicas is None else replicas,
            before.adding if adding is None else adding,
            before.removing if removing is None else removing,
        ))
        self._epochs[name, index] += 1                      # `PartitionRegistration.merge`

    def _assign(self, name: str, index: int, assignment: Assignment) -> None:
        if name not in self._own:
            topic = self._topics[name]
            self._own[name] = dict(topic.partitions)
            self._topics[name] = Topic(topic.id, self._own[name])
        self._own[name][index] = self._assignments.setdefault(assignment, assignment)

    def _name_of(self, topic_id: UUID, offset: int) -> str:
        try:
            return self._names[topic_id]
        except KeyError:
            raise InconsistentLogError(offset, f"no topic has the id {topic_id}") from None

    # --- configurations, quotas, ids ----------------------------------------------------------------------------------

    def _config(self, fields: Mapping[str, Any], offset: int) -> None:
        kind = _RESOURCES.get(fields["resource_type"])
        if kind is None:
            return
        name, value = fields["name"], fields["value"]
        hidden = value is not None and is_secret(name)
        _change(self._configs, Resource(kind, fields["resource_name"]), name, Hidden(value) if hidden else value)

    def _quota(self, fields: Mapping[str, Any], offset: int) -> None:
        entity = tuple(sorted((part["entity_type"], part["entity_name"]) for part in fields["entity"]))
        _change(self._quotas, entity, fields["key"], None if fields["remove"] else fields["value"])

    def _producer_ids(self, fields: Mapping[str, Any], offset: int) -> None:
        self._next_producer_id = fields["next_producer_id"]

    # --- security -----------------------------------------------------------------------------------------------------

    def _acl(self, fields: Mapping[str, Any], offset: int) -> None:
        self._acls[fields["id"]] = Acl(
            principal=fields["principal"], host=fields["host"],
            permission=_shown(ACL_PERMISSIONS, fields["permission_type"]),
            operation=_shown(ACL_OPERATIONS, fields["operation"]),
            resource=_shown(RESOURCE_TYPES, fields["resource_type"]),
            pattern=_shown(PATTERN_TYPES, fields["pattern_type"]),
            name=fields["resource_name"],
        )

    def _remove_acl(self, fields: Mapping[str, Any], offset: int) -> None:
        if self._acls.pop(fields["id"], None) is None:
            raise InconsistentLogError(offset, f"no ACL has the id {fields['id']}")

    def _add_scram(self, fields: Mapping[str, Any], offset: int) -> None:
        keys = Hidden((fields["salt"], fields["stored_key"], fields["server_key"]))
        self._scram[fields["name"], _name(SCRAM_MECHANISMS, fields["mechanism"])] = Scram(fields["iterations"], keys)

    def _remove_scram(self, fields: Mapping[str, Any], offset: int) -> None:
        self._scram.pop((fields["name"], _name(SCRAM_MECHANISMS, fields["mechanism"])), None)

    def _token(self, fields: Mapping[str, Any], offset: int) -> None:
        self._tokens[fields["token_id"]] = Token(
            owner=fields["owner"], requester=fields["requester"], renewers=fields["renewers"],
            issued=fields["issue_timestamp"], expires=fields["expiration_timestamp"], latest=fields["max_timestamp"])

    def _remove_token(self, fields: Mapping[str, Any], offset: int) -> None:
        self._tokens.pop(fields["token_id"], None)


class _UnknownCode(Exception):
    """A number in a record that stands for nothing in Kafka 3.9."""


def _name(names: Mapping[int, str], code: int) -> str:
    try:
        return names[code]
    except KeyError:
        raise _UnknownCode(f"unknown code {code}, known are {', '.join(names.values())}") from None


def _shown(names: Mapping[int, str], code: int) -> str:
    """A name in an ACL. Kafka copies one that it does not know as UNKNOWN, and goes on (AclEntry, SecurityUtils)."""
    return names.get(code, f"Unknown ({code})")


def _change(outer: dict[Any, dict[str, Any]], owner: object, key: str, value: Any) -> None:
    """Set a value, or take it away with None; an owner without values is none."""
    inner = {**outer.get(owner, {}), key: value}
    if value is None:
        del inner[key]
    if inner:
        outer[owner] = inner
    else:
        outer.pop(owner, None)


_APPLY: Mapping[str, Callable[[ClusterReplay, Mapping[str, Any], int], None]] = {
    "Topic": ClusterReplay._topic,
    "RemoveTopic": ClusterReplay._remove_topic,
    "Partition": ClusterReplay._partition,
    "PartitionChange": ClusterReplay._change_partition,
    "Config": ClusterReplay._config,
    "ClientQuota": ClusterReplay._quota,
    "ProducerIds": ClusterReplay._producer_ids,
    "AccessControlEntry": ClusterReplay._acl,
    "RemoveAccessControlEntry": ClusterReplay._remove_acl,
    "UserScramCredential": ClusterReplay._add_scram,
    "RemoveUserScramCredential": ClusterReplay._remove_scram,
    "DelegationToken": ClusterReplay._token,
    "RemoveDelegationToken": ClusterReplay._remove_token,
}
