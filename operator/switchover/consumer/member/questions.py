"""What a member asks, and what it has asked and not heard of yet."""

from switchover.consumer.messages import Request


class Requests:
    """What is to be asked, in its order. Numbers tell answers apart."""

    def __init__(self) -> None:
        self._waiting: list[Request] = []
        self._number = 0

    def ask(self, request: Request) -> None:
        self._waiting.append(request)

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def taken(self) -> list[Request]:
        """All since the last time."""
        taken, self._waiting = self._waiting, []
        return taken


class Question:
    """One that is asked again and again, and once at a time: the number under way, 0 for none, and when it is due."""

    __slots__ = ("due", "number")

    def __init__(self) -> None:
        self.number, self.due = 0, 0.0

    def is_due(self, now: float) -> bool:
        return not self.number and self.due <= now

    def begun(self, requests: Requests) -> int:
        """Under way from now on, by this number."""
        self.number = requests.next_number()
        return self.number

    def ended(self, due: float) -> None:
        """Answered, or failed. `due`: when it may be asked again."""
        self.number, self.due = 0, due
