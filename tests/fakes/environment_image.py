"""An image that makes server.properties of its variables, as a container started by a kubelet runs it.

The wrapped command is run by a real /bin/sh, so that the simulation starts what a pod would start.
"""

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from switchover.core.kraft import environment

ENTRYPOINT = "/etc/confluent/docker/run"
PREFIX = "KAFKA_"


def written(container: Mapping[str, Any], pod: str, own: Mapping[str, str]) -> dict[str, str]:
    """server.properties by file name; nothing when the container's command ends before the image's entrypoint.

    `own` are the files in the directory where the wrapped command looks.
    """
    variables: dict[str, str] = {}
    for item in container.get("env", []):
        value = item.get("value", pod)                               # the one field that these pods take: their name
        for name, known in variables.items():
            value = value.replace(f"$({name})", known)
        variables[item["name"]] = value
    if environment.is_wrapped(container["command"]):
        ran = _run(variables, own)
        if ran is None:
            return {}
        variables = ran
    properties = {environment.property_of(name, PREFIX): value for name, value in variables.items()}
    return {"server.properties": "".join(f"{key}={value}\n" for key, value in properties.items() if key is not None)}


def mode_of_changes(text: str) -> str:
    """The mode that a pod's own file stands for."""
    if "export KAFKA_PROCESS_ROLES=broker\n" in text:
        return "C"
    return "B" if "export KAFKA_ZOOKEEPER_METADATA_MIGRATION_ENABLE=true\n" in text else "A"


def _run(variables: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str] | None:
    with tempfile.TemporaryDirectory() as directory:
        for name, text in own.items():
            (Path(directory) / name).write_text(text)
        script = environment.WRAPPER.replace(environment.DIRECTORY, directory)
        done = subprocess.run(["/bin/sh", "-c", script, environment.NAME, "/usr/bin/env", "-0"], env=dict(variables),
                              capture_output=True, check=False, timeout=60)
    if done.returncode:
        return None
    return dict(item.split("=", 1) for item in done.stdout.decode().split("\0")[:-1])
