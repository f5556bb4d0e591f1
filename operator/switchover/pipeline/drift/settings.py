"""What `drift` may be told."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from switchover.api.schema import Model


class DriftSettings(Model, extra="forbid"):
    """Settings of `drift`."""

    quorum_voters: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """The controllers, as `controller.quorum.voters` names them: ID@HOST:PORT with commas. `drift` cannot do without."""
    controllers_config: Path | None = None
    """Client properties for the controllers' listener; without them those of `kafka.commandConfig` are used."""
    password_encoder_secret: Path | None = None
    """A file with the brokers' `password.encoder.secret`, where they have one: ZooKeeper's passwords are encrypted by it."""
    snapshots: Annotated[int, Field(ge=2, le=1000)] = 3
    """How often both sides are read. A difference counts when it is in two in a row."""
    pause_seconds: Annotated[float, Field(ge=0, le=3600)] = 10.0
    """Between two of them: dual write must have the time to catch up."""
    seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0
    """How long one reading of a side may take."""
