"""Before a controller first runs it has logged in to a broker as brokers do to one another: the door asks a real one."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import pytest

from adapters.certificates import Certificates
from adapters.clusters import COMMON
from adapters.formatted import random_id
from adapters.pods import TEMPLATE, as_pod
from adapters.secured import TlsServer
from adapters.servers import KafkaServer, ZooKeeperServer, free_port, loopback
from patience import stretched, until
from switchover.api.kafka_migration import BrokerSet
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster.door import brokers, edits, mount
from switchover.cluster.modes import ControllerListener, Voters
from switchover.network.addresses import Address
from unit.test_door import EXIT_CONFIG

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
NODE = 3000


class SecuredBroker:
    """One broker whose listener between brokers is SASL_SSL; its login is in a login file, its stores in files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.zookeeper = ZooKeeperServer(directory / "zookeeper")
        self.server = TlsServer(directory / "broker", loopback(9092))
        pem = Certificates(directory, self.server.address.host)
        (directory / "others").mkdir()
        others = Certificates(directory / "others", self.server.address.host)
        for name, authority in (("trust", pem.authority), ("mistrust", others.authority)):
            (directory / f"{name}.pem").write_text(authority)
        self.store, _ = pem.server_store("broker", "st0re")
        self.server.java_options = self.login_file("broker", "kafka")

    def login_file(self, name: str, password: str, entry: str = "KafkaServer") -> str:
        """Java's option that names a login file, in which tools have a login of their own."""
        file = self.directory / f"{name}.jaas"
        file.write_text(f"""// who is who
KafkaClient {{
  {PLAIN} username="tool" password="nobody knows me";
}};
{entry} {{
  {PLAIN}
  username="kafka" password="{password}"
  user_kafka="kafka";
}};
""")
        return f"-Djava.security.auth.login.config={file}"

    def file(self, trust: str = "trust") -> str:
        """Its server.properties."""
        return COMMON + f"""\
broker.id=1
log.dirs={self.server.directory / 'data'}
listeners=internal://{self.server.address}
listener.security.protocol.map=INTERNAL:SASL_SSL
inter.broker.listener.name=INTERNAL
sasl.mechanism.inter.broker.protocol=PLAIN
sasl.enabled.mechanisms=PLAIN
listener.name.internal.ssl.keystore.location={self.store}
listener.name.internal.ssl.keystore.type=PKCS12
listener.name.internal.ssl.keystore.password=st0re
listener.name.internal.ssl.key.password=st0re
ssl.truststore.location={self.directory / trust}.pem
ssl.truststore.type=PEM
zookeeper.connect={self.zookeeper.address}
zookeeper.session.timeout.ms=10000
inter.broker.protocol.version=3.9
"""

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Beside its ZooKeeper."""
        try:
            self.zookeeper.start(self.zookeeper.properties())
            self.server.start(self.file())
            yield self
        finally:
            self.server.kill()
            self.zookeeper.kill()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with SecuredBroker(tmp_path_factory.mktemp("secured")).running() as broker:
        yield broker


class Controller:
    """A controller of a quorum of one, in a pod that is a copy of the broker's but for its file and login."""

    def __init__(self, directory: Path, broker: SecuredBroker, file: str, login: str) -> None:
        self.server = KafkaServer(directory / "controller", Address("127.0.0.1", free_port()), heap="160m")
        self.server.java_options = login
        self.metadata = self.server.directory / "metadata"
        self.run = self.server.directory / "run"
        as_pod(self.server, file)
        live = dict(line.split("=", 1) for line in file.splitlines())
        port = self.server.address.port
        self.edits = edits.written(edits.controller(
            Mode.MIGRATION_CONTROLLER, NODE,
            Voters({NODE: self.server.address}, ControllerListener("CONTROLLER", port, "PLAINTEXT", {})),
            brokers.find(TEMPLATE, BrokerSet(name="kafka"), live), random_id(), str(self.metadata)))
        tries = mount.reach_container([f"tls://{broker.server.address}"], {"image": "kafka"})
        variables = {"SWITCHOVER_RUN": str(self.run), "SWITCHOVER_TERMINATION_LOG": str(self.run / "reach")}
        subprocess.run(tries["command"], env=os.environ | variables, check=True, timeout=stretched(40))

    def refusal(self) -> str:
        """What its container leaves behind when it ends by itself."""
        self.server.start(self.edits, wait=False)
        assert self.server.wait_exit(180) == EXIT_CONFIG
        return (self.run / "termination-log").read_text()

    @property
    def has_begun(self) -> bool:
        return (self.metadata / "meta.properties").exists()


