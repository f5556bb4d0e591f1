"""What `audit` may be told."""

from switchover.api.schema import Model


class AuditSettings(Model, extra="forbid"):
    """Settings of `audit`."""
