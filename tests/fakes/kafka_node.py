"""A Kafka node on loopback that speaks the protocol by script."""

import asyncio
import contextlib
import io
from collections.abc import Callable
from typing import Any

import pytest
from kio.schema.describe_quorum.v1 import response as quorum_v1
from kio.schema.errors import ErrorCode
from kio.schema.request_header.v1.header import RequestHeader
from kio.schema.types import BrokerId, TopicName
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i32, i64

from switchover.kafka.client.connection import Connection
from switchover.network.addresses import Address

NODE = 3000


class Node:
    """Listens on loopback and answers each request with what `script` makes of it: an entity, or bytes as they are."""

    def __init__(self, script: Callable[[int, bytes], Any]) -> None:
        self._script = script
        self._writers: list[asyncio.StreamWriter] = []
        self.address = Address("127.0.0.1", 0)

    async def __aenter__(self) -> "Node":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = Address(*self._server.sockets[0].getsockname())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    def hang_up(self) -> None:
        """Close every connection, and go on listening."""
        for each in self._writers:
            each.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                message = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
                header, size = entity_reader(RequestHeader)(message, 0)
                answer = self._script(header.request_api_key, message[size:])
                if answer is None:
                    continue
                writer.write(answer if isinstance(answer, bytes) else framed(answer, header.correlation_id))
        writer.close()


def framed(answer: Any, correlation_id: int) -> bytes:
    with io.BytesIO() as out:
        header = answer.__header_schema__
        entity_writer(header)(out, header(correlation_id=i32(correlation_id)))
        entity_writer(type(answer))(out, answer)
        data = out.getvalue()
    return len(data).to_bytes(4) + data


def quorum_answer(*, epoch: int = 1, error: ErrorCode = ErrorCode.none, leader: int = NODE) -> Any:
    return quorum_v1.DescribeQuorumResponse(error_code=ErrorCode.none, topics=(quorum_v1.TopicData(
        topic_name=TopicName("__cluster_metadata"), partitions=(quorum_v1.PartitionData(
            partition_index=i32(0), error_code=error, leader_id=BrokerId(leader), leader_epoch=i32(epoch),
            high_watermark=i64(1), current_voters=(), observers=(),
        ),),
    ),))


def noting_connections(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    """Every connection to Kafka that is opened from now on."""
    found: list[Connection] = []
    open_ = Connection.open

    async def noted(*arguments: Any) -> Connection:
        found.append(await open_(*arguments))
        return found[-1]

    monkeypatch.setattr(Connection, "open", noted)
    return found
