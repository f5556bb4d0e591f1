"""A migration as people see it: a tree for a terminal, a row of a table, one line per change, a document.

Pure: no clock, no I/O. Each takes the resource as the API server returns it (JSON), of either kind.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import yaml
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from switchover.api.consumer_group_migration import ConsumerGroupMigrationStatus, Slot
from switchover.api.kafka_migration import KafkaMigrationStatus, NodeStatus
from switchover.api.lenient import given
from switchover.api.status import NEVER_LOOKED_AT, Direction, MigrationStatus, Phase, WaitingFor
from switchover.cli.command import Output, clean
from switchover.cli.objects import (
    UNREAD,
    Found,
    Resource,
    mode_of,
    nodes_of,
    phase_of,
    preview_of,
    status_in,
    step_record,
    steps_of,
)
from switchover.engine.approvals import PREFLIGHT
from switchover.reasons.walk import MUST_HOLD
from switchover.text.visible import printable

_STYLES = {"Pass": "green", "Wait": "yellow", "Fail": "bold red", "Unknown": "magenta"}
NODES_SHOWN = 20
"""Of more nodes only so many are named, and none that has arrived: what is waited for must stay on the screen."""
_PHASES = {"Succeeded": "bold green", "Stalled": "bold red", "AwaitingApproval": "bold cyan", "Paused": "yellow"}
NOT_LOOKED_AT_AGAIN = "no operator has looked at the spec since it changed; `switchover doctor` says whether there is one"
_NOT_UNDER_WAY = ("Stalled", "Succeeded", "RolledBack", "Terminating")
"""What is said of these the steps do not show."""


def tree(resource: Resource, now: float) -> Tree:
    """Steps with their times; inside the current one its batch, nodes and what it waits for. `now`: seconds (epoch)."""
    found: Resource = clean(resource)
    status, left = status_in(found)
    progress, current, backward = status.progress, status.progress.step, is_backward(status)
    root = Tree(_title(found, status, now), guide_style="dim")
    if said := _said(status):
        root.add(Text(said, style=_PHASES.get(phase_of(status), "bold")))
    if status.observed_generation >= 0 and not is_current(found):
        root.add(Text(NOT_LOOKED_AT_AGAIN, style="bold"))
    if left:
        root.add(Text(f"{UNREAD}: {left}", style="bold"))
    steps, holds = steps_of(found), _holds(found, status)
    over = progress.complete_time is not None
    for name in steps:
        record = step_record(status, name)
        done = record is not None and record.end_time is not None
        if name == current and not over and (backward or not done):
            mark, since = "◀" if backward else "▶", record.start_time if record is not None else None
            _current(root.add(_line(mark, name, clock(_since(since, now)), "bold")), status, now)
        elif backward and record and (over or current not in steps or steps.index(name) > steps.index(current)):
            root.add(_line("↶", name, "", "yellow"))
        elif record is not None and done:
            root.add(_line("✔", name, clock(record.seconds or 0), "green"))
        else:
            root.add(_line("·", name, "hold" if name in holds else "", "dim"))
    return root


def changes(before: Resource | None, after: Resource) -> Iterator[str]:
    """What became different between two readings, one line each; nothing when nothing did."""
    (old, _), (new, _) = (status_in(clean(each or {})) for each in (before, after))
    at, was = new.progress, old.progress
    if given(new, "phase") != given(old, "phase"):
        yield ": ".join(filter(None, (f"phase {phase_of(new)}", _said(new))))
    if is_backward(new) and not is_backward(old):
        yield "turned back"
    for name in steps_of(after):
        record, known = step_record(new, name), step_record(old, name)
        if record is not None and record.end_time is not None and (known is None or known.end_time is None):
            yield f"step {name} done in {record.seconds or 0} s"
    if at.step != was.step and at.step:
        yield f"step {at.step}"
    if at.batch_nodes != was.batch_nodes and at.batch_nodes:
        yield f"batch {at.batch}: {', '.join(at.batch_nodes)}"
    if at.bake_start_time != was.bake_start_time and at.bake_start_time:
        yield f"batch {at.batch} passed its gates and bakes"
    if _metadata(new) not in ("", _metadata(old)):
        yield f"metadata {_metadata(new)}"
    modes = {node.name: node.observed for node in nodes_of(old)}
    for node in nodes_of(new):
        if node.observed and node.observed != modes.get(node.name):
            yield f"{node.name} runs {'as' if '/' in node.name else 'in mode'} {node.observed}"
    known_waits = {_wait_key(item) for item in old.waiting_for}
    for item in new.waiting_for:
        if _wait_key(item) not in known_waits and item.reason != MUST_HOLD.name:
            yield f"waits for {wait_line(item)}"
    if condition(after, "RollbackAvailable") == "False" and condition(before or {}, "RollbackAvailable") != "False":
        yield "rollback is no longer available"


def condition(resource: Resource, kind: str) -> str:
    """Status of a condition, "" while it is not there."""
    return next((str(item.status) for item in status_in(resource)[0].conditions if item.type == kind), "")


def is_current(resource: Resource) -> bool:
    """The status knows the spec of now: an earlier attempt may have ended before."""
    return status_in(resource)[0].observed_generation == (resource.get("metadata") or {}).get("generation")


def is_backward(status: MigrationStatus) -> bool:
    """Whether the plan is walked backward, or was to its end."""
    return status.progress.direction is Direction.BACKWARD


def wait_line(item: WaitingFor) -> str:
    """One entry of status.waitingFor as a sentence."""
    subject, message = f" on {item.subject}" if item.subject else "", f": {item.message}" if item.message else ""
    return f"{item.gate} {item.verdict} {item.reason}{subject}{message}"


def seconds(time: str) -> float:
    """A Kubernetes time (RFC 3339) in seconds since the epoch."""
    return datetime.fromisoformat(time).timestamp()


def clock(duration: float) -> str:
    """Seconds as minutes:seconds, with hours and days where there are any."""
    minutes, rest = divmod(round(duration), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d}"
    days, hours = divmod(minutes // 60, 24)
    return f"{f'{days}d ' if days else ''}{hours}:{minutes % 60:02d}:{rest:02d}"


def _holds(resource: Resource, status: MigrationStatus) -> set[str]:
    return {*(resource.get("spec") or {}).get("holds", ()), *(step.name for step in preview_of(status).steps if step.hold)}


def _metadata(status: MigrationStatus) -> str:
    """Where a cluster's metadata is; "" where that is not known."""
    return given(status, "metadata_state") or "" if isinstance(status, KafkaMigrationStatus) else ""


