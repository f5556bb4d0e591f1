"""What a controller's pod finds out when it starts: run by a real bash against real sockets."""

import os
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from adapters.certificates import Certificates
from patience import stretched
from switchover.cluster.door import mount
from switchover.cluster.door.mount import REACH
from switchover.kubernetes import reports


class Standing:
    """Listens, and does with each connection what it is made with; counts them."""

    def __init__(self, does: Callable[[socket.socket], None]) -> None:
        self._does = does
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.server.getsockname()[1]}"
        self.open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
                self.open.append(connection)
                self._does(connection)
            except OSError:
                return


def answers_as_kafka(connection: socket.socket) -> None:
    """ApiVersions v0 with one key, as a broker writes it, to a request that is whole."""
    request = connection.recv(24, socket.MSG_WAITALL)
    size, key, version, correlation = struct.unpack(">ihhi", request[:12])
    assert (size, key, version, request[12:]) == (len(request) - 4, 18, 0, b"\0\x0aswitchover")
    connection.sendall(struct.pack(">iihihhh", 16, correlation, 0, 1, 18, 0, 4))


def resets(connection: socket.socket) -> None:
    """What a sidecar does that lets its own mesh in alone."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def closes(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def says(words: bytes) -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(words)


@contextmanager
def standing(does: Callable[[socket.socket], None]) -> Iterator[str]:
    there = Standing(does)
    yield there.address
    there.server.close()
    for each in there.open:
        each.close()


@pytest.fixture
def broker() -> Iterator[str]:
    """What answers as a broker does."""
    with standing(answers_as_kafka) as address:
        yield address


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
    container = mount.reach_container(addresses, {"image": "kafka"})
    environment = {**os.environ, "SWITCHOVER_TERMINATION_LOG": str(message), "SWITCHOVER_RUN": str(directory),
                   "SWITCHOVER_REACH_SECONDS": "3"}
    subprocess.run(container["command"], env=environment, check=True, timeout=stretched(40))
    return message.read_text()


def test_all_are_reached(tmp_path: Path, broker: str) -> None:
    assert report(tmp_path, broker, broker) == "reach 2 2\n"
    assert (tmp_path / "reached").read_text() == f"{broker},{broker}"


def test_a_host_in_brackets_is_an_address_of_ipv6(tmp_path: Path) -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        threading.Thread(target=lambda: answers_as_kafka(server.accept()[0]), daemon=True).start()
        assert report(tmp_path, f"[::1]:{server.getsockname()[1]}") == "reach 2 1\n"


def test_who_refuses_or_is_silent_or_has_no_name_is_told(tmp_path: Path, broker: str, nobody: str, silent: str) -> None:
    """After the seconds in which it is tried again."""
    missed = reports.unreached(report(tmp_path, nobody, broker, silent, "kafka-0.nowhere.invalid:9092"))
    assert missed == dict.fromkeys((nobody, silent, "kafka-0.nowhere.invalid:9092"), False)
    assert (tmp_path / "reached").read_text() == broker, "where the door logs in"


def test_who_takes_a_connection_and_does_not_answer_as_kafka_is_not_reached(tmp_path: Path) -> None:
    others = (resets, closes, lambda _: None, says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), says(b"\0\0\0\6"),
              says(b"\0\0\0\x0aAnid\0\0\0\0\0\0"), says(b"\0\0\0\x0aSwOv\0\x23\0\0\0\0"), says(b"\x15\x03\3\0\2\2\x28"))
    with ExitStack() as stack:
        addresses = [stack.enter_context(standing(does)) for does in others]
        assert reports.unreached(report(tmp_path, *addresses)) == dict.fromkeys(addresses, True)
        assert (tmp_path / "reached").read_text() == ""


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_where_the_listener_encrypts_an_answer_of_tls_is_one(tmp_path: Path, version: ssl.TLSVersion) -> None:
    """Of a server that has read our greeting, and not an alert alone."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = context.maximum_version = version
    pem = Certificates(tmp_path, "127.0.0.1")
    (tmp_path / "server.pem").write_text(pem.server_key + pem.server_chain)
    context.load_cert_chain(tmp_path / "server.pem")
    seen: list[str] = []

    def serve(connection: socket.socket) -> None:
        try:
            context.wrap_socket(connection, server_side=True)
        except (ssl.SSLError, OSError) as error:
            seen.append(str(error))

    with standing(serve) as server, standing(closes) as plain:
        assert reports.unreached(report(tmp_path, f"tls://{server}", f"tls://{plain}")) == {plain: True}
        assert (tmp_path / "reached").read_text() == server
    assert seen
    assert not [each for each in seen if "EOF" not in each and "reset" not in each], "it understood our greeting"


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
        threading.Thread(target=lambda: answers_as_kafka(later.accept()[0]), daemon=True).start()
        assert trying.wait(stretched(40)) == 0
    assert message.read_text() == "reach 2 1\n"


@pytest.mark.parametrize(("message", "missed"), [
    ("reach 1 3\n", {}),
    ("reach 1 3\nkafka-0.kafka:9092\n[fd00::1]:9092\n", {"[fd00::1]:9092": False, "kafka-0.kafka:9092": False}),
    ("reach 2 3\nkafka-0.kafka:9092 silent\n[fd00::1]:9092\n", {"[fd00::1]:9092": False, "kafka-0.kafka:9092": True}),
    ("", None),
    ("reach 3 3\n", None),
    ("reach 2 3\nkafka-0.kafka:9092 hush\n", None),
    ("reach 1 0\nkafka-0.kafka:9092\n", None),
    ("reach 1 3\npassword=hunter2 and more\n", None),
    ("Error: image has no bash", None),
])
def test_only_a_whole_report_is_one(message: str, missed: dict[str, bool] | None) -> None:
    assert reports.unreached(message) == missed
