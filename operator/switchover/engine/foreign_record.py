"""A status that was written for another object, as a restore brings it: it is the record of that one and not of this."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from switchover.api.status import Transition
from switchover.engine.approvals import PREFLIGHT
from switchover.reasons.walk import RECORD_OF_ANOTHER


def without_foreign_record(migration: Mapping[str, Any], now: float) -> tuple[Mapping[str, Any], str]:
    """The object, and "". Where its status is another object's: with that told in place of it, and the words.

    What the other one has made or claimed in the cluster is found by Preflight like anything else that is in the way.
    """
    found, uid = migration.get("status"), migration["metadata"]["uid"]
    status: Mapping[str, Any] = found if isinstance(found, dict) else {}
    written_for = status.get("uid")
    if not isinstance(written_for, str) or written_for in ("", uid):
        return migration, ""
    progress = status.get("progress")
    step = str(progress.get("step", ""))[:63] if isinstance(progress, dict) else ""
    told = (f"the status was written for the object with uid {written_for[:128]}, which stood at {step or 'no step'}"
            f" (attempt {str(status.get('attempt', 1))[:9]}): it is not believed of this one, and nothing in it is approved")
    move = Transition(
        time=datetime.fromtimestamp(now, UTC), from_=step, to=PREFLIGHT, reason=RECORD_OF_ANOTHER.name, message=told)
    return {**migration, "status": {"history": [move.manifest()]}}, told
