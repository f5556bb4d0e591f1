"""The command line `switchover`."""

import asyncio
import os
from enum import StrEnum
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from switchover.ports import Fenced, Refused, Unreachable
from switchover.settings import BadSettings, read_settings

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def switchover() -> None:
    """Carries Apache Kafka from ZooKeeper to KRaft while its traffic keeps flowing."""


@app.command()
def run() -> None:
    """Run the operator in its namespace until it is told to stop; its settings come from the environment."""
    from switchover.cli.run import run_operator  # its imports take a second that `version` need not

    os.environ.setdefault("USER", "switchover")       # Kopf asks who runs it; in a container nobody may know
    try:
        asyncio.run(run_operator(read_settings(os.environ)))
    except (BadSettings, Refused, Unreachable) as error:
        _give_up(str(error))
    except OSError as error:
        _give_up(f"cannot start: {error}")


@app.command()
def plan(name: str) -> None:
    """Say where a KafkaMigration stands, what its gates say and what would be done next; nothing is written."""
    from switchover.cli.plan import explain_from_here

    try:
        for line in asyncio.run(explain_from_here(read_settings(os.environ), name)):
            typer.echo(line)
    except (BadSettings, Refused, Unreachable) as error:
        _give_up(str(error))


class Secrets(StrEnum):
    """What an export does with Secrets."""

    OMIT = "omit"
    INCLUDE = "include"


@app.command()
def export(
    name: str,
    output: Annotated[Path | None, typer.Option(help="Write a file for each object into this directory.")] = None,
    secrets: Annotated[Secrets, typer.Option(help="The files of the nodes may hold passwords.")] = Secrets.OMIT,
) -> None:
    """Print, as YAML, what belongs into Git once a KafkaMigration is finalized; the cluster is not changed."""
    from switchover.cli.export import as_stream, export_from_here, into_directory

    try:
        settings = read_settings(os.environ)
        documents = asyncio.run(export_from_here(settings, name, secrets is Secrets.INCLUDE))
        if output is None:
            typer.echo(as_stream(documents), nl=False)
        else:
            for line in into_directory(documents, output):
                typer.echo(line)
    except Fenced:
        _give_up("something was changed while it was read; try again")
    except (BadSettings, Refused, Unreachable) as error:
        _give_up(str(error))


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(installed_version("switchover"))


def _give_up(why: str) -> NoReturn:
    typer.echo(f"switchover: {why}", err=True)
    raise typer.Exit(2)


def main() -> None:
    """The entry point."""
    app()
