"""The models: what they take, what they refuse and in which words, what they give back."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import ValidationError

from apiserver.examples import REFUSED, Refused, documented, documented_of, exemplary, names
from switchover.api.consumer_group_migration import ConsumerGroupMigration
from switchover.api.kafka_migration import (
    KafkaMigration,
    KafkaMigrationStatus,
    KafkaMigrationStep,
    NodeMode,
    NodeStatus,
)
from switchover.api.meta import GROUP_BYTES, GroupHealth
from switchover.api.schema import Clipped
from switchover.api.status import Progress, Transition, WaitingFor
from switchover.cluster.plan import PLAN

MODELS = {"KafkaMigration": KafkaMigration, "ConsumerGroupMigration": ConsumerGroupMigration}


@pytest.mark.parametrize("resource", [*documented(), *exemplary()], ids=lambda resource: resource["metadata"]["name"])
def test_documented_resources_survive_a_round_trip(resource):
    model = MODELS[resource["kind"]]
    read = model.model_validate(resource)
    assert model.model_validate(read.manifest()) == read
    for field, value in resource["spec"].items():
        if isinstance(value, str | int):
            assert read.manifest()["spec"][field] == value


def test_full_example_names_every_field_of_the_spec():
    full = documented_of("KafkaMigration")[1]
    assert full["spec"].keys() == KafkaMigration.model_validate(full).spec.manifest().keys()
    assert full["spec"]["gates"].keys() == KafkaMigration.model_validate(full).spec.gates.manifest().keys()


@pytest.mark.parametrize("refused", REFUSED, ids=names)
def test_wrong_values_are_refused_in_words(refused: Refused):
    with pytest.raises(ValidationError) as refusal:
        MODELS[refused.kind].model_validate(refused.resource())
    assert (refused.server if refused.model is None else refused.model) in str(refusal.value)


def test_unknown_fields_are_ignored_on_read():
    resource = documented_of("KafkaMigration")[0]
    resource["spec"]["later"] = {"version": 2}
    resource["status"] = {"alsoLater": True, "phase": "Running"}
    read = KafkaMigration.model_validate(resource)
    assert "later" not in read.spec.manifest()
    assert read.status == KafkaMigrationStatus(phase="Running")


def test_steps_on_record_may_be_unknown_to_this_version():
    assert Progress.model_validate({"step": "StepOfALaterVersion"}).step == "StepOfALaterVersion"
    assert "StepOfALaterVersion" not in list(KafkaMigrationStep)
    assert PLAN.names == tuple(KafkaMigrationStep), "the steps that a spec can name are those of the plan"


def test_models_cannot_be_changed_in_place():
    status = KafkaMigrationStatus()
    with pytest.raises(ValidationError, match="frozen"):
        status.attempt = 2


def test_evolve_validates_what_model_copy_would_let_through():
    status = KafkaMigrationStatus(nodes=[NodeStatus(name="kafka-0", assigned=NodeMode.MIGRATION)])
    assert status.evolve(attempt=2).nodes == status.nodes
    assert status.evolve(nodes=[{"name": "kafka-0", "assigned": NodeMode.KRAFT}]).nodes[0].assigned is NodeMode.KRAFT
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        status.evolve(attempt=0)
    with pytest.raises(ValidationError, match="kafka-0 must not be there twice"):
        status.evolve(nodes=[NodeStatus(name="kafka-0"), NodeStatus(name="kafka-0")])
    with pytest.raises(ValueError, match="has no field atempt"):
        status.evolve(atempt=2)


def test_times_are_whole_seconds_in_utc_outside_and_inside():
    berlin = timezone(timedelta(hours=1))
    move = Transition(time=datetime(2026, 11, 21, 21, 2, 3, 999_999, tzinfo=berlin), to="Soak", reason="GatesPassed")
    assert move.time == datetime(2026, 11, 21, 20, 2, 3, tzinfo=UTC)
    assert move.manifest()["time"] == "2026-11-21T20:02:03Z"
    assert Transition.model_validate(move.manifest()) == move


def test_times_without_a_zone_are_refused():
    with pytest.raises(ValidationError, match="timezone"):
        Progress(start_time=datetime(2026, 11, 21, 20, 2, 3))  # noqa: DTZ001


def test_manifests_are_camel_case_and_without_null():
    manifest = KafkaMigrationStatus(
        waiting_for=[WaitingFor(gate="AllInSync", verdict="Wait", reason="OutOfSync")]
    ).manifest()
    assert manifest["waitingFor"][0]["runbookURL"] == ""
    assert "since" not in manifest["waitingFor"][0]
    assert manifest["observedGeneration"] == -1


def test_long_texts_of_the_operator_are_cut_not_refused():
    waiting = WaitingFor(gate="AllInSync", verdict="Unknown", reason="Unreachable", message="é" * 5000)
    assert len(waiting.message) == 1024
    assert "é…é" in waiting.message
    named = WaitingFor(gate="AllInSync", verdict="Unknown", reason="Unreachable", message=f"group {'x' * 5000} stands still")
    assert (named.message[:9], named.message[-12:]) == ("group xxx", "stands still")
    for limit in (1, 2, 3):
        assert len(Clipped(limit).cut("abcd")) == limit


@pytest.mark.parametrize(("group", "taken"), [
    ("connect-" + "s3-sink-" * 32, True), ("Bestellungen Prüfung/prod #1", True), ("日本" * 5461, True),
    ("x" * GROUP_BYTES, True), ("x" * (GROUP_BYTES + 1), False), ("é" * (GROUP_BYTES // 2 + 1), False), ("", False)])
def test_the_id_of_a_group_is_as_long_as_kafka_takes_it(group, taken):
    try:
        assert GroupHealth(name=group).name == group
    except ValidationError:
        assert not taken
    else:
        assert taken


def test_quantities_may_be_written_as_numbers():
    resource = documented_of("KafkaMigration")[0]
    resource["spec"]["controllers"]["template"] = {"resources": {"requests": {"cpu": 1}}}
    read = KafkaMigration.model_validate(resource)
    assert read.spec.controllers.template.resources.requests == {"cpu": "1"}
