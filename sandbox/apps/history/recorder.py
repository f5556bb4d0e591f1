"""Writes a history: what a consumer or a producer calls at each event. For one thread."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

from history.events import SPAN, Event, Kind, Partition, Process, written
from history.ranges import Ranges

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Window:
    """Offsets of one partition that came within SPAN."""

    def __init__(self, since: float) -> None:
        self.since = self.until = since
        self.offsets = Ranges()


class Recorder:
    """The history of one process. Every line is with the kernel when the call returns, so SIGKILL tears at most the last.

    `out` must not buffer (see `opened`). `mono` and `wall` give the time in seconds, `clock` names the machine's boot.
    Call `tick` in each turn of the loop, so that no window stays unwritten for much longer than SPAN.
    """

    def __init__(
        self, out: BinaryIO, member: str, *, instance: str = "", words: str = "", clock: str = "",
        mono: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time,
    ) -> None:
        self._out, self._mono, self._wall, self._instance = out, mono, wall, instance
        self._by = Process(member, f"{int(wall() * 1000):x}")
        self._windows: dict[tuple[Kind, Partition], Window] = {}
        self._untouched: set[Partition] = set()
        self._write(Kind.START, clock=clock or BOOT_ID.read_text().strip(), words=words)

    def claim(self, topic: str, partition: int, since: float, offset: int | None) -> None:
        """Assigned; `offset` is the committed one as asked for at `since`, NO_OFFSET for none, None when not known."""
        where = Partition(topic, partition)
        self._write_window(Kind.DELIVERED, where)  # of a holding before this one
        self._untouched.add(where)
        self._write(Kind.CLAIM, partition=where, since=since, offset=offset)

    def delivered(self, topic: str, partition: int, offset: int) -> None:
        """One record was handed to the application."""
        where = Partition(topic, partition)
        self._collect(Kind.DELIVERED, where, offset)
        if where in self._untouched:
            self._untouched.discard(where)
            self._write_window(Kind.DELIVERED, where)

    def acknowledged(self, topic: str, partition: int, offset: int) -> None:
        """One record of a producer was acknowledged with this offset."""
        self._collect(Kind.ACKNOWLEDGED, Partition(topic, partition), offset)

    def flush(self) -> float:
        """Write every window; returns the time. To be called right before a commit is sent, as its `since`."""
        for kind, where in list(self._windows):
            self._write_window(kind, where)
        return self._mono()

    def tick(self) -> None:
        """Write the windows that are SPAN old."""
        now = self._mono()
        for (kind, where), window in list(self._windows.items()):
            if now - window.since >= SPAN:
                self._write_window(kind, where)

    def commit(self, topic: str, partition: int, since: float, offset: int) -> None:
        """The broker accepted a commit that was sent at `since`."""
        self._write(Kind.COMMIT, partition=Partition(topic, partition), since=since, offset=offset)

    def release(self, topic: str, partition: int) -> None:
        self._end(Kind.RELEASE, Partition(topic, partition))

    def lost(self, topic: str, partition: int) -> None:
        self._end(Kind.LOST, Partition(topic, partition))

    def fenced(self, words: str) -> None:
        self.flush()
        self._write(Kind.FENCED, words=words)

    def error(self, words: str) -> None:
        self._write(Kind.ERROR, words=words)

    def held(self, topic: str, partition: int, offsets: Ranges) -> None:
        """All offsets that the log of a partition holds, read back by whoever calls this."""
        self._write(Kind.HELD, partition=Partition(topic, partition), ranges=tuple(offsets))

    def reset(self, topic: str, partition: int, offset: int) -> None:
        """Declare that the group, empty now, starts at this offset."""
        self._write(Kind.RESET, partition=Partition(topic, partition), offset=offset)

    def stop(self) -> None:
        self.flush()
        self._write(Kind.STOP)

    def _collect(self, kind: Kind, where: Partition, offset: int) -> None:
        now = self._mono()
        window = self._windows.get((kind, where))
        if window is not None and now - window.since >= SPAN:
            self._write_window(kind, where)
            window = None
        if window is None:
            window = self._windows[kind, where] = Window(now)
        if window.offsets.add(offset, offset):  # delivered twice within one window: two windows, or it would not show
            self._write_window(kind, where)
            window = self._windows[kind, where] = Window(now)
            window.offsets.add(offset, offset)
        window.until = now

    def _write_window(self, kind: Kind, where: Partition) -> None:
        window = self._windows.pop((kind, where), None)
        if window is not None:
            self._write(kind, partition=where, since=window.since, until=window.until, ranges=tuple(window.offsets))

    def _end(self, kind: Kind, where: Partition) -> None:
        self._write_window(Kind.DELIVERED, where)
        self._write(kind, partition=where)

    def _write(self, kind: Kind, **fields: Any) -> None:
        event = Event(kind, self._mono(), self._wall(), self._by, instance=self._instance, **fields)
        rest = memoryview(written(event))
        while rest:
            rest = rest[self._out.write(rest):]


def opened(path: str) -> BinaryIO:
    """Where a Recorder writes: standard output for `-`, else the file's end, after a line that an earlier run left torn."""
    if path == "-":
        return cast(BinaryIO, open(1, "wb", buffering=0, closefd=False))
    out = cast(BinaryIO, open(path, "ab+", buffering=0))  # noqa: SIM115 (open as long as the process lives)
    if out.tell() > 0:
        out.seek(-1, 2)
        if out.read(1) != b"\n":
            out.write(b"\n")
    return out
