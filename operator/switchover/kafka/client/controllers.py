"""What a controller is asked to change: a quota, and the registrations in place of a replica's brokers."""

import uuid
from collections.abc import Iterable, Mapping

from kio.schema.alter_client_quotas.v1 import AlterClientQuotasRequest, AlterClientQuotasResponse
from kio.schema.alter_client_quotas.v1.request import EntityData, EntryData, OpData
from kio.schema.broker_registration.v4 import BrokerRegistrationRequest, BrokerRegistrationResponse
from kio.schema.broker_registration.v4.request import Feature, Listener
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId
from kio.static.primitive import f64, i16, u16

from switchover.answers.errors import Unreachable
from switchover.kafka.client.connection import Connection, connected, succeeded
from switchover.kafka.ports import LISTENER
from switchover.metadata.cluster import Entity
from switchover.metadata.replay import METADATA_VERSION
from switchover.network.addresses import Address
from switchover.network.credentials import ANYWHERE
from switchover.network.security import security


async def set_quota(controller: Address, connection: Connection, entity: Entity, key: str, value: float | None) -> None:
    """Set one key of one entity's quotas by the controller that leads (KIP-546). None removes it, and one that is not there
    is no error. `kafka-configs.sh` cannot: it asks for the quotas first, and no controller answers that.

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


DISCARD = 9
"""The port of a stand-in: nobody listens there, and no controller connects to a broker that is fenced."""


async def register(controller: Address, brokers: Iterable[int], cluster_id: str, level: int,
                   seconds: float) -> Mapping[int, str]:
    """Register each of these as a migrating broker whose metadata.version is `level`; Kafka's errors for those refused.

    That is all that the migration driver asks of them (docs/rehearsal.md). They send no heartbeat, so they stay fenced: no
    connection is opened to them, and they lose no partition. Raises Unreachable and Refused.
    """
    refused, supported = {}, i16(level)
    async with connected(controller, security({}, ANYWHERE), seconds) as connection:
        for broker in brokers:
            answer = await connection.ask(BrokerRegistrationRequest(
                broker_id=BrokerId(broker),
                cluster_id=cluster_id,
                incarnation_id=uuid.uuid4(),
                listeners=(Listener(name=LISTENER, host="127.0.0.1", port=u16(DISCARD), security_protocol=i16(0)),),
                features=(Feature(name=METADATA_VERSION, min_supported_version=supported, max_supported_version=supported),),
                rack=None,
                is_migrating_zk_broker=True,
                log_dirs=(uuid.uuid4(),),
            ), BrokerRegistrationResponse)
            if answer.error_code is not ErrorCode.none:
                refused[broker] = answer.error_code.name.upper()
    return refused
