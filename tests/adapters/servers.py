"""Real ZooKeeper and Kafka processes on loopback, for tests.

Every server listens on a loopback address of its own and on the usual port, so nothing collides and a server can
"move". Start servers from the main thread: the kernel kills them when the thread that started them ends, which is what
leaves nothing behind when pytest itself is killed.
"""

import contextlib
import fcntl
import os
import random
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from kazoo.client import KazooClient

from adapters.freezing import frozen
from patience import Patience, stretched
from switchover.network.addresses import Address

KAFKA = Path(__file__).parents[2] / "sandbox" / "kafka"
RARE = ("3.6", "3.8")       # a few long tests start these
START_SECONDS = 60          # a start takes 1 to 3 s
STOP_SECONDS = 60           # a stop takes 1 to 6 s; a broker killed in the midst of it cannot come back for its session


class ServerError(Exception):
    """A server did not come up, or ended by itself; carries the end of its log."""


@cache
def libraries(version: str = "3.9") -> Path:
    """The directory of a Kafka's jars, fetched by Maven the first time, with a class archive beside where many start."""
    libs = Path(_run(["fetch", version], os.environ).strip())
    if version in RARE:
        return libs
    with (libs.parent / "classes.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (libs.parent / "classes.jsa").exists():
            _run(["archive-classes", str(libs)], os.environ)
    return libs


def _run(command: list[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        [KAFKA / command[0], *command[1:]],
        env=environment, capture_output=True, text=True, timeout=stretched(300), check=False,
    )
    if done.returncode:
        raise ServerError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def loopback(port: int) -> Address:
    """A loopback address nobody listens on."""
    while True:
        host = f"127.{random.randint(1, 254)}.{random.randint(0, 255)}.{random.randint(1, 254)}"
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((host, port))
            return Address(host, port)


def free_port() -> int:
    """Free on every address: controllers listen on all. Below the range that the kernel gives to clients."""
    while True:
        port = random.randint(20_000, 30_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                continue
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port


class Server:
    """One server process; it can be started again after it stopped."""

    script: str
    question: bytes             # a request of its protocol that every server answers once it serves
    heap: str
    java_options = ""
    version = "3.9"

    def __init__(self, directory: Path, address: Address) -> None:
        self.directory = directory
        self.address = address
        self.log = directory / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def pid(self) -> int:
        """Of the server's own process: every script in between becomes it."""
        assert self._process is not None, f"{self.directory.name} does not run"
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether its process has ended by itself."""
        assert self._process is not None, f"{self.directory.name} does not run"
        return self._process.poll() is not None

    def start(self, properties: str, *, wait: bool = True) -> None:
        """Start with this configuration text and wait until it answers; `wait=False` leaves that to `wait()`."""
        assert self._process is None, f"{self.directory.name} is running"
        assert threading.current_thread() is threading.main_thread(), "start servers from the main thread"
        file = self.directory / "server.properties"
        file.write_text(properties)
        with self.log.open("ab") as log:
            # Own session: a Ctrl-C at the terminal is pytest's to handle, which then stops the servers in order.
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", KAFKA / "bin" / self.script, file],
                env=self._environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.directory, start_new_session=True,
            )
        if wait:
            self.wait()

    def wait(self, seconds: float = START_SECONDS) -> None:
        """Wait until it answers. Raises ServerError."""
        patience = Patience(seconds)
        while not self.answers():
            if self._process is None or self._process.poll() is not None:
                self._process = None
                raise ServerError(f"{self.directory.name} ended while starting:\n{self.last_words()}")
            if patience.over:
                self.kill()
                raise ServerError(f"{self.directory.name} did not answer within {patience}:\n{self.last_words()}")
            time.sleep(0.05)

    def wait_exit(self, seconds: float = START_SECONDS) -> int:
        """Wait for a server that is expected to end by itself; its exit code."""
        assert self._process is not None
        code = self._process.wait(stretched(seconds))
        self._process = None
        return code

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """SIGTERM, after `seconds` SIGKILL; nothing to do when it does not run."""
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(stretched(seconds))
        self.kill()

    def kill(self) -> None:
        """SIGKILL to the process and whatever it started."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def frozen(self) -> contextlib.AbstractContextManager[None]:
        """For the duration the port accepts and nobody answers."""
        assert self._process is not None
        return frozen(self._process)

    def restart(self, properties: str) -> None:
        self.stop()
        self.start(properties)

    def answers(self) -> bool:
        """Whether the server answers a request of its own protocol."""
        try:
            with socket.create_connection((self.address.host, self.address.port), timeout=stretched(2)) as connection:
                connection.sendall(self.question)
                answer = connection.recv(4)
                return answer not in (b"", b"This")     # "This ZooKeeper instance is not currently serving requests"
        except OSError:
            return False

    def last_words(self, lines: int = 30) -> str:
        """The end of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _environment(self) -> dict[str, str]:
        return os.environ | {
            "KAFKA_LIBS": str(libraries(self.version)),
            "KAFKA_HEAP_OPTS": f"-Xmx{self.heap}", "KAFKA_OPTS": self.java_options,
        }


class ZooKeeperServer(Server):
    """A standalone ZooKeeper 3.8 server."""

    script = "zookeeper-server-start.sh"
    question = b"srvr"
    heap = "96m"
    java_options = "-Dzookeeper.forceSync=no"

    def __init__(self, directory: Path, address: Address | None = None) -> None:
        super().__init__(directory, address or loopback(2181))

    def properties(self) -> str:
        """A short tick lets sessions as short as 1 s exist."""
        return "\n".join([
            f"dataDir={self.directory / 'data'}", f"clientPort={self.address.port}",
            f"clientPortAddress={self.address.host}", "admin.enableServer=false", "tickTime=500", "maxClientCnxns=0",
        ]) + "\n"


class KafkaServer(Server):
    """A Kafka broker or controller, 3.9 unless said otherwise, in whatever mode its configuration says."""

    script = "kafka-server-start.sh"
    question = struct.pack(">ihhih", 10, 18, 0, 1, -1)          # ApiVersions version 0, no client id

    def __init__(self, directory: Path, address: Address, *, heap: str = "256m", version: str = "3.9") -> None:
        super().__init__(directory, address)
        self.heap = heap
        self.version = version

    def format(self, cluster_id: str, properties: str, *, features: Mapping[str, int] | None = None) -> None:
        """`kafka-storage.sh format`: needed once for controllers, and for brokers of a cluster born in KRaft mode.

        `features` are levels other than those of the release.
        """
        file = self.directory / "format.properties"
        file.write_text(properties)
        levels = [f"--feature={name}={level}" for name, level in (features or {}).items()]
        _run(["bin/kafka-storage.sh", "format", f"--cluster-id={cluster_id}", "--release-version", self.version,
              *levels, "--config", str(file)], self._environment())


def srvr(client: KazooClient, field: str) -> str:
    """What a server says of itself by the command of that name."""
    return next(line for line in client.command(b"srvr").splitlines() if line.startswith(field)).partition(": ")[2]
