"""The configuration of the jobs, one YAML file for all of a cluster: a section for each, and the files that it names."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, Field, ValidationError, model_validator

from switchover.api.meta import SecretRef
from switchover.api.schema import Model
from switchover.pipeline.outcome import BadConfig
from switchover.text.properties_file import Unreadable, read_file_or_secret


def properties(command_config: Path | str | None) -> Mapping[str, str]:
    """A file of client properties, as for Kafka's own tools, or a directory with a file for each, as a Secret is mounted.

    Raises BadConfig when it cannot be read.
    """
    if command_config is None:
        return {}
    try:
        return read_file_or_secret(Path(command_config))
    except Unreadable as error:
        raise BadConfig(str(error)) from None


def _milliseconds(value: Any) -> Any:
    """A time as RFC 3339 text (or as YAML makes of it) in ms since the epoch; ValueError without a zone."""
    if isinstance(value, str) and not value.isdecimal():
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a time needs its zone, for example 2026-11-22T10:00:00Z")
        return int(value.timestamp() * 1000)
    return value


Time = Annotated[int, Field(ge=0), BeforeValidator(_milliseconds)]
"""Ms since the epoch, given as such or as RFC 3339."""


class AuditedGroup(Model, extra="forbid"):
    """One group."""

    name: Annotated[str, Field(min_length=1)]
    expected: Literal["Drained"] | None = None
    """`Drained`: at `until` it must have passed all that was produced to the topics that it commits."""


class AuditSettings(Model, extra="forbid"):
    """Settings of `audit`."""

    groups: Annotated[tuple[AuditedGroup, ...], Field(min_length=1)]
    since: Time
    until: Time | None = None
    """None: the moment at which the job starts."""
    guard_band_ms: Annotated[int, Field(ge=0, le=3_600_000)] = 5000
    """By how much the clocks of ZooKeeper and of Kafka may differ: what is closer together than this has no known order."""
    capture: bool = True
    """First capture, so that the range is covered up to now. False where another job captures all the time."""
    wait_seconds: Annotated[int, Field(ge=0, le=86_400)] = 600
    """Without `capture`: how long to wait for a capture that began at or after `until`."""
    produced: Path | None = None
    """Directory of `*.jsonl`, the producers' own log: {"topic", "partition", "first", "last"} for each range of offsets
    that was acknowledged, both inside."""
    topics: tuple[str, ...] = ()
    """Only these; none: all that the groups commit or own."""

    @model_validator(mode="after")
    def _names_once(self) -> "AuditSettings":
        names = [group.name for group in self.groups]
        if len(set(names)) < len(names):
            raise ValueError("a group is named twice")
        if self.until is not None and self.until <= self.since:
            raise ValueError("until must be later than since")
        return self


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


Pattern = Annotated[str, Field(min_length=1, max_length=512)]


class Workload(Model, extra="forbid"):
    """The workloads whose pods are members of groups: what only their owner knows."""

    groups: Pattern
    """A group's name, or a pattern of it: `*` and `?` as in a shell."""
    name: Pattern = "{group}"
    """The workload's name; {group} stands for the group's."""
    kind: Literal["Deployment", "StatefulSet"] = "Deployment"
    container: Pattern
    """The container that holds the consumer."""
    template: dict[str, Any] = Field(default_factory=dict)
    """The change that the migration ends with, as in ConsumerGroupMigration."""
    bridge: dict[str, Any] | None = None
    """The change in between, as there; a group that ZooKeeper coordinates needs one."""


class InventorySettings(Model, extra="forbid"):
    """Settings of `inventory`."""

    include: tuple[Pattern, ...] = ("*",)
    """Groups that are looked at."""
    exclude: tuple[Pattern, ...] = ()
    """And of these, groups that are not."""
    cut_topics: tuple[Pattern, ...] = ()
    """Topics that connect nobody: an audit or dead-letter topic that many groups read glues the fleet together."""
    max_groups: Annotated[int, Field(ge=1, le=10_000)] = 20
    """Groups in one wave; connected ones stay together, even where they are more."""
    max_partitions: Annotated[int, Field(ge=1, le=10_000_000)] = 2_000
    """Partitions in one wave, likewise."""
    dead_seconds: Annotated[int, Field(ge=60, le=31_536_000)] = 604_800
    """A group without members that has not committed for so long is dead."""
    workloads: tuple[Workload, ...] = ()
    """The first that matches a group is its own; a group without one gets no manifest."""


Text = Annotated[str, Field(min_length=1, max_length=4096)]


class Spark(Model, extra="forbid"):
    """Where and how Spark runs."""

    master: Text = "local[2]"
    """`local[N]`: in this process. What `spark-submit` was given wins (executors as pods, SparkApplications)."""
    memory: Annotated[str, Field(pattern=r"^[1-9][0-9]*[mg]$")] = "1g"
    """Heap of the driver's JVM; Python's memory comes on top."""
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
    """Everything that a job is given."""

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
