"""A StatefulSet of two thousand million replicas, which the API server takes: nothing is listed for each of them."""

from dataclasses import replace

from patience import within_processor_time
from switchover.cluster.estimate import ahead, nodes_of
from switchover.groups import slots
from switchover.groups.preview import preview
from switchover.groups.workloads import stateful_set
from switchover.kubernetes.workloads import MOST_PODS
from unit import group_pictures
from unit.pictures import moment, spoil_workload, workload_of
from unit.preflight_pictures import check

MANY = 2_000_000_000


def test_brokers_that_are_too_many_are_counted_and_not_listed():
    picture = moment("Preflight")
    picture = spoil_workload(picture.at(replace(picture.position, nodes={})), replicas=MANY)
    with within_processor_time(0.25):
        assert len(workload_of(picture).wanted) == MOST_PODS + 1
        assert len(nodes_of(picture)) == MOST_PODS + 1 + len(picture.controllers)
        assert picture.broker_pods()
        assert ahead(picture)
    verdict = check("ObjectsExist", picture)
    assert (verdict.observed, verdict.threshold) == (str(MANY), "995")


def test_as_many_as_the_record_holds_are_taken_on():
    assert check("ObjectsExist", spoil_workload(moment("Preflight"), replicas=995)).reason == "PodsNotReady"
    assert check("ObjectsExist", spoil_workload(moment("Preflight"), replicas=996)).reason == "TooManyPods"


def test_pods_of_consumers_that_are_too_many_are_counted_and_not_listed():
    picture = group_pictures.with_source(replicas=MANY)(group_pictures.of_stateful_set())
    with within_processor_time(0.25):
        assert len(slots.assign_slots(picture)) == MOST_PODS + 1
        assert preview(picture) is not None
        assert stateful_set.would_restart(group_pictures.source(picture), {"type": "RollingUpdate"})
