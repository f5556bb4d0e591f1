"""What `baseline` may be told."""

from switchover.api.schema import Model


class BaselineSettings(Model, extra="forbid"):
    """Settings of `baseline`."""
