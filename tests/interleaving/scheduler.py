"""The product's own threads, one at a time, in virtual time; which goes on is chosen wherever one could lose its turn.

That is at every operation on a lock, a queue, an event or a future (stand_ins.py), and at every instruction of the `watched`
functions. Time stands while a thread can go on, and jumps to the next deadline when none can.
"""

import _thread
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any

MOST = 100_000
"""Places in one run; a run with more has no end."""


class Over(BaseException):
    """The run has ended, and a thread that still waits unwinds."""


class Task:
    """One thread. `waits` counts how often it waited."""

    def __init__(self, name: str) -> None:
        self.name, self.done, self.waits = name, False, 0
        self.ready: Callable[[], bool] | None = None            # what it waits for; None: it can go on
        self.deadline: float | None = None
        self._turn = _thread.allocate_lock()
        self._turn.acquire()

    def goes_on(self) -> None:
        self._turn.release()

    def stands(self) -> None:
        self._turn.acquire()

    def is_able(self, now: float) -> bool:
        return not self.done and (
            self.ready is None or self.ready() or (self.deadline is not None and self.deadline <= now))


class Scheduler:
    """`choose` picks one of the tasks that can go on."""

    def __init__(self, choose: Callable[["Scheduler", Sequence[Task]], Task], watched: Iterable[Callable[..., Any]] = (),
                 ) -> None:
        self.now, self.tasks, self.over = 1000.0, list[Task](), False
        self.current: Task
        self.failures: list[str] = []
        self._choose, self._places = choose, 0
        self._watched = {code for each in watched for code in _codes(each.__code__)}
        self._main: Task
        self._ended = _thread.allocate_lock()

    def run(self, main: Callable[[], None]) -> list[str]:
        """Until `main` ends; then whoever is left unwinds. What went wrong."""
        self._ended.acquire()
        self._main = self.current = self.spawn(main, "main")
        self.current.goes_on()
        self._ended.acquire()
        return self.failures

    def spawn(self, do: Callable[[], None], name: str) -> Task:
        task = Task(name)
        self.tasks.append(task)
        threading.Thread(target=self._live, args=(task, do), daemon=True).start()
        return task

    def place(self) -> None:
        """The running thread may lose its turn here."""
        self._enter()
        self._switch()

    def wait(self, ready: Callable[[], bool], seconds: float | None = None) -> bool:
        """Until `ready()`; False where the time was over first."""
        self._enter()
        task = self.current
        task.waits += 1
        task.ready, task.deadline = ready, None if seconds is None else self.now + seconds
        self._switch()
        task.ready = task.deadline = None
        return ready()

    def sleep(self, seconds: float) -> None:
        self.wait(lambda: False, seconds)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _live(self, task: Task, do: Callable[[], None]) -> None:
        task.stands()
        if self._watched:
            sys.settrace(self._trace)
        try:
            if not self.over:
                do()
        except Over:
            pass
        except BaseException as problem:  # noqa: BLE001 - it is what the test is after
            self._fail(f"{task.name}: {''.join(traceback.format_exception(problem))}")
        finally:
            sys.settrace(None)
            task.done = True
            self._hand_on(task)

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code not in self._watched:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            self.place()
        return self._trace

    def _enter(self) -> None:
        if self.over:
            raise Over
        self._places += 1
        if self._places > MOST:
            where = "; ".join(f"{each.name}:{each.lineno}" for each in traceback.extract_stack()[-9:-2])
            self._end(f"{self.current.name} has no end at {where}")

    def _end(self, failure: str) -> None:
        self._fail(failure)
        self.over = True
        raise Over

    def _fail(self, failure: str) -> None:
        self.failures.append(failure)

    def _switch(self) -> None:
        task, then = self.current, self._next()
        if then is None:
            self._end("deadlock: " + ", ".join(each.name for each in self.tasks if not each.done))
        elif then is not task:
            self.current = then
            then.goes_on()
            task.stands()
        if self.over:
            raise Over

    def _next(self) -> Task | None:
        while not (able := [each for each in self.tasks if each.is_able(self.now)]):
            deadlines = [each.deadline for each in self.tasks if not each.done and each.deadline is not None]
            if not deadlines:
                return None
            self.now = min(deadlines)
        return self._choose(self, able) if len(able) > 1 else able[0]

    def _hand_on(self, task: Task) -> None:
        self.over = self.over or task is self._main
        left = [each for each in self.tasks if not each.done]
        if not left:
            self._ended.release()
            return
        then = left[0] if self.over else self._next()
        if then is None:
            self._fail("deadlock: " + ", ".join(each.name for each in left))
            self.over, then = True, left[0]
        self.current = then
        then.goes_on()


def _codes(code: CodeType) -> Iterator[CodeType]:
    """With those of what is defined inside: comprehensions, functions."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)
