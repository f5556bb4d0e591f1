"""One connection to one Kafka node: framing, headers, TLS and SASL around kio's requests and responses.

The first thing a node answers is which requests it knows.
"""

import asyncio
import errno
import io
import itertools
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from kio.schema.api_versions import v0, v3
from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v1 import SaslAuthenticateRequest, SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1 import SaslHandshakeRequest, SaslHandshakeResponse
from kio.serial import entity_writer
from kio.static.primitive import i32
from kio.static.protocol import RequestPayload, ResponsePayload
from scramp import ScramClient, ScramException

from switchover import __version__
from switchover.answers import memory
from switchover.answers.errors import NotListening, Refused, Unreachable
from switchover.kafka.client import bounds
from switchover.network.addresses import Address, looked_up
from switchover.network.sasl import Credentials
from switchover.network.security import Security

CLIENT_ID = "switchover"
NOT_AUTHORIZED = frozenset({
    ErrorCode.cluster_authorization_failed, ErrorCode.group_authorization_failed, ErrorCode.topic_authorization_failed,
})
LARGEST_ANSWER = 64 * 1024 * 1024       # bytes
LARGE_ANSWER = 256 * 1024               # bytes, which take some 25 ms to read: more is not for the event loop to wait for
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER")
MOST_ITERATIONS = 16_384                # of SCRAM: what Kafka grants to a credential at most (ScramMechanism.java)

_LARGE_ANSWERS = ThreadPoolExecutor(1, "large answers")
"""Reads one after the other: they would share one processor anyway."""

Response = TypeVar("Response", bound=ResponsePayload)
T = TypeVar("T")


@asynccontextmanager
async def connected(node: Address, security: Security, seconds: float) -> AsyncIterator["Connection"]:
    """A connection for the length of the block, which may take `seconds` in all.

    Raises Unreachable and Refused, naming the node, whatever goes wrong on the way.
    """
    async with talking(node, security, seconds):
        connection = await Connection.open(node, security)
        try:
            yield connection
        finally:
            connection.close()


@asynccontextmanager
async def talking(node: Address, security: Security, seconds: float) -> AsyncIterator[None]:
    """Whatever goes wrong in the block on a connection to the node becomes Unreachable or Refused, naming it, at the latest
    after `seconds`. Refused at once where our credentials must not go there."""
    if why_not := security.allowed.why_not([node]):
        raise Refused(why_not)
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise Unreachable(f"{node}: no complete answer within {seconds:g} s") from error
    except ssl.SSLCertVerificationError as error:
        raise Refused(f"{node}: its certificate is not accepted ({error.verify_message}); check "
                      "ssl.truststore.certificates and the names in the certificate") from error
    except ssl.SSLError as error:
        if "CERTIFICATE" in (error.reason or ""):                   # an alert of the node; TLS names a dozen of them
            raise Refused(f"{node}: does not accept our certificate ({error.reason}); check "
                          "ssl.keystore.certificate.chain and ssl.keystore.key") from error
        raise Unreachable(f"{node}: TLS failed ({error.reason}); security.protocol may not fit the listener") from error
    except asyncio.IncompleteReadError as error:
        raise Unreachable(f"{node}: closed the connection without an answer; security.protocol may not fit the "
                          "listener, or the node does not know the request") from error
    except OSError as error:
        if _nobody_listens(error):
            raise NotListening(f"{node}: nobody listens there") from error
        raise Unreachable(f"{node}: {error.strerror or error}") from error


def _nobody_listens(error: OSError) -> bool:
    """Connection refused, by each of the host's addresses: asyncio joins their messages in one error."""
    text = str(error)
    return 0 < text.count("[Errno ") == text.count(f"[Errno {errno.ECONNREFUSED}]")


def succeeded(node: Address, code: ErrorCode, what: str, right: str, resource: str = "the Cluster resource") -> None:
    """Raise what an error code in an answer means: Refused when the user lacks `right` on `resource`, else Unreachable."""
    if code in NOT_AUTHORIZED:
        raise Refused(f"{node}: the user may not {what}; grant it {right} on {resource}")
    if code is not ErrorCode.none:
        raise Unreachable(f"{node}: cannot {what} now: {code.name.upper()}")


async def _opened(node: Address, security: Security) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the first of the node's names that exists."""
    *others, last = looked_up(node.host, security.search)
    server_hostname = node.host if security.tls else None
    for name in others:
        try:
            return await asyncio.open_connection(name, node.port, ssl=security.tls, server_hostname=server_hostname)
        except socket.gaierror as error:
            if error.errno not in (socket.EAI_NONAME, socket.EAI_NODATA):
                raise
    return await asyncio.open_connection(last, node.port, ssl=security.tls, server_hostname=server_hostname)


