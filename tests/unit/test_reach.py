"""What a controller's pod finds out when it starts: run by a real bash against real sockets."""

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from patience import stretched
from switchover.cluster.door import reach
from switchover.cluster.door.scripts import REACH
from switchover.kubernetes import reports


@pytest.fixture
def broker() -> Iterator[str]:
    """Something that takes connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def nobody() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[str]:
    """What a NetworkPolicy makes of an address: no answer at all. Its queue of connections is full."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        others = []
        for _ in range(3):
            other = socket.socket()
            other.setblocking(False)
            other.connect_ex(server.getsockname())
            others.append(other)
        yield f"127.0.0.1:{server.getsockname()[1]}"
        for other in others:
            other.close()


def report(directory: Path, *addresses: str) -> str:
    """The termination message."""
    message = directory / "message"
    container = reach.init_container(addresses, {"image": "kafka"})
    environment = {**os.environ, "SWITCHOVER_TERMINATION_LOG": str(message), "SWITCHOVER_RUN": str(directory)}
    subprocess.run(container["command"], env=environment, check=True, timeout=stretched(40))
    return message.read_text()


def test_all_are_reached(tmp_path: Path, broker: str) -> None:
    assert report(tmp_path, broker, broker) == "reach 1 2\n"
    assert (tmp_path / "reached").read_text() == f"{broker},{broker}"


def test_a_host_in_brackets_is_an_address_of_ipv6(tmp_path: Path) -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        assert report(tmp_path, f"[::1]:{server.getsockname()[1]}") == "reach 1 1\n"


def test_who_refuses_or_is_silent_or_has_no_name_is_told(tmp_path: Path, broker: str, nobody: str, silent: str) -> None:
    """After the ten seconds in which it is tried again."""
    missed = reports.unreached(report(tmp_path, nobody, broker, silent, "kafka-0.nowhere.invalid:9092"))
    assert missed == tuple(sorted((nobody, silent, "kafka-0.nowhere.invalid:9092")))
    assert (tmp_path / "reached").read_text() == broker, "where the door logs in"


def test_one_that_comes_later_is_reached(tmp_path: Path) -> None:
    """The network's rules reach a new pod a moment after it starts."""
    with socket.socket() as later:
        later.bind(("127.0.0.1", 0))
        address, message = f"127.0.0.1:{later.getsockname()[1]}", tmp_path / "message"
        environment = {**os.environ, "SWITCHOVER_TERMINATION_LOG": str(message)}
        trying = subprocess.Popen(["bash", "-c", REACH, "reach", address], env=environment)
        with pytest.raises(subprocess.TimeoutExpired):
            trying.wait(1.5)
        later.listen()
        assert trying.wait(stretched(40)) == 0
    assert message.read_text() == "reach 1 1\n"


@pytest.mark.parametrize(("message", "missed"), [
    ("reach 1 3\n", ()),
    ("reach 1 3\nkafka-0.kafka:9092\n[fd00::1]:9092\n", ("[fd00::1]:9092", "kafka-0.kafka:9092")),
    ("", None),
    ("reach 2 3\n", None),
    ("reach 1 0\nkafka-0.kafka:9092\n", None),
    ("reach 1 3\npassword=hunter2 and more\n", None),
    ("Error: image has no bash", None),
])
def test_only_a_whole_report_is_one(message: str, missed: tuple[str, ...] | None) -> None:
    assert reports.unreached(message) == missed
