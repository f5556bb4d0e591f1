"""The ZooKeeper tree -> `ClusterMetadata`: a node's path and bytes in, its entries out (Kafka's `ZkData`).

Names of users, clients and addresses are URL-encoded in paths (`Sanitizer`); `<default>`, as it stands, is the default.
"""

import re
from base64 import b64decode
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote_plus

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
from switchover.metadata.kafka_config import CLIENT_QUOTAS, FEATURES, IP_QUOTAS, Definition, double, is_whole, why_not
from switchover.metadata.kafka_config import TOPIC as TOPIC_SETTINGS
from switchover.metadata.names import ACL_OPERATIONS, ACL_PERMISSIONS, PATTERN_TYPES, RESOURCE_TYPES, SCRAM_MECHANISMS
from switchover.metadata.node_json import document, items, mapping, number, replicas, text
from switchover.metadata.passwords import decrypted, is_password, is_secret

ROOTS = ("/brokers/topics", "/config/topics", "/config/brokers", "/config/users", "/config/clients", "/config/ips",
         "/delegation_token/tokens")
"""Nodes whose children are the metadata."""
ACL_ROOTS = ("/kafka-acl", "/kafka-acl-extended/prefixed")
"""Nodes whose grandchildren are ACLs."""
CLIENTS = "clients"
"""The one child that a node of /config/users may have; its children are clients of that user."""
PRODUCER_IDS = "/latest_producer_id_block"
FEATURE = "/feature"
"""Nothing of it is metadata that is compared; a broker of either mode reads it when it starts."""

_DEFAULT = "<default>"
_CONTROLLER = -1                                # who KRaft's controllers say they are in PRODUCER_IDS
_BROKEN_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_FEATURES_ENABLED = 1                           # FeatureZNodeStatus

Entries = tuple[tuple[str, Any, Any], ...]
"""(field of ClusterMetadata, key, value) of one node."""


def state_path(topic: str, index: int) -> str:
    """The node of a partition's state."""
    return f"/brokers/topics/{topic}/partitions/{index}/state"


class Unstartable(str):
    """Why a topic's settings are malformed: no broker starts with them, and a controller copies them as they are."""


class TreeParser:
    """Parses nodes; equal assignments are one object, of which a cluster has few."""

    def __init__(self, secret: str | None) -> None:
        self._secret = secret
        self._assignments: dict[Assignment, Assignment] = {}

    def entries(self, path: str, data: bytes | None) -> Entries:
        """What a node says; one that Kafka could not have written becomes an entry of `malformed`. None: it has no data,
        which is not the same as empty data.
        """
        try:
            if data is None and path == PRODUCER_IDS:                # so it stands until a producer asks for ids
                return ()
            return tuple(self._entries(path.split("/")[1:], data or b""))
        except ValueError as error:
            return (("malformed", path, error.args[0] if type(error) is ValueError else str(error)),)

    def _entries(self, parts: list[str], data: bytes) -> Iterable[tuple[str, Any, Any]]:
        match parts:
            case ["brokers", "topics", name]:
                return [("topics", name, self._topic(data))]
            case ["config", "topics", name]:
                return _configuration(Resource(TOPIC, name), _topic_settings(_config(data)))
            case ["config", "brokers", name]:
                resource = Resource(BROKER, "" if name == _DEFAULT else name)
                return _configuration(resource, {
                    key: decrypted(value, self._secret) if is_password(key) else value
                    for key, value in _config(data).items()})
            case ["config", "users", user]:
                return _user(user, _config(data))
            case ["config", "users", user, "clients", client]:
                return _quotas((("client-id", _name(client)), ("user", _name(user))), _config(data), CLIENT_QUOTAS)
            case ["config", "clients", client]:
                return _quotas((("client-id", _name(client)),), _config(data), CLIENT_QUOTAS)
            case ["config", "ips", ip]:
                return _quotas((("ip", _name(ip)),), _config(data), IP_QUOTAS)
            case ["kafka-acl", resource, name]:
                return _acls("literal", resource, name, data)
            case ["kafka-acl-extended", pattern, resource, name]:
                return _acls(pattern, resource, name, data)
            case ["delegation_token", "tokens", token]:
                return [("tokens", token, _token(data))]
            case ["latest_producer_id_block"]:
                return [("next_producer_id", None, _next_producer_id(data))]
            case ["feature"]:
                return _features(data)
            case _:
                raise ValueError("not a node of Kafka's metadata")

    def _topic(self, data: bytes) -> Topic:
        fields = document(data)
        topic_id = fields.get("topic_id")
        if topic_id is not None and not isinstance(topic_id, str):
            raise ValueError("topic_id is not a text")
        adding, removing = fields.get("adding_replicas") or {}, fields.get("removing_replicas") or {}
        if not isinstance(adding, dict) or not isinstance(removing, dict):
            raise ValueError("adding_replicas or removing_replicas is not a map")
        partitions = {}
        for index, ids in mapping(fields, "partitions").items():
            assignment = Assignment(replicas(ids), replicas(adding.get(index, [])), replicas(removing.get(index, [])))
            partitions[int(index)] = self._assignments.setdefault(assignment, assignment)
        return Topic(topic_id or None, partitions)


def assembled(nodes: Iterable[Entries]) -> ClusterMetadata:
    """The metadata in all nodes together."""
    fields: dict[str, dict[Any, Any]] = {
        name: {} for name in ("topics", "configs", "quotas", "acls", "scram", "tokens", "next_producer_id", "malformed")}
    for entries in nodes:
        for name, key, value in entries:
            fields[name][key] = value
    acls, next_id = frozenset(fields.pop("acls")), fields.pop("next_producer_id").get(None)
    return ClusterMetadata(**fields, acls=acls, next_producer_id=next_id)


