"""Processes that live and do nothing."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator


@contextlib.contextmanager
def frozen(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """SIGSTOP for the duration, which begins when the last thread has stopped.

    The signal stops a process once its main thread has a processor to take it on; until then, milliseconds on a busy
    machine, a broker goes on answering.
    """
    process.send_signal(signal.SIGSTOP)
    change = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    assert change is not None
    assert change.si_code == os.CLD_STOPPED, f"process {process.pid} ended before it could be frozen"
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)
