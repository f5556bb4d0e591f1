"""Connections to Kafka that are kept between questions: when they are used again, and when they are closed."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.describe_quorum.v1 import DescribeQuorumRequest, DescribeQuorumResponse
from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v1 import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1 import SaslHandshakeResponse
from kio.static.primitive import i64Timedelta

from adapters.eventually import eventually
from fakes.kafka_node import Node, noting_connections, quorum_answer
from patience import stretched
from switchover.answers.errors import Unreachable
from switchover.kafka.client.brokers import OpenConnections
from switchover.kafka.client.connection import Connection
from switchover.network.security import security

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    """Every connection to Kafka that the test opens."""
    return noting_connections(monkeypatch)


class Kept:
    """One question about a quorum, each time on whatever connection there is. It may take `seconds`."""

    def __init__(self, node: Node, *, keep: float = 60.0, seconds: float | None = None,
                 properties: Mapping[str, str] | None = None) -> None:
        self._node = node
        self._seconds = stretched(10) if seconds is None else seconds
        self._connections = OpenConnections(security(properties or {}), keep)

    async def ask(self) -> int:
        async with self._connections.connected(self._node.address, self._seconds) as connection:
            answer = await connection.ask(DescribeQuorumRequest(topics=()), DescribeQuorumResponse)
        return answer.topics[0].partitions[0].leader_epoch

    def close(self) -> None:
        self._connections.close()


async def closed(connection: Connection) -> None:
    await eventually(lambda: asyncio.sleep(0, connection.is_good_for(0)), lambda good: not good, 3)


async def test_one_is_used_until_it_is_old(opened: list[Connection]) -> None:
    async with Node(lambda *_: quorum_answer()) as node:
        kept = Kept(node, keep=stretched(1))
        for _ in range(2):
            await kept.ask()
        assert len(opened) == 1
        await closed(opened[0])
        await kept.ask()
        assert len(opened) == 2
        opened[1].opened_at -= stretched(2)             # it grew old while it was in use
        async with kept._connections.connected(node.address, 1):
            pass
        assert not opened[1].is_good_for(0)
        kept.close()


async def test_one_that_the_node_has_closed_is_not_used(opened: list[Connection]) -> None:
    """As by a restart, or because nobody had used it for too long."""
    async with Node(lambda *_: quorum_answer()) as node:
        kept = Kept(node)
        await kept.ask()
        node.hang_up()
        await closed(opened[0])
        assert await kept.ask() == 1
        assert len(opened) == 2
        kept.close()
        assert not opened[1].is_good_for(0)


async def test_after_a_question_without_an_answer_none_is_used_again(opened: list[Connection]) -> None:
    """The answer would be taken for that of the next question; and the node may have gone without a word."""
    answers = iter([quorum_answer(), quorum_answer(), None, quorum_answer(epoch=2)])
    async with Node(lambda *_: next(answers)) as node:
        kept = Kept(node, seconds=stretched(1))
        async with kept._connections.connected(node.address, 1):
            await kept.ask()                            # the other one is in use
        assert len(opened) == 2
        await kept.ask()
        with pytest.raises(Unreachable):
            await kept.ask()
        assert not any(each.is_good_for(0) for each in opened)
        assert await kept.ask() == 2
        assert len(opened) == 3
        kept.close()


async def test_a_login_that_ends_before_the_question_would_is_not_used(opened: list[Connection]) -> None:
    """connections.max.reauth.ms: the node ends a connection that is used after it (KIP-368)."""
    lifetimes = iter([1, 3600])                         # seconds

    def script(api_key: int, body: bytes) -> Any:
        if api_key == SASL_HANDSHAKE:
            return SaslHandshakeResponse(error_code=ErrorCode.none, mechanisms=("PLAIN",))
        if api_key == SASL_AUTHENTICATE:
            return SaslAuthenticateResponse(
                error_code=ErrorCode.none, error_message=None, auth_bytes=b"",
                session_lifetime=i64Timedelta.parse(timedelta(seconds=next(lifetimes))))
        return quorum_answer()

    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
    async with Node(script) as node:
        kept = Kept(node, properties={"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
                                      "sasl.jaas.config": login})
        for _ in range(3):
            await kept.ask()
        assert len(opened) == 2
        kept.close()
