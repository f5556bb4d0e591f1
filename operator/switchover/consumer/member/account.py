"""What a member tells the operator of itself (R4 of docs/facts/coordination.md#the-rules)."""

from switchover.consumer.member.holdings import Holdings
from switchover.consumer.member.questions import Requests
from switchover.consumer.messages import Acknowledge
from switchover.coordination.acknowledgement import Acknowledgement


class Account:
    """What was told last."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._told: Acknowledgement | None = None

    def expire(self) -> None:
        """The node has gone with the session."""
        self._told = None

    def tell(self, now: Acknowledgement, holdings: Holdings) -> None:
        """What has changed: the mode and why it is not followed at once, the rest when the partitions are settled."""
        before = self._told
        if before is None or (now != before and (holdings.are_settled() or (now.mode, now.mode_version, now.waits) != (
                before.mode, before.mode_version, before.waits))):
            self._told = now
            self._requests.ask(Acknowledge(now))
