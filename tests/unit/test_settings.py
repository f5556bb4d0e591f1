"""Settings: defaults, and refusals in words that name the variable."""

import json
from pathlib import Path
from typing import Any

import pytest

from switchover.engine.message import SLACK
from switchover.engine.policy import Policy
from switchover.process.settings import EVERYWHERE, BadSettings, Settings, read_settings

NEEDED = {"POD_NAMESPACE": "kafka", "POD_NAME": "switchover-1"}


def test_defaults() -> None:
    assert read_settings(NEEDED) == Settings(
        namespace="kafka", watched=("kafka",), selector={}, kinds=frozenset({"KafkaMigration", "ConsumerGroupMigration"}),
        identity="kafka/switchover-1", leader_lease="", kubeconfig="", allow=Policy(), image="", docs="", probe_port=8080,
        metrics_port=9090, log_level="INFO", json_logs=True, webhook=None, webhook_template=SLACK)


def test_a_webhook_has_a_file_with_its_address_and_perhaps_a_template() -> None:
    settings = read_settings(NEEDED | {"WEBHOOK_FILE": "/webhook/url", "WEBHOOK_TEMPLATE": '{"title": "$name"}'})
    assert settings.webhook == Path("/webhook/url")
    assert settings.webhook_template == {"title": "$name"}


def test_the_release_that_runs_it() -> None:
    assert read_settings(NEEDED | {"RELEASE": "ops", "POD_NAMESPACE": "tools"}).allow == Policy(
        release="ops", namespace="tools")


def test_what_is_allowed() -> None:
    settings = read_settings(NEEDED | {
        "ALLOW_IMAGES": "kafka, registry.example/team/*,", "ALLOW_CLAIMS": "pipeline", "ALLOW_SECRETS": "a, b-*",
        "ALLOW_ANNOTATIONS": "example.com/*", "ALLOW_LABELS": "team", "ALLOW_PODS": "hostPort"})
    assert settings.allow == Policy(
        ("kafka", "registry.example/team/*"), ("pipeline",), ("a", "b-*"), ("example.com/*",), ("team",), ("hostPort",))


@pytest.mark.parametrize(("watch", "watched"), [
    ("", ("kafka",)), ("shop", ("shop",)), ("shop, bank,shop,", ("shop", "bank")), ("*", (EVERYWHERE,))])
def test_which_namespaces_are_served(watch: str, watched: tuple[str, ...]) -> None:
    assert read_settings(NEEDED | {"WATCH": watch}).watched == watched


@pytest.mark.parametrize("selector", [
    {}, {"matchLabels": {"shard": "a"}}, {"matchExpressions": [{"key": "shard", "operator": "DoesNotExist"}]},
    {"matchLabels": {}, "matchExpressions": [{"key": "shard", "operator": "NotIn", "values": ["a", "b"]}]}])
def test_which_of_their_migrations_are_served(selector: dict[str, Any]) -> None:
    assert read_settings(NEEDED).selector == {}
    assert read_settings(NEEDED | {"SELECTOR": json.dumps(selector)}).selector == selector


def test_pods_of_one_name_in_two_namespaces_are_two_holders_of_a_lease() -> None:
    here, there = (read_settings(NEEDED | {"POD_NAMESPACE": namespace, "WATCH": "shop"}) for namespace in ("one", "two"))
    assert here.identity != there.identity


def test_one_kind_alone() -> None:
    assert read_settings(NEEDED | {"KINDS": "ConsumerGroupMigration"}).kinds == {"ConsumerGroupMigration"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"POD_NAMESPACE": " "}, ["POD_NAMESPACE is not set"]),
        ({"WATCH": "shop,*"}, ["WATCH has '*'", "names of namespaces", "* alone"]),
        ({"WATCH": "Shop"}, ["WATCH has 'Shop'"]),
        ({"WATCH": "a/b"}, ["WATCH has 'a/b'"]),
        ({"SELECTOR": "shard=a"}, ["SELECTOR is 'shard=a'", '{"matchLabels": {"shard": "a"}}']),
        ({"SELECTOR": "[]"}, ["SELECTOR is '[]'"]),
        ({"SELECTOR": '{"shard": "a"}'}, ["SELECTOR is"]),
        ({"SELECTOR": '{"matchLabels": ["shard"]}'}, ["SELECTOR is"]),
        ({"SELECTOR": '{"matchExpressions": [{"operator": "Exists"}]}'}, ["SELECTOR is"]),
        ({"SELECTOR": '{"matchExpressions": [{"key": "shard", "operator": "Equals"}]}'}, ["SELECTOR is", "DoesNotExist"]),
        ({"SELECTOR": '{"matchExpressions": 1}'}, ["SELECTOR is"]),
        ({"SELECTOR": '{"matchLabels": null}'}, ["SELECTOR is"]),
        ({"KINDS": "KafkaMigrations"}, ["KINDS is 'KafkaMigrations'", "KafkaMigration, ConsumerGroupMigration, or both"]),
        ({"KINDS": ""}, ["KINDS is ''"]),
        ({"LEADER_LEASE": "My Lease"}, ["LEADER_LEASE is 'My Lease'", "such as switchover"]),
        ({"POD_NAME": ""}, ["POD_NAME is not set", "downward API"]),
        ({"PROBE_PORT": "eighty"}, ["PROBE_PORT", "'eighty'", "1 to 65535"]),
        ({"METRICS_PORT": "0"}, ["METRICS_PORT", "'0'"]),
        ({"METRICS_PORT": "70000"}, ["METRICS_PORT", "'70000'"]),
        ({"METRICS_PORT": "²"}, ["METRICS_PORT", "'²'"]),
        ({"METRICS_PORT": "8080"}, ["both 8080"]),
        ({"DOCS": "docs"}, ["DOCS is 'docs'", "https://git.example.com/docs"]),
        ({"DOCS": "https://git.example.com/a b"}, ["DOCS is"]),
        ({"DOCS": f"https://{'x' * 400}"}, ["DOCS is"]),
        ({"WEBHOOK_TEMPLATE": '{"text": "$words"}'}, ["WEBHOOK_TEMPLATE names $words", '{"text": "$summary"}']),
        ({"WEBHOOK_TEMPLATE": "text"}, ["WEBHOOK_TEMPLATE", "it must be a JSON object"]),
        ({"LOG_LEVEL": "loud"}, ["LOG_LEVEL", "'loud'", "DEBUG, INFO, WARNING, ERROR"]),
        ({"LOG_FORMAT": "xml"}, ["LOG_FORMAT", "json, text"]),
    ],
)
def test_a_bad_value_is_refused_in_words(change: dict[str, str], words: list[str]) -> None:
    with pytest.raises(BadSettings) as caught:
        read_settings(NEEDED | change)
    assert all(word in str(caught.value) for word in words)
