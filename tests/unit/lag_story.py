"""A partition and its consumer, second by second, read every 15 s and judged as the operator does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from switchover.lag.group import Group, evaluate
from switchover.lag.hysteresis import State, fold
from switchover.lag.thresholds import Thresholds
from switchover.lag.verdicts import Verdict, judge
from unit.lag_readings import DEFAULTS, ORDERS, T0, Reading, samples_of

EVENT = 1200
"""Second at which something happens; by then the gate has long passed."""


@dataclass
class World:
    """Rates are records per second. A consumer that is `alive` reads and commits; a `frozen` one commits where it stands."""

    end: int = 1_000_000
    start: int = 0
    position: int = 1_000_000
    committed: int = 1_000_000
    commit_time: int = T0
    rate: int = 1000
    capacity: int = 5000
    cadence: int = 5
    alive: bool = True
    frozen: bool = False
    readable: bool = True
    generation: int = 1
    stable: bool = True
    transactional: bool = False
    open_since: int | None = None
    """First offset of a transaction that is still open: the last stable offset for the group."""
    readings: list[Reading] = field(default_factory=list)

    def second(self, second: int) -> None:
        self.end += self.rate
        if self.alive and not self.frozen:
            self.position = min(self.stable_end, self.position + self.capacity)
        if self.alive and second % self.cadence == 0:
            self.committed, self.commit_time = self.position, T0 + second * 1000

    @property
    def stable_end(self) -> int:
        markers = 1 if self.transactional else 0
        return (self.end if self.open_since is None else self.open_since) - markers

    def read(self, second: int) -> None:
        """One poll; only what a ring buffer of 40 keeps."""
        end = self.end if self.open_since is None else self.open_since
        self.readings.append(Reading(T0 + second * 1000, self.committed, end, self.start, self.readable, self.end,
                                     self.commit_time))
        del self.readings[:-40]


@dataclass(frozen=True)
class Moment:
    """What one evaluation said, in seconds since the story began."""

    at: int
    verdict: str
    effect: str
    gate: str


Script = Mapping[int, Callable[[World], None]]


def play(script: Script, minutes: int, world: World | None = None, thresholds: Thresholds = DEFAULTS) -> list[Moment]:
    """Everything that happens in a second happens before that second's poll."""
    world, state, moments = world or World(), State(), []
    for second in range(minutes * 60 + 1):
        world.second(second)
        if second in script:
            script[second](world)
        if second % 15 == 0:
            world.read(second)
            now = T0 + second * 1000
            kernel = judge(samples_of([world.readings], [world.transactional]), now, thresholds)
            group = Group(frozenset({ORDERS}), world.stable, world.generation, True)
            seen = evaluate([ORDERS], kernel, group, now, "1")
            state = fold(state, seen, thresholds)
            moments.append(Moment(second, Verdict(kernel.verdict[0]).name, seen.effect.name, state.effect.name))
    return moments


def sets(**values: object) -> Callable[[World], None]:
    """A script line: from now on."""
    def line(world: World) -> None:
        for name, value in values.items():
            assert hasattr(world, name)
            setattr(world, name, value)
    return line


def after(moments: list[Moment], since: int = EVENT, **wanted: str) -> int | None:
    """How many seconds after `since` an evaluation first said that; None when none did."""
    return next((moment.at - since for moment in moments if moment.at >= since
                 and all(getattr(moment, name) == value for name, value in wanted.items())), None)


def said(moments: list[Moment], what: str, since: int = 0) -> list[str]:
    """The different answers in order, each once for a stretch of it."""
    answers = [getattr(moment, what) for moment in moments if moment.at >= since]
    return [answer for i, answer in enumerate(answers) if i == 0 or answer != answers[i - 1]]
