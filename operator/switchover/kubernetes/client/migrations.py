"""The custom resource and its Events (`ports.Migrations`)."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from switchover.answers.clock import Clock
from switchover.answers.errors import Fenced
from switchover.api.meta import API_VERSION
from switchover.api.schema import rfc3339
from switchover.kubernetes.client.api_server import ApiServer, Conflict, Forbidden, NotFound
from switchover.kubernetes.json_patch import as_read
from switchover.text.visible import printable

MESSAGE_LIMIT = 1024  # bytes of an Event's message that the API server accepts


class KubernetesMigrations:
    """`ports.Migrations` for one kind of resource, and the finalizer that holds a deleted one until it is released."""

    def __init__(self, server: ApiServer, clock: Clock, kind: str, plural: str) -> None:
        self._server = server
        self._clock = clock
        self._kind = kind
        self._plural = plural

    async def get(self, name: str) -> Mapping[str, Any] | None:
        """The resource as it is now, or None."""
        return await self._server.find(self._path(name))

    async def record(self, name: str, uid: str, resource_version: str, status: Mapping[str, Any]) -> str:
        """Replace the whole status if the object still is what was read; the new resourceVersion.

        A JSON patch, because a merge patch keeps the map keys that are no longer named. Raises Fenced otherwise.
        """
        operations = [
            *as_read(uid, resource_version),
            {"op": "add", "path": "/status", "value": dict(status)},
        ]
        written = await self._patch(self._path(name, "status"), name, operations)
        return str(written["metadata"]["resourceVersion"])

    async def announce(self, name: str, uid: str, reason: str, message: str, *, warning: bool) -> None:
        """A Kubernetes Event on the resource; its message is printable, line by line, and cut at MESSAGE_LIMIT bytes."""
        lines = "\n".join(map(printable, message.split("\n")))
        now = rfc3339(datetime.fromtimestamp(self._clock.now(), UTC))
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{name}."},
            "involvedObject": {
                "apiVersion": API_VERSION,
                "kind": self._kind,
                "name": name,
                "namespace": self._server.namespace,
                "uid": uid,
            },
            "type": "Warning" if warning else "Normal",
            "reason": reason,
            "message": lines if len(lines.encode()) <= MESSAGE_LIMIT else (
                lines.encode()[:MESSAGE_LIMIT - len("…".encode())].decode(errors="ignore") + "…"),
            "source": {"component": "switchover"},
            "reportingComponent": "switchover",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            await self._server.request("POST", self._server.path("v1", "Event"), event)
        except (NotFound, Conflict) as error:
            raise Fenced(f"{self._kind} {name}: {error}") from None

    async def set_finalizer(self, name: str, finalizer: str, present: bool) -> Mapping[str, Any] | None:
        """Add or remove the finalizer; the object as it is then. None: it is gone, or adding is refused since it is being
        deleted."""
        found = await self.get(name)
        if found is None or (present and "deletionTimestamp" in found["metadata"]):
            return None
        metadata = found["metadata"]
        finalizers: list[str] = metadata.get("finalizers") or []
        if (finalizer in finalizers) is present:
            return found
        wanted = [*finalizers, finalizer] if present else [item for item in finalizers if item != finalizer]
        operations = [
            *as_read(metadata["uid"], metadata["resourceVersion"]),
            {"op": "add", "path": "/metadata/finalizers", "value": wanted},
        ]
        return await self._patch(self._path(name), name, operations)

    async def is_ending(self) -> bool:
        """Whether the namespace is being deleted; False where it may not be read."""
        try:
            namespace = await self._server.get(f"/api/v1/namespaces/{self._server.namespace}")
        except NotFound:
            return True
        except Forbidden:
            return False
        return "deletionTimestamp" in namespace["metadata"]

    async def _patch(self, path: str, name: str, operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        try:
            return await self._server.json_patch(path, operations)
        except (NotFound, Conflict):
            raise Fenced(f"{self._kind} {name} is not what was read") from None

    def _path(self, name: str, subresource: str = "") -> str:
        return self._server.resource_path(API_VERSION, self._plural, name, subresource)
