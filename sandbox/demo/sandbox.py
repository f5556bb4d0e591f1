"""The sandbox with our images in it, by its own commands."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from demo import migration, world
from demo.cluster import Cluster, CommandFailed

COMMANDS = Path(__file__).parents[1]


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
    """What one of the commands prints; its progress goes to our standard error."""
    told = {"SANDBOX_STATE": state, "SANDBOX_NODES": nodes}
    environment = os.environ | {name: str(value) for name, value in told.items() if value is not None}
    done = subprocess.run(
        [COMMANDS / command, *arguments], env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise CommandFailed(f"sandbox/{command} ended with {done.returncode}")
    return done.stdout
