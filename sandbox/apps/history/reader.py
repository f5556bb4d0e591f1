"""Reads histories from files and lays them together in the order of time."""

import heapq
from collections.abc import Iterable, Iterator
from pathlib import Path

from history.events import Event, parsed


class Reading:
    """Events of several files, and what in the files was none. `torn` and `foreign` are complete once all is read."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = list(paths)
        self.torn: list[str] = []
        self.foreign = 0

    def events(self) -> Iterator[Event]:
        """All events by their monotonic time, one file's line held at a time.

        Raises ValueError when the lines of one file are not in the order of time: then two histories were mixed in it.
        """
        return heapq.merge(*map(self._of_one, self._paths), key=lambda event: event.mono)

    def notes(self) -> list[str]:
        """What was left out, in words."""
        told = [f"left out, torn: {where}" for where in self.torn]
        if self.foreign:
            told.append(f"left out: {self.foreign} lines that are no history")
        return told

    def _of_one(self, path: Path) -> Iterator[Event]:
        reached = float("-inf")
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    event = parsed(line)
                except ValueError:
                    if line.startswith(b"{"):
                        self.torn.append(f"{path.name} line {number}")
                    elif line.strip():
                        self.foreign += 1
                    continue
                if event.mono < reached:
                    raise ValueError(f"{path.name} line {number}: not in the order of time: two histories in one file?")
                reached = event.mono
                yield event
