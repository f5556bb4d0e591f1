"""What `drift` may be told."""

from switchover.api.schema import Model


class DriftSettings(Model, extra="forbid"):
    """Settings of `drift`."""
