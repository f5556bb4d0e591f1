"""What a node tells before anything else: which requests it knows, and its features."""

from collections.abc import Mapping
from dataclasses import dataclass

from kio.schema.api_versions import v0, v3
from kio.schema.errors import ErrorCode

from switchover import __version__
from switchover.kafka.client.connection import CLIENT_ID, Connection, succeeded
from switchover.network.addresses import Address

NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class Versions:
    """ApiVersions of one node. A node too old for features (before Kafka 2.4) tells its API keys alone."""

    api_keys: Mapping[int, int]                   # API key -> the newest version of it
    supported: Mapping[str, int]                  # feature -> the highest level that its software knows
    finalized: Mapping[str, int]                  # feature -> the level in force in the cluster
    epoch: int = NO_EPOCH                         # of the finalized features
    zk_migration_ready: bool = False


async def api_versions(node: Address, connection: Connection) -> Versions:
    """ApiVersions v3, which every Kafka from 2.4 on answers."""
    data = await connection.exchange(v3.ApiVersionsRequest(
        client_software_name=CLIENT_ID, client_software_version=__version__,
    ))
    # A node that refuses the version answers in version 0. In every version the error code comes first.
    if int.from_bytes(data[4:6], signed=True) == ErrorCode.unsupported_version:
        old = await connection.ask(v0.ApiVersionsRequest(), v0.ApiVersionsResponse)
        succeeded(node, old.error_code, "list its API versions", "Describe")
        return Versions({key.api_key: key.max_version for key in old.api_keys}, {}, {})
    answer = await connection.read(data, v3.ApiVersionsResponse)
    succeeded(node, answer.error_code, "list its API versions", "Describe")
    return Versions(
        api_keys={key.api_key: key.max_version for key in answer.api_keys},
        supported={feature.name: feature.max_version for feature in answer.supported_features},
        finalized={feature.name: feature.max_version_level for feature in answer.finalized_features},
        epoch=answer.finalized_features_epoch,
        zk_migration_ready=answer.zk_migration_ready,
    )


async def api_keys(node: Address, connection: Connection) -> Mapping[int, int]:
    """Of the node at the other end, API key -> the newest version of it: asked once for a connection, since it changes with
    the node's software."""
    if connection.api_keys is None:
        connection.api_keys = (await api_versions(node, connection)).api_keys
    return connection.api_keys
