"""A Deployment in the middle, and no operator: the commands of the user guide take it back, and no pod too many leaves."""

import asyncio
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apiserver.consumers import until
from apiserver.test_member_deployments import TOTAL, Roll, roll, wanted

__all__ = ["roll"]                                      # a fixture
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "group-deployments.md"


def commands() -> list[list[str]]:
    """Those that take it back, as words without `kubectl`."""
    block = GUIDE.read_text().partition("## By hand")[2].split("```")[1]
    return [shlex.split(line, comments=True)[1:] for line in block.replace("\\\n", "").strip().splitlines()]


@pytest.mark.parametrize("moved", [2, TOTAL])
async def test_the_commands_of_the_user_guide_take_it_back(
    roll: Roll, kubectl: Callable[..., Any], namespace: str, moved: int
) -> None:
    await roll.write(wanted(roll))
    await roll.move(moved)
    resume, undo, own = commands()
    sets = await roll.server.get(roll.server.path("apps/v1", "ReplicaSet"))
    revision = next(each["metadata"]["annotations"]["deployment.kubernetes.io/revision"] for each in sets["items"]
                    if each["metadata"]["labels"]["pod-template-hash"] == roll.original.update_revision)
    for command in (resume, [word.replace("=N", f"={revision}") for word in undo]):
        kubectl("-n", namespace, *command)
        for _ in range(10):
            await roll.look()
            await asyncio.sleep(0.1)
        assert roll.fewest == TOTAL, f"a pod left by {command}"
    kubectl("-n", namespace, *own)

    async def back() -> bool:
        return roll.revisions(await roll.look()) == (TOTAL, 0)

    await until(back, "every pod is as it was")
    after = await roll.look()
    assert (after.template, after.min_ready, after.deadline, after.paused) == (
        roll.original.template, 0, 600, False)
    assert after.update_strategy == roll.original.update_strategy
