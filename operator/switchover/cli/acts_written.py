"""The acts of a person, done: read, shown, confirmed, written; and read again where somebody was faster."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from switchover.answers.errors import Fenced, Refused
from switchover.cli import acts
from switchover.cli.acts import Act, Approval
from switchover.cli.command import Place
from switchover.cli.kube import connected
from switchover.cli.objects import Found, again, find, path
from switchover.cli.operators import warnings
from switchover.kubernetes.client.api_server import ApiServer, Conflict, NotFound

TRIES = 10
"""The operator writes its status at any moment; two people at once are rare."""
MANAGER = "switchover-cli"
"""The field manager of what a person has written."""

Confirm = Callable[[Iterable[str]], None]
"""Shows what will be done, and raises where the person does not want it."""


async def approve(place: Place, name: str, step: str, reason: str, approver: str, manager: str, confirm: Confirm) -> str:
    """Approve a step of the plan that is on record now, in addition to what was approved before. Returns what was done."""
    async with connected(place) as server:
        found = await find(server, name)
        hashed = acts.plan_to_approve(found, step)
        approval = Approval(step, approver or await who_am_i(server), reason, hashed)
        if by := acts.approved_by(found, approval):
            return f"{step} of {found.name} was approved by {by} already"
        confirm([*acts.approval_lines(found, approval), *await warnings(server, found)])

        async def write(found: Found) -> str:
            if by := acts.approved_by(found, approval):
                return f"{step} of {found.name} was approved by {by} at the same moment"
            await server.json_patch(path(server, found), acts.approval_patch(found.resource, approval), manager=manager)
            return f"{step} of {found.name} is approved"

        def look_again(found: Found) -> None:
            if acts.plan_to_approve(found, step) != hashed:
                raise Refused(f"the plan of {found.name} has changed since it was shown: look again")

        return await _written(server, found, write, look_again)


async def act(place: Place, name: str, what: Act, confirm: Confirm) -> str:
    """Pause, resume, roll back, retry or abandon. Returns what was done."""
    async with connected(place) as server:
        found = await find(server, name)
        acts.refuse(found, what)
        confirm([*acts.lines(found, what), *await warnings(server, found, what)])

        async def write(found: Found) -> str:
            await _write(server, found, what)
            return f"{found.name} {acts.done(found, what)}"

        return await _written(server, found, write, lambda found: acts.refuse(found, what))


async def who_am_i(server: ApiServer) -> str:
    """The name by which the API server knows us. Refused where it has no such question (before Kubernetes 1.28)."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = await server.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    except NotFound:
        raise Refused("this API server does not say who you are: name yourself with --approver") from None
    return str(answer["status"]["userInfo"]["username"])


async def _write(server: ApiServer, found: Found, what: Act) -> None:
    where = path(server, found)
    if what is not Act.ABANDON:
        patch = acts.retry_patch(found.resource) if what is Act.RETRY else acts.desired_patch(found.resource, what)
        await server.json_patch(where, patch, manager=MANAGER)
        return
    await server.json_patch(where, acts.abandon_patch(found.resource), manager=MANAGER)
    await server.request("DELETE", where, {"preconditions": {"uid": found.resource["metadata"]["uid"]}})


async def _written(server: ApiServer, found: Found, write: Callable[[Found], Awaitable[str]],
                   look_again: Callable[[Found], None]) -> str:
    """What `write` says, done again on the object as it is by then while somebody is faster; `look_again` may refuse it."""
    for _ in range(TRIES):
        try:
            return await write(found)
        except (Fenced, Conflict):
            found = await _as_it_is(server, found)
            look_again(found)
    raise Refused(f"{found.name} was changed {TRIES} times while it was written to; try again")


async def _as_it_is(server: ApiServer, found: Found) -> Found:
    await asyncio.sleep(0.1)
    now = await again(server, found)
    if now is None:
        raise Refused(f"{found.name} is gone")
    return now
