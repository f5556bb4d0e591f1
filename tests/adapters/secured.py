"""A Kafka cluster with everything switched on that a modest platform team has: for test_secured.py.

TLS everywhere, three listeners, one of them for the control plane; SCRAM between brokers, SCRAM and PLAIN for clients; an
authorizer; ZooKeeper over TLS, which knows its users by SASL and gives them their znodes; a dynamic configuration that is
encrypted. Stores of the brokers are files for all listeners alike. The controllers' listener wants client certificates.
"""

import asyncio
import os
import socket
import ssl
import subprocess
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from adapters.admin import create_topic
from adapters.certificates import Certificates
from adapters.clusters import COMMON, patient_wire
from adapters.eventually import eventually
from adapters.pods import as_pod, brokers_of
from adapters.servers import KAFKA, KafkaServer, ZooKeeperServer, free_port, libraries, loopback
from patience import Patience, stretched
from switchover.api.controllers import ControllerListener as ListenerSpec
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster.controllers import listener
from switchover.cluster.door import edits
from switchover.cluster.door.brokers import Brokers
from switchover.cluster.modes import ControllerListener, Voters
from switchover.metadata.parity import LogImage
from switchover.network.addresses import Address
from switchover.network.credentials import Access
from switchover.zookeeper.client.zookeeper import KazooZooKeeper
from switchover.zookeeper.nodes import ZooKeeperState

RECORDS = 100
SECURE_PORT = 2281
ENCODER_SECRET = "en-c0der"
PASSWORDS = {"kafka": "bro=ker", "switchover": "ope/rator", "alice": "wonder land"}
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
DIGEST = "org.apache.zookeeper.server.auth.DigestLoginModule required"
LISTENER = ListenerSpec.model_validate({"securityProtocol": "SSL", "credentialsRef": {"name": "controllers"}})


class TlsServer(KafkaServer):
    """A node without a plain listener: open is as much as can be asked of it from here."""

    def answers(self) -> bool:
        try:
            with socket.create_connection((self.address.host, self.address.port), timeout=stretched(2)):
                return True
        except OSError:
            return False


