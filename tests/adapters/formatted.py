"""Log directories as `kafka-storage.sh format` leaves them, without a JVM for each: copies of one that it made."""

import fcntl
import shutil
import tempfile
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path

import javaproperties

from adapters.servers import KafkaServer, libraries
from switchover.network.addresses import Address


def lay_out(server: KafkaServer, cluster_id: str, properties: str, features: Mapping[str, int] | None = None) -> None:
    """What `server.format` does, for directories whose formatting is not what a test is about."""
    given = javaproperties.loads(properties)
    for directory in given["log.dirs"].split(","):
        shutil.copytree(_pattern(server.version, features or {}), directory)
        Path(directory, "meta.properties").write_text(
            f"version=1\ncluster.id={cluster_id}\nnode.id={given['node.id']}\ndirectory.id={random_id()}\n")


def random_id() -> str:
    """As Kafka writes its UUIDs."""
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def _pattern(version: str, features: Mapping[str, int]) -> Path:
    """A formatted directory of this version and these levels, kept beside the jars that made it."""
    home = libraries(version).parent
    pattern = home / "-".join(["formatted", *(f"{name}={level}" for name, level in sorted(features.items()))])
    with (home / "formatted.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not pattern.exists():
            with tempfile.TemporaryDirectory(dir=home) as scratch:
                node = KafkaServer(Path(scratch), Address("localhost", 9093), version=version)
                node.format("AAAAAAAAAAAAAAAAAAAAAA", f"""\
node.id=1
process.roles=controller
listeners=CONTROLLER://{node.address}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@{node.address}
log.dirs={scratch}/data
""", features=features)
                Path(scratch, "data").rename(pattern)
    return pattern
