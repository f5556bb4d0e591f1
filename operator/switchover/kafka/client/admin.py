"""The port KafkaAdmin on confluent-kafka."""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]

from switchover.kafka.client import librdkafka
from switchover.outside.access import Access
from switchover.outside.addresses import looked_up
from switchover.outside.errors import Refused, Unreachable

BATCH = 200                 # topics in one request: DescribeConfigs answers some forty settings for each
GRACE = 0.5                 # librdkafka keeps the time limit; we wait this much longer for it to say so

K = TypeVar("K")

_log = logging.getLogger(__name__)

_RIGHTS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "DESCRIBE and DESCRIBE_CONFIGS on it",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "DESCRIBE and DESCRIBE_CONFIGS on the cluster",
}
_CREDENTIALS = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL})
_REQUEST = frozenset({
    KafkaError.INVALID_GROUP_ID, KafkaError.INVALID_REQUEST, KafkaError.UNSUPPORTED_VERSION, KafkaError._INVALID_ARG,
    KafkaError._UNSUPPORTED_FEATURE,
})
_GONE = frozenset({
    KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION,
})


class ConfluentKafkaAdmin:
    """The brokers of one Kafka cluster.

    `access.servers` is `bootstrap.servers`; `access.properties` are client properties as for Kafka's Java client.
    Every call ends within `seconds`. After an Unreachable, or a call that was cancelled, the next one starts with a new
    client, which knows nothing but the bootstrap servers. Raises Refused when the properties cannot be used.
    """

    def __init__(self, access: Access, *, seconds: float = 10.0) -> None:
        self._named, self._within = access.servers, access.within
        self._seconds = seconds
        self._configuration: dict[str, Any] = {
            "client.id": "switchover",
            **librdkafka.configuration(access.properties),
            "bootstrap.servers": access.reached,
            "reconnect.backoff.max.ms": 1000,
            "socket.connection.setup.timeout.ms": 2000,      # nobody refuses at the address that a moved pod had before
            "error_cb": self._remember,
            "logger": _Debug(),
        }
        self._bad_credentials = ""
        self._client: AdminClient | None = None
        self._checked = False
        self._connected()           # refuses what librdkafka does not accept

    async def min_insync_replicas(self, topics: Iterable[str]) -> Mapping[str, int]:
        """`min.insync.replicas` in force for each topic.

        A topic that the broker asked does not know is absent: deleted, or the broker has just started and knows none.
        """
        deadline = time.monotonic() + self._seconds
        client, found = await self._known(deadline), {}
        resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in sorted(set(topics))]
        for start in range(0, len(resources), BATCH):
            answers = client.describe_configs(resources[start:start + BATCH], request_timeout=_left(deadline))
            for resource, settings in (await self._settled(client, deadline, answers)).items():
                if isinstance(settings, KafkaError):
                    if settings.code() not in _GONE:
                        raise self._error(settings, f"topic {resource.name}")
                else:
                    found[resource.name] = int(settings["min.insync.replicas"].value)
        return found

    async def broker_settings(self, broker_id: int) -> Mapping[str, str]:
        """The live configuration of a broker as it tells it itself; sensitive values and nulls are absent."""
        deadline = time.monotonic() + self._seconds
        client = await self._known(deadline)
        resource = ConfigResource(ConfigResource.Type.BROKER, str(broker_id))
        answers = client.describe_configs([resource], request_timeout=_left(deadline))
        [settings] = (await self._settled(client, deadline, answers)).values()
        if isinstance(settings, KafkaError):
            raise self._error(settings, f"broker {broker_id}")
        return {name: entry.value for name, entry in settings.items() if entry.value is not None}

    async def close(self) -> None:
        """Forget the clients; librdkafka's threads end with them."""
        self._client = None

    async def _known(self, deadline: float) -> AdminClient:
        """The client of the cluster that is meant: librdkafka looks up what the brokers call themselves where we run."""
        client = self._connected()
        if self._within and not self._checked:
            answers = {"cluster": client.describe_cluster(request_timeout=_left(deadline))}
            cluster = (await self._settled(client, deadline, answers))["cluster"]
            if isinstance(cluster, KafkaError):
                raise self._error(cluster, "its brokers")
            short = next((node.host for node in cluster.nodes if looked_up(node.host, self._within) != node.host), "")
            if short:
                raise Refused(f"Kafka at {self._named}: a broker calls itself {short}, which means another host where this"
                              f" operator runs than in namespace {self._within}; let the brokers advertise names with their"
                              " namespace, or run an operator there")
            self._checked = True
        return client

    def _connected(self) -> AdminClient:
        if self._client is None:
            self._bad_credentials = ""
            try:
                self._client = AdminClient(self._configuration)
            except KafkaException as error:
                raise Refused(f"the Kafka credentials cannot be used: {error.args[0].str()}") from error
        return self._client

    async def _settled(
        self, client: AdminClient, deadline: float, futures: Mapping[K, "Future[Any]"]
    ) -> dict[K, Any]:
        """What each future came to: its value, or the KafkaError."""
        wrapped = {key: asyncio.wrap_future(future) for key, future in futures.items()}

        def answered(future: "asyncio.Future[Any]", _client: AdminClient = client) -> None:
            """Keeps the client until its last answer: taken down with requests under way, librdkafka 2.16 can crash."""
            future.exception()                                       # no complaint about one that nobody reads any more

        for future in wrapped.values():
            future.add_done_callback(answered)
        # asyncio.wait cancels nothing: librdkafka sets the result of a future whether we still want it or not.
        if wrapped:
            try:
                await asyncio.wait(wrapped.values(), timeout=_left(deadline) + GRACE)
            except asyncio.CancelledError:                           # the caller has less time than we take
                self._client = None
                raise
        client.poll(0)              # delivers log lines and errors of connections
        if not all(future.done() for future in wrapped.values()):
            raise self._error(KafkaError(KafkaError._TIMED_OUT), "answer")
        return {key: _outcome(future) for key, future in wrapped.items()}

    def _error(self, error: KafkaError, subject: str) -> Unreachable | Refused:
        code = error.code()
        if code in _RIGHTS:
            return Refused(f"Kafka at {self._named}, {subject}: our user is not allowed to; it needs {_RIGHTS[code]}")
        if code in _CREDENTIALS or self._bad_credentials:
            return Refused(f"Kafka at {self._named} does not accept us: {self._bad_credentials or error.str()}")
        if code in _REQUEST:
            return Refused(f"Kafka at {self._named}, {subject}: {error.str()}")
        self._client = None
        return Unreachable(f"Kafka at {self._named}, {subject}: {error.str()}")

    def _remember(self, error: KafkaError) -> None:
        """Calls only time out when no connection comes about; why not is told here."""
        if error.code() in _CREDENTIALS:
            self._bad_credentials = error.str()


class _Debug:
    """librdkafka logs every failed connection attempt as an error; what matters comes back as one."""

    def log(self, _level: int, message: str, *arguments: object) -> None:
        _log.debug(message, *arguments)


def _outcome(future: "asyncio.Future[Any]") -> Any:
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, KafkaException):
        return error.args[0]
    raise error


def _left(deadline: float) -> float:
    return max(0.001, deadline - time.monotonic())
