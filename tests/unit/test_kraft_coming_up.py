"""How far a node has come is told with the container that it waits for, since when, and when that is too long."""

from collections.abc import Callable

import pytest

from switchover.answers.observed import Known, Unknown
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster.coming_up import USUAL_SECONDS, phase_of
from switchover.cluster.gates.registration import MOVED_BROKER
from switchover.cluster.picture import Picture
from switchover.engine.rollout import Phase
from switchover.engine.windows import utc
from switchover.kafka.node import NOT_LISTENING
from switchover.kubernetes.workloads import Reached, Stage
from unit.kraft_spoilers import answers
from unit.pictures import NOW, moment, spoil_each, spoil_pod, with_fact, workload_of

Change = Callable[[Picture], Picture]
REFUSED = "node 0 at kafka-0:9092: connection refused"


def phase(*changes: Change, assigned: Mode = Mode.MIGRATION) -> Phase | None:
    """Of the first broker, which is being moved."""
    picture = moment("EnableMigration", (assigned, Mode.ZOOKEEPER), Mode.MIGRATION_CONTROLLER, ("kafka-0",))
    for change in changes:
        picture = change(picture)
    return phase_of(picture, "kafka-0", workload_of(picture).pods["kafka-0"])


def pod(stage: Stage, seconds: float | None, **changes: object) -> Change:
    """It has been at this stage for so long."""
    reached = Reached(stage, "" if stage is Stage.PENDING else "kafka", None if seconds is None else NOW - seconds)
    return lambda picture: spoil_pod(picture, "kafka-0", **{"ready": False, "reached": reached, **changes})


def mute(picture: Picture) -> Picture:
    return with_fact(picture, "answers", {**picture.facts.answers, 0: Unknown(REFUSED)})


LOGS = "kubectl --namespace kafka logs kafka-0 --container kafka"
DESCRIBE = "kubectl --namespace kafka describe pod kafka-0"


@pytest.mark.parametrize(("stage", "words", "look"), [
    (Stage.PENDING, "has no node{}", DESCRIBE),
    (Stage.PREPARING, "pulls the image of its container kafka, or mounts its volumes{}", DESCRIBE),
    (Stage.INITIALIZING, "runs its init container kafka{}", LOGS),
    (Stage.RUNNING, f"runs{{}}, but Kafka does not answer ({REFUSED})", LOGS),
])
def test_a_stage_is_told_with_its_time_and_is_too_long_after_the_usual(stage: Stage, words: str, look: str) -> None:
    usual, told = USUAL_SECONDS[stage], f"pod kafka-0 {words}"
    assert phase(mute, pod(stage, usual)) == Phase(told.format(f" since {utc(NOW - usual)}"), False, look)
    late = f"{told.format(f' since {utc(NOW - usual - 1)}')}, longer than the usual {usual:.0f} s"
    assert phase(mute, pod(stage, usual + 1)) == Phase(late, True, look)
    assert phase(mute, pod(stage, None)) == Phase(told.format(""), False, look), "nobody tells since when"


def test_a_container_that_ended_is_trouble_at_once_with_its_last_words() -> None:
    trouble = "container kafka: CrashLoopBackOff; it ended with 1: Error: no such file"
    assert phase(mute, pod(Stage.ENDED, 1, trouble=trouble)) == Phase(
        f"pod kafka-0 starts its container kafka again since {utc(NOW - 1)}: {trouble}", True, f"{LOGS} --previous")


def test_what_the_kubelet_complains_of_is_trouble_at_once() -> None:
    found = phase(mute, pod(Stage.PREPARING, 1, trouble="container kafka: ImagePullBackOff: no such image"))
    assert found is not None
    assert found.in_trouble
    assert found.message.endswith(": container kafka: ImagePullBackOff: no such image")


def test_a_broker_that_listens_in_another_mode_is_told_with_both() -> None:
    found = phase(answers(0, Mode.ZOOKEEPER), pod(Stage.RUNNING, 20, ready=True))
    assert found is not None
    assert found.message == f"pod kafka-0 runs since {utc(NOW - 20)}, but in mode ZooKeeper, not in Migration"


def test_one_that_answers_in_its_mode_and_is_not_ready_is_not_there_yet() -> None:
    found = phase(answers(0, Mode.MIGRATION), pod(Stage.RUNNING, 20))
    assert found is not None
    assert found.message.endswith(" in its mode, but its container kafka is not Ready")


def test_one_that_runs_in_its_mode_is_up_and_its_gates_tell_what_it_lacks() -> None:
    there = moment("EnableMigration", (Mode.MIGRATION, Mode.ZOOKEEPER), Mode.MIGRATION_CONTROLLER, ("kafka-0",))
    assert phase_of(there, "kafka-0", workload_of(there).pods["kafka-0"]) is None
    fenced = with_fact(there, "log", Unknown("no controller leads"))
    assert MOVED_BROKER.check(fenced).reason == "MetadataLogUnknown", "nothing is blamed on a pod that is up"


def test_one_that_ends_is_nobodys_trouble() -> None:
    found = phase(mute, pod(Stage.ENDED, 100, terminating=True, trouble="container kafka ended with 143: Error"))
    assert found == Phase("pod kafka-0 is ending", False, "")


def test_a_controller_that_stands_still_need_not_answer() -> None:
    stopped = spoil_each(moment("ProvisionControllers", Mode.ZOOKEEPER, (Mode.STOPPED, Mode.MIGRATION_CONTROLLER)),
                         "answers", lambda _: NOT_LISTENING, 3000)
    kubernetes = stopped.facts.kubernetes
    assert isinstance(kubernetes, Known)
    assert kubernetes.value.controllers is not None
    assert phase_of(stopped, "kafka-controller-0", kubernetes.value.controllers.pods["kafka-controller-0"]) is None
