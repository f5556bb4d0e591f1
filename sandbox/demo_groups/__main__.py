"""`make demo-groups`: two consumer groups moved under traffic, five stories, and the oracle's word on all of them."""

import fcntl
import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rich.console import Console

from demo import migration
from demo.cluster import Cluster, CommandFailed
from demo.diagnostics import collect
from demo.sandbox import bring_up
from demo.screen import Screen
from demo_groups import histories, stories, world
from demo_groups.follow import StoryFailed, Told, follow
from demo_groups.summary import Summary

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "build" / "demo-groups"
LINES = (
    (stories.STALLED_CANARY, stories.PROTOCOL_UPGRADE, stories.DOWNGRADE),
    (stories.ASSIGNMENT_STRATEGY,),
)
"""Stories of one group follow each other; those of different groups go on side by side."""
LAST = (stories.REFUSED_CANARY,)
"""It restarts every broker."""


def main() -> int:
    """All five stories. 0 only when each came to its end, without an overlap, a rewind or a loss."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    lock = (OUTPUT / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("demo: another one runs in this checkout; it would lose its namespace to this one", file=sys.stderr)
        return 2
    (OUTPUT / "summary.json").unlink(missing_ok=True)
    screen = Screen(Console())
    cluster: Cluster | None = None
    try:
        cluster = bring_up(images=world.images())
        screen.say("sandbox is up, images are loaded")
        summary = tell(cluster, (LINES, (LAST,)), screen.say, OUTPUT / "histories")
    except KeyboardInterrupt:
        screen.say("interrupted; the next `make demo-groups` starts afresh, `make demo-down` takes everything away")
        return 130
    except (CommandFailed, StoryFailed, ValueError) as error:
        screen.say(f"FAILED: {error}")
        if cluster is not None:
            collect(cluster, OUTPUT / "diagnostics")
            screen.say(f"logs, events and status are in {(OUTPUT / 'diagnostics').relative_to(ROOT)}")
        (OUTPUT / "summary.json").write_text(json.dumps({"result": "Failed", "reason": str(error)}, indent=2) + "\n")
        return 1
    (OUTPUT / "summary.json").write_text(json.dumps(summary.as_json(), indent=2) + "\n")
    Console().print(summary.as_table())
    screen.say(f"summary: {(OUTPUT / 'summary.json').relative_to(ROOT)}")
    return 0 if summary.good else 1


def tell(cluster: Cluster, chapters: Sequence[Sequence[Sequence[stories.Story]]], say: Callable[[str], None],
         directory: Path, each: Callable[[Mapping[str, Any]], None] = lambda _: None) -> Summary:
    """A fresh world; the chapters one after the other, their lines side by side; then the oracle. `each` gets every
    migration at every change.

    Raises CommandFailed and StoryFailed, and ValueError where the histories cannot be judged.
    """
    shutil.rmtree(directory, ignore_errors=True)
    world.remove(cluster)
    world.deploy(cluster, say)
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