@pytest.fixture
def controllers(broker: SecuredBroker, tmp_path: Path) -> Iterator[list[Controller]]:
    made: list[Controller] = []
    yield made
    for each in made:
        each.server.kill()


def test_a_controller_that_the_broker_does_not_let_in_does_not_start_until_it_is(
        tmp_path: Path, broker: SecuredBroker, controllers: list[Controller]) -> None:
    login = broker.login_file("controller", "changed")
    controller = Controller(tmp_path, broker, broker.file(), login)
    controllers.append(controller)
    told = controller.refusal()
    assert str(broker.server.address) in told
    assert "SaslAuthenticationException: Authentication failed: Invalid username or password" in told
    assert "changed" not in told
    assert not controller.has_begun

    broker.login_file("controller", "kafka")
    controller.server.start(controller.edits)
    assert f"a broker of {broker.server.address} lets this controller in" in controller.server.log.read_text()
    assert not [*controller.run.glob("login*")], "nothing of the login lies there any more"

    controller.server.stop()
    broker.login_file("controller", "changed again")
    controller.server.start(controller.edits)            # it has run: it is needed, and not kept down


def test_a_controller_with_another_truststore_does_not_start(
        tmp_path: Path, broker: SecuredBroker, controllers: list[Controller]) -> None:
    controller = Controller(tmp_path, broker, broker.file("mistrust"), broker.login_file("mistrusting", "kafka"))
    controllers.append(controller)
    assert "SslAuthenticationException: SSL handshake failed" in controller.refusal()
    assert not controller.has_begun


@pytest.mark.long
def test_a_controller_that_gets_no_answer_does_not_start_until_it_gets_one(
        tmp_path: Path, broker: SecuredBroker, controllers: list[Controller]) -> None:
    controller = Controller(tmp_path, broker, broker.file(), broker.login_file("patient", "kafka"))
    controllers.append(controller)
    with broker.server.frozen():
        told = controller.refusal()
        assert f"it is not known whether the brokers ({broker.server.address}) let this controller in" in told
        assert "TimeoutException" in told
        assert not controller.has_begun

        tries = controller.server.log.read_text().count("TimeoutException")
        controller.server.start(controller.edits, wait=False)
        until(lambda: controller.server.log.read_text().count("TimeoutException") > tries, "the first try ends")
        assert not controller.has_begun
    controller.server.wait()                             # the broker is asked again by the same process
    assert f"a broker of {broker.server.address} lets this controller in" in controller.server.log.read_text()


@pytest.mark.long
def test_a_start_script_with_a_login_file_of_its_own_is_no_answer(
        tmp_path: Path, broker: SecuredBroker, controllers: list[Controller]) -> None:
    """What the image's script alone tells Java cannot be asked before it runs."""
    controller = Controller(tmp_path, broker, broker.file(), "")
    controllers.append(controller)
    told = controller.refusal()
    assert "it is not known whether" in told
    assert "Could not find a 'KafkaClient' entry in the JAAS configuration" in told


@pytest.mark.long
def test_a_login_in_the_settings_counts_before_the_login_file(
        tmp_path: Path, broker: SecuredBroker, controllers: list[Controller]) -> None:
    own = f'listener.name.internal.plain.sasl.jaas.config={PLAIN} username="kafka" password="kafka";\n'
    controller = Controller(tmp_path, broker, broker.file() + own, broker.login_file("older", "changed"))
    controllers.append(controller)
    controller.server.start(controller.edits)
    assert f"a broker of {broker.server.address} lets this controller in" in controller.server.log.read_text()


@pytest.mark.long
def test_a_controller_without_the_brokers_stores_does_not_start(
        tmp_path: Path, broker: SecuredBroker, controllers: list[Controller]) -> None:
    controller = Controller(tmp_path, broker, broker.file("nothing"), broker.login_file("bare", "kafka"))
    controllers.append(controller)
    assert "Failed to load PEM SSL keystore" in controller.refusal()


@pytest.mark.long
def test_of_several_entries_the_listeners_own_counts(
        tmp_path: Path, broker: SecuredBroker, controllers: list[Controller]) -> None:
    login = broker.login_file("several", "kafka", "internal.KafkaServer")
    with Path(login.partition("=")[2]).open("a") as file:
        file.write(f'KafkaServer {{\n  {PLAIN} username="kafka" password="changed";\n}};\n')
    controller = Controller(tmp_path, broker, broker.file(), login)
    controllers.append(controller)
    controller.server.start(controller.edits)
    assert f"a broker of {broker.server.address} lets this controller in" in controller.server.log.read_text()
