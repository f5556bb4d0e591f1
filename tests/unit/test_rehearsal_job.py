"""The Job of a rehearsal: the replica's controllers are formatted as the cluster's will be."""

from dataclasses import replace

import pytest

from switchover.answers.observed import Known, Observed, Unknown
from switchover.api.status import Verdict
from switchover.cli.rehearse_replica import tree_of
from switchover.cluster.facts import Export
from switchover.cluster.gates.operations import check_rehearsed
from switchover.cluster.modes import PROTOCOL_VERSION, RAISED
from switchover.cluster.picture import Picture
from switchover.cluster.rehearsal.pack import packed
from switchover.cluster.rehearsal.replica_job import LARGE, MADE_OF, is_outdated, job_name, rehearse
from switchover.cluster.rehearsal.report import TREE_DIGEST
from switchover.engine.effects import Create, Delete
from switchover.engine.gate import answered
from switchover.kubernetes.client.pods import given
from switchover.kubernetes.workloads import JobRun, JobState
from switchover.zookeeper.tree import Tree
from unit.kraft_spoilers import container
from unit.pictures import BROKERS, EXPORT, NOW, REHEARSED, moment, with_fact
from unit.preflight_pictures import wanted


def before_the_job(settings: Observed[dict[str, str]]) -> Picture:
    """No Job yet; this is what every broker says of its settings."""
    picture = with_fact(moment("Rehearse"), "rehearsal", Known(None, NOW))
    return with_fact(picture, "broker_settings", dict.fromkeys(BROKERS.values(), settings))


@pytest.mark.parametrize(("version", "release"), [
    ("3.6-IV2", "3.6"), ("3.7-IV4", "3.7"), ("3.9-IV0", "3.9"), ("3.4-IV0", RAISED)])
def test_the_replica_has_the_protocol_version_of_the_brokers_or_what_it_is_raised_to(version: str, release: str) -> None:
    [effect] = rehearse(before_the_job(Known({PROTOCOL_VERSION: version}, NOW)))
    assert isinstance(effect, Create)
    assert effect.manifest["spec"]["template"]["spec"]["containers"][0]["command"][5] == release


def test_its_containers_have_a_limit_of_cpu_where_the_brokers_have() -> None:
    """A quota that counts it refuses whoever does not say it."""
    picture = before_the_job(Known({PROTOCOL_VERSION: "3.9-IV0"}, NOW))

    def limits(**resources: object) -> set[str | None]:
        [effect] = rehearse(container(resources=resources)(picture))
        assert isinstance(effect, Create)
        return {each["resources"]["limits"].get("cpu") for each in effect.manifest["spec"]["template"]["spec"]["containers"]}

    assert limits(requests={"cpu": "1"}) == {None}
    assert limits(limits={"cpu": "4", "memory": "8Gi"}) == {"4"}


