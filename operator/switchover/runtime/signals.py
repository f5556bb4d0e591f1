"""Until a signal asks a program to end."""

import signal
from contextlib import suppress
from queue import Empty, SimpleQueue


class Stop:
    """What `threading.Event` is, for the one thread that runs the handlers of signals.

    A handler runs in the middle of whatever that thread does, also of an Event's own `wait`: it would wait for a lock that
    the thread it interrupts holds, and neither would go on. `SimpleQueue.put` can be interrupted anywhere (docs.python.org,
    queue).
    """

    def __init__(self) -> None:
        self._asked: SimpleQueue[None] = SimpleQueue()
        self._is_set = False

    def set(self) -> None:
        """Ask it to end."""
        self._is_set = True
        self._asked.put(None)

    def is_set(self) -> bool:
        """Whether it is asked to end."""
        return self._is_set

    def wait(self, seconds: float) -> bool:
        """Wait until it is asked to end, for so long at most; whether it is."""
        if not self._is_set:
            with suppress(Empty):
                self._asked.get(timeout=seconds)
        return self._is_set


def on_signals() -> Stop:
    """Set by SIGTERM and Ctrl-C from now on. To be called in the main thread."""
    stop = Stop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop
