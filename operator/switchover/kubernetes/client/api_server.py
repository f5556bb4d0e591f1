"""The connection to the Kubernetes API server: one request function whose failures are the three errors of the ports.

Built on `kubernetes.aio.dynamic`, whose plain dictionaries cost 64 MiB of memory where the typed models cost 178
(docs/facts/kubernetes.md#clients-and-kopf). Paths are written down, not discovered: discovery would need a writable
cache file.
"""

import asyncio
import copy
import os
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.request import getproxies_environment

import aiohttp
from aiohttp.http_exceptions import LineTooLong
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.config import list_kube_config_contexts, load_incluster_config, load_kube_config
from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.dynamic import DynamicClient
from yaml import YAMLError

from switchover.answers import memory
from switchover.answers.errors import Fenced, Refused, Unreachable
from switchover.kubernetes.client.index import Subject
from switchover.kubernetes.members import KINDS
from switchover.shared import foreign_json

FIELD_MANAGER = "switchover"
SECONDS_PER_CALL = 10.0
REQUESTS_AT_ONCE = 16
"""To one API server, watches aside: each is a connection with 256 KiB of buffers, and other questions wait there."""
WATCH_SECONDS, SILENT_SECONDS = 300, 150.0
"""How long one watch lasts; and after how long without a line it is taken for dead: bookmarks come every minute or so."""
PATIENCE = 0.8 * SECONDS_PER_CALL
"""Seconds that an answer waits for memory: longer than a peer's answer may take, which has it meanwhile."""
LARGEST_ANSWER = 8 * memory.MIB
"""Bytes of an answer. etcd takes objects of 1.5 MiB, which in JSON may be a few times as many."""
FIRST_PAGE, PAGE = 100, 500
"""Objects in an answer to a list, at first and at most. What is too large for LARGEST_ANSWER is asked for again in parts."""
ASK_AGAIN_SECONDS = 3600.0
"""After a refusal of what belongs to no namespace: each is an entry in somebody's audit log, and the right comes seldom."""

JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_PLURALS = {
    "ConfigMap": "configmaps",
    "ControllerRevision": "controllerrevisions",
    "Event": "events",
    "HorizontalPodAutoscaler": "horizontalpodautoscalers",
    "Job": "jobs",
    "Lease": "leases",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Pod": "pods",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "ReplicaSet": "replicasets",
    "ScaledObject": "scaledobjects",
    "Secret": "secrets",
    "Service": "services",
    "VerticalPodAutoscaler": "verticalpodautoscalers",
    **{kind: plural for kind, (_, plural) in KINDS.items()},
}


T = TypeVar("T")


class NotFound(Exception):
    """The object does not exist. Never leaves `client/`."""


class Conflict(Exception):
    """409: a resourceVersion or uid that is no longer so, or a name that is taken. Never leaves `client/`."""


class Expired(Exception):
    """410: the version to watch from is too old. Never leaves `client/`."""


class Forbidden(Refused):
    """403: the account has not the right. `message` says which. The remedy depends on whose account it is."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(f"{message}. {remedy}" if remedy else message)
        self.message = message


class TooLarge(Refused):
    """An answer of more than LARGEST_ANSWER bytes."""


class Silent(Unreachable):
    """The API server itself does not answer, and not what it would have been asked about."""


class OverBudget(Exception):
    """429 by a disruption budget, with its message. Never leaves `client/`."""


async def connect(namespace: str, kubeconfig: str = "", context: str = "") -> "ApiServer":
    """Connect with the kubeconfig files (as KUBECONFIG names them), or, where none is named, with the pod's service account.

    Without a namespace it is that of the context, or of the pod. Raises Refused when the credentials cannot be read, or
    there is no such context.
    """
    configuration = Configuration()
    _set_connections(configuration)
    if not kubeconfig:
        own = _load_service_account(configuration, namespace)
        return ApiServer(ApiClient(configuration), own)
    try:
        names = [str(each["name"]) for each in list_kube_config_contexts(kubeconfig)[0]]  # type: ignore[no-untyped-call]
        if context and context not in names:
            raise Refused(f"the kubeconfig {kubeconfig} has no context {context}; it has {', '.join(names) or 'none'}")
        loader = await load_kube_config(  # type: ignore[no-untyped-call]
            config_file=kubeconfig, context=context or None, client_configuration=configuration, persist_config=False
        )
        found = loader.current_context["context"].get("namespace")
    except _NO_KUBECONFIG as error:
        raise _unreadable(f"the kubeconfig {kubeconfig}", error) from None
    return ApiServer(ApiClient(configuration), namespace or str(found or "default"))


def _set_connections(configuration: Configuration) -> None:
    """As many connections as there are requests. aiohttp looks for a proxy and .netrc with every request: only where one is
    set, since it was 7 % of the CPU that many migrations took."""
    configuration.connection_pool_maxsize = 0                 # without a bound: ours counts no watch, which keeps its own
    configuration.client_session_kwargs = {"trust_env": bool(getproxies_environment())}


def _load_service_account(configuration: Configuration, namespace: str) -> str:
    """The namespace to work in."""
    try:
        load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        return namespace or POD_NAMESPACE.read_text().strip()
    except (ConfigException, OSError) as error:
        raise _unreadable("the pod's service account", error) from None


_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_NO_KUBECONFIG = (ConfigException, OSError, YAMLError, AttributeError, KeyError, TypeError, ValueError)
"""What the library raises for a file that is none: it walks whatever YAML it is given."""


def _unreadable(what: str, error: Exception) -> Refused:
    why = " ".join(str(error).split())
    return Refused(f"cannot read the API server's address and credentials from {what}: {why or type(error).__name__}")


class ApiServer:
    """Requests to one API server, in one namespace."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self.namespace = namespace
        self.address = str(client.configuration.host)
        self._client = client
        self._forbidden: dict[str, tuple[float, str]] = {}
        self._room = asyncio.Semaphore(REQUESTS_AT_ONCE)
        self._dynamic = DynamicClient(client)  # type: ignore[no-untyped-call]

    def within(self, namespace: str) -> "ApiServer":
        """The same connections for requests in another namespace; closing one closes both."""
        other = copy.copy(self)
        other.namespace = namespace
        return other

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()  # type: ignore[no-untyped-call]

    def path(self, api_version: str, kind: str, name: str = "", subresource: str = "") -> str:
        """The path of an object, or of the collection, in our namespace. Refused for a kind that we never touch."""
        try:
            plural = _PLURALS[kind]
        except KeyError:
            raise Refused(f"Switchover does not handle objects of kind {kind}") from None
        return self.resource_path(api_version, plural, name, subresource)

    def resource_path(self, api_version: str, plural: str, name: str = "", subresource: str = "") -> str:
        """The same by the plural name of the resource, as custom resources need it.

        Refused for a name that no object has: one with a slash would lead out of our namespace.
        """
        if name and not _NAME.fullmatch(name):
            raise Refused(f"{name[:80]!r} is not the name of an object")
        root = "apis" if "/" in api_version else "api"
        parts = (root, api_version, "namespaces", self.namespace, plural, name, subresource)
        return "/" + "/".join(part for part in parts if part)

    async def get(self, path: str) -> dict[str, Any]:
        """Read one object; NotFound when it does not exist."""
        return await self.request("GET", path)

    async def find(self, path: str) -> dict[str, Any] | None:
        """Read one object; None when it does not exist."""
        try:
            return await self.get(path)
        except NotFound:
            return None

    async def beyond(self, collection: str, name: str = "") -> dict[str, Any]:
        """Read what belongs to no namespace; a refusal holds for the whole collection, for ASK_AGAIN_SECONDS."""
        now = asyncio.get_running_loop().time()
        until, why = self._forbidden.get(collection, (now, ""))
        if now < until:
            raise Forbidden(why)
        try:
            return await self.get(f"{collection}/{name}" if name else collection)
        except Forbidden as error:
            self._forbidden[collection] = (now + ASK_AGAIN_SECONDS, str(error))
            raise

    async def items(self, path: str, labels: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """Read a collection, at most what carries all the labels."""
        selector = ",".join(f"{key}={value}" for key, value in (labels or {}).items())
        found: list[dict[str, Any]] = []
        try:
            await self.each(path, found.append, label_selector=selector or None)
        except Expired as error:
            raise Unreachable(f"{_what(path)} changed while it was listed: {error}") from None
        return found

    async def each(self, path: str, take: Callable[[dict[str, Any]], None], **parameters: Any) -> str:
        """Have every object of a collection taken, page by page; the version that they are of.

        A page has as many objects as LARGEST_ANSWER has room for. Raises also Expired.
        """
        size, most, following, last = FIRST_PAGE, PAGE, None, "at the beginning"
        while following != "":
            taken: list[str] = []

            def noted(found: dict[str, Any], taken: list[str] = taken) -> None:
                taken.append(str(found["metadata"]["name"]))
                take(found)

            try:
                answer = await self.request("GET", path, take=noted, limit=size, _continue=following, **parameters)
            except TooLarge as error:
                if size == 1:
                    raise Refused(f"one object of {error}, {last}") from None
                size, most = max(1, size // 4), max(1, size // 2)
                continue
            following = answer["metadata"].get("continue") or ""
            last = f"the next after {taken[-1]}" if taken else last
            size = min(most, 2 * size)
        return str(answer["metadata"]["resourceVersion"])

    async def events(self, uid: str, most: int) -> list[dict[str, Any]]:
        """Read the events about an object of our namespace."""
        found: list[dict[str, Any]] = []
        await self.request("GET", self.path("v1", "Event"), take=found.append, limit=most,
                           field_selector=f"involvedObject.uid={uid}")
        return [event for event in found if event["involvedObject"].get("uid") == uid]

    async def about(self, path: str, subjects: Iterable[Subject]) -> list[dict[str, Any]]:
        """Of a collection what is about one of these, and here all the rest as well: it is one request."""
        return await self.items(path)

    async def json_patch(
        self, path: str, operations: Sequence[Mapping[str, Any]], *, dry_run: bool = False, manager: str = FIELD_MANAGER
    ) -> dict[str, Any]:
        """JSON patch. Fenced when one of its tests fails or a path is gone; Refused when the result is not valid."""
        body = [dict(operation) for operation in operations]
        return await self.request("PATCH", path, body, content_type=JSON_PATCH, field_manager=manager,
                                  dry_run="All" if dry_run else None)

    async def apply(self, path: str, manifest: Mapping[str, Any]) -> None:
        """Server-side apply with our field manager, taking over fields that somebody else owns."""
        await self.request(
            "PATCH",
            path,
            dict(manifest),
            content_type=APPLY_PATCH,
            field_manager=FIELD_MANAGER,
            force_conflicts=True,
        )

    async def request(self, method: str, path: str, body: Any = None, *,
                      take: Callable[[dict[str, Any]], None] | None = None, **parameters: Any) -> dict[str, Any]:
        """One request within SECONDS_PER_CALL. `take` is given the objects of a list, one after the other, in place of the
        answer.

        Raises Unreachable, Refused or Fenced, and NotFound, Conflict or OverBudget for the caller to interpret.
        """
        async def read() -> dict[str, Any]:
            answer = await self._dynamic.request(
                method, path, body=body, serialize=False, query_params=[], header_params={}, **parameters)
            async with _text(answer, _what(path)) as text:
                items: list[dict[str, Any]] = []
                found: dict[str, Any] = foreign_json.listed(text, take or items.append)
                return found | {"items": items} if items else found

        try:
            return await self._answered(method, path, read)
        except ValueError as error:
            raise Unreachable(f"the API server's answer about {_what(path)} cannot be read: {error}") from None

    async def text(self, path: str, query: Mapping[str, str]) -> str:
        """Read what is no JSON, such as a log. Raises what `request` raises."""
        async def read() -> str:
            answer = await self._dynamic.request(
                "GET", path, serialize=False, query_params=list(query.items()), header_params={})
            async with _text(answer, _what(path)) as found:
                return found

        return await self._answered("GET", path, read)

    @asynccontextmanager
    async def watch(self, path: str, version: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of a watch of a collection after that version, bookmarks among them, for WATCH_SECONDS.

        Raises what `request` raises, also while it is read: Unreachable when it is silent for longer than bookmarks are
        apart.
        """
        query = [("watch", "true"), ("allowWatchBookmarks", "true"), ("resourceVersion", version),
                 ("timeoutSeconds", str(WATCH_SECONDS))]

        async def begin() -> aiohttp.ClientResponse:
            return await self._dynamic.request(  # type: ignore[no-any-return]
                "GET", path, serialize=False, query_params=query, header_params={}, _request_timeout=2 * WATCH_SECONDS)

        answer = await self._answered("GET", path, begin)

        async def lines() -> AsyncIterator[bytes]:
            while True:
                async with asyncio.timeout(SILENT_SECONDS):
                    line = await answer.content.readline()
                if not line:
                    return
                yield line

        try:
            yield lines()
        except TimeoutError:
            raise Unreachable(f"the watch of {_what(path)} was silent for {SILENT_SECONDS:.0f} s") from None
        except LineTooLong:                     # a list reads what it was about
            raise Expired(f"the watch of {_what(path)} had an object that is too large") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Unreachable(f"the watch of {_what(path)} broke off: {type(error).__name__}") from None
        finally:
            answer.close()

    async def _answered(self, method: str, path: str, ask: Callable[[], Awaitable[T]]) -> T:
        try:
            async with self._room, asyncio.timeout(SECONDS_PER_CALL):
                return await ask()
        except ApiException as error:
            # `from None`: the original carries the whole body, and of a Secret that may be its content.
            raise translate(method, path, error) from None
        except TimeoutError:
            raise Silent(f"the API server {self.address} did not answer within {SECONDS_PER_CALL:.0f} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise Silent(f"the API server {self.address} cannot be reached: {_why(error)}") from None


def _why(error: Exception) -> str:
    """The message of the operating system or of TLS in what aiohttp wraps."""
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", error)
    if isinstance(cause, ssl.SSLError):
        return getattr(cause, "verify_message", "") or cause.reason or "TLS fails"
    if isinstance(cause, OSError) and cause.errno:
        return os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)
    return type(cause).__name__


@asynccontextmanager
async def _text(answer: aiohttp.ClientResponse, what: str) -> AsyncIterator[str]:
    """The body, which has its memory for as long as the block. Raises TooLarge beyond LARGEST_ANSWER."""
    body = bytearray()
    async with AsyncExitStack() as held:
        held.callback(answer.close)             # which a body that was read to its end has left already
        room = 0

        async def have(size: int) -> None:
            nonlocal room
            if size > max(room, memory.SMALL):
                held.enter_context(await memory.ANSWERS.turn(what, size - room, room, PATIENCE))
                room = size

        async for chunk in answer.content.iter_any():
            body += chunk
            if len(body) > LARGEST_ANSWER:
                raise TooLarge(f"{what} is more than {LARGEST_ANSWER // memory.MIB} MiB")
            if len(body) > memory.SMALL:
                await have(2 * LARGEST_ANSWER)                      # as bytes and as text
        await have(len(body) * (2 if body.isascii() else 5))        # one letter of four bytes makes all of a text as wide
        text = body.decode(errors="replace")
        body.clear()
        yield text


def translate(method: str, path: str, error: ApiException) -> Exception:
    """The answer that is not 2xx as one of the ports' errors, or of the three that the adapters interpret."""
    status = _status(error.body)
    causes = [cause for cause in (status.get("details") or {}).get("causes") or () if isinstance(cause, dict)]
    what = _what(path)
    message = "; ".join(str(part["message"]) for part in (status, *causes) if part.get("message"))
    if "/secrets" in path:
        message = str(status.get("reason", ""))  # the server may quote a value that it does not like
    match error.status:
        case 401:
            return Refused(f"the API server does not accept our credentials ({what})")
        case 403:
            return Forbidden(
                f"the API server forbids {_VERBS[method]} on {what}: {message}",
                "Allow it in the Role of the operator's service account",
            )
        case 404:
            return NotFound(what)
        case 409:
            return Conflict(message)
        case 410:
            return Expired(message)
        case 422 if not causes or all(cause.get("reason") == "UnexpectedServerResponse" for cause in causes):
            return Fenced(f"{what} is not what was read")
        case 429 if any(cause.get("reason") == "DisruptionBudget" for cause in causes):
            return OverBudget(message)
        case code if code is not None and (code == 429 or code >= 500):
            return Unreachable(f"the API server answers {code} for {what}: {message}")
        case code:
            return Refused(f"the API server refuses {_VERBS[method]} on {what} ({code}): {message}")


_VERBS = {"GET": "get or list", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def _status(body: str | None) -> dict[str, Any]:
    try:
        status = foreign_json.parsed(body or "")
    except ValueError:
        return {}
    return status if isinstance(status, dict) else {}


def _what(path: str) -> str:
    """`statefulsets kafka in namespace demo` of a path, or the path itself where it has no namespace."""
    _, found, rest = path.partition("/namespaces/")
    if not found:
        return path
    namespace, _, resource = rest.partition("/")
    plural, _, name = resource.partition("/")
    return f"{plural}{' ' + name if name else ''} in namespace {namespace}"
