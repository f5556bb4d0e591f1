"""What stands in for `threading`, `queue`, `time` and `Future` in modules of the product, under a Scheduler."""

import contextlib
import queue
from collections import deque
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

from interleaving.scheduler import Scheduler, Task


@contextlib.contextmanager
def standing_in(scheduler: Scheduler, *modules: ModuleType) -> Iterator[SimpleNamespace]:
    """Of the modules that know them by these names; gives what stands in for `threading`."""
    given = _stand_ins(scheduler)
    with contextlib.ExitStack() as stack:
        for module in modules:
            for name in given.keys() & vars(module).keys():
                stack.enter_context(mock.patch.object(module, name, given[name]))
        yield given["threading"]


def _stand_ins(scheduler: Scheduler) -> dict[str, Any]:
    def made(kind: type) -> Callable[..., Any]:
        return lambda *args, **named: kind(scheduler, *args, **named)

    return {
        "threading": SimpleNamespace(
            Lock=made(Lock), Semaphore=made(Semaphore), Event=made(Event), Thread=made(Thread)),
        "queue": SimpleNamespace(SimpleQueue=_Queues(scheduler), Empty=queue.Empty),
        "time": SimpleNamespace(monotonic=lambda: scheduler.now, time=lambda: 1.7e9 + scheduler.now,
                                sleep=scheduler.sleep),
        "Future": _Futures(scheduler),
    }


class Lock:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._taken = scheduler, False

    def acquire(self, blocking: bool = True) -> bool:
        self._scheduler.place()
        if self._taken:
            if not blocking:
                return False
            self._scheduler.wait(lambda: not self._taken)
        self._taken = True
        return True

    def release(self) -> None:
        self._taken = False
        if not self._scheduler.over:
            self._scheduler.place()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Semaphore:
    def __init__(self, scheduler: Scheduler, value: int = 1) -> None:
        self._scheduler, self._value = scheduler, value

    def acquire(self, blocking: bool = True) -> bool:
        self._scheduler.place()
        if self._value == 0:
            if not blocking:
                return False
            self._scheduler.wait(lambda: self._value > 0)
        self._value -= 1
        return True

    def release(self) -> None:
        self._value += 1
        self._scheduler.place()


class Event:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._on = scheduler, False

    def set(self) -> None:
        self._on = True
        self._scheduler.place()

    def is_set(self) -> bool:
        return self._on

    def wait(self, timeout: float | None = None) -> bool:
        return self._scheduler.wait(lambda: self._on, timeout)


class Thread:
    def __init__(self, scheduler: Scheduler, target: Callable[..., None], name: str = "", *, daemon: bool = True) -> None:
        self._scheduler, self._target, self.name = scheduler, target, name
        self._task: Task | None = None

    def start(self) -> None:
        self._task = self._scheduler.spawn(self._target, self.name)
        self._scheduler.place()

    def join(self, timeout: float | None = None) -> None:
        task = self._task
        assert task is not None
        self._scheduler.wait(lambda: task.done, timeout)


class Queue:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._items = scheduler, deque[Any]()

    def put(self, item: Any) -> None:
        self._items.append(item)
        self._scheduler.place()

    def get(self, timeout: float | None = None) -> Any:
        if not self._scheduler.wait(lambda: bool(self._items), timeout):
            raise queue.Empty
        return self._items.popleft()


class Future:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._done = scheduler, False
        self._result: Any = None
        self._problem: BaseException | None = None
        self._callbacks: list[Callable[[Any], None]] = []

    def set_result(self, result: Any) -> None:
        self._result = result
        self._end()

    def set_exception(self, problem: BaseException) -> None:
        self._problem = problem
        self._end()

    def _end(self) -> None:
        self._done = True
        for each in self._callbacks:
            each(self)
        self._scheduler.place()

    def add_done_callback(self, do: Callable[[Any], None]) -> None:
        if self._done:
            do(self)
        else:
            self._callbacks.append(do)

    def exception(self) -> BaseException | None:
        return self._problem

    def result(self, timeout: float | None = None) -> Any:
        if not self._scheduler.wait(lambda: self._done, timeout):
            raise TimeoutError
        if self._problem is not None:
            raise self._problem
        return self._result


class _Made:
    """Called, it makes one; and `SimpleQueue[Event]` and `Future[T]` in annotations and calls are the same."""

    kind: type

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def __call__(self) -> Any:
        return self.kind(self._scheduler)

    def __getitem__(self, _: object) -> Any:
        return self


class _Queues(_Made):
    kind = Queue


class _Futures(_Made):
    kind = Future
