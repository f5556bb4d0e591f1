"""What the demos show while they run."""

import time

from rich.console import Console
from rich.live import Live

from switchover.cli.display import tree
from switchover.cli.objects import Resource


class Screen:
    """Lines as they come; on a terminal the tree of the migration stands below them and refreshes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._started = time.monotonic()
        self._live: Live | None = None

    def say(self, line: str) -> None:
        """One line, with the seconds since the start."""
        stamped = f"[{time.monotonic() - self._started:6.1f} s] {line}"
        self._console.print(stamped, markup=False, highlight=False, soft_wrap=True)

    def show(self, resource: Resource) -> None:
        """The migration as it is now; without a terminal its lines are enough."""
        if self._console.is_terminal:
            if self._live is None:
                self._live = Live(console=self._console, refresh_per_second=2)
                self._live.start()
            self._live.update(tree(resource, time.time()))

    def close(self) -> None:
        """Leave the last tree standing and go on below it."""
        if self._live is not None:
            self._live.stop()
            self._live = None
