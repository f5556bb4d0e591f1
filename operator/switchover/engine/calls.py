"""What calls for people: the Events of a pass, from the status before it and the one that it has put on record."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

from switchover.api.conditions import Condition, ConditionStatus, ConditionType, find_condition
from switchover.api.status import MigrationStatus, MoveKind, Phase, Severity
from switchover.engine.figures import Figure
from switchover.engine.status import by_itself
from switchover.reasons.reason import Reason
from switchover.reasons.walk import APPROVAL_VOID
from switchover.reasons.workloads import REVERTED_BY_GITOPS

BLOCKERS_CALLED = 10
"""Of the Blockers found in one pass; `status.findings` has all."""


class News(StrEnum):
    """What a person wants to know wherever they are, and not only where they look at Events."""

    STALLED = "Stalled"
    ROLLING_BACK = "RollingBack"
    HELD = "AwaitingApproval"
    SUCCEEDED = "Succeeded"
    ROLLED_BACK = "RolledBack"


@dataclass(frozen=True, slots=True)
class Call:
    """One Event. With the same `reason` and `about` it is the same call again, whatever figures its message has. `news` is
    None where it is for who looks at Events alone."""

    reason: str
    about: str
    message: str
    warning: bool
    news: News | None = None


def calls_of(before: MigrationStatus, after: MigrationStatus) -> tuple[Call, ...]:
    """What is new in `after`: what stalls it, an automatic rollback, Blockers, void approvals, drift, a hold that was
    reached, an end."""
    return tuple(_calls(before, after))


def stopped(reason: Reason, why: str) -> Call:
    """No pass could come to a decision, which stalls the migration."""
    return Call(reason.name, reason.name, why, warning=True, news=News.STALLED)


def _calls(before: MigrationStatus, after: MigrationStatus) -> Iterator[Call]:
    was, stalled = _true(before, ConditionType.STALLED), _true(after, ConditionType.STALLED)
    if stalled is not None and (was is None or was.reason != stalled.reason):
        yield Call("Stalled", stalled.reason, f"{stalled.reason}: {stalled.message}", warning=True, news=News.STALLED)
    if after.rollback.failure and not before.rollback.failure:
        yield Call(MoveKind.AUTOMATIC_ROLLBACK, after.rollback.failure, by_itself(after.rollback), warning=True,
                   news=News.ROLLING_BACK)
    known = {(item.code, item.subject) for item in before.findings}
    found = [item for item in after.findings
             if item.severity is Severity.BLOCKER and (item.code, item.subject) not in known]
    for item in found[:BLOCKERS_CALLED]:
        yield Call(item.code, item.subject, f"{item.message}; {item.cure}" if item.cure else item.message, warning=True)
    waited = {(each.reason, each.subject) for each in before.waiting_for}
    for each in after.waiting_for:
        if each.reason in (APPROVAL_VOID.name, REVERTED_BY_GITOPS.name) and (each.reason, each.subject) not in waited:
            yield Call(each.reason, each.subject, f"{each.message}; {each.unblocks}", warning=True)
    held, step = _true(after, ConditionType.AWAITING_APPROVAL), after.progress.step
    if held is not None and (_true(before, ConditionType.AWAITING_APPROVAL) is None or before.progress.step != step):
        yield Call("AwaitingApproval", step, f"{step} waits for an approval of plan {after.plan_hash}", warning=False,
                   news=News.HELD)
    ready = _true(after, ConditionType.READY)
    if after.phase is not before.phase and after.phase in (Phase.SUCCEEDED, Phase.ROLLED_BACK) and ready is not None:
        yield Call(after.phase.value, str(after.attempt), ready.message, warning=False, news=News(after.phase.value))


def _true(status: MigrationStatus, kind: ConditionType) -> Condition | None:
    found = find_condition(status.conditions, kind)
    return found if found is not None and found.status is ConditionStatus.TRUE else None


# --- who calls people and who gets figures ------------------------------------------------------------------------------


T = TypeVar("T")


class TooMuchWork(Exception):
    """It took more processor time than one object may; the message says where it was ended."""


class Worker(Protocol):
    """Works something out, within a deadline for each object: pure work, which may be ended and begun again."""

    async def __call__(self, uid: str, work: Callable[[], T], /) -> T:
        """What `work` returns or raises. Raises TooMuchWork."""
        ...


async def at_once(_: str, work: Callable[[], T]) -> T:
    """Without a deadline."""
    return work()


class Telemetry(Protocol):
    """Figures for whoever watches from outside."""

    def update(self, name: str, uid: str, figures: Sequence[Figure], waits: Mapping[str, float]) -> None:
        """The figures of a migration after a pass, and the seconds that each gate has made it wait since the last."""
        ...


Undelivered = Callable[[str], Awaitable[None]]
"""Gets why a message was not taken, which holds no secret. Never raises."""


class Notify(Protocol):
    """Somebody outside who wants news of the migrations of one kind in one namespace."""

    def __call__(self, name: str, uid: str, call: Call, undelivered: Undelivered) -> None:
        """Send the call if it is news. Never raises, and never waits for the receiver."""
        ...
