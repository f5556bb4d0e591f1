"""What `capture` may be told."""

from switchover.api.schema import Model


class CaptureSettings(Model, extra="forbid"):
    """Settings of `capture`."""
