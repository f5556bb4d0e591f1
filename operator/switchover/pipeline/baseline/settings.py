"""What `baseline` may be told."""

from typing import Annotated

from pydantic import Field

from switchover.api.schema import Model


class BaselineSettings(Model, extra="forbid"):
    """Settings of `baseline`."""

    days: Annotated[int, Field(ge=1, le=366)] = 7
    """How far the history reaches back from the newest capture."""
    back_test_hours: Annotated[int, Field(ge=1, le=8_784)] = 24
    """The end of the history, on which the gate is tried; what it is tried with comes from what lies before."""
    min_values: Annotated[int, Field(ge=2, le=100_000)] = 30
    """Values of an hour of the week (with the hour before and after it) without which the hour is left to all hours, and of
    all hours without which a partition has no baseline."""
    max_time_lag_seconds: Annotated[int, Field(ge=1, le=86_400)] = 60
    """As `gates.maxTimeLagSeconds` of the migrations: the back-test's gate, and what a time lag is measured up to."""
    max_stall_seconds: Annotated[int, Field(ge=1, le=86_400)] = 75
    """As `gates.maxStallSeconds` of the migrations."""
    lag_pass_seconds: Annotated[int, Field(ge=0, le=86_400)] = 30
    """As `gates.lagPassSeconds` of the migrations."""
    max_bytes: Annotated[int, Field(ge=1_024, le=524_288)] = 240_000
    """Of one ConfigMap as JSON. `kubectl apply` without `--server-side` keeps a copy in an annotation, and those may have
    262,144 bytes."""
