"""`ClusterMetadata` written down as Kafka writes it: as ZooKeeper's nodes, and as records of the metadata log."""

import json
from base64 import b64encode, urlsafe_b64decode
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid5

from switchover.metadata.cluster import Acl, ClusterMetadata, Entity, Hidden, Scram, Token, Topic
from switchover.metadata.decode import Record
from switchover.metadata.names import ACL_OPERATIONS, ACL_PERMISSIONS, PATTERN_TYPES, RESOURCE_TYPES, SCRAM_MECHANISMS
from switchover.metadata.tree import TreeParser, assembled

ACL_PATHS = {"literal": "/kafka-acl", "prefixed": "/kafka-acl-extended/prefixed"}


def from_nodes(nodes: Mapping[str, bytes | None], secret: str | None = None) -> ClusterMetadata:
    parser = TreeParser(secret)
    return assembled(parser.entries(path, data) for path, data in nodes.items())


# --- ZooKeeper --------------------------------------------------------------------------------------------------------


def nodes_of(metadata: ClusterMetadata) -> dict[str, bytes | None]:
    """Path -> data, the empty nodes included that Kafka leaves behind; None for a node without data."""
    nodes: dict[str, Any] = {f"/config/topics/{name}": config({}) for name in metadata.topics}
    nodes |= {f"/brokers/topics/{name}": topic_node(topic) for name, topic in metadata.topics.items()}
    for resource, values in metadata.configs.items():
        shown = {key: value.value if isinstance(value, Hidden) else value for key, value in values.items()}
        nodes[f"/config/{resource.type}s/{resource.name or '<default>'}"] = config(shown)
    users: dict[str, dict[str, str]] = defaultdict(dict)
    for entity, quotas in metadata.quotas.items():
        users[quota_path(entity)] |= {
            key: str(int(value)) if value.is_integer() else repr(value) for key, value in quotas.items()}
    for (user, mechanism), credential in metadata.scram.items():
        users[f"/config/users/{sanitized(user)}"][mechanism] = scram_text(credential)
    nodes |= {path: config(values) for path, values in users.items()}
    acls: dict[str, list[Acl]] = defaultdict(list)
    for acl in metadata.acls:
        acls[f"{ACL_PATHS[acl.pattern]}/{acl.resource}/{acl.name}"].append(acl)
    nodes |= {path: acl_node(found) for path, found in acls.items()}
    nodes |= {f"/delegation_token/tokens/{name}": token_node(name, token) for name, token in metadata.tokens.items()}
    next_id = metadata.next_producer_id
    nodes["/feature"] = b'{"features":{},"version":2,"status":1}'
    nodes["/latest_producer_id_block"] = None if next_id is None else json.dumps(
        {"version": 1, "broker": 1, "block_start": str(next_id - 1000), "block_end": str(next_id - 1)}).encode()
    return nodes


def topic_node(topic: Topic) -> bytes:
    fields: dict[str, Any] = {
        "version": 3,
        "partitions": {str(index): list(item.replicas) for index, item in topic.partitions.items()},
        "adding_replicas": {str(index): list(item.adding) for index, item in topic.partitions.items() if item.adding},
        "removing_replicas": {str(i): list(item.removing) for i, item in topic.partitions.items() if item.removing},
    }
    return json.dumps(fields | ({"topic_id": topic.id} if topic.id else {})).encode()


def config(values: Mapping[str, str]) -> bytes:
    return json.dumps({"version": 1, "config": values}).encode()


def quota_path(entity: Entity) -> str:
    names = {kind: "<default>" if name is None else sanitized(name) for kind, name in entity}
    if "ip" in names:
        return f"/config/ips/{names['ip']}"
    if "user" not in names:
        return f"/config/clients/{names['client-id']}"
    return f"/config/users/{names['user']}" + (f"/clients/{names['client-id']}" if "client-id" in names else "")


def sanitized(name: str) -> str:
    """Kafka's `Sanitizer`: Java's URL encoding, which leaves letters, digits and `.-_`."""
    return quote(name, safe="").replace("~", "%7E")


