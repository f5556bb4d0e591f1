"""What the status of both resources shares. Commands live in the spec: nothing here is ever an order."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from switchover.api.conditions import SENTENCE, Conditions
from switchover.api.schema import Clipped, Informative, Model, Time, Unique

Count = Annotated[int, Field(ge=0, le=1_000_000_000)]
Seconds = Annotated[int, Field(ge=0, le=1_000_000_000)]
Name = Annotated[str, Clipped(255)]
Text = Annotated[str, Clipped(1024)]


class Phase(StrEnum):
    """The migration in one word, derived from the conditions for people and columns. Nothing is decided from it."""

    PENDING = "Pending"
    PLANNED = "Planned"
    RUNNING = "Running"
    AWAITING_APPROVAL = "AwaitingApproval"
    PAUSED = "Paused"
    STALLED = "Stalled"
    ROLLING_BACK = "RollingBack"
    ROLLED_BACK = "RolledBack"
    SUCCEEDED = "Succeeded"
    TERMINATING = "Terminating"


class Direction(StrEnum):
    """Which way the plan is walked."""

    FORWARD = "Forward"
    BACKWARD = "Backward"


class Verdict(StrEnum):
    """A gate's answer. Unknown is an observation that failed or is too old; it never opens a gate."""

    PASS = "Pass"
    WAIT = "Wait"
    FAIL = "Fail"
    UNKNOWN = "Unknown"


class Severity(StrEnum):
    """How much a finding of Preflight weighs: only a Blocker stops the migration."""

    BLOCKER = "Blocker"
    WARNING = "Warning"
    INFO = "Info"


class MoveKind(StrEnum):
    """What kind of move is on record. Releases before knew Moved for each but the turns, and said the rest in sentences."""

    STEP_BEGUN = "StepBegun"
    STEP_DONE = "StepDone"
    STEP_WAITS_AGAIN = "StepWaitsAgain"
    SPEC_CHANGED = "SpecChanged"
    BATCH_BEGUN = "BatchBegun"
    REMEDIATION_BEGUN = "RemediationBegun"
    POD_CHOSEN = "PodChosen"
    BATCH_PROVEN = "BatchProven"
    BAKE_RESTARTED = "BakeRestarted"
    BATCH_VOID = "BatchVoid"
    BATCH_DONE = "BatchDone"
    TURNED = "Turned"
    AUTOMATIC_ROLLBACK = "AutomaticRollback"
    ROLLBACK_ACKNOWLEDGED = "RollbackAcknowledged"
    INCIDENT = "Incident"
    VOLUME_CAUGHT_UP = "VolumeCaughtUp"
    DUAL_WRITE_REPAIRED = "DualWriteRepaired"
    MOVED = "Moved"


class Progress(Model):
    """Where the migration stands in its plan."""

    step: Annotated[str, Clipped(63)] = ""
    """The step on record; effects of no other step are performed."""
    index: Count = 0
    """The step's place in the plan, from 0."""
    total: Count = 0
    """Number of steps of the plan."""
    direction: Direction = Direction.FORWARD
    """Forward, or Backward while steps are taken back."""
    batch: Count = 0
    """The batch on record, from 1; 0 before the first batch of the step."""
    batch_nodes: Annotated[tuple[Name, ...], Field(max_length=1000)] = ()
    """Pods of the batch on record."""
    batch_start_time: Time | None = None
    """When the batch was recorded."""
    bake_start_time: Time | None = None
    """When the batch's own gates had passed and its bake began."""
    batch_is_remediation: bool = False
    """True where the step restarts these pods to end a standstill."""
    remediated_nodes: Annotated[tuple[Name, ...], Field(max_length=1000)] = ()
    """Pods that the step has restarted to end a standstill, each once."""
    percent: Annotated[int, Field(ge=0, le=100)] = 0
    """Share of the plan that is done."""
    summary: Annotated[str, Clipped(32)] = ""
    """Steps and percent in a few characters, such as 7/11 45%."""
    start_time: Time | None = None
    """When this attempt left Preflight's first pass."""
    step_start_time: Time | None = None
    """When the step was recorded."""
    open_time: Time | None = None
    """When its entry gates had passed: no effect of the step happens before this is on record."""
    complete_time: Time | None = None
    """When the last step of this direction was done; the migration stands at that end of its plan."""
    estimated_completion_time: Time | None = None
    """When the migration has succeeded (or is rolled back), were every approval given at once: restarts at the pace
    measured so far, bakes, soak, and the times in which windows are closed. Absent while it waits for a person or is
    Stalled."""
    active_seconds: Seconds = 0
    """Time in which something was being done."""
    gate_wait_seconds: Seconds = 0
    """Time spent waiting for gates and bakes."""
    human_wait_seconds: Seconds = 0
    """Time spent paused, outside of windows, or waiting for an approval."""
    batch_seconds: Seconds = 0
    """Time from the first eviction of the batch on record until its gates had passed, so far; without human waits."""


