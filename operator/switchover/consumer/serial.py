"""A thread that does one thing after the other."""

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Serial:
    """Does what is submitted, in order; `idle` in between, at least every `every` seconds; `last` at the end.

    A daemon: it does not keep a process from ending.
    """

    def __init__(self, name: str, idle: Callable[[], None] | None = None, every: float | None = None,
                 last: Callable[[], None] | None = None) -> None:
        self._idle, self._every, self._last = idle, every, last
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, do: Callable[[], T]) -> Future[T]:
        """Its result, or what it raises, comes with the future."""
        future: Future[T] = Future()
        self._jobs.put((future, do))
        return future

    def turn(self, seconds: float | None) -> bool:
        """Do the next job, if one comes in time; on its own thread only. False when it is to end."""
        try:
            job = self._jobs.get(timeout=seconds)
        except queue.Empty:
            return True
        if job is None:
            self._jobs.put(None)
            return False
        future, do = job
        try:
            future.set_result(do())
        except Exception as problem:  # noqa: BLE001 (it is the business of who asked)
            future.set_exception(problem)
        return True

    def end(self, seconds: float) -> None:
        """Do what was submitted before, then end; waits so long for it."""
        self._jobs.put(None)
        self._thread.join(seconds)

    def _run(self) -> None:
        while self.turn(self._every):
            self._call(self._idle)
        self._call(self._last)

    def _call(self, do: Callable[[], None] | None) -> None:
        if do is not None:
            try:
                do()
            except Exception:
                logger.exception("%s", self._thread.name)
