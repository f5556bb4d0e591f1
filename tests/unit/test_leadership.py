"""Of several operators one acts: by the Lease, in virtual time."""

import asyncio

import pytest

from simulation.virtual_time import in_virtual_time
from switchover.answers.errors import Unreachable
from switchover.process.leadership import ASKED_SECONDS, GIVEN_UP_SECONDS, LASTS_SECONDS, Deposed, Leadership


class Api:
    """The Lease as the API server has it: whose it is, and until when it lasts for who looks on. `down` answers nothing."""

    def __init__(self):
        self.holder, self.ends, self.down, self.operators = "", 0.0, set(), []

    async def hold_lease(self, name, holder, seconds):
        assert (name, seconds) == ("switchover", LASTS_SECONDS)
        now = asyncio.get_running_loop().time()
        if holder in self.down:
            raise Unreachable("no answer")
        if self.holder in ("", holder) or now > self.ends:
            self.holder, self.ends = holder, now + seconds
        return self.holder

    async def release_lease(self, name, holder):
        if self.holder == holder:
            self.holder = ""


class Operator:
    """One that writes down when it acts."""

    def __init__(self, api, identity):
        self.leadership = Leadership(api, "switchover", identity)
        self.acted = []
        self.end = asyncio.Event()
        self.task = asyncio.create_task(self.leadership.lead(self._act))
        api.operators.append(self.task)

    async def _act(self):
        while not self.end.is_set():
            self.acted.append(asyncio.get_running_loop().time())
            await asyncio.sleep(0.5)


async def two(api):
    """One that leads, and one that stands by."""
    first = Operator(api, "kafka/one")
    await asyncio.sleep(1)
    return first, Operator(api, "kafka/two")


def lived(story):
    async def life():
        api = Api()
        await story(api)
        for task in api.operators:
            task.cancel()
        await asyncio.gather(*api.operators, return_exceptions=True)

    in_virtual_time(life())


def test_one_acts_and_the_other_stands_by_for_as_long_as_it_is_renewed():
    async def story(api):
        first, other = await two(api)
        await asyncio.sleep(200)
        assert (first.leadership.leads, other.leadership.leads) == (True, False)
        assert first.acted
        assert not other.acted
    lived(story)


def test_where_one_ends_the_other_begins_at_once():
    async def story(api):
        first, other = await two(api)
        await asyncio.sleep(100)
        first.end.set()
        await first.task
        await asyncio.sleep(ASKED_SECONDS + 0.1)
        assert 0 < other.acted[0] - first.acted[-1] <= ASKED_SECONDS + 1
        assert api.holder == "kafka/two"
    lived(story)


def test_where_one_is_killed_the_other_begins_once_its_time_is_over_and_knows_whose_leases_are_its_own():
    async def story(api):
        first, other = await two(api)
        await asyncio.sleep(100)
        assert not other.leadership.before
        api.down.add("kafka/one")
        first.task.cancel()                             # and it says nothing
        await asyncio.sleep(LASTS_SECONDS + ASKED_SECONDS + 0.1)
        assert 0 < other.acted[0] - first.acted[-1] <= LASTS_SECONDS + ASKED_SECONDS + 0.6
        assert other.leadership.before == {"kafka/one"}
    lived(story)


def test_who_cannot_renew_it_ends_before_another_can_begin():
    async def story(api):
        first, other = await two(api)
        await asyncio.sleep(100)
        api.down.add("kafka/one")
        with pytest.raises(Deposed, match=f"could not be renewed for {GIVEN_UP_SECONDS:.0f} s"):
            await first.task
        await asyncio.sleep(60)
        assert other.acted[0] > first.acted[-1]
        assert not first.leadership.leads
    lived(story)


def test_an_answer_that_is_lost_ends_nobody():
    async def story(api):
        first = Operator(api, "kafka/one")
        for _ in range(10):
            await asyncio.sleep(20)
            api.down.add("kafka/one")
            await asyncio.sleep(5)
            api.down.clear()
        assert not first.task.done()
        assert first.leadership.leads
    lived(story)


def test_who_finds_another_in_its_place_ends_at_once():
    async def story(api):
        first = Operator(api, "kafka/one")
        await asyncio.sleep(1)
        api.holder, api.ends = "kafka/two", 1000.0
        with pytest.raises(Deposed, match="kafka/two leads by now"):
            await first.task
        assert first.acted[-1] < 10
    lived(story)


def test_who_is_told_nothing_says_so():
    async def story(api):
        api.down.add("kafka/one")
        first = Operator(api, "kafka/one")
        await asyncio.sleep(10)
        assert first.leadership.silence == "Lease switchover: no answer"
        api.down.clear()
        await asyncio.sleep(ASKED_SECONDS)
        assert first.leadership.silence == ""
        assert first.leadership.leads
    lived(story)


def test_without_a_name_nothing_is_asked():
    async def story(_):
        acted = []

        async def act():
            acted.append(True)

        leadership = Leadership(None, "", "kafka/one")
        await leadership.lead(act)
        assert acted == [True]
        assert leadership.leads
    lived(story)


def test_what_the_work_raises_is_raised_and_the_lease_given_back():
    async def story(api):

        async def fail():
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await Leadership(api, "switchover", "kafka/one").lead(fail)
        assert api.holder == ""
    lived(story)
