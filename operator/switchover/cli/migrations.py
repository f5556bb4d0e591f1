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

from switchover.cli.command import Name, Output, Place, Shown, Step, Yes, app, give_up, of_cluster, print_lines, refusals

Everywhere = Annotated[bool, typer.Option("--all-namespaces", "-A", help="In all namespaces.")]
Since = Annotated[str, typer.Option(help="Such as 15m, 2h or 1d.")]
Tail = Annotated[int, typer.Option(help="Search only the last so many lines of the operator's log.", min=1)]


@app.command("list")
@of_cluster
def list_(
    place: Place,
    everywhere: Everywhere = False,
    output: Shown = Output.TABLE,
) -> None:
    """List migrations of both kinds."""
    from switchover.cli import display
    from switchover.cli.command import console
    from switchover.cli.kube import connected
    from switchover.cli.objects import every

    async def read() -> None:
        async with connected(place) as server:
            found = await every(server, everywhere=everywhere)
            if output is not Output.TABLE:
                typer.echo(display.document(display.manifests(found), output), nl=False)
            elif found:
                console().print(display.table(found, time.time(), everywhere=everywhere))
            else:
                typer.echo(f"no migration in {'any namespace' if everywhere else f'namespace {server.namespace}'}")

    asyncio.run(read())


@app.command()
@of_cluster
def status(
    place: Place,
    name: Name,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Follow it until interrupted; without a terminal, one "
                                                              "line for each change.")] = False,
    output: Shown = Output.TABLE,
) -> None:
    """Show where a migration stands and what it waits for.

    That is its steps, the batch under way, its nodes or slots with their modes, and each gate with what unblocks it.
    """
    from switchover.cli import display, follow
    from switchover.cli.command import console as on_screen
    from switchover.cli.display import tree

    console = on_screen(folds=watch)
    try:
        if output is not Output.TABLE:
            if watch:
                give_up(f"--watch shows the table alone: leave out --output {output}")
            typer.echo(display.document(display.manifest(asyncio.run(follow.read(place, name))), output), nl=False)
        elif watch:
            asyncio.run(follow.watch(place, name, console))
        else:
            console.print(tree(asyncio.run(follow.read(place, name)).resource, time.time()))
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
    """Wait until a migration succeeds, is held, or is rolled back.

    Held: an approval is due. A line is printed for each change.

    Exit code: 0 it is there; 1 it has ended otherwise, or is gone; 2 refused; 3 timed out.
    """
    from switchover.cli.command import console
    from switchover.cli.follow import Goal, say_on
    from switchover.cli.follow import wait as waited

    if goal not in tuple(Goal):
        give_up(f"--for {goal} is none of {', '.join(Goal)}")
    try:
        end, why = asyncio.run(waited(place, name, Goal(goal), timeout, say_on(console())))
    except KeyboardInterrupt:
        raise typer.Exit(3) from None
    if end:
        give_up(why, end)


@app.command()
@of_cluster
def approve(
    place: Place,
    name: Name,
    step: Step,
    reason: Annotated[str, typer.Option(help="Why: a change ticket, for example.")] = "",
    approver: Annotated[str, typer.Option(help="Default: the name by which the API server knows you.")] = "",
    field_manager: Annotated[str, typer.Option(help="The field manager that writes it: flux-client-side-apply where Flux "
                                                    "owns the object.")] = "switchover-cli",
    yes: Yes = False,
) -> None:
    """Approve a step: it begins once its gates pass. Earlier approvals stay."""
    from switchover.cli.acts_written import approve as approved

    print_lines([asyncio.run(approved(place, name, step, reason, approver, field_manager, _confirmation(yes)))])


@app.command()
@of_cluster
def pause(place: Place, name: Name, yes: Yes = False) -> None:
    """Hold a migration: no step and no batch begins. Nothing is rolled back, and gates are still evaluated."""
    _act(place, name, "pause", yes)


@app.command()
@of_cluster
def resume(place: Place, name: Name, yes: Yes = False) -> None:
    """Go on after a pause, begin what was planned, or start over."""
    _act(place, name, "resume", yes)


@app.command()
@of_cluster
def rollback(place: Place, name: Name, yes: Yes = False) -> None:
    """Roll every step back, the last one first. Possible until the point of no return."""
    _act(place, name, "rollback", yes)


