"""A KafkaMigration as people watch it: a tree for a terminal, one line per change elsewhere. Pure: no clock, no I/O.

Both read the resource as the API server returns it (JSON), so that they show what any user sees.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from io import StringIO
from typing import Any

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from switchover.api.kafka_migration import KafkaMigrationStep

Resource = Mapping[str, Any]

_OPTIONAL = {KafkaMigrationStep.RAISE_PROTOCOL_VERSION}
_STYLES = {"Pass": "green", "Wait": "yellow", "Fail": "bold red", "Unknown": "magenta"}
_PHASES = {"Succeeded": "bold green", "Stalled": "bold red", "AwaitingApproval": "bold cyan", "Paused": "yellow"}


def tree(resource: Resource, now: float) -> Tree:
    """Steps with their times; inside the current one its batch, nodes and what it waits for. `now`: seconds (epoch)."""
    status = resource.get("status", {})
    progress = status.get("progress", {})
    root = Tree(_title(resource, now), guide_style="dim")
    for name in _plan(status):
        record = step_record(status, name)
        if name == progress.get("step") and "endTime" not in record:
            _current(root.add(_line("▶", name, _clock(_since(record.get("startTime"), now)), "bold")), status, now)
        elif "endTime" in record:
            root.add(_line("✔", name, _clock(record.get("seconds", 0)), "green"))
        else:
            root.add(_line("·", name, "", "dim"))
    return root


def picture(resource: Resource, now: float) -> str:
    """The tree as SVG, in the viewer's own fixed-width font."""
    console = Console(record=True, width=120, file=StringIO())
    console.print(tree(resource, now))
    fonts_from_elsewhere = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
    return fonts_from_elsewhere.sub("", console.export_svg(title="make demo"))


def changes(before: Resource | None, after: Resource) -> Iterator[str]:
    """What became different between two readings, one line each; nothing when nothing did."""
    old = (before or {}).get("status", {})
    new = after.get("status", {})
    if new.get("phase") != old.get("phase"):
        yield f"phase {new.get('phase', 'Pending')}"
    for name in _plan(new):
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
    modes = {node["name"]: node.get("observed", "") for node in old.get("nodes", [])}
    for node in new.get("nodes", []):
        if node.get("observed") and node["observed"] != modes.get(node["name"]):
            yield f"{node['name']} runs in mode {node['observed']}"
    known_waits = {_wait_key(item) for item in old.get("waitingFor", [])}
    for item in new.get("waitingFor", []):
        if _wait_key(item) not in known_waits and item["reason"] != "MustHold":
            yield f"waits for {wait_words(item)}"
    if condition(after, "RollbackAvailable") == "False" and condition(before or {}, "RollbackAvailable") != "False":
        yield "rollback is no longer available"


def condition(resource: Resource, kind: str) -> str:
    """Status of a condition, "" while it is not there."""
    found = (item["status"] for item in resource.get("status", {}).get("conditions", []) if item["type"] == kind)
    return next(found, "")


def is_current(resource: Mapping[str, Any]) -> bool:
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


def step_record(status: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The record of a step in status.steps, empty before it began."""
    return next((record for record in status.get("steps", []) if record["name"] == name), {})


def seconds(time: str) -> float:
    """A Kubernetes time (RFC 3339) in seconds since the epoch."""
    return datetime.fromisoformat(time).timestamp()


def _plan(status: Mapping[str, Any]) -> list[str]:
    recorded = {record["name"] for record in status.get("steps", [])} | {_progress(status, "step")}
    return [step.value for step in KafkaMigrationStep if step not in _OPTIONAL or step.value in recorded]


def _progress(status: Mapping[str, Any], key: str) -> Any:
    return status.get("progress", {}).get(key, "")


def _wait_key(item: Mapping[str, Any]) -> tuple[str, ...]:
    return item["gate"], item["verdict"], item["reason"], item.get("subject", "")


def _since(time: str | None, now: float) -> float:
    return max(0.0, now - seconds(time)) if time else 0.0


def _clock(duration: float) -> str:
    minutes, rest = divmod(round(duration), 60)
    return f"{minutes}:{rest:02d}"


def _line(mark: str, name: str, time: str, style: str) -> Text:
    return Text.assemble((f"{mark} {name:<22}", style), (f"{time:>6}", "dim"))


def _title(resource: Resource, now: float) -> Text:
    status, metadata = resource.get("status", {}), resource["metadata"]
    phase = status.get("phase", "Pending")
    return Text.assemble(
        ("KafkaMigration ", "dim"),
        (f"{metadata.get('namespace', '')}/{metadata['name']}", "bold"),
        "  ",
        (phase, _PHASES.get(phase, "bold blue")),
        ("  metadata ", "dim"),
        status.get("metadataState", "ZooKeeper"),
        ("  progress ", "dim"),
        f"{_progress(status, 'percent') or 0} %",
        ("  elapsed ", "dim"),
        _clock(_since(metadata.get("creationTimestamp"), now)),
        ("  rollback ", "dim"),
        "no" if condition(resource, "RollbackAvailable") == "False" else "available",
    )


def _current(branch: Tree, status: Mapping[str, Any], now: float) -> None:
    nodes = _progress(status, "batchNodes")
    if nodes:
        bakes = _progress(status, "bakeStartTime")
        state = f"bakes for {_clock(_since(bakes, now))}" if bakes else "gates"
        branch.add(Text(f"batch {_progress(status, 'batch')}: {', '.join(nodes)} ({state})"))
    for node in status.get("nodes", []):
        if node.get("assigned"):
            observed, assigned = node.get("observed") or "?", node["assigned"]
            arrived = observed == assigned
            words = f"{node['name']:<20} {observed}" + ("" if arrived else f" → {assigned}")
            branch.add(Text(words, style="green" if arrived else "yellow"))
    for item in status.get("waitingFor", []):
        if item["reason"] == "MustHold":
            held = _clock(_since(item.get("since"), now))
            branch.add(Text(f"passes  {item['gate']}, and must hold  {held}", style="green"))
            continue
        line = Text(f"{item['verdict']:<8}", style=_STYLES.get(item["verdict"], ""))
        line.append(f"{item['gate']} {item['reason']} {item.get('subject', '')}".rstrip(), style="bold")
        line.append(f"  {item.get('message', '')}")
        line.append(f"  {_clock(_since(item.get('since'), now))}", style="dim")
        waiting = branch.add(line)
        if item.get("unblocks"):
            waiting.add(Text(f"unblocks: {item['unblocks']}", style="dim"))
