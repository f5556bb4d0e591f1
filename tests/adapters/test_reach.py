"""What a controller's pod asks brokers for when it starts, by a real bash, on each kind of listener of a real broker."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from adapters.servers import free_port
from adapters.test_login import SecuredBroker
from patience import stretched
from switchover.cluster.door import mount
from switchover.kubernetes import reports
from switchover.network.addresses import Address

PROTOCOLS = ("PLAINTEXT", "SASL_PLAINTEXT", "SSL")


class Broker(SecuredBroker):
    """With a listener of every protocol; the one of SSL wants a certificate of its clients."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.listeners = {protocol: Address(self.server.address.host, free_port()) for protocol in PROTOCOLS}

    def file(self, trust: str = "trust") -> str:
        others = ",".join(f"{protocol}://{address}" for protocol, address in self.listeners.items())
        named = ",".join(f"{protocol}:{protocol}" for protocol in PROTOCOLS)
        stores = "".join(f"listener.name.ssl.{line.removeprefix('listener.name.internal.')}\n"
                         for line in super().file(trust).splitlines() if line.startswith("listener.name.internal."))
        return super().file(trust).replace(f"listeners=internal://{self.server.address}",
                                           f"listeners=internal://{self.server.address},{others}").replace(
            "INTERNAL:SASL_SSL", f"INTERNAL:SASL_SSL,{named}") + stores + "listener.name.ssl.ssl.client.auth=required\n"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("every-listener")).running() as broker:
        yield broker


def unreached(directory: Path, *addresses: str) -> Mapping[str, bool] | None:
    """What the init container reports."""
    told = directory / "told"
    asks = mount.reach_container(addresses, {"image": "kafka"})
    variables = {"SWITCHOVER_RUN": str(directory), "SWITCHOVER_TERMINATION_LOG": str(told), "SWITCHOVER_REACH_SECONDS": "5"}
    subprocess.run(asks["command"], env=os.environ | variables, check=True, timeout=stretched(60))
    return reports.unreached(told.read_text())


def test_every_listener_of_a_broker_answers(tmp_path: Path, broker: Broker) -> None:
    """Before any login, and the two that encrypt without a key."""
    there = [f"{'tls://' if protocol == 'SSL' else ''}{address}" for protocol, address in broker.listeners.items()]
    assert unreached(tmp_path, *there, f"tls://{broker.server.address}") == {}
    log = broker.server.log.read_text()
    assert " ERROR " not in log
    assert "Failed authentication" not in log, "what is asked of a listener that encrypts is no failed login"


def test_one_that_is_asked_for_another_protocol_is_not_reached(tmp_path: Path, broker: Broker) -> None:
    plain, tls = str(broker.listeners["PLAINTEXT"]), str(broker.server.address)
    assert unreached(tmp_path, f"tls://{plain}", tls) == {plain: True, tls: True}
