"""The commands of the person on call, for both kinds of migration."""

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from switchover.cli.command import Name, Output, Shown, Step, Yes, app, give_up, of_cluster, print_lines, refusals
from switchover.cli.place import Place


@app.command("list")
@of_cluster
def list_(
    place: Place,
    everywhere: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Of all namespaces.")] = False,
    output: Shown = Output.TABLE,
) -> None:
    """List the migrations of both kinds."""
    from switchover.cli import listing
    from switchover.cli.kube import connected
    from switchover.cli.objects import every
    from switchover.cli.terminal import console

    async def read() -> None:
        async with connected(place) as server:
            found = await every(server, everywhere=everywhere)
            if output is not Output.TABLE:
                typer.echo(listing.document(listing.manifests(found), output), nl=False)
            elif found:
                console().print(listing.table(found, time.time(), everywhere=everywhere))
            else:
                typer.echo(f"no migration in {'any namespace' if everywhere else f'namespace {server.namespace}'}")

    asyncio.run(read())


@app.command()
@of_cluster
def status(
    place: Place,
    name: Name,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Until interrupted; without a terminal a line for each "
                                                              "change.")] = False,
    output: Shown = Output.TABLE,
) -> None:
    """Show where a migration stands: its steps, the batch under way, its nodes or slots, and what it waits for."""
    from rich.console import Console

    from switchover.cli import listing, watching

    console = Console()
    try:
        if output is not Output.TABLE:
            if watch:
                give_up("--watch goes with the table alone")
            typer.echo(listing.document(listing.manifest(asyncio.run(watching.read(place, name))), output), nl=False)
        elif watch:
            asyncio.run(watching.watch(place, name, console))
        else:
            watching.drawn(asyncio.run(watching.read(place, name)), console)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


@app.command()
@of_cluster
def wait(
    place: Place,
    name: Name,
    goal: Annotated[str, typer.Option("--for", help="Succeeded, Hold (an approval is due) or RolledBack.")] = "Succeeded",
    timeout: Annotated[str, typer.Option(help="Such as 90s, 15m, 2h or 1d.")] = "1h",
) -> None:
    """Wait until a migration has come somewhere, with a line for each change.

    Exit code: 0 it is there; 1 it has ended elsewhere, or is gone; 2 refused; 3 the time is over.
    """
    from rich.console import Console

    from switchover.cli.watching import Goal, duration, say_on
    from switchover.cli.watching import wait as waited

    if goal not in tuple(Goal):
        give_up(f"--for {goal} is none of {', '.join(Goal)}")
    try:
        end = asyncio.run(waited(place, name, Goal(goal), duration(timeout), say_on(Console())))
    except KeyboardInterrupt:
        raise typer.Exit(3) from None
    if end.code:
        give_up(f"{name}: {goal} was {end}{f' after {timeout}' if end.code == 3 else ''}", end.code)


@app.command()
@of_cluster
def approve(
    place: Place,
    name: Name,
    step: Step,
    reason: Annotated[str, typer.Option(help="Why, for example a change ticket.")] = "",
    approver: Annotated[str, typer.Option(help="Without it the name by which the API server knows you.")] = "",
    field_manager: Annotated[str, typer.Option(help="In whose name it is written; flux-client-side-apply where Flux owns "
                                                    "the object.")] = "switchover-cli",
    yes: Yes = False,
) -> None:
    """Let a step begin that waits for an approval. Other approvals stay."""
    from switchover.cli.writing import approve as approved

    print_lines([asyncio.run(approved(place, name, step, reason, approver, field_manager, _confirmation(yes)))])


@app.command()
@of_cluster
def pause(place: Place, name: Name, yes: Yes = False) -> None:
    """Let no step and no batch begin any more; nothing is taken back, and gates are judged on."""
    _act(place, name, "pause", yes)


@app.command()
@of_cluster
def resume(place: Place, name: Name, yes: Yes = False) -> None:
    """Go on after a pause, begin what was planned, or begin anew after a rollback."""
    _act(place, name, "resume", yes)


@app.command()
@of_cluster
def rollback(place: Place, name: Name, yes: Yes = False) -> None:
    """Take every step back, the last one first, as long as the point of no return is not passed."""
    _act(place, name, "rollback", yes)


@app.command()
@of_cluster
def abandon(place: Place, name: Name, yes: Yes = False) -> None:
    """Delete a migration and leave everything as it is, half done: nothing is taken back."""
    _act(place, name, "abandon", yes)


@app.command()
@of_cluster
def events(place: Place, name: Name) -> None:
    """Print the Events of a migration, the oldest first."""
    from switchover.cli import talking

    print_lines(asyncio.run(talking.events(place, name)) or ["no Events: the API server keeps them for an hour"])


