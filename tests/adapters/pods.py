"""A Kafka process that starts as its pod would: an image's scripts, the user's file, and the door over the start script."""

import os
import shutil
import subprocess
from collections.abc import Mapping

import javaproperties

from adapters.servers import KAFKA, KafkaServer
from switchover.api.kafka_migration import BrokerSet
from switchover.cluster.door import brokers, mount
from switchover.cluster.door.brokers import Brokers
from switchover.cluster.door.mount import DOOR, KEEP
from switchover.kafka.client.nodes import KafkaWire
from switchover.network.addresses import Address

START = "bin/kafka-server-start.sh"
TEMPLATE = {"spec": {"containers": [{"name": "kafka", "image": "kafka"}]}}


def as_pod(server: KafkaServer, file: str, options: str = "") -> None:
    """From now on what the server is started with are its pod's edits; none: the user's own template, without the door.

    Kafka is given the user's `file` and `options`, words of a shell.
    """
    image, run, users = (server.directory / name for name in ("image", "run", "users.properties"))
    for part in ("bin", "config"):
        shutil.copytree(KAFKA / part, image / part)
    run.mkdir()
    users.write_text(file)
    variables = {"SWITCHOVER_RUN": str(run), "SWITCHOVER_TERMINATION_LOG": str(run / "termination-log")}
    subprocess.run(["bash", "-c", KEEP, "keep", image / START, image / "bin"], env=os.environ | variables, check=True)
    shutil.copytree(run / mount.COPY, image / "bin", dirs_exist_ok=True)       # there it is mounted
    door = server.directory / "door.sh"
    door.write_text(DOOR)
    entrypoint = server.directory / "entrypoint"
    entrypoint.write_text(f"""#!/bin/sh
[ -s "$1" ] || exec {KAFKA / START} {users} {options}
export SWITCHOVER_EDITS="$1" SWITCHOVER_DOOR={door} {" ".join(f"{name}={value}" for name, value in variables.items())}
exec {image / START} {users} {options}
""")
    entrypoint.chmod(0o755)
    server.script = str(entrypoint)


def given(server: KafkaServer) -> Mapping[str, str]:
    """What the door gave Kafka at the last start."""
    return javaproperties.loads((server.directory / "run" / "server.properties").read_text())


async def brokers_of(wire: KafkaWire, broker: Address, broker_id: int, image: str = "") -> Brokers:
    """What Switchover finds of brokers that run by their user's own template, and are upgraded to `image`."""
    return brokers.find(TEMPLATE, BrokerSet(name="kafka"), await wire.settings(broker, broker_id), image)
