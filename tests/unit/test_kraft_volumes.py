"""Volumes on record: an incident stays on record until the node has caught up, and the history tells both."""

from dataclasses import replace

from fakes.views import changed
from switchover.answers.observed import Unknown
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster.gates.disks import CAUGHT_UP_SECONDS, check_volumes_kept, volumes_on_record
from switchover.cluster.picture import Picture
from switchover.cluster.plan import PLAN
from switchover.cluster.status import next_status
from switchover.engine.plan import decide
from switchover.engine.status import Spent
from switchover.kubernetes.workloads import Pod
from unit.pictures import ACTIVE, NOW, migration, moment, spoil, spoil_each, spoil_pod, value, with_fact
from unit.small_plan import intent

ANOTHER = ("data-kafka-1/2",)


def moving(step: str = "MoveBrokers") -> Picture:
    return moment(step, (Mode.KRAFT, Mode.MIGRATION), Mode.MIGRATION_CONTROLLER, (), ACTIVE)


def replaced(age: float = 1000.0, step: str = "MoveBrokers") -> Picture:
    return spoil_pod(moving(step), "kafka-1", volumes=ANOTHER, started_at=NOW - age)


def out_of_sync(picture: Picture) -> Picture:
    def without_1(view):
        return changed(view, lambda part: replace(part, isr=(0, 2)))

    return spoil_each(picture, "views", without_1)


def controllers_replaced(*names: str) -> Picture:
    picture = moving()
    own = value(picture.facts.kubernetes).controllers
    pods = {name: replace(pod, volumes=("data/2",), started_at=NOW - 1000) if name in names else pod
            for name, pod in own.pods.items()}
    return spoil(picture, "kubernetes", controllers=replace(own, pods=pods))


def test_the_first_volumes_seen_go_on_record_without_a_word():
    picture = replace(moving("ProvisionControllers"), volumes={})
    kept, note = volumes_on_record(picture)
    assert kept == {name: (f"data-{name}/1",) for name in picture.position.nodes}
    assert note == ""


def test_a_broker_on_another_volume_is_on_record_only_once_it_is_in_sync():
    for picture in (out_of_sync(replaced()), replaced(age=CAUGHT_UP_SECONDS - 1),
                    with_fact(replaced(), "views", {0: Unknown("no answer")})):
        assert volumes_on_record(picture)[0]["kafka-1"] == ("data-kafka-1/1",)
    kept, note = volumes_on_record(replaced())
    assert kept["kafka-1"] == ANOTHER
    assert note == "kafka-1 caught up on another volume than before"


def test_a_controller_may_catch_up_as_long_as_a_majority_can_teach_it():
    one = "kafka-controller-1"
    assert volumes_on_record(controllers_replaced(one))[0][one] == ("data/2",)
    behind = spoil(controllers_replaced(one), "quorum", high_watermark=10_000)
    assert volumes_on_record(behind)[0][one] == (f"data-{one}/1",)
    both = controllers_replaced(one, "kafka-controller-2")
    assert volumes_on_record(both)[0][one] == (f"data-{one}/1",)
    assert check_volumes_kept(both).reason == "QuorumVolumesLost"


def test_while_controllers_are_made_or_removed_their_volumes_are_no_incident():
    picture = replaced(step="ProvisionControllers")
    assert check_volumes_kept(picture).outcome == "Pass"
    assert volumes_on_record(picture) == ({**picture.volumes, "kafka-1": ANOTHER}, "")


def test_a_pod_that_is_not_there_and_a_node_without_claims_are_no_incident():
    gone = moving()
    own = value(gone.facts.kubernetes).brokers["kafka"]
    pods: dict[str, Pod] = {name: pod for name, pod in own.pods.items() if name != "kafka-1"}
    gone = spoil(gone, "kubernetes", brokers={"kafka": replace(own, pods=pods)})
    assert check_volumes_kept(gone).outcome == "Pass"
    assert volumes_on_record(gone)[0]["kafka-1"] == ("data-kafka-1/1",)
    assert check_volumes_kept(replace(replaced(), volumes={})).outcome == "Pass"


def test_history_tells_the_incident_once_and_its_end():
    def folded(picture, before=None):
        own = migration() if before is None else migration().model_copy(update={"status": before})
        return next_status(own, picture, decide(PLAN, picture, intent(), {}, NOW), Spent(), None, {})

    first = folded(out_of_sync(replaced()))
    told = ("incident: kafka-1 runs on another volume than the one on record, without the data of the old one"
            " (now data-kafka-1/2)")
    assert [item.message for item in first.history] == [told]
    second = folded(out_of_sync(replaced()), first)
    assert second.history == first.history
    third = folded(replaced(), second)
    assert "kafka-1 caught up on another volume than before" in third.history[-1].message
    (node,) = [node for node in third.nodes if node.name == "kafka-1"]
    assert node.volumes == ANOTHER
