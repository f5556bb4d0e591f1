"""Which containers ended by themselves, as a failed demo or story tells it."""

from typing import Any

from demo.diagnostics import endings

KILLED = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-11-23T01:02:03Z"}}
DONE = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": "2026-11-23T01:02:03Z"}}


def pod(restarts: int, **states: Any) -> dict[str, Any]:
    statuses = [{"name": "kafka", "restartCount": restarts, **states}]
    return {"metadata": {"name": "kafka-0"}, "status": {"containerStatuses": statuses}}


def test_a_container_that_came_back_is_told_with_its_end() -> None:
    assert list(endings(pod(1, lastState=KILLED, state={"running": {}}))) == [
        "kafka-0: container kafka ended with 137 (OOMKilled) at 2026-11-23T01:02:03Z; restarts: 1"]


def test_so_is_one_that_is_down_and_one_that_ended_well_but_was_not_to_end() -> None:
    assert len(list(endings(pod(0, state=KILLED)))) == 1
    assert len(list(endings(pod(1, lastState=DONE, state={"running": {}})))) == 1


def test_a_job_that_is_through_and_a_pod_that_waits_are_no_news() -> None:
    assert list(endings(pod(0, state=DONE))) == []
    assert list(endings(pod(0, state={"waiting": {"reason": "ContainerCreating"}}))) == []
    assert list(endings({"metadata": {"name": "kafka-0"}, "status": {}})) == []