@app.command()
@of_cluster
def retry(place: Place, name: Name, yes: Yes = False) -> None:
    """Begin another attempt after a rollback.

    Also after one that nobody asked for. One that is still under way ends first. Approvals are not carried over.
    """
    _act(place, name, "retry", yes)


@app.command()
@of_cluster
def abandon(place: Place, name: Name, yes: Yes = False) -> None:
    """Delete a migration and leave everything as it is, half done. Nothing is rolled back."""
    _act(place, name, "abandon", yes)


@app.command()
@of_cluster
def events(place: Place, name: Name) -> None:
    """Print the Events of a migration, oldest first."""
    from switchover.cli import follow

    print_lines(asyncio.run(follow.events(place, name)) or ["no Events: the API server keeps them for an hour by default"])


@app.command()
@of_cluster
def logs(
    place: Place,
    name: Name,
    since: Since = "1h",
    tail: Tail = 100_000,
) -> None:
    """Print what the operator logged about a migration."""
    from switchover.cli import follow
    from switchover.cli.follow import duration

    print_lines(asyncio.run(follow.logs(place, name, duration(since), tail)) or [
        f"the operator has logged nothing about {name} in the last {since}"])


@app.command()
@of_cluster
def story(
    place: Place,
    name: Name,
    since: Since = "1d",
    tail: Tail = 100_000,
) -> None:
    """Print what the operator saw, judged and did, pass after pass.

    It shows what changed from one pass to the next, and is read from the log of the operator's pod (log level INFO).
    """
    from switchover.cli import follow
    from switchover.cli.follow import duration

    print_lines(asyncio.run(follow.story(place, name, duration(since), tail)) or [
        f"no story in the last {since}: nothing changed, or the operator logs less than INFO, or text instead of JSON"])


@app.command()
def explain(
    what: Annotated[str, typer.Argument(metavar="REASON|FINDING|GATE|FIELD",
                                        autocompletion=lambda incomplete: _reasons(incomplete),
                                        help="Such as AwaitingApproval, AllInSync or kmig.spec.soakSeconds.")],
) -> None:
    """Explain a reason, a finding, a gate, or a field of the resources.

    Prints the runbook of a reason or gate, when a finding is found, or what the field means. Works offline.
    """
    from switchover.cli.explain import explain as explained

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
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file. Default: standard output.")] = None,
    form: Annotated[ReportForm | None, typer.Option("--format", help="Default: as the file's name ends, else html.")] = None,
) -> None:
    """Write a report for a change ticket, at any time.

    It has the timeline, approvals, evidence, findings and figures.
    """
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
    everywhere: Everywhere = False,
    port: Annotated[int, typer.Option(help="On 127.0.0.1; 0 picks a free one.", min=0, max=65535)] = 0,
) -> None:
    """Show all migrations and their reports in a browser, live.

    It is read only. It prints its address, with a new token at each start, and serves until interrupted, with your
    rights: whoever knows that address and reaches this machine's loopback can read it.
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
    """Check the installation and your rights.

    It looks at the CRDs, the operator and its release, your rights, Leases, and whether an operator looks at each migration.

    Exit code: 0 nothing is wrong; 1 something is; 2 the API server cannot be asked.
    """
    from switchover.cli import doctor as doctors

    lines = asyncio.run(doctors.examine(place))
    print_lines([str(line) for line in lines])
    raise typer.Exit(doctors.code(lines))


def _act(place: Place, name: str, what: str, yes: bool) -> None:
    from switchover.cli.acts import Act
    from switchover.cli.acts_written import act

    print_lines([asyncio.run(act(place, name, Act(what), _confirmation(yes)))])


def _confirmation(yes: bool) -> Callable[[Iterable[str]], None]:
    def confirm(lines: Iterable[str]) -> None:
        print_lines(lines)
        if yes:
            return
        if not sys.stdin.isatty():
            give_up("nothing was done: standard input is no terminal, so nobody can be asked; add --yes")
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
    from switchover.cli import gates
    from switchover.cli.explain import reasons

    return [each for each in (*reasons(), *gates.names()) if each.startswith(incomplete)]
