"""A migration as people watch it: a tree for a terminal, one line per change elsewhere. Pure: no clock, no I/O.

Both read the resource as the API server returns it (JSON), of either kind, so that they show what any user sees.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from rich.text import Text
from rich.tree import Tree

from switchover.api.kafka_migration import name_of
from switchover.api.status import NEVER_LOOKED_AT
from switchover.cli.steps import Resource, step_record, steps_of
from switchover.cli.terminal import clean
from switchover.engine.approvals import PREFLIGHT
from switchover.reasons.walk import MUST_HOLD

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
    status = found.get("status") or {}
    progress = status.get("progress") or {}
    backward = progress.get("direction") == "Backward"
    root = Tree(_title(found, now), guide_style="dim")
    if said := _said(status):
        root.add(Text(said, style=_PHASES.get(status.get("phase", ""), "bold")))
    if status.get("observedGeneration", -1) >= 0 and not is_current(found):
        root.add(Text(NOT_LOOKED_AT_AGAIN, style="bold"))
    steps = steps_of(found)
    current = progress.get("step")
    over = bool(progress.get("completeTime"))
    for name in steps:
        record = step_record(status, name)
        if name == current and not over and (backward or "endTime" not in record):
            mark = "◀" if backward else "▶"
            _current(root.add(_line(mark, name, clock(_since(record.get("startTime"), now)), "bold")), status, now)
        elif backward and record and (over or current not in steps or steps.index(name) > steps.index(current)):
            root.add(_line("↶", name, "", "yellow"))
        elif "endTime" in record:
            root.add(_line("✔", name, clock(record.get("seconds", 0)), "green"))
        else:
            root.add(_line("·", name, "hold" if name in _holds(found) else "", "dim"))
    return root


def changes(before: Resource | None, after: Resource) -> Iterator[str]:
    """What became different between two readings, one line each; nothing when nothing did."""
    old, new = ((clean(each or {}).get("status") or {}) for each in (before, after))
    if new.get("phase") != old.get("phase"):
        yield ": ".join(filter(None, (f"phase {new.get('phase', 'Pending')}", _said(new))))
    if _progress(new, "direction") == "Backward" != _progress(old, "direction"):
        yield "turned back"
    for name in steps_of(after):
        record, known = step_record(new, name), step_record(old, name)
        if "endTime" in record and "endTime" not in known:
            yield f"step {name} done in {record.get('seconds', 0)} s"
    if _progress(new, "step") != _progress(old, "step") and _progress(new, "step"):
        yield f"step {_progress(new, 'step')}"
    if _progress(new, "batchNodes") != _progress(old, "batchNodes") and _progress(new, "batchNodes"):
        yield f"batch {_progress(new, 'batch')}: {', '.join(_progress(new, 'batchNodes'))}"
    if _progress(new, "bakeStartTime") != _progress(old, "bakeStartTime") and _progress(new, "bakeStartTime"):
        yield f"batch {_progress(new, 'batch')} passed its gates and bakes"
    if new.get("metadataState") != old.get("metadataState") and new.get("metadataState"):
        yield f"metadata {new['metadataState']}"
    modes = {node["name"]: node.get("observed", "") for node in _nodes(old)}
    for node in _nodes(new):
        if node.get("observed") and node["observed"] != modes.get(node["name"]):
            yield f"{node['name']} runs {'as' if '/' in node['name'] else 'in mode'} {node['observed']}"
    known_waits = {_wait_key(item) for item in old.get("waitingFor", [])}
    for item in new.get("waitingFor", []):
        if _wait_key(item) not in known_waits and item["reason"] != MUST_HOLD.name:
            yield f"waits for {wait_words(item)}"
    if condition(after, "RollbackAvailable") == "False" and condition(before or {}, "RollbackAvailable") != "False":
        yield "rollback is no longer available"


def condition(resource: Resource, kind: str) -> str:
    """Status of a condition, "" while it is not there."""
    found = (item["status"] for item in resource.get("status", {}).get("conditions", []) if item["type"] == kind)
    return next(found, "")


def is_current(resource: Resource) -> bool:
    """The status knows the spec of now: an earlier attempt may have ended before."""
    observed = resource.get("status", {}).get("observedGeneration")
    return observed is not None and observed == resource["metadata"]["generation"]


def wait_words(item: Mapping[str, Any]) -> str:
    """One entry of status.waitingFor as a sentence."""
    words = f"{item['gate']} {item['verdict']} {item['reason']}"
    if item.get("subject"):
        words += f" on {item['subject']}"
    if item.get("message"):
        words += f": {item['message']}"
    return words


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


def _holds(resource: Resource) -> set[str]:
    planned = ((resource.get("status") or {}).get("plan") or {}).get("steps", [])
    return {*(resource.get("spec") or {}).get("holds", ()), *(step["name"] for step in planned if step.get("hold"))}


def _nodes(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Kafka's nodes, or a group's slots."""
    return [{**node, **{key: name_of(node[key]) for key in ("assigned", "observed") if key in node}}
            for node in (*status.get("nodes", []), *status.get("slots", []))]


