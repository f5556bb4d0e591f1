"""What `inventory` may be told."""

from switchover.api.schema import Model


class InventorySettings(Model, extra="forbid"):
    """Settings of `inventory`."""
