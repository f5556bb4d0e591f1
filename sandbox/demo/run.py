"""What every demo does around its story: one at a time, and a summary.json whatever happens."""

import fcntl
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console, RenderableType

from demo.cluster import Cluster, CommandFailed
from demo.diagnostics import collect
from demo.migration import MigrationFailed
from demo.sandbox import bring_up
from demo.screen import Screen

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build"


class Summary(Protocol):
    """What a story ends with."""

    @property
    def good(self) -> bool: ...

    def as_json(self) -> dict[str, Any]: ...

    def as_table(self) -> RenderableType: ...


def run(command: str, output: Path, tell: Callable[[Cluster, Screen], Summary], images: Sequence[str] | None = None,
        so_far: Callable[[], Mapping[str, Any]] = dict) -> int:
    """The exit code of `command`: 0 only when the summary is good.

    `tell` gets the sandbox with the images in it. It raises CommandFailed, MigrationFailed or ValueError where the story
    breaks off: summary.json in `output` then has the reason, and what `so_far` knows.
    """
    output.mkdir(parents=True, exist_ok=True)
    lock = (BUILD / "demo.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("demo: another one runs in this checkout; it would lose its namespace to this one", file=sys.stderr)
        return 2
    (output / "summary.json").unlink(missing_ok=True)
    screen = Screen(Console())
    cluster: Cluster | None = None
    try:
        cluster = bring_up(images=images)
        screen.say("sandbox is up, images are loaded")
        summary = tell(cluster, screen)
    except KeyboardInterrupt:
        screen.close()
        screen.say(f"interrupted; the next `{command}` starts afresh, `make demo-down` takes everything away")
        return 130
    except (CommandFailed, MigrationFailed, ValueError) as error:
        screen.close()
        screen.say(f"FAILED: {error}")
        if cluster is not None:
            collect(cluster, output / "diagnostics", screen.say)
            screen.say(f"logs, events and status are in {(output / 'diagnostics').relative_to(ROOT)}")
        _write(output, {**so_far(), "result": "Failed", "reason": str(error)})
        return 1
    _write(output, summary.as_json())
    Console().print(summary.as_table())
    screen.say(f"summary: {(output / 'summary.json').relative_to(ROOT)}")
    return 0 if summary.good else 1


def _write(output: Path, found: Mapping[str, Any]) -> None:
    (output / "summary.json").write_text(json.dumps(found, indent=2) + "\n")
