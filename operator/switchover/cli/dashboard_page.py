"""The dashboard's own pages: all migrations, and what is said where they cannot be read. Pure."""

from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files

from switchover.cli.listing import COLUMNS, cells
from switchover.cli.objects import Found
from switchover.cli.report_page import Live, moment, template
from switchover.cli.terminal import clean

EVERY_SECONDS = 5


@cache
def live(home: str) -> Live:
    """What makes a page read itself again, and where all migrations are shown; "" for who may not see them."""
    return Live(EVERY_SECONDS, (files(__package__) / "live.js").read_text(encoding="utf-8"), home)


@cache
def policy() -> str:
    """The Content-Security-Policy: our one script, and it asks nobody but us."""
    script = b64encode(sha256(live("").script.encode()).digest()).decode()
    return (f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{script}'; connect-src 'self'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


def index(found: Sequence[Found], namespace: str, written: datetime, home: str) -> str:
    """The migrations of a namespace, or of all ("") with a column that says which."""
    rows = []
    for each in found:
        of, name = (each.resource["metadata"][key] for key in ("namespace", "name"))
        own = clean((*cells(each, written.timestamp()), *(() if namespace else (of,))))
        rows.append((f"{home}{of}/{each.kind.short}/{name}", own))
    return _page(home, f"Migrations in {f'namespace {namespace}' if namespace else 'all namespaces'}", rows=rows,
                 names=COLUMNS if namespace else (*COLUMNS, "NAMESPACE"), written=written)


def trouble(words: str, answered: datetime | None = None, home: str = "") -> str:
    """The words, and when the page was last read well, if ever."""
    last = f"The last good answer was of {moment(answered)}." if answered else "There was no good answer yet."
    return _page(home, "Nothing can be shown", trouble=(clean(words), last))


def _page(home: str, title: str, **given: object) -> str:
    return template("dashboard.html.j2").render(live=live(home), title=clean(title), **{"trouble": (), **given})