def _said(status: Mapping[str, Any]) -> str:
    """What no step shows: that nobody looks at it, what stalls it, how it has ended."""
    phase = status.get("phase", "Pending")
    if phase == "Pending":
        return NEVER_LOOKED_AT
    automatic = phase == "RollingBack" and (status.get("rollback") or {}).get("failure")
    return str(status.get("summary", "")) if phase in _NOT_UNDER_WAY or automatic else ""


def _progress(status: Mapping[str, Any], key: str) -> Any:
    return status.get("progress", {}).get(key, "")


def _wait_key(item: Mapping[str, Any]) -> tuple[str, ...]:
    """What makes it another one; which gates found it may change."""
    return item["verdict"], item["reason"], item.get("subject", "")


def _since(time: str | None, now: float) -> float:
    return max(0.0, now - seconds(time)) if time else 0.0


def _line(mark: str, name: str, time: str, style: str) -> Text:
    return Text.assemble((f"{mark} {name:<27}", style), (f"{time:>6}", "dim"))


def _title(resource: Resource, now: float) -> Text:
    status, metadata = resource.get("status") or {}, resource["metadata"]
    phase = status.get("phase", "Pending")
    ended, eta = _progress(status, "completeTime"), _progress(status, "estimatedCompletionTime")
    title = Text.assemble(
        (f"{resource.get('kind', 'KafkaMigration')} ", "dim"),
        (f"{metadata.get('namespace', '')}/{metadata['name']}", "bold"),
        "  ",
        (phase, _PHASES.get(phase, "bold blue")),
        *_about(resource),
        ("  progress ", "dim"),
        f"{_progress(status, 'percent') or 0} %",
        ("  elapsed ", "dim"),
        clock(_since(metadata.get("creationTimestamp"), seconds(ended) if ended else now)),
    )
    if eta:
        title.append("  ETA ", "dim").append(f"in {clock(max(0.0, seconds(eta) - now))}")
    return title.append("  rollback ", "dim").append(_rollback(resource))


def _about(resource: Resource) -> Iterator[tuple[str, str] | str]:
    """What is being moved: where the metadata is, or the group as it was last seen."""
    status = resource.get("status") or {}
    if resource.get("kind") != "ConsumerGroupMigration":
        yield from (("  metadata ", "dim"), status.get("metadataState", "unknown"))
        return
    group = status.get("group") or {}
    yield from (("  group ", "dim"), f"{(resource.get('spec') or {}).get('group', '')}")
    if group.get("type"):
        yield f" ({group['type']}, {group.get('state', '')}, {group.get('members', 0)} members)"


def _rollback(resource: Resource) -> str:
    available = condition(resource, "RollbackAvailable")
    if available != "True":
        return "no" if available == "False" else "unknown"
    status = resource.get("status") or {}
    if _progress(status, "direction") == "Backward":
        return "done" if _progress(status, "completeTime") else "under way"
    takes = (status.get("rollback") or {}).get("estimatedSeconds")
    if _progress(status, "step") == PREFLIGHT:
        return "nothing to roll back"
    return f"available, takes {clock(takes)}" if takes else "available"


def _arrived(node: Mapping[str, Any]) -> bool:
    return bool(node.get("observed") == node["assigned"])


def _current(branch: Tree, status: Mapping[str, Any], now: float) -> None:
    nodes = _progress(status, "batchNodes")
    if nodes:
        bakes = _progress(status, "bakeStartTime")
        state = f"bakes for {clock(_since(bakes, now))}" if bakes else "gates"
        branch.add(Text(f"batch {_progress(status, 'batch')}: {', '.join(nodes)} ({state})"))
    moving = [node for node in _nodes(status) if node.get("assigned")]
    shown = moving if len(moving) <= NODES_SHOWN else [node for node in moving if not _arrived(node)][:NODES_SHOWN]
    for node in shown:
        words = f"{node['name']:<20} {node.get('observed') or '?'}" + ("" if _arrived(node) else f" → {node['assigned']}")
        branch.add(Text(words, style="green" if _arrived(node) else "yellow"))
    if len(shown) < len(moving):
        branch.add(Text(f"in all {len(moving)}, of which {sum(map(_arrived, moving))} have arrived", style="dim"))
    for item in status.get("waitingFor", []):
        if item["reason"] == MUST_HOLD.name:
            held = clock(_since(item.get("since"), now))
            branch.add(Text(f"passes  {item['gate']}, and must hold  {held}", style="green"))
            continue
        line = Text(f"{item['verdict']:<8}", style=_STYLES.get(item["verdict"], ""))
        line.append(f"{item['gate']} {item['reason']} {item.get('subject', '')}".rstrip(), style="bold")
        line.append(f"  {item.get('message', '')}")
        line.append(f"  {clock(_since(item.get('since'), now))}", style="dim")
        waiting = branch.add(line)
        if item.get("unblocks"):
            waiting.add(Text(f"unblocks: {item['unblocks']}", style="dim"))
