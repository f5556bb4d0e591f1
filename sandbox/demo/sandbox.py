"""The sandbox with our images in it, by its own commands."""

import os
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile

from demo import migration, world
from demo.cluster import Cluster, CommandFailed

COMMANDS = Path(__file__).parents[1]
LAST_WORDS = 5
"""Lines that a command which failed is quoted with."""


def bring_up(state: Path | None = None, images: Sequence[str] | None = None, nodes: int | None = None) -> Cluster:
    """The sandbox that lives in `state` (default: the checkout's own) with images: those of the demo's world, unless told.
    `nodes` are as many as sandbox/up says, unless told.

    Raises CommandFailed.
    """
    answer = _run("up", state, nodes=nodes)
    known = dict(line.partition("=")[::2] for line in answer.splitlines())
    _run("load-image", state, *(world.images().values() if images is None else images), migration.OPERATOR_IMAGE)
    programs = Path(known["KUBECTL"]).parent
    path = os.pathsep.join([str(programs), os.environ.get("PATH", os.defpath)])
    return Cluster("demo", {**os.environ, "KUBECONFIG": known["KUBECONFIG"], "PATH": path})


def take_down(state: Path) -> None:
    """End the sandbox that lives in `state`. Raises CommandFailed."""
    _run("down", state)


def _run(command: str, state: Path | None, *arguments: str, nodes: int | None = None) -> str:
    """What one of the commands prints; its progress goes to our standard error, and its last words into CommandFailed."""
    told = {"SANDBOX_STATE": state, "SANDBOX_NODES": nodes}
    environment = os.environ | {name: str(value) for name, value in told.items() if value is not None}
    last: deque[str] = deque(maxlen=LAST_WORDS)
    with TemporaryFile("w+") as printed:
        process = subprocess.Popen(
            [COMMANDS / command, *arguments], env=environment, stdout=printed, stderr=subprocess.PIPE, text=True)
        with process:
            assert process.stderr is not None
            for line in process.stderr:
                sys.stderr.write(line)
                last.append(line)
        if process.returncode:
            raise CommandFailed(f"sandbox/{command} ended with {process.returncode}:\n{''.join(last)}")
        printed.seek(0)
        return printed.read()