def test_a_large_tree_requests_what_its_replica_takes_unless_the_user_says_how_much() -> None:
    base = before_the_job(Known({PROTOCOL_VERSION: "3.9-IV0"}, NOW))

    def requested(size: int, **resources: object) -> tuple[list[str], str]:
        picture = wanted(rehearsal={"resources": resources})(with_fact(base, "exported", Known(
            Export("digest", ("x" * (size // 2), "x" * (size - size // 2))), NOW)))
        [effect] = rehearse(picture)
        assert isinstance(effect, Create)
        job = JobRun(REHEARSED.name, JobState.RUNNING, given=given(effect.manifest))
        assert not is_outdated(picture, job)
        return [each["resources"].get("requests", {}).get("memory")
                for each in effect.manifest["spec"]["template"]["spec"]["containers"]], job.given[MADE_OF]

    usual = ["192Mi", "384Mi", "640Mi", "512Mi"]
    (small, made_of), (large, the_same) = requested(LARGE), requested(LARGE + 1)
    assert (small, large) == (usual, ["1Gi", "768Mi", "1Gi", "1Gi"])
    assert made_of == the_same, "a tree that grows makes no Job outdated"
    assert requested(LARGE + 1, limits={"memory": "3Gi"})[0] == usual
    assert requested(LARGE + 1, requests={"memory": "2Gi"})[0] == ["2Gi"] * 4


def test_nothing_is_rehearsed_for_a_protocol_version_that_nobody_tells() -> None:
    picture = before_the_job(Unknown("kafka-0:9092: no complete answer within 3 s"))
    assert rehearse(picture) == ()
    found = answered(check_rehearsed, picture)
    assert (found.outcome, found.reason, found.message) == (
        Verdict.UNKNOWN, "RehearsalUnknown", "the brokers' protocol version: kafka-0:9092: no complete answer within 3 s")


def test_another_tree_than_the_jobs_is_not_rehearsed() -> None:
    """Whoever may make ConfigMaps may make one of the name that a part of the tree is to have."""
    mine, planted = Tree({"/brokers/ids": None}), Tree({"/brokers/topics/planted": b"{}"})
    assert tree_of(packed(mine), {TREE_DIGEST: mine.digest}) == mine
    for variables in ({TREE_DIGEST: mine.digest}, {}):
        with pytest.raises(ValueError, match="something else has made one of them"):
            tree_of(packed(planted), variables)


def test_a_job_of_another_tree_than_is_read_by_now_gets_none() -> None:
    picture = with_fact(before_the_job(Known({PROTOCOL_VERSION: "3.9-IV0"}, NOW)), "exported", Known(EXPORT, NOW))
    [made] = rehearse(picture)
    assert isinstance(made, Create)
    job = JobRun(REHEARSED.name, JobState.RUNNING, uid="uid-of-job", given=given(made.manifest))
    told = [str(effect).split(" ")[:2] for effect in rehearse(with_fact(picture, "rehearsal", Known(job, NOW)))]
    assert told == [["create", "ConfigMap"], ["patch", "Job"]]
    picture = with_fact(picture, "exported", Known(Export("other", ("1",)), NOW))
    [gone] = rehearse(with_fact(picture, "rehearsal", Known(job, NOW)))
    assert isinstance(gone, Delete)


def test_two_migrations_whose_names_agree_in_many_characters_have_a_job_each() -> None:
    picture = before_the_job(Known({PROTOCOL_VERSION: "3.9-IV0"}, NOW))
    long = replace(picture, name="payments-kafka-production-eu-central-1-zookeeper-to-kraft-a")
    names = {job_name(each) for each in (long, replace(long, name=f"{long.name[:-1]}b", uid="another"))}
    assert len(names) == 2
    assert max(map(len, names)) <= 63


OWN = {"authorizer.class.name": "com.example.Own", "create.topic.policy.class.name": "com.example.Names"}


@pytest.mark.parametrize(("settings", "tried"), [
    (OWN, ["authorizer.class.name=com.example.Own", "create.topic.policy.class.name=com.example.Names"]),
    ({"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "num.io.threads": "9"}, []),
    ({"metric.reporters": "com.example.Reporter", "kafka.metrics.reporters": "com.example.Reporter"}, []),
    ({"authorizer.class.name": "com.example.Own\nzookeeper.connect=zookeeper:2181"}, []),
])
def test_the_replica_is_told_the_brokers_own_classes(settings: dict[str, str], tried: list[str]) -> None:
    """Not reporters, which would report of it; and a value is no second setting."""
    [effect] = rehearse(before_the_job(Known({PROTOCOL_VERSION: "3.9-IV0", **settings}, NOW)))
    assert isinstance(effect, Create)
    conductor = effect.manifest["spec"]["template"]["spec"]["containers"][0]
    assert conductor["command"][6:] == tried


def test_nothing_is_rehearsed_while_a_broker_does_not_tell_its_classes() -> None:
    picture = before_the_job(Known({PROTOCOL_VERSION: "3.9-IV0"}, NOW))
    answers = {**picture.facts.broker_settings, max(BROKERS.values()): Unknown("no answer within 3 s")}
    picture = with_fact(picture, "broker_settings", answers)
    assert rehearse(picture) == ()
    found = answered(check_rehearsed, picture)
    assert (found.outcome, found.subject, found.message) == (
        Verdict.UNKNOWN, "the brokers' own classes", "the brokers' own classes: no answer within 3 s")
