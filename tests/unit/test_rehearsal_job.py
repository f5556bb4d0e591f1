"""The Job of a rehearsal: the replica's controllers are formatted as the cluster's will be."""

import pytest

from switchover.api.status import Verdict
from switchover.cluster.gates.rehearsal import check_rehearsed
from switchover.cluster.modes import PROTOCOL_VERSION, RAISED
from switchover.cluster.picture import Picture
from switchover.cluster.rehearsal.replica_job import RELEASE, rehearse
from switchover.engine.effects import Create
from switchover.outside.observed import Known, Observed, Unknown
from unit.kraft_spoilers import container
from unit.pictures import BROKERS, NOW, moment, with_fact


def before_the_job(settings: Observed[dict[str, str]]) -> Picture:
    """No Job yet; this is what every broker says of its settings."""
    picture = with_fact(moment("Rehearse"), "rehearsal", Known(None, NOW))
    return with_fact(picture, "broker_settings", dict.fromkeys(BROKERS.values(), settings))


@pytest.mark.parametrize(("version", "release"), [
    ("3.6-IV2", "3.6"), ("3.7-IV4", "3.7"), ("3.9-IV0", "3.9"), ("3.4-IV0", RAISED)])
def test_the_replica_has_the_protocol_version_of_the_brokers_or_what_it_is_raised_to(version: str, release: str) -> None:
    [effect] = rehearse(before_the_job(Known({PROTOCOL_VERSION: version}, NOW)))
    assert isinstance(effect, Create)
    assert effect.manifest["metadata"]["annotations"][RELEASE] == release


def test_its_containers_have_a_limit_of_cpu_where_the_brokers_have() -> None:
    """A quota that counts it refuses whoever does not say it."""
    picture = before_the_job(Known({PROTOCOL_VERSION: "3.9-IV0"}, NOW))

    def limits(**resources: object) -> set[str | None]:
        [effect] = rehearse(container(resources=resources)(picture))
        assert isinstance(effect, Create)
        return {each["resources"]["limits"].get("cpu") for each in effect.manifest["spec"]["template"]["spec"]["containers"]}

    assert limits(requests={"cpu": "1"}) == {None}
    assert limits(limits={"cpu": "4", "memory": "8Gi"}) == {"4"}


def test_nothing_is_rehearsed_for_a_protocol_version_that_nobody_tells() -> None:
    picture = before_the_job(Unknown("kafka-0:9092: no complete answer within 3 s"))
    assert rehearse(picture) == ()
    found = check_rehearsed(picture)
    assert (found.outcome, found.reason, found.message) == (
        Verdict.UNKNOWN, "RehearsalUnknown", "kafka-0:9092: no complete answer within 3 s")


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
    found = check_rehearsed(picture)
    assert (found.outcome, found.subject, found.message) == (
        Verdict.UNKNOWN, "the brokers' own classes", "no answer within 3 s")
