"""Every order of a few threads in which the turn passes somebody over at most so many times (delay-bounded scheduling,
Emmi, Qadeer and Rakamaric, POPL 2011): most races need one such delay or two."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

from interleaving.scheduler import Scheduler, Task
from interleaving.stand_ins import standing_in


@dataclass(slots=True)
class Explored:
    """How many orders there are, and what went wrong in which: once for each."""

    orders: int = 0
    broken: list[str] = field(default_factory=list)


def explored(
    case: Callable[[SimpleNamespace], None], *modules: ModuleType, delays: int = 1,
    watched: Sequence[Callable[..., Any]] = (),
) -> Explored:
    """All orders of `case`, which gets what stands in for `threading`, and raises where something is wrong.

    In `modules` threading, queue, time and Future are stood in for. Of the functions that are `watched` a thread may lose
    its turn at every instruction, else only where it waits, locks or hands over.
    """
    tree, found = _Tree(delays), Explored()
    while tree.begin():
        scheduler = Scheduler(tree.choose, watched)
        with standing_in(scheduler, *modules) as threading:
            failures = scheduler.run(lambda threading=threading: case(threading))  # type: ignore[misc]
        found.orders += 1
        if failures:
            found.broken.append(f"order {found.orders}: {failures[0]}")
    return found


class _Tree:
    """The choices of an order, one order after the other. Without a delay whoever runs goes on, and when it waits the next
    in turn does."""

    def __init__(self, delays: int) -> None:
        self._delays = delays
        self._path: list[list[int]] | None = None           # what was taken, and of how many
        self._at = self._spent = 0

    def begin(self) -> bool:
        """The next order; False when there is none."""
        path = self._path
        if path is not None:
            while path and path[-1][0] + 1 >= path[-1][1]:
                path.pop()
            if not path:
                return False
            path[-1][0] += 1
        self._path = path or []
        self._at = self._spent = 0
        return True

    def choose(self, scheduler: Scheduler, able: Sequence[Task]) -> Task:
        assert self._path is not None
        turn, tasks = scheduler.tasks.index(scheduler.current), scheduler.tasks
        options = sorted(able, key=lambda each: (tasks.index(each) - turn) % len(tasks))
        if self._at == len(self._path):
            self._path.append([0, min(len(options), self._delays - self._spent + 1)])
        taken = self._path[self._at][0]
        self._at += 1
        self._spent += taken
        return options[taken]