class WaitingFor(Model):
    """A gate that does not pass, or several that found the same, for the person on call."""

    gate: Name
    """Name of the gate, or names separated by commas."""
    verdict: Annotated[Verdict, Informative(Verdict.UNKNOWN)]
    """Wait, Fail or Unknown."""
    reason: Annotated[str, Clipped(128)]
    """CamelCase word; `switchover explain` prints what it means and what to do."""
    subject: Annotated[str, Clipped(512)] = ""
    """The broker, pod, topic, member or znode concerned."""
    message: Text = ""
    """What was found."""
    observed: Annotated[str, Clipped(512)] = ""
    """The figure observed."""
    threshold: Annotated[str, Clipped(512)] = ""
    """The figure it must reach."""
    since: Time | None = None
    """Since when the gate has answered so."""
    unblocks: Text = ""
    """What would open the gate."""
    runbook_url: Annotated[str, Clipped(512), Field(alias="runbookURL")] = ""
    """Where to read on."""


class GateStreak(Model):
    """How often a gate has answered the same in a row."""

    name: Name
    """Name of the gate."""
    passes: Count = 0
    """Consecutive passes."""
    since: Time | None = None
    """When the verdict last changed."""
    verdict: Annotated[Verdict, Informative(Verdict.UNKNOWN)] = Verdict.UNKNOWN
    """The last answer."""


class Rollback(Model):
    """Whether all steps can still be taken back."""

    available: bool = True
    """False from the point of no return on."""
    estimated_seconds: Seconds | None = None
    """How long a rollback would take from here, or still takes: the restarts that it needs, at the measured pace."""
    lost_at_step: Annotated[str, Clipped(63)] = ""
    """The step whose first effect ended rollback."""
    failure: Annotated[str, Clipped(128)] = ""
    """The reason for which the migration rolled back by itself. It stays until a person acknowledges it: by a retry, or by
    desiredState RolledBack."""
    failure_step: Annotated[str, Clipped(63)] = ""
    """The step at which it began to roll back by itself."""
    failure_gate: Name = ""
    """The gate that had it roll back by itself."""
    failure_message: Text = ""
    """What that gate had found."""


class AcceptedApproval(Model):
    """An approval as it was accepted."""

    name: Annotated[str, Clipped(63)]
    """The step."""
    plan_hash: Annotated[str, Clipped(64)]
    """The plan it was given for."""
    approver: Annotated[str, Clipped(253)]
    """Who approved."""
    reason: Text = ""
    """Why."""
    accepted_time: Time
    """When the operator accepted it."""


class StepRecord(Model):
    """When a step ran and how long it took."""

    name: Annotated[str, Clipped(63)]
    """The step."""
    start_time: Time | None = None
    """When it was recorded."""
    end_time: Time | None = None
    """When its last gate passed."""
    seconds: Seconds | None = None
    """Time between the two."""


class Transition(Model):
    """One move on record, with the evidence for it."""

    time: Time
    """When it was recorded."""
    from_: Annotated[str, Clipped(128), Field(alias="from")] = ""
    """Step and batch before."""
    to: Annotated[str, Clipped(128)]
    """Step and batch after."""
    reason: Annotated[str, Clipped(128)]
    """What kind of move: StepBegun, StepDone, StepWaitsAgain, SpecChanged, BatchBegun, RemediationBegun, PodChosen (to be
    replaced), BatchProven, BakeRestarted, BatchVoid, BatchDone, Turned (somebody wanted it), AutomaticRollback,
    RollbackAcknowledged; without a move Incident, VolumeCaughtUp, DualWriteRepaired; RecordOfAnother. Moved where an earlier
    release wrote it."""
    direction: Annotated[Direction | None, Informative(Direction.FORWARD)] = None
    """Which way the plan is walked after it. Absent where an earlier release wrote it."""
    message: Text = ""
    """The evidence."""


class Answer(Model):
    """What a gate answered at a moment."""

    name: Name
    """Name of the gate."""
    time: Time
    """When it was asked."""
    verdict: Annotated[Verdict, Informative(Verdict.UNKNOWN)]
    """Pass, Wait, Fail or Unknown."""
    message: Annotated[str, Clipped(256)] = ""
    """What was found."""
    observed: Annotated[str, Clipped(128)] = ""
    """The figure observed."""
    threshold: Annotated[str, Clipped(128)] = ""
    """The figure it must reach."""
    since: Time | None = None
    """Since when it had answered so."""


class Evidence(Model):
    """What the gates said before a step that cannot be taken back: when the step before it ended, and when it began."""

    name: Annotated[str, Clipped(63)]
    """The step."""
    begin_time: Time | None = None
    """When it began. Absent while it waits."""
    message: Text = ""
    """The move with which it began: by whom it was approved, and on which backups."""
    gates: Annotated[tuple[Answer, ...], Field(max_length=64), Unique("name")] = ()
    """The last answer of every gate that was asked at one of the two moments."""


class Series(Model):
    """One figure over time."""

    name: Annotated[str, Clipped(320)]
    """DualWriteLag (records), DualWriteAge (seconds), Restarts (pods put on record to be replaced, so far), and of a group
    GroupLag/NAME (records) and GroupGap/NAME (seconds in which a partition with records had no commit)."""
    values: Annotated[tuple[Annotated[int, Field(ge=-1, le=2**53)], ...], Field(max_length=384)] = ()
    """Its value at each of the times; -1 where it could not be observed."""