def _said(status: MigrationStatus) -> str:
    """What no step shows: that nobody looks at it, what stalls it, how it has ended."""
    phase = phase_of(status)
    if phase == Phase.PENDING:
        return NEVER_LOOKED_AT
    automatic = phase == Phase.ROLLING_BACK and status.rollback.failure
    return status.summary if phase in _NOT_UNDER_WAY or automatic else ""


def _wait_key(item: WaitingFor) -> tuple[str, ...]:
    """What makes it another one; which gates found it may change."""
    return item.verdict, item.reason, item.subject


def _since(time: datetime | None, now: float) -> float:
    return max(0.0, now - time.timestamp()) if time else 0.0


def _line(mark: str, name: str, time: str, style: str) -> Text:
    return Text.assemble((f"{mark} {name:<27}", style), (f"{time:>6}", "dim"))


def _title(resource: Resource, status: MigrationStatus, now: float) -> Text:
    metadata, phase, progress = resource["metadata"], phase_of(status), status.progress
    created, ended, eta = metadata.get("creationTimestamp"), progress.complete_time, progress.estimated_completion_time
    elapsed = max(0.0, (ended.timestamp() if ended else now) - seconds(created)) if created else 0.0
    title = Text.assemble(
        (f"{resource.get('kind', 'KafkaMigration')} ", "dim"),
        (f"{metadata.get('namespace', '')}/{metadata['name']}", "bold"),
        "  ",
        (phase, _PHASES.get(phase, "bold blue")),
        *_about(resource, status),
        ("  progress ", "dim"),
        f"{progress.percent} %",
        ("  elapsed ", "dim"),
        clock(elapsed),
    )
    if eta:
        title.append("  ETA ", "dim").append(f"in {clock(max(0.0, eta.timestamp() - now))}")
    return title.append("  rollback ", "dim").append(_rollback(resource, status))


def _about(resource: Resource, status: MigrationStatus) -> Iterator[tuple[str, str] | str]:
    """What is being moved: where the metadata is, or the group as it was last seen."""
    if isinstance(status, ConsumerGroupMigrationStatus):
        yield from (("  group ", "dim"), f"{(resource.get('spec') or {}).get('group', '')}")
        if status.group is not None and status.group.type:
            yield f" ({status.group.type}, {status.group.state}, {status.group.members} members)"
    else:
        yield from (("  metadata ", "dim"), _metadata(status) or "unknown")