@app.command()
@of_cluster
def logs(
    place: Place,
    name: Name,
    since: Annotated[str, typer.Option(help="Such as 15m, 2h or 1d.")] = "1h",
    tail: Annotated[int, typer.Option(help="Lines of the operator's log that are looked through at most.", min=1)] = 100_000,
) -> None:
    """Print what the operator has logged of a migration."""
    from switchover.cli import talking
    from switchover.cli.watching import duration

    print_lines(asyncio.run(talking.logs(place, name, duration(since), tail)) or [f"nothing in the last {since}"])


@app.command()
@of_cluster
def story(
    place: Place,
    name: Name,
    since: Annotated[str, typer.Option(help="Such as 15m, 2h or 1d.")] = "1d",
    tail: Annotated[int, typer.Option(help="Lines of the operator's log that are looked through at most.", min=1)] = 100_000,
) -> None:
    """Print what the operator saw of a migration, how its gates answered and what it did, pass after pass, as far as that
    changed.

    It is read from the log of the operator's pod, which tells it at log level INFO.
    """
    from switchover.cli import talking
    from switchover.cli.watching import duration

    print_lines(asyncio.run(talking.story(place, name, duration(since), tail)) or [
        f"no story in the last {since}: nothing changed, or the operator logs less than INFO, or text instead of JSON"])


@app.command()
def explain(
    what: Annotated[str, typer.Argument(metavar="REASON|GATE|FIELD", autocompletion=lambda incomplete: _reasons(incomplete),
                                        help="Such as AwaitingApproval, AllInSync or kmig.spec.soakSeconds.")],
) -> None:
    """Print the runbook of a reason or gate, or what a field of the resources means. Nobody is contacted."""
    from switchover.cli.explaining import explain as explained

    with refusals():
        typer.echo(explained(what).rstrip())


class ReportForm(StrEnum):
    """What a report is written as."""

    HTML = "html"
    JSON = "json"
    MARKDOWN = "md"


@app.command()
@of_cluster
def report(
    place: Place,
    name: Name,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; without it standard output.")] = None,
    form: Annotated[ReportForm | None, typer.Option("--format", help="Without it what the file's name ends with, else "
                                                                     "html.")] = None,
) -> None:
    """Write what a migration has done so far, or in all, as one file for a change ticket: timeline, approvals, evidence."""
    from switchover.cli import plots, reporting

    wanted = reporting.form_of(form or "", output)
    if wanted == "html":
        plots.must_draw()
    text = reporting.WRITERS[wanted](asyncio.run(reporting.report(place, name)))
    if output is None:
        typer.echo(text, nl=False)
    else:
        reporting.into_file(text, output)
        print_lines([f"wrote {output}"])


@app.command()
@of_cluster
def dashboard(
    place: Place,
    everywhere: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Of all namespaces.")] = False,
    port: Annotated[int, typer.Option(help="On 127.0.0.1; 0 is one that is free.", min=0, max=65535)] = 0,
) -> None:
    """Show the migrations of both kinds, and the report of each, in the browser on this machine: live, and read only.

    It prints its address, and serves with your rights until interrupted. Whoever can reach this machine's loopback reads it.
    """
    from switchover.cli.dashboard import serve
    from switchover.cli.plots import must_draw

    must_draw()
    try:
        asyncio.run(serve(place, port, everywhere=everywhere, say=lambda address: print_lines([address])))
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


@app.command()
@of_cluster
def doctor(place: Place) -> None:
    """Look whether all is there: the CRDs, the operator and its release, your rights, the Leases.

    Exit code: 0 nothing is wrong; 1 something is; 2 the API server could not be asked.
    """
    from switchover.cli import doctor as doctors

    lines = asyncio.run(doctors.examine(place))
    print_lines([str(line) for line in lines])
    raise typer.Exit(doctors.code(lines))


def _act(place: Place, name: str, what: str, yes: bool) -> None:
    from switchover.cli.acting import Act
    from switchover.cli.writing import act

    print_lines([asyncio.run(act(place, name, Act(what), _confirmation(yes)))])


def _confirmation(yes: bool) -> Callable[[Iterable[str]], None]:
    def confirm(lines: Iterable[str]) -> None:
        print_lines(lines)
        if yes:
            return
        if not sys.stdin.isatty():
            give_up("nobody can be asked here, nothing was done: say --yes")
        with _interruptible():
            wanted = typer.confirm("Do it?")
        if not wanted:
            give_up("nothing was done", 1)

    return confirm


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C ends a question at once: asyncio's own handler would wait for the answer."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _reasons(incomplete: str) -> list[str]:
    from switchover.cli.explaining import gates, reasons

    return [each for each in (*reasons(), *gates()) if each.startswith(incomplete)]
