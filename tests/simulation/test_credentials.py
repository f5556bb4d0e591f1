"""Credentials: never told, and taken anew when their Secrets change, without a restart of the operator."""

import base64
import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from fakes.api_server import NAMESPACE, FakeApi
from fakes.incarnation import Incarnation
from fakes.kafka_world import Kafka
from printed import changing
from simulation import migration_world
from simulation.migration_world import HOW_FAR, NAME, SERVER_PROPERTIES, SPEC, MigrationWorld
from simulation.pasting import paste
from simulation.virtual_time import TimeIsUp
from switchover.cluster.door.mount import SCRIPT_KEY
from switchover.network import security
from switchover.process.connections import Openers
from switchover.zookeeper.client import security as zookeeper_security

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SECRETS = {
    "kafka-client": {
        "bootstrap.servers": "kafka:9092,*.kafka",
        "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{SCRAM} required username="switchover" password="canary-kafka-1";'},
    "zookeeper-client": {"zookeeper.connect": "zookeeper:2181", "zookeeper.digest": "switchover:canary-zookeeper-1"},
    "controllers": {
        "bootstrap.servers": f"*.kafka-controller.{NAMESPACE}.svc:9093",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{PLAIN} required username="kafka" password="canary-controllers-1";'},
}
SECURED: dict[str, Any] = {
    **SPEC,
    "acceptedRisks": ["PasswordsInClear"],
    "kafka": {**SPEC["kafka"], "credentialsRef": {"name": "kafka-client"}},            # type: ignore[dict-item]
    "zookeeper": {**SPEC["zookeeper"], "credentialsRef": {"name": "zookeeper-client"}},  # type: ignore[dict-item]
    "controllers": {**SPEC["controllers"], "listener": {                                # type: ignore[dict-item]
        "securityProtocol": "SASL_PLAINTEXT", "credentialsRef": {"name": "controllers"}}},
}


class SecuredWorld(MigrationWorld):
    """A world whose migration names three Secrets; it remembers with which properties clients were opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch)
        self.opened: list[Mapping[str, str]] = []
        for name in SECRETS:
            self.put_secret(name, SECRETS[name])
        self.api.edit("kafkamigrations", NAME, lambda found: found.update(spec=SECURED))
        self.api.edit("configmaps", "kafka-config", lambda found: found["data"].update({
            "server.properties": f"{SERVER_PROPERTIES}password.encoder.secret=canary-file\n"}))
        unsecured = migration_world.simulated

        def simulated(incarnation: Incarnation, kafka: Kafka) -> Openers:
            """Clients that read their properties as the real ones do, and then meet the simulated world."""
            inside = unsecured(incarnation, kafka)

            def noted(properties: Mapping[str, str], read: Callable[[Mapping[str, str]], object]) -> Mapping[str, str]:
                read(properties)
                self.opened.append(properties)
                return properties

            return Openers(
                nodes=lambda given, allowed, within: inside.nodes(noted(given, security.security), allowed, within),
                zookeeper=lambda access: inside.zookeeper(
                    replace(access, properties=noted(access.properties, zookeeper_security.credentials))),
                tree=inside.tree,
                offsets=inside.offsets,
                memberships=inside.memberships,
            )

        monkeypatch.setattr(migration_world, "simulated", simulated)

    def put_secret(self, name: str, values: Mapping[str, str]) -> None:
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        if ("secrets", name) in self.api.objects:
            self.api.edit("secrets", name, lambda found: found.update(data=data))
        else:
            self.api.add("v1", "Secret", "secrets", name, data=data)

    def rotate(self, name: str, old: str, new: str) -> None:
        self.put_secret(name, {key: value.replace(old, new) for key, value in SECRETS[name].items()})

    def opened_with(self, password: str) -> int:
        return sum(password in value for properties in self.opened for value in properties.values())

    @property
    def waiting(self) -> dict[str, str]:
        return {item["gate"]: item["message"] for item in self.status.get("waitingFor") or ()}


def everything_told(api: FakeApi) -> str:
    """All objects but those that the user keeps secrets in."""
    own = ("secrets", "configmaps")
    return json.dumps([found for (plural, _), found in api.objects.items() if plural not in own], default=str)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> SecuredWorld:
    return SecuredWorld(monkeypatch)


def test_no_secret_is_told_in_a_whole_migration(world: SecuredWorld, caplog: pytest.LogCaptureFixture) -> None:
    for logger in ("", "switchover", "kopf", "kopf.objects", "kopf.activities"):
        caplog.set_level(logging.DEBUG, logger)
    told: list[str] = []

    def looking(until: Callable[[], bool]) -> Callable[[], bool]:
        def looked() -> bool:
            told.append(everything_told(world.api))
            return until()

        return looked

    assert world.live(looking(lambda: world.step == "MoveBrokers"))
    world.put_secret("kafka-client", SECRETS["kafka-client"] | {
        "sasl.jaas.config": 'x required password="canary-broken'})                 # the errors of bad input, too
    world.put_secret("zookeeper-client", SECRETS["zookeeper-client"] | {"zookeeper.digest": "canary-no-colon"})
    world.put_secret("controllers", SECRETS["controllers"] | {"sasl.mechanism": "SCRAM-SHA-256"})
    assert world.live(looking(lambda: "zookeeper.digest" in str(world.waiting) or "sasl.jaas.config" in str(world.waiting)))
    for name, values in SECRETS.items():
        world.put_secret(name, values)
    assert world.run_to_the_end()
    told += [everything_told(world.api), caplog.text, *(str(record.__dict__) for record in caplog.records)]
    assert "act: write the files of Secret" in caplog.text, "the log is there to be searched"
    assert any(getattr(record, "story", "") for record in caplog.records), "and the story is in it"
    assert not [text for text in told if "canary" in text]
    edits = [base64.b64decode(value).decode() for name in ("kafka-switchover", "kafka-controller-switchover")
             for pod, value in world.api.objects["secrets", name]["data"].items() if pod != SCRIPT_KEY]
    assert all("canary-controllers-1" in text for text in edits), "the one place that they are for"
    assert not [text for text in edits if "canary-file" in text], "nothing of the user's own file is copied"


@HOW_FAR
def test_new_credentials_are_taken_without_a_restart(world: SecuredWorld, whole: bool) -> None:
    assert world.live(lambda: world.step == "EnableMigration")
    assert world.opened_with("canary-kafka-2") == 0
    before = len(world.opened)

    def rotated() -> bool:
        if world.step == "CopyMetadata" and world.opened_with("canary-kafka-2") == 0:
            world.rotate("kafka-client", "canary-kafka-1", "canary-kafka-2")
            world.rotate("zookeeper-client", "canary-zookeeper-1", "canary-zookeeper-2")
        return world.step == "MoveBrokers"

    assert world.live(rotated)
    # One life of the operator: three clients at its start, and then those two again whose Secrets changed.
    assert len(world.opened) - before == 3 + 2
    assert world.opened_with("canary-kafka-2") == 1
    assert world.opened_with("canary-zookeeper-2") == 1
    world.goes_on(whole)


@HOW_FAR
def test_another_password_of_the_controllers_moves_nothing_until_it_is_put_back(world: SecuredWorld, whole: bool) -> None:
    assert world.live(lambda: world.step == "MoveBrokers" and world.status["progress"]["batch"] == 1)
    world.rotate("controllers", "canary-controllers-1", "canary-controllers-2")
    starts = dict(world.kafka.starts)
    assert world.live(lambda: "ListenerCredentials" in world.waiting)
    with pytest.raises(TimeIsUp):
        world.live(lambda: world.kafka.starts != starts, limit=120)
    assert not any("canary-controllers-2" in base64.b64decode(value).decode()
                   for value in world.api.objects["secrets", "kafka-switchover"]["data"].values())
    world.put_secret("controllers", SECRETS["controllers"])
    world.goes_on(whole)


@pytest.mark.parametrize("name", SECRETS)
def test_a_missing_secret_is_named_and_nothing_begins(world: SecuredWorld, name: str) -> None:
    del world.api.objects["secrets", name]
    assert world.live(lambda: f"Secret {name} does not exist" in str(world.waiting))
    assert world.step == "Preflight"
    world.put_secret(name, SECRETS[name])
    assert world.live(lambda: world.step != "Preflight")


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_that_names_no_servers_is_sent_nowhere_until_its_owner_does_what_preflight_says(
        world: SecuredWorld, name: str) -> None:
    """The attack of the security review: whoever may create a migration names a Secret of somebody else's."""
    key = "zookeeper.connect" if name == "zookeeper-client" else "bootstrap.servers"
    world.put_secret(name, {given: value for given, value in SECRETS[name].items() if given != key})
    assert world.live(lambda: f"Secret {name} does not name" in str(world.waiting))
    assert not [given for given in world.opened if given.get("sasl.jaas.config", given.get("zookeeper.digest"))
                == SECRETS[name].get("sasl.jaas.config", SECRETS[name].get("zookeeper.digest"))]
    [command] = {line for item in world.status["waitingFor"] if f"Secret {name} does not name" in item["message"]
                 for line in changing(item["message"])}
    paste(world, command)
    assert world.api.objects["secrets", name]["data"].keys() == SECRETS[name].keys()
    assert world.live(lambda: world.step != "Preflight")


def test_a_secret_of_something_else_is_not_told_of(world: SecuredWorld) -> None:
    for name in SECRETS:
        world.put_secret(name, {"DB_USER": "canary", "DB_PASSWORD": "canary", "security.protocol": "canary"})
    assert world.live(lambda: "Secret kafka-client does not name" in str(world.waiting)
                      and "Secret controllers does not name" in str(world.waiting))
    assert not {"DB_USER", "DB_PASSWORD", "canary"} & set(re.findall(r"\w+", everything_told(world.api)))


@pytest.mark.parametrize(("name", "key"), [
    ("kafka-client", "ssl.endpoint.identification.algorithm"),
    ("zookeeper-client", "zookeeper.ssl.endpoint.identification.algorithm")])
def test_a_secret_that_turns_the_check_of_names_off_is_told(world: SecuredWorld, name: str, key: str) -> None:
    world.put_secret(name, SECRETS[name] | {key: ""})
    assert world.live(lambda: ("HostsUnchecked", f"Secret {name}") in {
        (found["code"], found["subject"]) for found in world.status.get("findings", ())})


def test_a_password_travels_unencrypted_only_if_that_is_accepted(world: SecuredWorld) -> None:
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"].pop("acceptedRisks"))
    assert world.live(lambda: "spec.acceptedRisks: [PasswordsInClear]" in str(world.waiting))
    assert "Secret zookeeper-client: zookeeper.digest" in str(world.waiting)
    assert "Secret controllers: the password of PLAIN" in str(world.waiting)
    assert not [given for given in world.opened if "zookeeper.digest" in given]
