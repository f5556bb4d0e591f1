"""A program on a terminal of its own, as a person has it: what it shows, and what is typed."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from patience import Patience

LINES, COLUMNS = 50, 160
CTRL_C = "\x03"


class Terminal:
    """A pseudo terminal that the program controls; `shown` is all that it has written so far, escapes included."""

    def __init__(self, process: "subprocess.Popen[bytes]", end: int) -> None:
        self._process = process
        self._end = end
        self.shown = ""

    def until(self, words: str, seconds: float = 30) -> None:
        """Read until it shows them, after all that was read before."""
        begin, patience = len(self.shown), Patience(seconds)
        while words not in self.shown[begin:]:
            assert not patience.over, f"after {patience} no {words!r} in {self.shown[begin:]!r}"
            assert self._read(0.2) or self._process.poll() is None, f"it ended without {words!r}: {self.shown[begin:]!r}"

    def type(self, text: str) -> None:
        """As from the keyboard: Ctrl-C is a signal."""
        os.write(self._end, text.encode())

    def leaves(self, seconds: float = 30, *, question: str = "\0", answer: str = "") -> int:
        """Its exit code, once it has ended; each such question is answered so."""
        patience, begin = Patience(seconds), 0
        while self._process.poll() is None:
            assert not patience.over, f"after {patience} it still runs: {self.shown[-500:]!r}"
            self._read(0.2)
            if self.shown[begin:].rstrip().endswith(question):
                self.type(answer)
                begin = len(self.shown)
        while self._read(0.2):
            pass
        return self._process.returncode

    def _read(self, seconds: float) -> bool:
        if not select.select([self._end], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._end, 65536)
        except OSError:                                     # EIO: nobody has the other end any more
            return False
        self.shown += data.decode(errors="replace")
        return bool(data)


@contextmanager
def terminal(command: Sequence[object], env: Mapping[str, str]) -> Iterator[Terminal]:
    """The program on a terminal; it is killed where it has not ended by itself."""
    end, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    process = subprocess.Popen(
        list(map(str, command)), stdin=other, stdout=other, stderr=other, start_new_session=True,
        env={**env, "TERM": "xterm-256color"}, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(other)
    try:
        yield Terminal(process, end)
    finally:
        process.kill()
        process.wait()
        os.close(end)
