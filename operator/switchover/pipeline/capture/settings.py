"""What `capture` may be told."""

from typing import Annotated, Literal

from pydantic import Field

from switchover.api.schema import Model


class CaptureSettings(Model, extra="forbid"):
    """Settings of `capture`."""

    mode: Literal["Once", "Continuous"] = "Once"
    """Once: capture what there is now. Continuous: again and again, until SIGTERM."""
    every_seconds: Annotated[int, Field(ge=1, le=86_400)] = 60
    """With Continuous: from the begin of one capture to that of the next."""
    splits: Annotated[int, Field(ge=1, le=1_000)] = 2
    """Spark tasks that share the partitions of `__consumer_offsets`."""
    patience_seconds: Annotated[int, Field(ge=0, le=86_400)] = 600
    """With Continuous: how long captures may fail one after the other before the job gives up."""
