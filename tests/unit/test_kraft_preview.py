"""The preview of the plan: what is shown, that it is small, and that it shows no secret.

golden/preview.txt is what `switchover plan` prints of it for the migration of pictures.py.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from switchover.answers.observed import Unknown
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.plan_preview import LINES_SHOWN, Basis
from switchover.cli.plan import _previewed
from switchover.cluster.door import edits
from switchover.cluster.facts import Facts
from switchover.cluster.picture import Picture
from switchover.cluster.preview import changes, lines, preview
from switchover.cluster.status import telling
from switchover.engine.pace import Pace
from switchover.engine.position import Position
from switchover.metadata.parity import MigrationState
from switchover.text.visible import HIDDEN, shown
from unit.pictures import NOW, Cluster, migration, moment, spec_of, spoil, value, with_fact
from unit.test_kraft_status import folded, on_record

GOLDEN = Path(__file__).parent / "golden" / "preview.txt"
SECRETS = {
    "listener.name.internal.plain.sasl.jaas.config": 'PlainLoginModule required username="a" password="s3cret-1";',
    "ssl.keystore.password": "s3cret-2", "ssl.key.password": "s3cret-3", "ssl.keystore.key": "s3cret-4",
    "ssl.truststore.certificates": "-----BEGIN CERTIFICATE----- s3cret-5", "password.encoder.secret": "s3cret-6",
    "password.encoder.old.secret": "s3cret-7", "delegation.token.secret.key": "s3cret-8",
    "delegation.token.master.key": "s3cret-9", "zookeeper.ssl.keystore.password": "s3cret-10",
    "zookeeper.ssl.truststore.password": "s3cret-11", "zookeeper.metrics": "user=a,password=s3cret-12",
    "inter.broker.listener.name": "INTERNAL", "sasl.oauthbearer.client.credentials": "s3cret-13",
}


def examined(picture: Picture, **brokers: object) -> Picture:
    return with_fact(picture, "examination", replace(picture.facts.examination, **brokers))


def running_with(settings: Mapping[str, str], hidden: Iterable[str] = ()) -> Picture:
    """Brokers that were given these settings beside those of the demo, and more that they keep to themselves."""
    picture = moment("Preflight")
    return examined(picture, brokers={broker_id: replace(told, value=replace(
        told.value, static_settings={**told.value.static_settings, **settings}, hidden=frozenset(hidden)))
        for broker_id, told in picture.facts.examination.brokers.items()})


def previewed(picture: Picture):
    found = preview(picture)
    assert found is not None
    return found


def test_the_preview_is_printed_as_it_was():
    assert "\n".join(_previewed(moment("Preflight"))) + "\n" == GOLDEN.read_text()


def test_the_preview_says_what_the_edits_make():
    """Against the edits themselves: apply the lines of every change to what a broker has, and it has what it will have."""
    picture = moment("Preflight")
    brokers = value(picture.brokers_of("kafka"))
    given = has = dict(value(picture.facts.examination.brokers[1]).static_settings)
    for mode in (Mode.MIGRATION, Mode.KRAFT):
        (change,) = [each for each in changes(picture) if (each.workload, each.mode) == ("kafka", mode)]
        for key, (_, new) in {**change.common, **{key: own["kafka-1"] for key, own in change.own.items()}}.items():
            has = {name: value for name, value in has.items() if name != key} | ({key: new} if new is not None else {})
        assert has == edits.applied(edits.broker(mode, 1, picture.voters, brokers), given)


def test_brokers_of_an_old_protocol_version_are_raised_first():
    picture = Cluster(protocol="3.5").picture(Position(step="Preflight"))
    (raised,) = [change for change in previewed(picture).changes if change.name == "kafka/ZooKeeperRaised"]
    assert raised.lines == ("- inter.broker.protocol.version=3.5", "+ inter.broker.protocol.version=3.9")
    assert {each.name: each.restarts_each for each in previewed(picture).nodes} == {"kafka": 3, "kafka-controller": 1}
    assert not [change for change in changes(moment("Preflight")) if change.mode == Mode.ZOOKEEPER_RAISED]


def test_what_differs_from_pod_to_pod_is_told_once():
    (to_c,) = [change for change in previewed(moment("Preflight")).changes if change.name == "kafka/KRaft"]
    assert to_c.own == ("broker.id", "node.id")
    assert "- broker.id=<each its own>" in to_c.lines
    assert "+ node.id=<each its own>" in to_c.lines


def test_restarts_are_counted_by_node_and_in_total():
    found = previewed(moment("Preflight"))
    assert {each.name: (each.nodes, each.restarts_each) for each in found.nodes} == {
        "kafka": (3, 2), "kafka-controller": (3, 1)}
    assert found.restarts == 3 * 2 + 3 + 1, "and the leader once more in the soak"


@pytest.mark.parametrize(("paces", "basis", "seconds"), [
    ({}, Basis.ASSUMED, (120, 60)),
    ({Mode.MIGRATION: Pace(2, 20.0, 30.0)}, Basis.ASSUMED, (20, 60)),
    ({Mode.MIGRATION: Pace(2, 20.0, 30.0), Mode.STOPPED: Pace(3, 6.0, 7.0)}, Basis.MEASURED, (20, 6)),
], ids=["nothing measured", "brokers alone", "an earlier attempt"])
def test_the_preview_says_what_its_times_rest_on(paces, basis, seconds):
    found = previewed(replace(moment("Preflight"), paces=paces))
    assert (found.basis, found.broker_restart_seconds, found.controller_restart_seconds) == (basis, *seconds)


def test_closed_windows_are_in_the_date_and_not_in_the_work():
    plain = previewed(moment("Preflight"))
    later = previewed(moment("Preflight", windows=[{"name": "w", "cron": "0 20 * * *", "durationSeconds": 7200}]))
    assert plain.estimated_seconds == later.estimated_seconds
    assert plain.estimated_completion_time is not None
    assert later.estimated_completion_time is not None
    assert (later.estimated_completion_time - plain.estimated_completion_time).total_seconds() == 12 * 3600
    never = preview(replace(moment("Preflight"), spec=spec_of(
        windows=[{"name": "w", "cron": "0 20 * * *", "durationSeconds": 60}])))
    assert never is not None
    assert never.estimated_completion_time is None


def test_a_hold_is_told():
    held = {step.name for step in previewed(moment("Preflight", holds=["MoveBrokers"])).steps if step.hold}
    assert held == {"MoveBrokers", "Finalize", "HandOver"}


# --- secrets and size ---------------------------------------------------------------------------------------------------


def test_no_secret_is_shown():
    picture = running_with(SECRETS)
    told = json.dumps(previewed(picture).manifest()) + "\n".join(_previewed(picture))
    assert "s3cret" not in told
    assert HIDDEN in told, "what changes is told all the same"
    assert "zookeeper.connect=zookeeper:2181" in told, "and what is no secret is shown"


def test_what_brokers_keep_to_themselves_is_told_by_name():
    (to_c,) = [change for change in previewed(running_with({}, ["zookeeper.ssl.keystore.password", "super.users"])).changes
               if change.name == "kafka/KRaft"]
    assert "- zookeeper.ssl.keystore.password=<hidden>" in to_c.lines
    assert not [line for line in to_c.lines if "super.users" in line], "it stays as it is"


@pytest.mark.parametrize("key", sorted(SECRETS.keys() - {"inter.broker.listener.name"}))
def test_a_value_is_hidden_by_its_key_or_by_what_it_looks_like(key):
    assert shown(key, SECRETS[key]) == HIDDEN


@pytest.mark.parametrize("key", ["ssl.keystore.location", "ssl.keystore.type", "sasl.enabled.mechanisms", "log.dirs"])
def test_what_is_no_secret_is_shown(key):
    assert shown(key, "a value") == "a value"


def test_the_preview_in_the_status_stays_small():
    picture = running_with({f"zookeeper.option{n}": "x" * 300 for n in range(200)})
    found = previewed(picture)
    assert sum(len(change.lines) for change in found.changes) == LINES_SHOWN
    assert sum(change.omitted for change in found.changes) > 200
    assert len(json.dumps(found.manifest())) < 12_000
    printed = list(_previewed(picture))
    assert sum(line.startswith("  - zookeeper.option") for line in printed) > 200, "the command prints all"


def test_keys_of_their_own_are_as_many_as_differ():
    own = {f"{change.workload}/{change.mode}": {*change.own} for change in changes(moment("Preflight"))}
    assert own == {"kafka/Migration": set(), "kafka/KRaft": {"broker.id", "node.id"},
                   "kafka-controller/MigrationController": {"node.id"}, "kafka-controller/KRaftController": set()}
    assert all(line[0] in "+-" for change in changes(moment("Preflight")) for line in lines(change))


# --- when it cannot be computed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("picture", [
    replace(moment("Preflight"), facts=Facts()),
    with_fact(moment("Preflight"), "zookeeper", Unknown("no answer")),
    examined(moment("Preflight"), brokers={
        **moment("Preflight").facts.examination.brokers, 1: Unknown("broker 1 gives no answer")}),
    replace(moment("Preflight"), spec=spec_of(brokers=[{"name": "kafka", "container": "broker"}])),
    spoil(moment("Preflight"), "kubernetes", listener_credentials="Secret keys does not exist"),
    spoil(moment("Preflight"), "kubernetes", brokers={"kafka": None}),
], ids=["nothing seen", "brokers not known", "a broker silent", "no such container", "no credentials", "no StatefulSet"])
def test_what_cannot_be_computed_is_left_to_preflight_to_tell(picture):
    assert preview(picture) is None
    assert list(_previewed(picture)) == []
    assert folded(picture).plan is None


# --- in the status ------------------------------------------------------------------------------------------------------


def test_the_preview_is_kept_when_it_begins_and_when_nothing_is_seen_for_a_moment():
    own = migration()
    first = folded(moment("Preflight"), own)
    assert first.plan is not None
    assert first.plan_hash == "", "the spec may still change"
    blind = folded(replace(moment("Preflight"), facts=Facts()), on_record(own, first))
    assert blind.plan == first.plan
    enabling = moment("EnableMigration", (Mode.MIGRATION, Mode.ZOOKEEPER), Mode.MIGRATION_CONTROLLER, ("kafka-0",),
                      MigrationState.PRE_MIGRATION)
    begun = folded(enabling, on_record(own, first))
    assert begun.plan == first.plan


def test_the_date_alone_is_no_reason_to_write_the_status():
    first, later = (folded(replace(moment("Preflight"), now=now)) for now in (NOW, NOW + 5))
    assert first.plan != later.plan
    assert telling(first) == telling(later)