class Measurements(Model):
    """What was measured at the same times, for the report; nothing is decided from it."""

    times: Annotated[tuple[Time, ...], Field(max_length=384)] = ()
    """When. Each value is the worst since the time before."""
    series: Annotated[tuple[Series, ...], Field(max_length=24), Unique("name")] = ()
    """The figures."""


class Made(Model):
    """An object that this migration made and reads again."""

    name: Annotated[str, Clipped(320)]
    """Its kind and name."""
    proof: Annotated[str, Clipped(64)]
    """Of a Job its uid, of a ControllerRevision a digest of what it keeps: an object of that name of which this is not so is
    somebody else's, whatever its labels say."""


class Finding(Model):
    """Something that Preflight or the rehearsal found."""

    gate: Name = ""
    """The gate that found it."""
    code: Annotated[str, Clipped(64)]
    """The check that found it, a CamelCase word such as GeneratedBrokerId."""
    severity: Annotated[Severity, Informative(Severity.WARNING)]
    """Blocker, Warning or Info."""
    subject: Annotated[str, Clipped(512)] = ""
    """What it was found on."""
    message: Text
    """What was found."""
    cure: Text = ""
    """What to do about it."""


MOST_REQUESTERS, MOST_STEPS, MOST_MADE = 64, 32, 64           # steps of other releases may be among them
NEVER_LOOKED_AT = "no operator has looked at it yet; `switchover doctor` says whether there is one"
UNSEEN: Mapping[str, str | int] = {
    "observedGeneration": -1, "phase": Phase.PENDING.value, "summary": NEVER_LOOKED_AT, "waitingForSummary": "an operator"}
"""The status that an object has from the API server, until an operator writes one."""


class MigrationStatus(Model):
    """What the statuses of both resources share."""

    observed_generation: Annotated[int, Field(ge=-1, le=2**53)] = -1
    """The generation of the spec that this status speaks of."""
    phase: Annotated[Phase, Informative(Phase.PENDING)] = Phase.PENDING
    """The migration in one word, for people; nothing is decided from it."""
    summary: Annotated[str, SENTENCE] = ""
    """Where it stands and what it waits for, in one sentence: the message of Stalled while that is True, else of Ready. Its
    figures are as old as the status."""
    uid: Annotated[str, Clipped(128)] = ""
    """uid of the object that this status was written for: a copy of it under another one starts over."""
    attempt: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Counts up with each new start after a rollback; approvals of an earlier attempt do not count."""
    plan_hash: Annotated[str, Field(max_length=64)] = ""
    """What an approval must name: a hash of this object's uid, the attempt, the steps and the spec, computed in every
    pass. Where it is another one than this, and nothing is touched yet, Preflight looks again."""
    cluster_id: Annotated[str, Clipped(64)] = ""
    """The Kafka cluster's id."""
    progress: Progress = Progress()
    """Where it stands in the plan."""
    waiting_for: Annotated[tuple[WaitingFor, ...], Field(max_length=20)] = ()
    """The gates that it waits for; never empty while nothing moves."""
    waiting_for_count: Count = 0
    """Number of its entries, also when there are more than the list holds."""
    waiting_for_summary: Annotated[str, Clipped(80)] = ""
    """The first of them, in short."""
    gates: Annotated[tuple[GateStreak, ...], Field(max_length=200), Unique("name")] = ()
    """How often each gate has answered the same in a row."""
    rollback: Rollback = Rollback()
    """Whether all steps can still be taken back."""
    approvals: Annotated[tuple[AcceptedApproval, ...], Field(max_length=32), Unique("name")] = ()
    """Approvals as they were accepted."""
    requesters: Annotated[tuple[Annotated[str, Clipped(253)], ...], Field(max_length=MOST_REQUESTERS)] = ()
    """Who has changed the spec, as the annotation switchover.dev/requested-by named them: with four eyes none of them
    approves."""
    steps: Annotated[tuple[StepRecord, ...], Field(max_length=MOST_STEPS), Unique("name")] = ()
    """When each step ran."""
    history: Annotated[tuple[Transition, ...], Field(max_length=50)] = ()
    """The last 50 moves."""
    evidence: Annotated[tuple[Evidence, ...], Field(max_length=4), Unique("name")] = ()
    """What the gates said before each step that cannot be taken back."""
    measurements: Measurements = Measurements()
    """Lag and gaps of the first ten groups that are named, dual write and restarts over time: sixteen times of each step."""
    made: Annotated[tuple[Made, ...], Field(max_length=MOST_MADE), Unique("name")] = ()
    """Objects that this migration made and reads again, the newest last: nothing is read of another one of their names."""
    findings: Annotated[tuple[Finding, ...], Field(max_length=100)] = ()
    """What Preflight and the rehearsal found."""
    conditions: Conditions = ()
    """Kubernetes conditions, clean for kstatus."""
