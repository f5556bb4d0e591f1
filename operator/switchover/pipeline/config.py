"""The configuration file of a job: YAML, one file for all jobs of a cluster."""

from pathlib import Path
from typing import Annotated

import yaml
from pydantic import Field, ValidationError

from switchover.api.meta import SecretRef
from switchover.api.schema import Model
from switchover.pipeline.audit.settings import AuditSettings
from switchover.pipeline.baseline.settings import BaselineSettings
from switchover.pipeline.capture.settings import CaptureSettings
from switchover.pipeline.drift.settings import DriftSettings
from switchover.pipeline.inventory.settings import InventorySettings
from switchover.pipeline.outcome import BadConfig

Text = Annotated[str, Field(min_length=1, max_length=4096)]


class Spark(Model, extra="forbid"):
    """Where and how Spark runs."""

    master: Text = "local[2]"
    """`local[N]`: in this process. What `spark-submit` was told wins (executors as pods, SparkApplications)."""
    memory: Annotated[str, Field(pattern=r"^[1-9][0-9]*[mg]$")] = "1g"
    """Heap of the driver's JVM; Python's memory comes beside it."""
    options: dict[str, str] = Field(default_factory=dict)
    """Further Spark properties; they win over ours."""


class Kafka(Model, extra="forbid"):
    """How a client reaches Kafka."""

    bootstrap_servers: Text
    """HOST:PORT of one or more brokers, with commas."""
    command_config: Path | None = None
    """Client properties as for Kafka's tools, and as in the operator's Secrets; PEM as text."""
    credentials_ref: SecretRef | None = None
    """The Secret that the inventory's migrations name; the jobs read `command_config` alone."""


class ZooKeeper(Model, extra="forbid"):
    """How a client reaches ZooKeeper."""

    connect: Text
    """HOST:PORT,…/CHROOT"""
    command_config: Path | None = None
    """Client properties as in the operator's Secrets."""
    credentials_ref: SecretRef | None = None
    """As Kafka's."""
    transaction_logs: tuple[Path, ...] = ()
    """Directories that hold servers' `log.*` files, each server's its own (`version-2`)."""


class Config(Model, extra="forbid"):
    """Everything a job is told."""

    cluster: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,98}[a-z0-9])?$")]
    """The name under which everything of this cluster is filed."""
    store: Path
    """The directory that holds `bronze/`, `manifests/` and `runs/`."""
    spark: Spark = Spark()
    kafka: Kafka | None = None
    zookeeper: ZooKeeper | None = None
    capture: CaptureSettings = CaptureSettings()
    inventory: InventorySettings = InventorySettings()
    baseline: BaselineSettings = BaselineSettings()
    audit: AuditSettings | None = None
    drift: DriftSettings = DriftSettings()


def load(file: Path) -> Config:
    """The configuration in a file. Raises BadConfig with the field and what it must be."""
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadConfig(f"{file}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise BadConfig(f"{file} is not YAML: {error}") from None
    if not isinstance(content, dict):
        raise BadConfig(f"{file} must hold fields such as `cluster` and `store`")
    try:
        return Config.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the file"
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise BadConfig(f"{file}: {field}: {first['msg']}{more}") from None
