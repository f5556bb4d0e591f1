"""A thread of a running server that stands still: from outside it looks like one that has ended, or waits for ever."""

import contextlib
import re
import subprocess
from collections.abc import Iterator

from patience import Patience


def debugged(port: int) -> str:
    """The options of a JVM to which `suspended` can attach."""
    return f"-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:{port}"


@contextlib.contextmanager
def suspended(port: int, thread: str) -> Iterator[None]:
    """Within the block the thread whose name has `thread` in it does not run."""
    with subprocess.Popen(["jdb", "-attach", f"127.0.0.1:{port}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as debugger:
        try:
            assert debugger.stdin is not None
            assert debugger.stdout is not None
            print("threads", file=debugger.stdin, flush=True)
            patience, number = Patience(60), ""
            while not number:
                line = debugger.stdout.readline()
                assert line, "the debugger has ended"
                assert not patience.over, f"no thread {thread}"
                if thread in line and (found := re.search(r"\)(0x[0-9a-f]+|\d+)\s", line)) is not None:
                    number = found[1]
            print(f"suspend {number}\nthread {number}\nwhere", file=debugger.stdin, flush=True)
            while "[1]" not in debugger.stdout.readline():
                assert not patience.over, f"{thread} is not suspended"
            yield
        finally:
            debugger.kill()
