"""A Lease is renewed behind the passes, and asked for in one only when it is due."""

import asyncio

from simulation.virtual_time import Timeline, VirtualLoop
from switchover.answers.errors import Unreachable
from switchover.engine.leases import Leases
from switchover.kubernetes.lease import ACTING_SECONDS, LEFT_SECONDS, LOOKING_SECONDS, shares


class Api:
    """The Lease as the API server has it; `down` answers nothing. `seen` is whose it is by a watch."""

    def __init__(self, timeline):
        self.timeline, self.holder, self.down = timeline, "", False
        self.asked, self.released, self.seen = [], [], None

    async def hold_lease(self, name, holder, seconds):
        self.asked.append((round(asyncio.get_running_loop().time()), seconds))
        if self.down:
            raise Unreachable("no answer")
        self.holder = self.holder or holder
        return self.holder

    async def holds_lease(self, name, holder, seconds):
        return holder == self.seen

    async def release_lease(self, name, holder):
        self.released.append((name, holder))


def told(story):
    loop, timeline = VirtualLoop(), Timeline()
    timeline.begin(loop)
    api = Api(timeline)
    try:
        loop.run_until_complete(story(Leases(api, api, timeline), api))
    finally:
        loop.close()


def test_it_is_renewed_without_a_pass_until_it_is_given_back():
    async def story(leases, api):
        assert await leases.hold("lease", "u/one", acting=True) == "u/one"
        await asyncio.sleep(35)
        assert api.asked == [(each, ACTING_SECONDS) for each in (0, 10, 20, 30)]
        assert await leases.hold("lease", "u/one", acting=True) == "u/one"
        assert len(api.asked) == 4, "the pass rests on what was renewed moments ago"
        await leases.release("lease", "u/one")
        await asyncio.sleep(60)
        assert len(api.asked) == 4
        assert api.released == [("lease", "u/one")]
    told(story)


def test_what_only_looks_asks_seldom_and_renews_nothing_by_itself():
    async def story(leases, api):
        for _ in range(40):
            assert await leases.hold("lease", "u/one", acting=False) == "u/one"
            await asyncio.sleep(30)
        assert [seconds for _, seconds in api.asked] == [LOOKING_SECONDS] * 3
        assert await leases.hold("lease", "u/one", acting=True) == "u/one"
        assert api.asked[-1] == (1200, ACTING_SECONDS), "to act it is asked for at once, and for a short time"
        leases.drop_all("u/one")
    told(story)


def test_who_looks_believes_the_watch_that_it_is_its_own_and_nothing_else():
    async def story(leases, api):
        api.seen = "u/one"
        assert await leases.hold("lease", "u/one", acting=False) == "u/one"
        assert api.asked == []
        assert await leases.hold("lease", "u/one", acting=True) == "u/one"
        assert api.asked == [(0, ACTING_SECONDS)], "to act it is asked for"
        leases.drop_all("u/one")
        api.seen, api.holder = "v/two", ""
        assert await leases.hold("lease", "u/one", acting=False) == "u/one"
        assert api.asked[1:] == [(0, LOOKING_SECONDS)], "a watch may be late about others: the API server says whose it is"
    told(story)


def test_one_that_is_lost_is_not_believed_to_be_ours():
    async def story(leases, api):
        await leases.hold("lease", "u/one", acting=True)
        api.holder = "v/two"
        await asyncio.sleep(11)
        assert await leases.hold("lease", "u/one", acting=True) == "v/two"
        await asyncio.sleep(60)
        assert len(api.asked) == 3, "and nobody tries to renew it"
    told(story)


def test_one_that_nobody_renews_is_asked_for_in_the_pass():
    async def story(leases, api):
        await leases.hold("lease", "u/one", acting=True)
        api.down = True
        await asyncio.sleep(14)
        assert await leases.hold("lease", "u/one", acting=True) == "u/one"
        await asyncio.sleep(2)
        try:
            await leases.hold("lease", "u/one", acting=True)
        except Unreachable:
            pass
        else:
            raise AssertionError("half of its time is over: nothing may rest on it")
        leases.drop_all("u/one")
    told(story)


def test_who_ends_leaves_what_acts_to_the_next_and_renews_nothing_more():
    async def story(leases, api):
        await leases.hold("lease", "u/one", acting=True)
        await leases.hold("other", "v/one", acting=False)
        await asyncio.sleep(12)
        await leases.leave()
        assert api.asked[-1] == (12, LEFT_SECONDS), "the one that acts; the other lets anybody in as it is"
        asked = len(api.asked)
        await asyncio.sleep(120)
        assert len(api.asked) == asked
        assert not api.released, "another migration must not take it meanwhile"
    told(story)


def test_an_api_server_that_is_silent_holds_no_end_up():
    async def story(leases, api):
        await leases.hold("lease", "u/one", acting=True)
        api.down = True
        await leases.leave()
        assert api.asked[-1] == (0, LEFT_SECONDS)
    told(story)


def test_only_who_looks_or_has_left_lets_another_operator_of_the_same_migration_in():
    assert shares("u/one", "u/two", LEFT_SECONDS)
    assert not shares("u/one", "v/two", LEFT_SECONDS)
    assert shares("u/ns/one", "u/ns/two", ACTING_SECONDS, {"ns/two"}), "it led before, and acts no more"
    assert not shares("u/ns/one", "v/ns/two", ACTING_SECONDS, {"ns/two"})
    assert not shares("u/ns/one", "u/ns/three", ACTING_SECONDS, {"ns/two"})
    assert shares("u/one", "u/two", LOOKING_SECONDS)
    assert not shares("u/one", "u/two", ACTING_SECONDS)
    assert not shares("u/one", "v/two", LOOKING_SECONDS)
