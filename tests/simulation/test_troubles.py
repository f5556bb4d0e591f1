"""Sieve's kinds of trouble at each write of each road: the process dies after it; it lives on without the answer; it stands
still before it while another takes over. The end is that of the road without trouble.

One run meets its trouble again and again, each time at a write that no run before it met it at, and is well for a while in
between. "Not sent" is the moment after the write before; a process that dies cannot tell "applied" from "answered".
"""

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import samples
from fakes.api_server import NAMESPACE
from invariants.any_migration import differences
from simulation.operated import OperatedWorld
from simulation.roads import ROADS, Road
from tales import without_nonce

CALM, STANDS, LIMIT = 5.0, 90.0, 20_000.0
"""Seconds: from one trouble to the next; how long a process stands still, which is longer than its Lease lasts; a run."""
RUNS = 24
"""Of each road with each trouble, at most."""
ENOUGH = {"dies": 1.0, "loses its answer": 1.0, "stands still": 0.9}
"""The share of a road's writes that are met. Of two operators some come in no order that chance finds soon."""

Write = tuple[object, ...]
"""A write of a road: where the migration stood, and what was written."""


def place(world: OperatedWorld) -> Write:
    """Where the migration stands, by what is on record and comes at each road."""
    progress = world.status.get("progress") or {}
    evicting = [node["name"] for node in world.status.get("nodes") or () if node.get("evicting")]
    has = [key for key in ("openTime", "bakeStartTime", "completeTime") if progress.get(key)]
    return progress.get("step"), progress.get("batch"), *has, *evicting


class Strikes:
    """Where the troubles of one run come: at some of the writes that are not `met` yet, which are added to it."""

    def __init__(self, world: OperatedWorld, met: set[Write], seed: int) -> None:
        self._world, self._met, self._random = world, met, random.Random(seed)
        self._share = 0.5 if seed % RUNS < RUNS // 2 else 1.0
        self._well_from = 0.0

    def at_number(self, number: int) -> bool:
        """A write that has been made."""
        text = without_nonce(self._world.api.writes[number - 1].text)
        return self._strikes("POST events" if text.startswith("POST events") else text)

    def before(self, method: str, path: str) -> float:
        """A request; for how many seconds to stand still."""
        rest = path.partition(f"/namespaces/{NAMESPACE}/")[2].replace("/", " ") or path
        return STANDS if method != "GET" and self._strikes(f"{method} {without_nonce(rest)}", STANDS) else 0.0

    def _strikes(self, what: str, lasts: float = 0.0) -> bool:
        write, now = (*place(self._world), what), self._world.timeline.now()
        if write in self._met or now < self._well_from or self._random.random() > self._share:
            return False
        self._met.add(write)
        self._well_from = now + lasts + CALM
        return True


def dies(road: Road, world: OperatedWorld, strikes: Strikes) -> None:
    """Right after a write; the next process begins a few seconds later."""
    while not road.go(world, kill_when=lambda: strikes.at_number(len(world.api.writes)), limit=LIMIT):
        assert world.lives < 200, f"no end in sight: {world.step}"


def loses_its_answer(road: Road, world: OperatedWorld, strikes: Strikes) -> None:
    """It was done, and the process cannot know: a status is written again."""
    world.jury.memory.limits.heartbeat = 0.0
    assert road.go(world, loses=strikes.at_number, limit=LIMIT)


def stands_still(road: Road, world: OperatedWorld, strikes: Strikes) -> None:
    """Another takes over; then it goes on with what it was about to do, and may be the one that takes over next. Each makes
    a step longer."""
    world.jury.memory.limits.records_a_step = 1000
    assert road.go(world, identities=("one", "another"), stopped_before=strikes.before, limit=LIMIT)


TROUBLES = {"dies": dies, "loses its answer": loses_its_answer, "stands still": stands_still}


class Every(Strikes):
    """Notes each write, and strikes at none."""

    def _strikes(self, what: str, lasts: float = 0.0) -> bool:
        self._met.add((*place(self._world), what))
        return False


@cache
def undisturbed(name: str) -> tuple[Any, frozenset[Write], frozenset[Write]]:
    """The end of a road, its writes, and what was asked for to make them."""
    with pytest.MonkeyPatch.context() as patch:
        world, made, asked = ROADS[name].begin(patch), set[Write](), set[Write]()
        assert ROADS[name].go(world, loses=Every(world, made, 0).at_number, stopped_before=Every(world, asked, 0).before)
        return world.end_state(), frozenset(made), frozenset(asked)


def meet(name: str, trouble: str, seed: int, met: set[Write]) -> None:
    """One run of a road with such troubles."""
    with pytest.MonkeyPatch.context() as patch:
        world = ROADS[name].begin(patch)
        TROUBLES[trouble](ROADS[name], world, Strikes(world, met, seed))
        assert differences(world.end_state(), undisturbed(name)[0]) == []


def test_some_troubles_on_some_roads(counted: Callable[[str], None]) -> None:
    met = set[Write]()
    cases = [(name, trouble, samples.SAMPLE, met) for name in ROADS for trouble in TROUBLES]
    samples.each(3, cases, "roads with troubles", meet, counted)
    assert len(met) > 10


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("name", ROADS)
def test_each_trouble_at_each_write(counted: Callable[[str], None], name: str, trouble: str) -> None:
    met, runs = set[Write](), 0
    _, made, asked = undisturbed(name)
    wanted = asked if trouble == "stands still" else made
    while len(met & wanted) < ENOUGH[trouble] * len(wanted) and runs < RUNS:
        meet(name, trouble, runs, met)
        runs += 1
    counted(f"{len(met & wanted)} of {len(wanted)} writes, {runs} runs")
    assert len(met & wanted) >= ENOUGH[trouble] * len(wanted), sorted(map(str, wanted - met))


@pytest.mark.parametrize("name", ["forward", "back from Soak"])
def test_no_process_outlives_its_first_move(
        monkeypatch: pytest.MonkeyPatch, counted: Callable[[str], None], name: str) -> None:
    """An effect, or a new position on record."""
    world = ROADS[name].begin(monkeypatch)
    world.jury.memory.limits.without_controller = 300.0
    lives, moves = world.lives, world.moves
    while not ROADS[name].go(world, kill_when=lambda: world.moves - moves >= world.lives - lives):
        assert world.lives < 1000, f"no end in sight: {world.step}"
    assert differences(world.end_state(), undisturbed(name)[0]) == []
    counted(f"{world.lives} lives, {len(world.api.writes)} writes")