def _rollback(resource: Resource, status: MigrationStatus) -> str:
    available = condition(resource, "RollbackAvailable")
    if available != "True":
        return "no" if available == "False" else "unknown"
    if is_backward(status):
        return "done" if status.progress.complete_time else "under way"
    if status.progress.step == PREFLIGHT:
        return "nothing to roll back"
    takes = status.rollback.estimated_seconds
    return f"available, takes {clock(takes)}" if takes else "available"


def _arrived(node: NodeStatus | Slot) -> bool:
    return node.observed == mode_of(node)


def _current(branch: Tree, status: MigrationStatus, now: float) -> None:
    progress = status.progress
    if progress.batch_nodes:
        bakes = progress.bake_start_time
        state = f"bakes for {clock(_since(bakes, now))}" if bakes else "gates"
        branch.add(Text(f"batch {progress.batch}: {', '.join(progress.batch_nodes)} ({state})"))
    moving = [node for node in nodes_of(status) if mode_of(node)]
    shown = moving if len(moving) <= NODES_SHOWN else [node for node in moving if not _arrived(node)][:NODES_SHOWN]
    for node in shown:
        says = f"{node.name:<20} {node.observed or '?'}" + ("" if _arrived(node) else f" → {mode_of(node)}")
        branch.add(Text(says, style="green" if _arrived(node) else "yellow"))
    if len(shown) < len(moving):
        branch.add(Text(f"in all {len(moving)}, of which {sum(map(_arrived, moving))} have arrived", style="dim"))
    for item in status.waiting_for:
        if item.reason == MUST_HOLD.name:
            held = clock(_since(item.since, now))
            branch.add(Text(f"passes  {item.gate}, and must hold  {held}", style="green"))
            continue
        wait = Text(f"{item.verdict:<8}", style=_STYLES.get(item.verdict, ""))
        wait.append(f"{item.gate} {item.reason} {item.subject}".rstrip(), style="bold")
        wait.append(f"  {item.message}")
        wait.append(f"  {clock(_since(item.since, now))}", style="dim")
        waiting = branch.add(wait)
        if item.unblocks:
            waiting.add(Text(f"unblocks: {item.unblocks}", style="dim"))


COLUMNS = ("NAME", "PHASE", "STEP", "PROGRESS", "WAITING FOR", "ETA", "ROLLBACK", "AGE")


def table(found: Sequence[Found], now: float, *, everywhere: bool) -> Table:
    """A line for each. `now`: seconds (epoch)."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("NAMESPACE", *COLUMNS) if everywhere else COLUMNS:
        shown.add_column(name, no_wrap=name != "WAITING FOR", overflow="fold")
    for each in found:
        namespace = (each.resource["metadata"]["namespace"],) if everywhere else ()
        shown.add_row(*(Text(printable(str(cell))) for cell in (*namespace, *cells(each, now))))
    return shown


def cells(found: Found, now: float) -> tuple[str, ...]:
    """What the columns say of one."""
    status, progress = found.status, found.status.progress
    eta = progress.estimated_completion_time
    return (
        found.name, phase_of(status), progress.step or "-", progress.summary or "-", status.waiting_for_summary or "-",
        f"in {clock(max(0.0, eta.timestamp() - now))}" if eta else "-",
        {"True": "yes", "False": "no"}.get(condition(found.resource, "RollbackAvailable"), "-"),
        clock(max(0.0, now - seconds(found.resource["metadata"]["creationTimestamp"]))))


def document(what: Any, output: Output) -> str:
    """A JSON value in ASCII, so that no text in it does anything to a terminal."""
    if output is Output.JSON:
        return json.dumps(what, indent=2) + "\n"
    return yaml.safe_dump(what, sort_keys=False, width=10_000)


def manifest(found: Found) -> Mapping[str, Any]:
    """The object without its managed fields, which nobody reads."""
    metadata = {key: value for key, value in found.resource["metadata"].items() if key != "managedFields"}
    return {**found.resource, "metadata": metadata}


def manifests(found: Sequence[Found]) -> Mapping[str, Any]:
    """Several, as kubectl has them."""
    return {"apiVersion": "v1", "kind": "List", "items": [manifest(each) for each in found]}
