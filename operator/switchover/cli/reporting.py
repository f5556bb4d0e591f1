"""`switchover report`: what is read for it, and where it goes."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from switchover.answers.errors import Refused
from switchover.cli.command import Place
from switchover.cli.follow import events_of
from switchover.cli.kube import connected
from switchover.cli.objects import find
from switchover.cli.operators import operator_deployments, release
from switchover.cli.report import Report, report_of
from switchover.cli.report_page import html, json_of, markdown
from switchover.kubernetes.client.api_server import ApiServer, Forbidden

WRITERS = {"html": html, "json": json_of, "md": markdown}


async def report(place: Place, name: str) -> Report:
    """The report of the object that NAME means, as it is now. What may not be read of the rest the report says."""
    async with connected(place) as server:
        found = await find(server, name)
        events: Sequence[Mapping[str, Any]] | str
        try:
            events = await events_of(server, found)
        except Forbidden as error:
            events = error.message
        return report_of(found, events, await _releases(server), version("switchover"), now())


def now() -> datetime:
    """The time, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def form_of(wanted: str, output: Path | None) -> str:
    """The form that is wanted, else the one that the file's ending names, else html. Refused for another ending."""
    if wanted or output is None:
        return wanted or "html"
    form = output.suffix.removeprefix(".")
    if form not in WRITERS:
        raise Refused(f"--output {output}: its ending is none of .{', .'.join(WRITERS)}; say --format")
    return form


def into_file(text: str, output: Path) -> None:
    """The text as that file, over what is there. Refused where it cannot be written."""
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Refused(f"cannot write {output}: {error.strerror}") from None


async def _releases(server: ApiServer) -> list[str]:
    """Those of the operators in the namespace; empty where they may not be seen."""
    try:
        return [release(each) for each in await operator_deployments(server)]
    except Forbidden:
        return []
