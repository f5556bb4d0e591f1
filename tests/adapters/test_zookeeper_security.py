"""ZooKeeper's own ways to know us, on a real server: SASL with DIGEST-MD5, and TLS with client certificates."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss
from kazoo.protocol.states import KeeperState
from kazoo.security import make_acl

from adapters.certificates import Certificates
from adapters.servers import ZooKeeperServer
from patience import until
from switchover.answers.errors import Refused, Unreachable
from switchover.network.addresses import Address
from switchover.network.credentials import Access
from switchover.zookeeper.client.zookeeper import KazooZooKeeper

SECURE_PORT = 2281
SASL = 'org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="ru=m ble";'


class SecuredZooKeeper:
    """A server with a plain port and one for TLS that wants client certificates; user kafka of SASL owns /migration."""

    def __init__(self, directory: Path) -> None:
        self.server = ZooKeeperServer(directory / "zookeeper")
        self.plain = self.server.address
        self.encrypted = Address(self.plain.host, SECURE_PORT)
        self.pem = Certificates(directory, self.plain.host)
        (directory / "jaas.conf").write_text(
            'Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_kafka="ru=m ble"; };')
        (directory / "server.pem").write_text(self.pem.server_key + self.pem.server_chain)
        (directory / "trust.pem").write_text(self.pem.authority)
        self.server.java_options += f" -Djava.security.auth.login.config={directory / 'jaas.conf'}"
        self.server.start(self.server.properties() + f"""\
secureClientPort={SECURE_PORT}
secureClientPortAddress={self.plain.host}
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider
ssl.keyStore.location={directory / 'server.pem'}
ssl.trustStore.location={directory / 'trust.pem'}
ssl.clientAuth=need
""")
        client = KazooClient(str(self.plain))
        client.start()
        client.create("/cluster/id", b'{"id":"hereClusterAAAAAAAAAAA"}', makepath=True)
        client.create("/migration", b"", acl=[make_acl("sasl", "kafka", all=True)])
        client.stop()
        client.close()

    @property
    def tls(self) -> dict[str, str]:
        return {
            "zookeeper.ssl.client.enable": "true", "zookeeper.ssl.truststore.certificates": self.pem.authority,
            "zookeeper.ssl.keystore.certificate.chain": self.pem.client_chain,
            "zookeeper.ssl.keystore.key": self.pem.client_key,
        }


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredZooKeeper]:
    zookeeper = SecuredZooKeeper(tmp_path_factory.mktemp("secured-zookeeper"))
    yield zookeeper
    zookeeper.server.kill()


@asynccontextmanager
async def opened(server: Address, properties: dict[str, str], seconds: float = 5.0) -> AsyncIterator[KazooZooKeeper]:
    zookeeper = KazooZooKeeper(Access(str(server), properties), seconds=seconds)
    try:
        yield zookeeper
    finally:
        await zookeeper.close()


async def test_sasl_opens_what_is_closed_to_others(secured: SecuredZooKeeper) -> None:
    async with opened(secured.plain, {}) as zookeeper:
        with pytest.raises(Refused, match="does not let us use /migration"):
            await zookeeper.state()
    async with opened(secured.plain, {"zookeeper.sasl.jaas.config": SASL}) as zookeeper:
        state = await zookeeper.state()
        assert state.migration is not None
        assert state.migration.empty


async def test_a_wrong_sasl_password_is_refused_without_being_told(secured: SecuredZooKeeper) -> None:
    async with opened(secured.plain, {"zookeeper.sasl.jaas.config": SASL.replace("ru=m", "s3cret")}) as zookeeper:
        with pytest.raises(Refused, match=r"refused the credentials of zookeeper\.sasl") as refused:
            await zookeeper.state()
    assert "s3cret" not in str(refused.value)


async def test_a_refusal_is_one_although_a_call_was_told_of_a_lost_connection(secured: SecuredZooKeeper) -> None:
    """The session is closed a moment after; a starved call hears of that alone."""
    async with opened(secured.plain, {"zookeeper.sasl.jaas.config": SASL.replace("ru=m", "s3cret")}) as zookeeper:
        def late(deadline: float) -> None:
            client = zookeeper._connected(deadline)
            until(lambda: client.client_state == KeeperState.CLOSED, lambda: f"closed, but {client.client_state}")
            raise ConnectionLoss

        with pytest.raises(Refused, match=r"refused the credentials of zookeeper\.sasl"):
            await zookeeper._call(late)


async def test_sasl_inside_of_tls(secured: SecuredZooKeeper) -> None:
    async with opened(secured.encrypted, secured.tls | {"zookeeper.sasl.jaas.config": SASL}) as zookeeper:
        assert (await zookeeper.state()).cluster_id == "hereClusterAAAAAAAAAAA"
        assert await zookeeper.connections(secured.encrypted) >= 0
        assert (await zookeeper.state()).cluster_id == "hereClusterAAAAAAAAAAA"


async def test_a_server_that_is_not_trusted_is_named(secured: SecuredZooKeeper) -> None:
    strangers = {key: value for key, value in secured.tls.items() if "truststore" not in key}
    async with opened(secured.encrypted, strangers, seconds=3) as zookeeper:
        with pytest.raises(Refused, match=f"{secured.encrypted}: its certificate is not accepted"):
            await zookeeper.state()
        with pytest.raises(Refused, match=f"{secured.encrypted}: its certificate is not accepted"):
            await zookeeper.connections(secured.encrypted)


async def test_without_a_certificate_of_our_own_nobody_answers(secured: SecuredZooKeeper) -> None:
    nobody = {key: value for key, value in secured.tls.items() if "keystore" not in key}
    async with opened(secured.encrypted, nobody, seconds=2) as zookeeper:
        with pytest.raises(Unreachable, match="did not answer within 2 s"):
            await zookeeper.state()
    async with opened(secured.encrypted, {}, seconds=2) as zookeeper:
        with pytest.raises(Unreachable, match="did not answer within 2 s"):
            await zookeeper.state()