def _config(data: bytes) -> Mapping[str, str]:
    if not data:
        return {}
    fields = document(data)
    found = mapping(fields, "config") if "config" in fields else {}
    if not all(isinstance(value, str) for value in found.values()):
        raise ValueError("a value of config is not a text")
    return found


def _topic_settings(config: Mapping[str, str]) -> Mapping[str, str]:
    for key, value in config.items():
        if key in TOPIC_SETTINGS and (why := why_not(TOPIC_SETTINGS[key], value)):
            raise ValueError(Unstartable(f"{key} {why}, and no broker starts with it"))
    return config


def _configuration(resource: Resource, config: Mapping[str, str]) -> Entries:
    shown = {key: Hidden(value) if is_secret(key) else value for key, value in config.items()}
    return (("configs", resource, shown),) if shown else ()


def _user(user: str, config: Mapping[str, str]) -> Iterable[tuple[str, Any, Any]]:
    """A user's node holds quotas and SCRAM credentials side by side."""
    for mechanism in SCRAM_MECHANISMS.values():
        if mechanism in config:
            yield "scram", (_decoded(user), mechanism), _scram(mechanism, config[mechanism])
    quotas = {key: value for key, value in config.items() if key not in SCRAM_MECHANISMS.values()}
    yield from _quotas((("user", _name(user)),), quotas, CLIENT_QUOTAS)


def _quotas(entity: Entity, config: Mapping[str, str], known: Mapping[str, Definition]) -> Entries:
    """The copy reads every value as a number, a broker some of them as whole ones, and dual write no key but Kafka's own."""
    quotas = {}
    for key, value in config.items():
        definition, number = known.get(key), double(value)
        if definition is None:
            raise ValueError(f"{key} is no quota of Kafka's, and the migration would end or stand still at it")
        if number is None:
            raise ValueError(f"{key} is not a number")
        if definition.type != "DOUBLE" and not is_whole(value, definition):
            raise ValueError(f"{key} {why_not(definition, value) or 'has blanks around it'}, and no broker starts with it")
        quotas[key] = number
    return (("quotas", entity, quotas),) if quotas else ()


def _scram(mechanism: str, value: str) -> Scram:
    parts = dict(item.split("=", 1) for item in value.split(",") if "=" in item)
    try:
        keys = tuple(b64decode(parts[name], validate=True) for name in ("salt", "stored_key", "server_key"))
        return Scram(int(parts["iterations"]), Hidden(keys))
    except (KeyError, ValueError) as error:
        raise ValueError(f"{mechanism} is not a credential") from error


def _acls(pattern: str, resource: str, name: str, data: bytes) -> Iterable[tuple[str, Any, Any]]:
    if not data:
        return
    if resource.lower() not in {name.lower() for name in RESOURCE_TYPES.values()}:
        return                                  # Kafka passes over what it has no such resources for, in either mode
    fields = document(data)
    if number(fields, "version") != 1:
        raise ValueError("version of the ACLs is not 1")
    for item in items(fields, "acls"):
        if not isinstance(item, dict):
            raise ValueError("an ACL is not a map")
        yield "acls", Acl(
            principal=text(item, "principal"), host=text(item, "host"),
            permission=_known_name(ACL_PERMISSIONS, text(item, "permissionType")),
            operation=_known_name(ACL_OPERATIONS, text(item, "operation")),
            resource=_known_name(RESOURCE_TYPES, resource), pattern=_known_name(PATTERN_TYPES, pattern), name=name,
        ), True


def _known_name(names: Mapping[int, str], given: str) -> str:
    """The name as Kafka writes it; it reads any case (`SecurityUtils`)."""
    for name in names.values():
        if name.lower() == given.lower():
            return name
    raise ValueError(f"unknown name {given!r}")


def _token(data: bytes) -> Token:
    fields = document(data)
    owner = _decoded(text(fields, "owner"))
    renewers = items(fields, "renewers")
    if not all(isinstance(renewer, str) for renewer in renewers):
        raise ValueError("a renewer is not a text")
    return Token(
        owner=owner,
        requester=_decoded(text(fields, "tokenRequester")) if "tokenRequester" in fields else owner,
        renewers=tuple(map(_decoded, renewers)),
        issued=number(fields, "issueTimestamp"),
        expires=number(fields, "expiryTimestamp"),
        latest=number(fields, "maxTimestamp"),
    )


def _next_producer_id(data: bytes) -> int:
    """A broker writes the block that it took; KRaft's controllers the block that nobody has yet (`writeProducerId`)."""
    fields = document(data)
    if number(fields, "broker") == _CONTROLLER:
        return int(text(fields, "block_start"))
    return int(text(fields, "block_end")) + 1


def _features(data: bytes) -> Entries:
    """Nothing to copy: a feature that Kafka 3.9 does not know, or not in this level, ends each of its brokers."""
    fields = document(data)
    levels = mapping(fields, "features")
    if number(fields, "status") != _FEATURES_ENABLED:
        return ()
    for name, level in levels.items():
        low, high = FEATURES.get(name, (1, 0))
        newest = level.get("max_version_level") if isinstance(level, dict) else level       # as before Kafka 3.3
        if not isinstance(newest, int) or not low <= newest <= high:
            raise ValueError(f"feature {name} is finalized at a level that Kafka 3.9 does not support, and no broker starts")
    return ()


def _name(node: str) -> str | None:
    return None if node == _DEFAULT else _decoded(node)


def _decoded(text: str) -> str:
    if _BROKEN_ESCAPE.search(text):
        raise ValueError("its name has a % that begins no escape, and no broker starts with it")
    return unquote_plus(text)
