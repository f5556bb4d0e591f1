"""What a simulated migration prints, run as it stands by the real kubectl and switchover, against the fake API server.

No operator lives meanwhile: time passes with each request, so that pods end and come while kubectl waits for them.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import printed
from fakes.api_on_loopback import on_loopback
from simulation.migration_world import MigrationWorld
from simulation.moments import told

ROOT = Path(__file__).parents[2]
SECONDS_PER_REQUEST = 0.5


@cache
def kubectl() -> Path:
    """The real one, of the sandbox."""
    built = subprocess.run([ROOT / "sandbox" / "build", "k8s"], check=True, stdout=subprocess.PIPE, text=True)
    return Path(built.stdout.strip()) / "kubectl"


def paste(world: MigrationWorld, line: str, **environment: str) -> str:
    """What a printed command prints, run in the state that this world is in."""

    def pass_time() -> None:
        world.timeline.wait(SECONDS_PER_REQUEST)
        world.advance()

    async def run() -> str:
        with TemporaryDirectory() as directory:
            tools = Path(directory)
            (tools / "kubectl").symlink_to(kubectl())
            (tools / "switchover").symlink_to(Path(sys.executable).with_name("switchover"))
            async with on_loopback(tools, world.api, pass_time) as (_, kubeconfig):
                return await asyncio.to_thread(printed.paste, line, tools, KUBECONFIG=str(kubeconfig), HOME=directory,
                                               PYTHONPATH=str(ROOT / "operator"), **environment)

    world.say(f"a person pastes {line}")
    said = asyncio.run(run())
    world.witness.wish()
    if (recorded := world.jury.memory.recorded) is not None:                # what a person writes is on record, too
        world.jury.memory.recorded = replace(recorded, status=world.status)
    return said


def commands(world: MigrationWorld, reason: str) -> Iterator[str]:
    """The changing commands that it prints for a reason which it waits for."""
    yield from printed.changing(told(world, reason)["unblocks"])


def paste_for(world: MigrationWorld, reason: str, which: str = "", **environment: str) -> str:
    """What that command says which is printed for a reason; the one with `which` in it, if there are several."""
    [line] = (each for each in commands(world, reason) if which in each)
    return paste(world, line, **environment)
