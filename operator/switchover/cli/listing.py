"""`switchover list`, and objects as documents."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from rich.table import Table
from rich.text import Text

from switchover.cli.command import Output
from switchover.cli.objects import Found
from switchover.cli.steps import phase_of
from switchover.cli.tree import clock, condition, seconds
from switchover.text.visible import printable

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
