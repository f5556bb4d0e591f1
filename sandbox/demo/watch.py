"""`kubectl get --watch` as a queue of objects."""

import json
import subprocess
import threading
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import IO, Any

from demo.cluster import Cluster


class Watch:
    """The objects of `kubectl get ARGUMENTS --watch`, as they are now and at every change, until closed.

    A watch that the API server ends is opened again; then objects come once more as they are.
    """

    def __init__(self, cluster: Cluster, *arguments: str) -> None:
        self._command = ("kubectl", "--namespace", cluster.namespace, "get", *arguments, "--watch", "--output", "json")
        self._environment = dict(cluster.environment)
        self._queue: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._closed = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        if self._process is not None:
            self._process.terminate()
        self._thread.join(5)

    def next(self, timeout: float) -> dict[str, Any] | None:
        """The next object, None when none came within `timeout` seconds."""
        try:
            return self._queue.get(timeout=timeout)
        except Empty:
            return None

    def drain(self) -> Iterator[dict[str, Any]]:
        """All objects that came already."""
        while (found := self.next(0)) is not None:
            yield found

    def _run(self) -> None:
        while not self._closed.is_set():
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            assert self._process.stdout is not None
            for found in documents(self._process.stdout):
                if found["kind"] != "Status":   # how the API server ends a watch that it cannot go on with
                    self._queue.put(found)
            self._process.wait()
            self._closed.wait(1)


def documents(stream: IO[str]) -> Iterator[dict[str, Any]]:
    """JSON documents that kubectl prints one after the other, each over many lines that end with a lone `}`."""
    lines: list[str] = []
    for line in stream:
        lines.append(line)
        if line.rstrip("\n") == "}":
            yield json.loads("".join(lines))
            lines.clear()
