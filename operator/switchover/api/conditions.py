"""The conditions of both resources, clean for kstatus: a tool that waits for a resource reads nothing else.

kstatus takes `Reconciling` True as "in progress" and `Stalled` True as "failed", so the two are never True together;
`observedGeneration` below the object's generation also means "in progress" (hence the CRD's default of -1).
"""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from switchover.api.schema import Clipped, Model, Time, Unique


class ConditionType(StrEnum):
    """Every condition that a migration can carry."""

    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    SUCCEEDED = "Succeeded"
    PAUSED = "Paused"
    AWAITING_APPROVAL = "AwaitingApproval"
    ROLLBACK_AVAILABLE = "RollbackAvailable"
    PREFLIGHT_PASSED = "PreflightPassed"
    ZOOKEEPER_REMOVABLE = "ZooKeeperRemovable"


class ConditionStatus(StrEnum):
    """Kubernetes' three values of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


SENTENCE = Clipped(2048)
"""A sentence for people."""


class Condition(Model):
    """One condition, with the fields of Kubernetes' `metav1.Condition`."""

    type: Annotated[str, Field(min_length=1, max_length=64)]
    """Which condition."""
    status: ConditionStatus
    """True, False or Unknown."""
    reason: Annotated[str, Field(min_length=1), Clipped(128)]
    """CamelCase word: why."""
    message: Annotated[str, SENTENCE] = ""
    """A sentence for people."""
    last_transition_time: Time
    """When `status` last changed."""
    observed_generation: Annotated[int, Field(ge=-1, le=2**53)] = -1
    """The generation of the spec that this speaks of."""


MOST = 16
Conditions = Annotated[tuple[Condition, ...], Field(max_length=MOST), Unique("type")]

_OPPOSITE = {ConditionType.RECONCILING: ConditionType.STALLED, ConditionType.STALLED: ConditionType.RECONCILING}


def find_condition(conditions: Iterable[Condition], type: ConditionType) -> Condition | None:
    """The condition of that type, None when there is none."""
    return next((condition for condition in conditions if condition.type == type), None)


def set_condition(
    conditions: Iterable[Condition],
    type: ConditionType,
    status: ConditionStatus | bool,
    reason: str,
    message: str,
    now: datetime,
    generation: int,
) -> tuple[Condition, ...]:
    """`conditions` with this one set, in the same order; a new one goes to the end.

    `lastTransitionTime` stays when `status` stays. Setting Reconciling or Stalled to True turns the other one, where it
    is True, to False: a migration is never both.
    """
    if isinstance(status, bool):
        status = ConditionStatus.TRUE if status else ConditionStatus.FALSE
    before = tuple(conditions)
    old = find_condition(before, type)
    new = Condition(
        type=type.value,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=old.last_transition_time if old is not None and old.status == status else now,
        observed_generation=generation,
    )
    if old is None and len(before) >= MOST:                # what another release wrote makes room
        foreign = next((item for item in before if item.type not in set(ConditionType)), before[0])
        before = tuple(item for item in before if item is not foreign)
    after = (*before, new) if old is None else tuple(new if item is old else item for item in before)
    opposite = _OPPOSITE.get(type)
    if opposite is None or status is not ConditionStatus.TRUE:
        return after
    other = find_condition(after, opposite)
    if other is None or other.status is not ConditionStatus.TRUE:
        return after
    return set_condition(after, opposite, False, reason, f"{type.value}: {message}", now, generation)