class SecuredCluster:
    """ZooKeeper and brokers on the user's files, the controllers that Switchover adds, and our adapters to ask them."""

    found: Brokers
    """What is found of the brokers while they run by the user's own template."""
    cluster_id: str

    def __init__(self, directory: Path, brokers: int, controllers: int) -> None:
        self.directory = directory
        self.zookeeper = ZooKeeperServer(directory / "zookeeper")
        self.brokers = {node: TlsServer(directory / f"broker-{node}", loopback(9092)) for node in range(1, brokers + 1)}
        self.addresses = {3000 + node: Address("127.0.0.1", free_port()) for node in range(controllers)}
        self.controllers = {node: TlsServer(directory / f"controller-{node}", address, heap="160m")
                            for node, address in self.addresses.items()}
        hosts = {server.address.host for server in (self.zookeeper, *self.brokers.values(), *self.controllers.values())}
        self.pem = Certificates(directory, *sorted(hosts))
        chain, key = self.pem.another_server("nodes")
        self.secret = {"ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key,
                       "ssl.truststore.certificates": self.pem.authority}
        self._write_files()
        self.tree_access = Access(f"{self.zookeeper.address.host}:{SECURE_PORT}", {
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.truststore.certificates": self.pem.authority,
            "zookeeper.ssl.keystore.certificate.chain": self.pem.client_chain,
            "zookeeper.ssl.keystore.key": self.pem.client_key,
            "zookeeper.sasl.jaas.config": f'{DIGEST} username="kafka" password="zoo";',
        })
        self.tree = KazooZooKeeper(self.tree_access)
        self.wire = patient_wire(self.client("switchover"))
        self.quorum = patient_wire(listener.client_properties(LISTENER, self.secret))
        self.acknowledged = 0

    @property
    def bootstrap(self) -> str:
        return ",".join(str(broker.address) for broker in self.brokers.values())

    def client(self, user: str) -> dict[str, str]:
        """Client properties, as in a Secret."""
        return {
            "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": f'{SCRAM} username="{user}" password="{PASSWORDS[user]}";',
            "ssl.truststore.type": "PEM", "ssl.truststore.certificates": self.pem.authority,
        }

    def librdkafka(self, user: str) -> dict[str, Any]:
        """The same for a client of this test's own."""
        return {"bootstrap.servers": self.bootstrap, "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.username": user, "sasl.password": PASSWORDS[user], "ssl.ca.pem": self.pem.authority}

    # --- files --------------------------------------------------------------------------------------------------------

    def _write_files(self) -> None:
        (self.directory / "trust.pem").write_text(self.pem.authority)
        (self.directory / "zookeeper.pem").write_text(self.pem.server_key + self.pem.server_chain)
        (self.directory / "client.pem").write_text(self.pem.client_key + self.pem.client_chain)
        self.store, self.served = self.pem.server_store("first", "st0re")
        server = self.directory / "zookeeper-jaas.conf"
        server.write_text(f'Server {{ {DIGEST} user_kafka="zoo"; }};')
        client = self.directory / "client-jaas.conf"
        client.write_text(f'Client {{ {DIGEST} username="kafka" password="zoo"; }};')
        self.zookeeper.java_options += f" -Djava.security.auth.login.config={server}"
        self.login = f"-Djava.security.auth.login.config={client}"
        for node in (*self.brokers.values(), *self.controllers.values()):
            node.java_options = self.login
        for broker, server in self.brokers.items():
            as_pod(server, self.user_file(broker))
        for server in self.controllers.values():
            as_pod(server, self.user_file(1))

    def _zookeeper_tls(self) -> str:
        return f"""\
zookeeper.ssl.client.enable=true
zookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty
zookeeper.ssl.keystore.location={self.directory / 'client.pem'}
zookeeper.ssl.keystore.type=PEM
zookeeper.ssl.truststore.location={self.directory / 'trust.pem'}
zookeeper.ssl.truststore.type=PEM
"""

    def user_file(self, broker: int) -> str:
        """The broker's own server.properties."""
        host = self.brokers[broker].address.host
        return COMMON + self._zookeeper_tls() + f"""\
broker.id={broker}
log.dirs={self.directory / f'broker-{broker}' / 'data'}
listeners=INTERNAL://{host}:9094,CONTROL://{host}:9095,CLIENTS://{host}:9092
listener.security.protocol.map=INTERNAL:SASL_SSL,CONTROL:SSL,CLIENTS:SASL_SSL
inter.broker.listener.name=INTERNAL
control.plane.listener.name=CONTROL
sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512
listener.name.control.ssl.client.auth=required
listener.name.internal.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.internal.scram-sha-512.sasl.jaas.config={SCRAM} username="kafka" password="{PASSWORDS['kafka']}";
listener.name.clients.sasl.enabled.mechanisms=SCRAM-SHA-256
listener.name.clients.scram-sha-256.sasl.jaas.config={SCRAM};
ssl.keystore.location={self.store}
ssl.keystore.type=PKCS12
ssl.keystore.password=st0re
ssl.key.password=st0re
ssl.truststore.location={self.directory / 'trust.pem'}
ssl.truststore.type=PEM
zookeeper.connect={self.zookeeper.address.host}:{SECURE_PORT}
zookeeper.session.timeout.ms=10000
zookeeper.set.acl=true
inter.broker.protocol.version=3.9
password.encoder.secret={ENCODER_SECRET}
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
super.users=User:kafka;User:switchover;User:CN=server;User:CN=nodes
"""

    def voters(self, node: int) -> Voters:
        """In pods all controllers listen on one port; here they share an address, so each has a port of its own."""
        return Voters(self.addresses, ControllerListener(
            LISTENER.name, self.addresses[node].port, LISTENER.security_protocol,
            listener.node_settings(LISTENER, self.secret)))

    def broker_edits(self, broker: int, mode: str) -> str:
        return edits.written(edits.broker(mode, broker, self.voters(3000), self.found))

    def controller_edits(self, node: int, mode: str) -> str:
        return edits.written(edits.controller(
            mode, node, self.voters(node), self.found, self.cluster_id, str(self.log_dir(node))))

    def log_dir(self, node: int) -> Path:
        return self.directory / f"controller-{node}" / "metadata"

    # --- what is there ------------------------------------------------------------------------------------------------

    async def state(self) -> ZooKeeperState:
        return await self.tree.state()

    async def log(self) -> LogImage:
        return await self.quorum.log(self.addresses)

    async def ready(self, brokers: Iterable[int]) -> None:
        """These brokers answer us, and everything is in sync as they see it."""
        for broker in brokers:
            await eventually(lambda broker=broker: self.wire.metadata(self.brokers[broker].address),  # type: ignore[misc]
                             lambda view: view.brokers.keys() == self.brokers.keys() and all(
                                 set(each.isr) == set(each.replicas) for each in view.partitions))

    # --- what is done -------------------------------------------------------------------------------------------------

    async def begin(self) -> None:
        """ZooKeeper and the brokers on the users' files, with users, rights, a topic and an encrypted setting."""
        host = self.zookeeper.address.host
        self.zookeeper.start(self.zookeeper.properties() + f"""\
secureClientPort={SECURE_PORT}
secureClientPortAddress={host}
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider
ssl.keyStore.location={self.directory / 'zookeeper.pem'}
ssl.trustStore.location={self.directory / 'trust.pem'}
ssl.clientAuth=need
""")
        self._add_scram_user("kafka", "SCRAM-SHA-512")
        for user in ("switchover", "alice"):
            self._add_scram_user(user, "SCRAM-SHA-256")
        for server in self.brokers.values():
            server.start("", wait=False)
        for server in self.brokers.values():
            server.wait()
        await self.ready(self.brokers)
        self.found = await brokers_of(self.wire, self.brokers[1].address, 1)
        self.cluster_id = (await self.state()).cluster_id
        self.create_topic("before")
        self.create_topic("others")
        self.write()
        admin = AdminClient(self.librdkafka("switchover"))
        done = admin.create_acls([
            AclBinding(kind, name, ResourcePatternType.LITERAL, "User:alice", "*", AclOperation.READ,
                       AclPermissionType.ALLOW)
            for kind, name in ((ResourceType.TOPIC, "before"), (ResourceType.GROUP, "alice"))])
        self._finish(done)
        await self.change_encrypted_setting("second", "tw0")

    def _add_scram_user(self, user: str, mechanism: str) -> None:
        """As an administrator does before the first broker of a SCRAM cluster starts."""
        tls = self.directory / "zookeeper-client.properties"
        tls.write_text(self._zookeeper_tls())
        done = subprocess.run(
            [KAFKA / "bin" / "kafka-configs.sh", "--zookeeper", f"{self.zookeeper.address.host}:{SECURE_PORT}",
             "--zk-tls-config-file", tls, "--entity-type", "users", "--entity-name", user, "--alter", "--add-config",
             f"{mechanism}=[iterations=4096,password={PASSWORDS[user]}]"],
            env=os.environ | {"KAFKA_LIBS": str(libraries()), "KAFKA_HEAP_OPTS": "-Xmx96m", "KAFKA_OPTS": self.login},
            check=False, capture_output=True, text=True, timeout=stretched(60))
        assert done.returncode == 0, done.stdout + done.stderr

    def _finish(self, futures: Mapping[Any, "Future[Any]"]) -> None:
        for future in futures.values():
            future.result(stretched(60))

    def create_topic(self, name: str) -> None:
        create_topic(self.bootstrap, name, replicas=len(self.brokers), config={"min.insync.replicas": "1"},
                     properties=self.librdkafka("switchover"))

    async def obeys_zookeeper(self) -> None:
        """Behind the end of a claim: every broker has heard of the new controller.

        One that has not asks the stopped controllers for its controlled shutdown, for 300 s
        (docs/facts/kraft.md#controlled-shutdown). The answer to DescribeCluster cannot tell: of a single broker it is
        that broker, whoever rules.
        """
        self.create_topic("back-in-zookeeper")
        for broker in self.brokers.values():
            await eventually(lambda address=broker.address: self.wire.metadata(address),  # type: ignore[misc]
                             lambda view: any(each.topic == "back-in-zookeeper" for each in view.partitions))

    def write(self) -> None:
        """More records, each acknowledged by every replica in sync."""
        producer = Producer({**self.librdkafka("switchover"), "acks": "all"})
        for number in range(RECORDS):
            producer.produce("before", str(self.acknowledged + number))
        assert producer.flush(stretched(60)) == 0
        self.acknowledged += RECORDS

    async def change_encrypted_setting(self, name: str, password: str) -> None:
        """Give broker 1 another key for its clients, dynamically: ZooKeeper keeps the store's password encrypted."""
        store, self.served = self.pem.server_store(name, password)
        entries = [
            ConfigEntry(f"listener.name.clients.ssl.{key}", value, incremental_operation=AlterConfigOpType.SET)
            for key, value in (
                ("keystore.location", str(store)), ("keystore.password", password), ("key.password", password))]
        resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=entries)
        admin = AdminClient(self.librdkafka("switchover"))
        self._finish(admin.incremental_alter_configs([resource]))
        await self.serves_the_changed_key()

    async def serves_the_changed_key(self) -> None:
        address = self.brokers[1].address

        async def presented() -> str:
            return await asyncio.to_thread(ssl.get_server_certificate, (address.host, address.port))

        await eventually(presented, lambda pem: pem.split() == self.served.split())

    async def has_kept_everything(self) -> None:
        """Records, topics' settings, rights and the encrypted setting, as the brokers serve them now."""
        await eventually(lambda: self.wire.min_insync_replicas(self.brokers[1].address, ["before"]),
                         lambda found: found == {"before": 1})
        assert self._records("before") == [str(number) for number in range(self.acknowledged)]
        seen = AdminClient(self.librdkafka("alice")).list_topics("others", timeout=stretched(30)).topics["others"].error
        assert seen is not None
        assert seen.name() == "TOPIC_AUTHORIZATION_FAILED", "alice sees what she has no right to"
        await self.serves_the_changed_key()

    def _records(self, topic: str) -> list[str]:
        """What alice reads."""
        consumer = Consumer({**self.librdkafka("alice"), "group.id": "alice", "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, 0, 0)])
        seen: list[str] = []
        patience = Patience(60)
        try:
            while len(seen) < self.acknowledged and not patience.over:
                message = consumer.poll(1)
                if message is not None and (error := message.error()) is not None:
                    raise KafkaException(error)
                if message is not None:
                    seen.append((message.value() or b"").decode())
            return seen
        finally:
            consumer.close()

    async def start_controllers(self) -> None:
        for node, server in self.controllers.items():
            server.start(self.controller_edits(node, Mode.MIGRATION_CONTROLLER), wait=False)
        await eventually(self.log, lambda image: len(image.controllers) == len(self.controllers))

    async def close(self) -> None:
        await self.tree.close()
        for server in (*self.brokers.values(), *self.controllers.values(), self.zookeeper):
            server.kill()