def scram_text(credential: Scram) -> str:
    salt, stored, server = (b64encode(key).decode() for key in keys_of(credential))
    return f"salt={salt},stored_key={stored},server_key={server},iterations={credential.iterations}"


def keys_of(credential: Scram) -> tuple[bytes, ...]:
    assert isinstance(credential.keys.value, tuple)
    return credential.keys.value


def acl_node(acls: list[Acl]) -> bytes:
    return json.dumps({"version": 1, "acls": [
        {"principal": acl.principal, "permissionType": acl.permission, "operation": acl.operation, "host": acl.host}
        for acl in acls]}).encode()


def token_node(name: str, token: Token) -> bytes:
    return json.dumps({
        "version": 3, "owner": sanitized(token.owner), "tokenRequester": sanitized(token.requester),
        "renewers": [sanitized(renewer) for renewer in token.renewers], "issueTimestamp": token.issued,
        "maxTimestamp": token.latest, "expiryTimestamp": token.expires, "tokenId": name,
    }).encode()


# --- the metadata log -------------------------------------------------------------------------------------------------


def records_of(metadata: ClusterMetadata) -> Iterator[Record]:
    """The records that make it, out of nothing."""
    for name, topic in metadata.topics.items():
        yield from topic_records(name, topic)
    for resource, values in metadata.configs.items():
        for key, value in values.items():
            yield record("Config", resource_type={"topic": 2, "broker": 4}[resource.type], resource_name=resource.name,
                         name=key, value=value.value if isinstance(value, Hidden) else value)
    for entity, quotas in metadata.quotas.items():
        parts = tuple({"entity_type": kind, "entity_name": name} for kind, name in reversed(entity))
        for key, number in quotas.items():
            yield record("ClientQuota", entity=parts, key=key, value=number, remove=False)
    for acl in metadata.acls:
        yield record("AccessControlEntry", id=acl_id(acl), resource_type=code(RESOURCE_TYPES, acl.resource),
                     resource_name=acl.name, pattern_type=code(PATTERN_TYPES, acl.pattern), principal=acl.principal,
                     host=acl.host, operation=code(ACL_OPERATIONS, acl.operation),
                     permission_type=code(ACL_PERMISSIONS, acl.permission))
    for (user, mechanism), credential in metadata.scram.items():
        salt, stored, server = keys_of(credential)
        yield record("UserScramCredential", name=user, mechanism=code(SCRAM_MECHANISMS, mechanism), salt=salt,
                     stored_key=stored, server_key=server, iterations=credential.iterations)
    for token_id, token in metadata.tokens.items():
        yield record("DelegationToken", owner=token.owner, requester=token.requester, renewers=token.renewers,
                     issue_timestamp=token.issued, max_timestamp=token.latest, expiration_timestamp=token.expires,
                     token_id=token_id)
    if metadata.next_producer_id is not None:
        yield record("ProducerIds", broker_id=1, broker_epoch=-1, next_producer_id=metadata.next_producer_id)


def topic_records(name: str, topic: Topic) -> Iterator[Record]:
    topic_id = uuid_of(topic)
    yield record("Topic", name=name, topic_id=topic_id)
    for index, item in topic.partitions.items():
        yield record("Partition", partition_id=index, topic_id=topic_id, replicas=item.replicas, isr=item.replicas,
                     removing_replicas=item.removing, adding_replicas=item.adding, leader=1, leader_epoch=0,
                     partition_epoch=0, directories=())


def uuid_of(topic: Topic) -> UUID:
    assert topic.id is not None
    return UUID(bytes=urlsafe_b64decode(topic.id + "=="))


def acl_id(acl: Acl) -> UUID:
    return uuid5(UUID(int=0), str(acl))


def code(names: Mapping[int, str], word: str) -> int:
    return next(number for number, name in names.items() if name == word)


def record(kind: str, **fields: Any) -> Record:
    return Record(kind, 0, fields)
