"""Sample members of a group and their producer as processes, and what the oracle says of their histories."""

import contextlib
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

from adapters.admin import create_topic
from adapters.freezing import frozen
from adapters.processor import cpu_seconds
from history.checker import check
from history.events import Event, Kind, Partition, parsed
from history.reader import Reading
from history.report import Report
from patience import stretched

SANDBOX, BUILD, OPERATOR = (Path(__file__).parents[2] / name for name in ("sandbox", "build", "operator"))
RATE, EVERY_MS = 120, 100
"""Records a second of a producer, and how often it sends what is due: each time means a request, and fetches of members."""


JAVA = ["java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
"""For a small machine: no second compiler, no collector threads."""


@cache
def java() -> list[str]:
    """The command of the member in Java, compiled the first time."""
    build = subprocess.run([SANDBOX / "apps/java-member/build"], stdout=subprocess.PIPE, text=True, check=True)
    return [*JAVA, "-cp", f"{build.stdout.strip()}/*", "dev.switchover.member.Member"]


def python() -> list[str]:
    """The command of the member in Python."""
    return [sys.executable, "-m", "member"]


def migrating() -> list[str]:
    """The command of the member that is migration-enabled."""
    return [sys.executable, "-m", "zkmember"]


@cache
def old_python() -> list[str]:
    """The same member on the client of the image old-client, installed the first time."""
    requirements = SANDBOX / "images/old-client/requirements.txt"
    target = BUILD / f"old-client-{sha256(requirements.read_bytes()).hexdigest()[:12]}"
    if not (target / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", target], check=True)
        subprocess.run([target / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes",
                        "--only-binary", ":all:", "--requirement", requirements], check=True)
        (target / "complete").touch()
    return [str(target / "bin/python"), "-m", "member"]


class Process:
    """A member or a producer that writes its history to a file."""

    def __init__(self, name: str, command: list[str], directory: Path, environment: dict[str, str]) -> None:
        self.name = name
        self.history = directory / f"{name}.jsonl"
        self.log = directory / f"{name}.log"
        given = {**os.environ, "PYTHONPATH": f"{OPERATOR}:{SANDBOX / 'apps'}", "HOSTNAME": name, **environment}
        with self.log.open("wb") as log:        # not to outlive pytest, as servers.py says
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *command], env=given, cwd=directory, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log,
            )

    def events(self, *kinds: Kind) -> list[Event]:
        """Its history so far, or the events of these kinds in it."""
        lines = self.history.read_bytes().splitlines(keepends=True) if self.history.exists() else []
        events = [parsed(line) for line in lines if line.endswith(b"\n")]
        return [event for event in events if not kinds or event.kind in kinds]

    def delivers(self, count: int, since: float = 0.0) -> bool:
        """Whether it delivered from so many partitions, of what it delivered after `since`."""
        return len({each.partition for each in self.events(Kind.DELIVERED) if each.since > since}) >= count

    def ended(self, seconds: float = 60) -> int:
        """Its exit code, once it ends by itself."""
        return self._process.wait(stretched(seconds))

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def cpu_seconds(self) -> float:
        return cpu_seconds(self._process.pid)

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        self._process.terminate()
        return self.ended()

    def frozen(self) -> contextlib.AbstractContextManager[None]:
        """It lives and does nothing, for the duration."""
        return frozen(self._process)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class Group:
    """A topic, a producer for it and the members of one group. `directory` keeps their files; all get the environment, in
    which GROUP may name both."""

    def __init__(self, bootstrap: str, directory: Path, partitions: int, environment: Mapping[str, str]) -> None:
        self.topic = self.name = environment.get("GROUP", uuid.uuid4().hex)
        self.partitions = [Partition(self.topic, number) for number in range(partitions)]
        self._directory = directory
        self.processes: list[Process] = []
        self._environment = {
            "BOOTSTRAP_SERVERS": bootstrap, "TOPIC": self.topic, "GROUP": self.name, "RATE": str(RATE),
            "EVERY_MS": str(EVERY_MS), **environment}
        create_topic(bootstrap, self.topic, partitions)
        self.producer = self._started("producer", [sys.executable, "-m", "load", "produce"],
                                      HISTORY=str(directory / "load.json"), ACKNOWLEDGED=str(directory / "producer.jsonl"))

    def member(self, name: str, command: list[str], **environment: str) -> Process:
        """A new member; its environment is told as settings.py names it."""
        return self._started(name, command, HISTORY=str(self._directory / f"{name}.jsonl"), **environment)

    def report(self) -> Report:
        """What the oracle says of all histories, the partitions all expected to have had an owner."""
        return check(Reading(each.history for each in self.processes).events(), self.partitions)

    def acknowledged(self) -> int:
        """Records that the producer knows to be written."""
        return sum(last - first + 1 for event in self.producer.events(Kind.ACKNOWLEDGED) for first, last in event.ranges)

    def committed(self) -> int:
        """Records that members say the group has passed."""
        offsets: dict[Partition, int] = {}
        for process in self.processes:
            for event in process.events(Kind.COMMIT):
                offsets[event.partition] = max(offsets.get(event.partition, 0), event.offset or 0)
        return sum(offsets.values())

    def kill(self) -> None:
        for process in self.processes:
            process.kill()

    def _started(self, name: str, command: list[str], **environment: str) -> Process:
        process = Process(name, command, self._directory, {**self._environment, **environment})
        self.processes.append(process)
        return process


@contextlib.contextmanager
def group(bootstrap: str, directory: Path, partitions: int = 4, **environment: str) -> Iterator[Group]:
    """A group whose processes end with the block."""
    made = Group(bootstrap, directory, partitions, environment)
    try:
        yield made
    finally:
        made.kill()
