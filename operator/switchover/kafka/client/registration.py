"""Registrations in place of a replica's brokers: all that the migration driver asks of them (docs/rehearsal.md)."""

import uuid
from collections.abc import Iterable, Mapping

from kio.schema.broker_registration.v4 import BrokerRegistrationRequest, BrokerRegistrationResponse
from kio.schema.broker_registration.v4.request import Feature, Listener
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId
from kio.static.primitive import i16, u16

from switchover.kafka.client.connection import connected
from switchover.kafka.ports import LISTENER
from switchover.metadata.replay import METADATA_VERSION
from switchover.network.addresses import Address
from switchover.network.credentials import ANYWHERE
from switchover.network.security import security

DISCARD = 9
"""The port of a stand-in: nobody listens there, and no controller connects to a broker that is fenced."""


async def register(controller: Address, brokers: Iterable[int], cluster_id: str, level: int,
                   seconds: float) -> Mapping[int, str]:
    """Register each of these as a migrating broker whose metadata.version is `level`; Kafka's errors for those refused.

    They send no heartbeat, so they stay fenced: no connection is opened to them, and they lose no partition. Raises
    Unreachable and Refused.
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
