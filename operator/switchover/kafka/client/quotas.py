"""The change of a quota by the controller that leads (KIP-546), which takes it while brokers answer no metadata.

`kafka-configs.sh` cannot: before it changes one it asks for those that there are, and no controller answers that.
"""

from kio.schema.alter_client_quotas.v1 import AlterClientQuotasRequest, AlterClientQuotasResponse
from kio.schema.alter_client_quotas.v1.request import EntityData, EntryData, OpData
from kio.static.primitive import f64

from switchover.answers.errors import Unreachable
from switchover.kafka.client.connection import Connection, succeeded
from switchover.metadata.cluster import Entity
from switchover.network.addresses import Address


async def set_quota(controller: Address, connection: Connection, entity: Entity, key: str, value: float | None) -> None:
    """Set one key of one entity's quotas; None removes it, and one that is not there is no error.

    Raises Refused when the user lacks AlterConfigs on the cluster, else Unreachable, also for a controller that does not
    lead any more.
    """
    answer = await connection.ask(AlterClientQuotasRequest(entries=(EntryData(
        entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
        ops=(OpData(key=key, value=f64(value or 0.0), remove=value is None),),
    ),), validate_only=False), AlterClientQuotasResponse)
    if len(answer.entries) != 1:
        raise Unreachable(f"{controller}: answered without the quota")
    succeeded(controller, answer.entries[0].error_code, f"change the quota {key}", "AlterConfigs")
