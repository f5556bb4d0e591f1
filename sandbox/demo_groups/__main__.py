"""`make demo-groups`: two consumer groups moved under traffic, five stories, and the oracle's word on all of them."""

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from demo import migration
from demo.cluster import Cluster
from demo.run import BUILD, run
from demo.screen import Screen
from demo_groups import histories, stories, world
from demo_groups.follow import Told, follow
from demo_groups.summary import Summary

OUTPUT = BUILD / "demo-groups"
LINES = (
    (stories.STALLED_CANARY, stories.PROTOCOL_UPGRADE, stories.DOWNGRADE),
    (stories.ASSIGNMENT_STRATEGY,),
)
"""Stories of one group follow each other; those of different groups go on side by side."""
LAST = (stories.REFUSED_CANARY,)
"""It restarts every broker."""


def main() -> int:
    """All five stories. 0 only when each came to its end, without an overlap, a rewind or a loss."""
    def afresh(cluster: Cluster, screen: Screen) -> Summary:
        world.remove(cluster)
        return tell(cluster, (LINES, (LAST,)), screen.say, OUTPUT / "histories")

    return run("make demo-groups", OUTPUT, afresh, world.images())


def tell(cluster: Cluster, chapters: Sequence[Sequence[Sequence[stories.Story]]], say: Callable[[str], None],
         directory: Path, each: Callable[[Mapping[str, Any]], None] = lambda _: None,
         manifests: Path = world.MANIFESTS) -> Summary:
    """Its world; the chapters one after the other, their lines side by side; then the oracle. `each` gets every
    migration at every change.

    Raises CommandFailed and StoryFailed, and ValueError where the histories cannot be judged.
    """
    shutil.rmtree(directory, ignore_errors=True)
    world.deploy(cluster, say, manifests)
    migration.install_operator(cluster)
    say("operator is ready")
    summary = Summary()
    for lines in chapters:
        with ThreadPoolExecutor(len(lines)) as together:
            for told in together.map(lambda line: _line(cluster, line, say, each), lines):
                summary.told |= told
    say("stopping producers, then members; collecting their histories")
    world.stop_traffic(cluster)
    histories.collect(cluster, directory)
    for group in sorted({told.story.group for told in summary.told.values()}):
        summary.reports[group] = histories.judge(directory, group)
        for line in summary.reports[group].lines():
            say(f"oracle, {group}: {line}")
    summary.gaps = {name: histories.between(directory, told.story.group, told.start, told.end).longest_gap
                    for name, told in summary.told.items()}
    return summary


def _line(cluster: Cluster, line: Sequence[stories.Story], say: Callable[[str], None],
          each: Callable[[Mapping[str, Any]], None]) -> dict[str, Told]:
    return {story.name: follow(cluster, story, say, each) for story in line}


if __name__ == "__main__":
    sys.exit(main())
