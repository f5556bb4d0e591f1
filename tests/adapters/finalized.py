"""Controllers that leave migration mode."""

from collections.abc import Awaitable, Callable

from adapters.eventually import eventually
from adapters.servers import KafkaServer
from switchover.metadata.parity import LogImage

PATIENCE = 40.0


async def finalized(server: KafkaServer, properties: str, node: int, log: Callable[[], Awaitable[LogImage]]) -> None:
    """Restart a controller without the migration flag, until the metadata log has it registered so.

    Once more where Kafka 3.9's own registration timed out, which it never sends again (KAFKA-20247); the operator does
    the same.
    """
    def told(image: LogImage) -> bool:
        return not image.controllers[node]

    server.restart(properties)
    try:
        await eventually(log, told, PATIENCE)
    except AssertionError:
        if "channel manager timed out before sending" in server.log.read_text():
            server.restart(properties)
        await eventually(log, told, 2 * PATIENCE)
