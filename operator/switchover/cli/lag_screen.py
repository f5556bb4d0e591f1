"""Where the reports of `switchover lag` go: a terminal that refreshes, or plain output with progress on standard error."""

import asyncio
import contextlib
import sys
from collections.abc import Callable

from rich.console import Console
from rich.live import Live

from switchover.cli.lag import EXIT_CODES, Question, Report, follow_from_here
from switchover.cli.lag_output import document, progress, table
from switchover.cli.terminal import console
from switchover.lag.verdicts import Effect
from switchover.runtime.garbage import look_seldom


def show(question: Question, *, watch: bool, as_json: bool) -> int:
    """Show reports until there is a verdict, or with `watch` until Ctrl-C; the exit code.

    Raises Refused and Unreachable as `follow` does.
    """
    look_seldom()
    screen = console()
    last: Report | None = None

    async def follow(tell: Callable[[Report], None]) -> None:
        nonlocal last
        async with contextlib.aclosing(follow_from_here(question)) as reports:
            async for report in reports:
                tell(report)
                if report.judged:
                    last = report
                    if not watch:
                        return

    with contextlib.suppress(KeyboardInterrupt):
        if screen.is_terminal and not as_json:
            with Live(console=screen, auto_refresh=False) as live:
                asyncio.run(follow(lambda report: live.update(table(report), refresh=True)))
        else:
            asyncio.run(follow(lambda report: _print(screen, report, as_json)))
    return EXIT_CODES[last.effect if last is not None else Effect.INCONCLUSIVE]


def _print(screen: Console, report: Report, as_json: bool) -> None:
    if not report.judged:
        print(f"switchover: {progress(report)}", file=sys.stderr, flush=True)
    elif as_json:
        print(document(report), flush=True)
    else:
        screen.print(table(report))
