"""Names of what the metadata log stores as a number and ZooKeeper as a name (Kafka's enums, SecurityUtils)."""

import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from uuid import UUID

_CLUSTER_ID = re.compile(r"[A-Za-z0-9_-]{22}")
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
"""The class that judges by the ACLs of the metadata log."""
RESOURCE_TYPES: Mapping[int, str] = {
    2: "Topic", 3: "Group", 4: "Cluster", 5: "TransactionalId", 6: "DelegationToken", 7: "User",
}
PATTERN_TYPES: Mapping[int, str] = {3: "literal", 4: "prefixed"}
ACL_OPERATIONS: Mapping[int, str] = {
    2: "All", 3: "Read", 4: "Write", 5: "Create", 6: "Delete", 7: "Alter", 8: "Describe", 9: "ClusterAction",
    10: "DescribeConfigs", 11: "AlterConfigs", 12: "IdempotentWrite", 13: "CreateTokens", 14: "DescribeTokens",
}
ACL_PERMISSIONS: Mapping[int, str] = {2: "Deny", 3: "Allow"}
SCRAM_MECHANISMS: Mapping[int, str] = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


def cluster_id(text: str) -> str:
    """A cluster's id, as Kafka makes them (docs/facts/kraft.md#znodes). Raises ValueError for what is none."""
    if _CLUSTER_ID.fullmatch(text) is None:
        raise ValueError(f"{text[:60]!r} is no cluster id of Kafka's, which has 22 letters, digits, - and _")
    return text


def id_text(topic_id: UUID) -> str:
    """A topic's id as Kafka writes it."""
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
