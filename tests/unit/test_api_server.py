"""Reading what belongs to no namespace: one refusal holds for all of its kind, for a while. No path leads out of the own."""

import asyncio
import socket
import ssl
from typing import Any

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from simulation.virtual_time import VirtualLoop
from switchover.answers.errors import Refused, Unreachable
from switchover.kubernetes.client.api_server import ASK_AGAIN_SECONDS, ApiServer, Forbidden, _why


class Answering(ApiServer):
    """Refuses as long as `refused` says so."""

    def __init__(self) -> None:
        self._forbidden = {}
        self.refusal: Exception | None = Forbidden("no")
        self.asked: list[str] = []

    async def request(self, method: str, path: str, body: Any = None, **parameters: Any) -> dict[str, Any]:
        self.asked.append(path)
        if self.refusal is not None:
            raise self.refusal
        return {}


def test_it_is_asked_for_again_after_an_hour_and_then_in_every_pass() -> None:
    loop, server = VirtualLoop(), Answering()
    for name in ("a", "b", "a"):
        with pytest.raises(Forbidden, match="no"):
            loop.run_until_complete(server.beyond("/api/v1/nodes", name))
    assert server.asked == ["/api/v1/nodes/a"]
    with pytest.raises(Forbidden):
        loop.run_until_complete(server.beyond("/apis/storage.k8s.io/v1/storageclasses"))
    assert server.asked == ["/api/v1/nodes/a", "/apis/storage.k8s.io/v1/storageclasses"]
    server.refusal = None
    loop.run_until_complete(asyncio.sleep(ASK_AGAIN_SECONDS + 1))
    for _ in range(2):
        loop.run_until_complete(server.beyond("/api/v1/nodes", "b"))
    assert server.asked[2:] == ["/api/v1/nodes/b"] * 2


def test_a_server_that_does_not_answer_is_asked_again() -> None:
    loop, server = VirtualLoop(), Answering()
    server.refusal = Unreachable("no answer")
    for _ in range(2):
        with pytest.raises(Unreachable):
            loop.run_until_complete(server.beyond("/api/v1/nodes", "a"))
    assert len(server.asked) == 2


def test_the_same_connections_serve_another_namespace_and_no_refusal_is_heard_twice() -> None:
    loop, here = VirtualLoop(), Answering()
    here.namespace = "shop"
    there = here.within("bank")
    assert here.path("v1", "Secret", "x") == "/api/v1/namespaces/shop/secrets/x"
    assert there.path("v1", "Secret", "x") == "/api/v1/namespaces/bank/secrets/x"
    for each in (here, there):
        with pytest.raises(Forbidden):
            loop.run_until_complete(each.beyond("/api/v1/nodes", "a"))
    assert here.asked == ["/api/v1/nodes/a"]


@pytest.mark.parametrize("name", ["../../bank/secrets/x", "..", ".", "x/y", "x%2fy", "x?y", "x#y", "x\n", "X", "-x"])
def test_no_name_leads_out_of_the_namespace(name: str) -> None:
    server = Answering()
    server.namespace = "shop"
    with pytest.raises(Refused, match="is not the name of an object"):
        server.path("v1", "Secret", name)


def verification_failed() -> ssl.SSLError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate"
    return error


def key() -> ConnectionKey:
    return ConnectionKey("kubernetes", 443, True, True, None, None, None)


@pytest.mark.parametrize(("error", "words"), [
    (aiohttp.ClientConnectorError(key(), ConnectionRefusedError(111, "Connect call failed ('10.0.0.1', 443)")),
     "Connection refused"),
    (aiohttp.ClientConnectorDNSError(key(), socket.gaierror(-2, "Name or service not known")), "Name or service not known"),
    (aiohttp.ClientConnectorCertificateError(key(), verification_failed()), "self-signed certificate"),
    (ConnectionResetError(104, "Connection reset by peer"), "Connection reset by peer"),
    (aiohttp.ServerDisconnectedError(), "ServerDisconnectedError")])
def test_why_an_api_server_cannot_be_reached_is_said_in_words(error: Exception, words: str) -> None:
    assert _why(error) == words