class Connection:
    """Asks one question after the other. Errors are those that `talking` translates."""

    def __init__(self, node: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._node = node
        self._named = f"{node}: an answer of it"
        self._reader = reader
        self._writer = writer
        self._ids = itertools.count()
        self._held: list[memory.Held] = []         # what the last answer takes, until the next question
        self.opened_at = asyncio.get_running_loop().time()
        self._ends_at = float("inf")               # when the node ends a login, by the event loop's clock
        self.api_keys: Mapping[int, int] | None = None       # once the node was asked for them

    @classmethod
    async def open(cls, node: Address, security: Security) -> "Connection":
        """Connect and log in."""
        reader, writer = await _opened(node, security)
        connection = cls(node, reader, writer)
        try:
            if security.sasl is not None:
                await connection.authenticate(security.sasl)
        except BaseException:
            connection.close()
            raise
        return connection

    def is_good_for(self, seconds: float) -> bool:
        """Whether neither side has closed it, and the login holds for so long."""
        closed = self._reader.at_eof() or self._reader.exception() is not None or self._writer.is_closing()
        return not closed and asyncio.get_running_loop().time() + seconds < self._ends_at

    def close(self) -> None:
        """Ask nothing more."""
        self._writer.close()
        self.release_answer()

    def release_answer(self) -> None:
        """Of the last answer nothing is needed any more."""
        while self._held:
            self._held.pop().give_back()

    async def ask(self, request: RequestPayload, response: type[Response]) -> Response:
        """Send a request and read its answer, of the same version."""
        return await self.read(await self.exchange(request), response)

    async def read(self, answer: bytes, response: type[Response]) -> Response:
        """Read what `exchange` returned."""
        found = await self.work(answer, lambda: bounds.answer(response, answer))
        # It is not announced how much it takes when it is read: who holds bytes already goes before who begins.
        self._held.append(await memory.ANSWERS.turn(self._named, found.memory - len(answer), len(answer)))
        return await self.work(answer, found.made)

    async def work(self, answer: bytes, work: Callable[[], T]) -> T:
        """`work` on what `exchange` returned: on the event loop, or in a thread where that would wait for too long."""
        try:
            if len(answer) <= LARGE_ANSWER:
                return work()
            return await asyncio.get_running_loop().run_in_executor(_LARGE_ANSWERS, work)
        except bounds.Unreadable as error:
            raise Unreachable(f"{self._node}: unreadable answer: {error}") from error

    async def exchange(self, request: RequestPayload) -> bytes:
        """Send a request; the answer's bytes from its header on."""
        self.release_answer()
        correlation_id = next(self._ids)
        with io.BytesIO() as message:
            header = request.__header_schema__
            entity_writer(header)(message, header(
                request_api_key=request.__api_key__,
                request_api_version=request.__version__,
                correlation_id=i32(correlation_id),
                client_id=CLIENT_ID,
            ))
            entity_writer(type(request))(message, request)
            data = message.getvalue()
        self._writer.write(len(data).to_bytes(4) + data)
        await self._writer.drain()

        size = int.from_bytes(await self._reader.readexactly(4), signed=True)
        if not 4 <= size <= LARGEST_ANSWER:
            raise Unreachable(f"{self._node}: does not speak Kafka's protocol")
        held = await memory.ANSWERS.turn(self._named, 2 * size)     # as it comes in, and as it is handed on
        self._held.append(held)
        answer = await self._reader.readexactly(size)
        held.resize(size)
        returned = int.from_bytes(answer[:4], signed=True)          # first in every response header
        if returned != correlation_id:
            raise Unreachable(f"{self._node}: answered another request than the one it was asked")
        return answer

    async def authenticate(self, credentials: Credentials) -> None:
        """SASL as PLAIN (RFC 4616) or SCRAM (RFC 5802). Raises Refused with the node's reason."""
        handshake = await self.ask(SaslHandshakeRequest(mechanism=credentials.mechanism), SaslHandshakeResponse)
        if handshake.error_code is not ErrorCode.none:
            offered = ", ".join(name for name in MECHANISMS if name in handshake.mechanisms) or "none of Kafka's mechanisms"
            raise Refused(f"{self._node}: does not offer SASL/{credentials.mechanism}, but {offered} "
                          f"({handshake.error_code.name.upper()})")
        if credentials.mechanism == "PLAIN":
            await self._token(credentials, f"\0{credentials.username}\0{credentials.password}")
            return
        try:
            client = ScramClient([credentials.mechanism], credentials.username, credentials.password)
            client.set_server_first(await self._token(credentials, client.get_client_first()))
            if (iterations := int(client.iterations)) > MOST_ITERATIONS:
                raise Refused(f"{self._node}: wants the password hashed {iterations:,} times, and no Kafka wants more"
                              f" than {MOST_ITERATIONS:,}")
            # The node chooses how often the password is hashed: not for the event loop to wait for.
            proof = await asyncio.to_thread(client.get_client_final)
            client.set_server_final(await self._token(credentials, proof))
        except ScramException as error:
            raise Refused(f"{self._node}: {credentials.mechanism} as user {credentials.username} failed: the password is not"
                          " the one that the node knows, or the node is not the one that knows it") from error

    async def _token(self, credentials: Credentials, token: str) -> str:
        """One round of the mechanism; Refused when the node does not accept it."""
        answer = await self.ask(SaslAuthenticateRequest(auth_bytes=token.encode()), SaslAuthenticateResponse)
        if answer.error_code is not ErrorCode.none:
            raise Refused(f"{self._node}: refused user {credentials.username}: {answer.error_code.name.upper()}")
        if lifetime := answer.session_lifetime.total_seconds():         # connections.max.reauth.ms (KIP-368)
            self._ends_at = asyncio.get_running_loop().time() + lifetime
        return answer.auth_bytes.decode(errors="replace")


NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class Versions:
    """ApiVersions of one node. A node too old for features (before Kafka 2.4) answers its API keys alone."""

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
