"""pytest-timeout's limit of a test, in seconds of a quiet machine: what waits on a starved machine does not hang."""

import signal
import threading
from types import FrameType
from typing import Any

import pytest
import pytest_timeout

from patience import Patience

ASKED = 20
"""How often the machine is asked how busy it is, in the time of a limit on a quiet one."""


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool | None:
    """Ends the test as pytest-timeout does, once the patience for it is over. Its ways without a signal stay as they are."""
    if settings.method != "signal" or threading.current_thread() is not threading.main_thread():
        return None
    patience = Patience(settings.timeout)

    def arm() -> None:
        signal.setitimer(signal.ITIMER_REAL, settings.timeout / ASKED)

    def ask(number: int, frame: FrameType | None) -> None:
        __tracebackhide__ = True
        if patience.over:
            pytest_timeout.timeout_sigalrm(item, settings)
        else:
            arm()

    def cancel() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    item.cancel_timeout = cancel        # type: ignore[attr-defined]    # where pytest-timeout looks for it
    signal.signal(signal.SIGALRM, ask)
    arm()
    return True
