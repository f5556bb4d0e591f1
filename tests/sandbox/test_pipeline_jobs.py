"""The pipeline's jobs in pods beside a real migration: a capture from before it on, the others at its last hold."""

from pathlib import Path

import pytest

from demo import migration, world
from demo.cluster import Cluster
from demo.diagnostics import collect
from demo_pipeline import jobs
from sandbox.pipeline_jobs import Jobs

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

IMAGES = [*world.images().values(), jobs.IMAGE]
OUTPUT = Path(__file__).parents[2] / "build" / "diagnostics" / "pipeline-jobs"


@pytest.fixture(scope="module")
def pipeline(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    """What each job left."""
    world.remove(cluster)
    world.deploy(cluster, print)
    migration.install_operator(cluster)
    ran = Jobs(cluster, tmp_path_factory.mktemp("pipeline"))
    ran.capture()
    try:
        migration.follow(cluster, migration.Run(), migration.manifest(), lambda _: None, print,
                         [ran], lambda _: "drift" in ran.told)
    except BaseException:
        collect(cluster, OUTPUT)
        raise
    return ran


def test_the_jobs_of_the_pipeline_ran_in_pods_at_the_last_hold(pipeline: Jobs) -> None:
    told = pipeline.told
    assert set(told) == {"inventory", "audit", "baseline", "drift"}
    assert all(each["result"] == "Succeeded" and each["rows"] > 0 for each in told.values()), told
    assert told["inventory"]["groups"] >= 1
    # Of all that "orders" has; how many of them have a baseline hangs on the holes that brokers on the move leave.
    assert (told["baseline"]["groups"], told["baseline"]["partitions"]) == (1, 6)


def test_brokers_that_moved_made_no_group_consume_twice(pipeline: Jobs) -> None:
    """Nobody was killed, and every member commits one at a time, so that no commit can be late."""
    told = pipeline.told["audit"]
    assert told["verdict"] == "Clean", "; ".join(told["evidence"])


def test_zookeeper_and_kraft_agreed_at_the_last_hold(pipeline: Jobs) -> None:
    found = pipeline.told["drift"]
    assert (found["verdict"], found["driftPersistent"]) == ("Clean", 0), found
