"""A node that waits for an answer that it will never get is restarted as the runbook has it, and nothing else is."""

from typing import Any

import pytest

from demo.lost_answer import Cure


class Pods:
    """A cluster of three brokers that notes what is deleted."""

    def __init__(self, ready: str = "True") -> None:
        self.ready, self.deleted = ready, list[str]()

    def items(self, *_: str) -> list[dict[str, Any]]:
        return [{"status": {"conditions": [{"type": "Ready", "status": self.ready}]}}] * 3

    def kubectl(self, *words: str) -> None:
        self.deleted.append(words[2])


class Over:
    over = True


def told(cure: Cure, *items: dict[str, str]) -> str | None:
    return cure({"status": {"waitingFor": [{"reason": "Baking"}, *items], "nodes": NODES}})


NODES = [{"name": name, "nodeId": node_id} for name, node_id in (
    ("kafka-0", 100), ("kafka-1", 101), ("kafka-controller-2", 3002))]


OUT_OF_SYNC = {"reason": "OutOfSync", "observed": "9 partitions, leaders 101, 102"}
NOT_READY = {"reason": "ControllerNotReady", "subject": "controller 3002"}


@pytest.mark.parametrize(("item", "pod"), [(OUT_OF_SYNC, "kafka-1"), (NOT_READY, "kafka-controller-2")])
def test_the_first_that_is_named_is_restarted_once_its_time_is_over(item: dict[str, str], pod: str) -> None:
    pods = Pods()
    cure = Cure(pods)  # type: ignore[arg-type]
    assert told(cure, item) is None
    cure._patience = Over()  # type: ignore[assignment]
    assert f"{pod} waits" in (told(cure, item) or "")
    assert pods.deleted == cure.restarted == [pod]
    assert told(cure, item) is None, "it has its time again"


@pytest.mark.parametrize("item", [
    {"reason": "OutOfSync", "observed": "1 partitions, leaders none"}, {"reason": "ControllerNotReady", "subject": "quorum"},
    {"reason": "OutOfSync"}, {"reason": "QuorumUnknown", "subject": "controller 3000"}])
def test_nothing_else_is_touched(item: dict[str, str]) -> None:
    cure = Cure(Pods())  # type: ignore[arg-type]
    told(cure, item)
    cure._patience = Over()  # type: ignore[assignment]
    assert told(cure, item) is None
    assert cure.restarted == []


def test_while_a_broker_is_not_ready_it_may_only_be_late() -> None:
    cure = Cure(Pods(ready="False"))  # type: ignore[arg-type]
    told(cure, NOT_READY)
    cure._patience = Over()  # type: ignore[assignment]
    assert told(cure, NOT_READY) is None


def test_another_culprit_has_time_of_its_own() -> None:
    cure = Cure(Pods())  # type: ignore[arg-type]
    told(cure, OUT_OF_SYNC)
    cure._patience = Over()  # type: ignore[assignment]
    assert told(cure, NOT_READY) is None
