"""Brokers that are too old to migrate: with what they are upgraded, by a person or by the migration."""

import re
from dataclasses import replace
from typing import Any

import pytest

from switchover.api.status import Verdict as Outcome
from switchover.cluster.picture import Picture
from unit.pictures import moment, spoil_each
from unit.preflight_pictures import check, protocol, wanted


@pytest.mark.parametrize(("fetch", "release"), [
    (11, "before 2.7"), (13, "3.1 to 3.4"), (15, "3.5 or 3.6"), (16, "3.7 or 3.8")])
def test_an_old_broker_is_told_with_its_release_and_the_commands_of_an_upgrade(fetch, release):
    """3.9 keeps speaking the old protocol, so that the upgrade can be undone."""
    old = spoil_each(moment("Preflight"), "answers", lambda told: replace(told, api_keys={**told.api_keys, 1: fetch}), 1)
    [found] = [each for each in check("Versions", protocol("3.6-IV2")(old)).findings if each.reason == "WrongKafkaVersion"]
    assert found.observed == f"Fetch v{fetch}, Kafka {release}"
    ours, _, theirs = found.unblocks.partition("; or do it yourself: ")
    assert ours.startswith("set spec.upgrade.image to an image of Kafka 3.9")
    pin, image, status = re.split("; then,? ", theirs)
    assert pin == "set inter.broker.protocol.version=3.6 on every broker that lacks it"
    assert image == "with the tag of your registry, kubectl --namespace kafka set image statefulset kafka kafka=kafka:3.9.2"
    assert status == "kubectl --namespace kafka rollout status statefulset kafka"


def release(fetch: int, leader_and_isr: int, **spec: Any) -> Picture:
    """Brokers that all speak these versions, and a migration that upgrades them."""
    return wanted(**spec)(spoil_each(moment("Preflight"), "answers", lambda told: replace(
        told, api_keys={**told.api_keys, 1: fetch, 4: leader_and_isr})))


def test_an_old_broker_is_upgraded_where_the_spec_says_so():
    found = check("Versions", protocol("3.6-IV2")(release(15, 7, upgrade={"image": "kafka:3.9.2"})))
    assert found.outcome is Outcome.PASS
    told = [each for each in found.findings if each.reason == "BrokerIsUpgraded"]
    assert [each.subject for each in told] == ["kafka-0", "kafka-1", "kafka-2"]
    assert told[0].observed == "Fetch v15, Kafka 3.5 or 3.6"


@pytest.mark.parametrize(("picture", "reason", "words"), [
    (release(13, 6, upgrade={"image": "kafka:3.9.2"}), "WrongKafkaVersion", "older than Kafka 3.4"),
    (release(16, 7, upgrade={"image": "kafka"}), "UpgradeChangesNothing", "is the image that kafka-0 runs")])
def test_an_upgrade_that_cannot_be_is_refused(picture, reason, words):
    found = check("Versions", protocol("3.6-IV2")(picture))
    assert found.outcome is Outcome.FAIL
    assert words in next(each for each in found.findings if each.reason == reason).message


def test_an_image_of_another_repository_is_the_charts_to_allow():
    found = check("ImageAllowed", wanted(upgrade={"image": "evil/kafka:3.9.2"})(moment("Preflight")))
    assert (found.outcome, found.subject) == (Outcome.FAIL, "spec.upgrade.image")
    assert check("ImageAllowed", wanted(upgrade={"image": "kafka:3.9.2"})(moment("Preflight"))).outcome is Outcome.PASS


def test_the_container_that_the_spec_names_is_the_one_to_upgrade():
    old = wanted(brokers=[{"name": "kafka", "container": "broker"}])(spoil_each(
        moment("Preflight"), "answers", lambda told: replace(told, api_keys={**told.api_keys, 1: 11}), 1))
    [found] = [each for each in check("Versions", old).findings if each.reason == "WrongKafkaVersion"]
    assert " set image statefulset kafka broker=REGISTRY/kafka:3.9.2; then " in found.unblocks
