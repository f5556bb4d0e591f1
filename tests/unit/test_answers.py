"""What many ask alike is asked once: answers, rights, clusters."""

import asyncio
import gc
from functools import partial
from typing import Any, cast

import pytest

from simulation.virtual_time import in_virtual_time
from switchover.answers.ask import PATIENCE_SECONDS, Answers
from switchover.answers.errors import Refused, Unreachable
from switchover.answers.observed import Known, Unknown
from switchover.kafka.client.shared_groups import SharedGroups
from switchover.kafka.ports import Groups
from switchover.kubernetes.client.api_server import ApiServer
from switchover.kubernetes.client.survey import GRANTED_SECONDS, REFUSED_SECONDS, KubernetesSurvey
from switchover.network.credentials import Access
from switchover.process.connections import Clusters


class Asked:
    """Answers after so many seconds, with how often it was asked; `error` instead, while there is one."""

    def __init__(self):
        self.times, self.error, self.seconds = 0, None, 1

    async def __call__(self):
        self.times += 1
        await asyncio.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        return self.times


def test_one_question_answers_all_who_wait_and_is_good_for_a_while():
    async def run():
        asked, shared = Asked(), Answers()
        assert await asyncio.gather(*(shared.get("k", asked, 10) for _ in range(100))) == [Known(1, 0.0)] * 100
        await asyncio.sleep(8)
        assert (await shared.get("k", asked, 10)).value == 1
        assert (await shared.get("k", asked, 5)).value == 2, "who wants it newer asks, and so for all"
        assert (await shared.get("other", asked, 10)).value == 3
        assert (await shared.get("k", asked, 0)).value == 4
    in_virtual_time(run())


def test_an_error_is_told_to_all_and_not_kept():
    async def run():
        asked, shared = Asked(), Answers()
        asked.error = Unreachable("no answer")
        found = await asyncio.gather(*(shared.get("k", asked, 10) for _ in range(5)), return_exceptions=True)
        assert found == [asked.error] * 5
        assert asked.times == 1
        asked.error = None
        assert (await shared.get("k", asked, 10)).value == 2
    in_virtual_time(run())


def test_a_slow_answer_is_not_waited_for_by_who_has_an_older_one_until_that_is_too_old():
    async def run():
        loop, asked, shared = asyncio.get_running_loop(), Asked(), Answers()
        assert (await shared.get("k", asked, 10, at_most=60)).value == 1
        asked.seconds = 100
        for age in (12, 30, 58):
            await asyncio.sleep(age - loop.time())
            began = loop.time()
            assert await asyncio.gather(*(shared.get("k", asked, 10, at_most=60) for _ in range(20))) == [Known(1, 0.0)] * 20
            assert loop.time() - began == pytest.approx(PATIENCE_SECONDS)
        assert asked.times == 2, "there is one question all the time"
        await asyncio.sleep(3)
        asked.error = Unreachable("no answer")
        with pytest.raises(Unreachable):
            await shared.get("k", asked, 10, at_most=60)
        assert loop.time() == pytest.approx(112), "it was waited for then"
    in_virtual_time(run())


def test_one_who_gives_up_ends_no_question_of_others():
    async def run():
        asked, shared = Asked(), Answers()
        hasty = asyncio.create_task(shared.get("k", asked, 10))
        await asyncio.sleep(0.1)
        patient = asyncio.create_task(shared.get("k", asked, 10))
        hasty.cancel()
        assert (await patient).value == 1
        [task] = [asyncio.create_task(shared.get("l", asked, 10))]
        await asyncio.sleep(0.1)
        shared._asking["l"][1].cancel()                    # as Kopf does with every task, when a watch ends
        with pytest.raises(Unreachable):
            await task
        assert (await shared.get("l", asked, 10)).value == 3
    in_virtual_time(run())


def test_another_thing_is_asked_for_at_once_and_what_was_asked_of_the_old_one_is_not_kept():
    async def run():
        asked, shared = Asked(), Answers()
        old = asyncio.create_task(shared.get("k", asked, 10, made_of=["a"]))
        await asyncio.sleep(0.5)
        assert (await shared.get("k", asked, 10, made_of=["b"])).value == 2
        assert (await old).value == 2, "its own asking, which ended while the other one went on"
        assert (await shared.get("k", asked, 10, made_of=["b"]), asked.times) == (Known(2, 0.5), 2)
        assert (await shared.get("k", asked, 10, made_of=["a"])).value == 3
    in_virtual_time(run())


def test_what_is_observed_is_unknown_after_an_error_and_asked_for_again():
    async def run():
        asked, shared = Asked(), Answers()
        asked.error = Refused("not yours")
        assert await shared.observed("k", asked, 10) == Unknown("not yours", refused=True)
        asked.error = None
        assert await shared.observed("k", asked, 10) == Known(2, 1.0)
        assert await shared.observed("slow", partial(asyncio.sleep, 13), 10) == Unknown("no answer within 12 s")
        assert not shared._asking, "a question that nobody answers is asked again"
    in_virtual_time(run())


class Authorizer(ApiServer):
    """Grants what `granted` says, and counts."""

    def __init__(self) -> None:
        self.namespace, self.granted, self.asked = "kafka", True, 0

    async def request(self, method: str, path: str, body: Any = None, **parameters: Any) -> dict[str, Any]:
        self.asked += 1
        return {"status": {"allowed": self.granted}}


def test_rights_are_asked_for_once_and_again_soon_where_one_is_missing():
    async def run():
        server = Authorizer()
        survey = KubernetesSurvey(server, {("apps", "deployments"): ("get", "patch")})
        await asyncio.gather(*(survey.missing_rights([]) for _ in range(100)))
        await asyncio.sleep(GRANTED_SECONDS - 1)
        assert (await survey.missing_rights([]), server.asked) == ((), 2)
        server.granted = False
        await asyncio.sleep(2)
        missing = ("get deployments.apps", "patch deployments.apps")
        assert (await survey.missing_rights([]), server.asked) == (missing, 4)
        assert (await survey.missing_rights([]), server.asked) == (missing, 4)
        server.granted = True
        await asyncio.sleep(REFUSED_SECONDS)
        assert (await survey.missing_rights([]), server.asked) == ((), 6)
    in_virtual_time(run())


class Cluster:
    """Answers every question with how often it was asked."""

    def __init__(self, _: Access) -> None:
        self.times = 0

    async def coordinated(self) -> dict[int, int]:
        self.times += 1
        return {1: self.times}


def test_migrations_of_one_cluster_and_one_user_share_it_and_no_other_does():
    async def run():
        clusters = Clusters(lambda access: SharedGroups(cast(Groups, Cluster(access))))
        one, two = (clusters.of(Access("kafka:9092", {"user": "a"})) for _ in range(2))
        assert one is two
        assert clusters.of(Access("kafka:9092", {"user": "b"})) is not one
        assert [await each.coordinated() for each in (one, two)] == [{1: 1}] * 2
        await asyncio.sleep(60)
        assert await two.coordinated() == {1: 2}
        del one, two
        gc.collect()
        assert await clusters.of(Access("kafka:9092", {"user": "a"})).coordinated() == {1: 1}, "nobody held it"
    in_virtual_time(run())
