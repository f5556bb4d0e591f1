"""The command line `switchover`. What a command stands on is imported when it runs: help need not wait for it."""

import asyncio
import os
from enum import StrEnum
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from switchover.core.launch import Launcher, Run
from switchover.settings import BadSettings, read_settings

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def switchover() -> None:
    """Carries Apache Kafka from ZooKeeper to KRaft while its traffic keeps flowing."""


@app.command()
def run() -> None:
    """Run the operator in its namespace until it is told to stop; its settings come from the environment."""
    from switchover.cli.run import run_operator
    from switchover.ports import Refused, Unreachable

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
    from switchover.ports import Refused, Unreachable

    try:
        for line in asyncio.run(explain_from_here(read_settings(os.environ), name)):
            typer.echo(line)
    except (BadSettings, Refused, Unreachable) as error:
        _give_up(str(error))


@app.command()
def rehearse(
    file: Annotated[str, typer.Option("--file", "-f", help="A KafkaMigration's manifest; - for standard input.")],
    release: Annotated[str, typer.Option(help="The brokers' inter.broker.protocol.version, 3.6 to 3.9.")] = "3.9",
    output: Annotated[Path | None, typer.Option(help="The report for a change ticket, as .json or .md.")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the Job for an hour, to look at.")] = False,
) -> None:
    """Rehearse a migration on a throwaway replica of the cluster's metadata; the cluster is not changed.

    Exit code: 0 it would go through; 1 it would not; 2 it could not be rehearsed.
    """
    import sys

    from switchover.cli.rehearse import rehearse as rehearsed
    from switchover.cli.rehearse import written
    from switchover.ports import Fenced, Refused, Unreachable
    from switchover.rehearsal.report import lines

    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        name, found = asyncio.run(rehearsed(read_settings(os.environ), text, release, keep=keep, told=typer.echo))
        for line in lines(found):
            typer.echo(line)
        if output is not None:
            written(found, name, output)
    except Fenced as error:
        _give_up(f"{error}: another rehearsal is under way")
    except (BadSettings, Refused, Unreachable, OSError, UnicodeDecodeError) as error:
        _give_up(str(error))
    raise typer.Exit(0 if found.passed else 1)


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
    from switchover.ports import Fenced, Refused, Unreachable

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


class Isolation(StrEnum):
    """How the groups read."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class Output(StrEnum):
    """How it is shown."""

    TABLE = "table"
    JSON = "json"


@app.command()
def lag(
    bootstrap_server: Annotated[str, typer.Option(help="HOST:PORT of one or more brokers, with commas.")],
    command_config: Annotated[Path | None, typer.Option(help="Client properties as for Kafka's tools; PEM as text.")] = None,
    group: Annotated[list[str] | None, typer.Option(help="A consumer group; may be repeated. Without it, all.")] = None,
    topic: Annotated[list[str] | None, typer.Option(help="Only this topic; may be repeated. Without it, all.")] = None,
    isolation: Annotated[Isolation, typer.Option(help="How the groups read: their isolation.level.")]
    = Isolation.READ_UNCOMMITTED,
    every: Annotated[float, typer.Option(help="Seconds between two samples.", min=1, max=75)] = 15,
    samples: Annotated[int, typer.Option(help="Samples that a verdict needs at least.", min=2)] = 8,
    span: Annotated[float, typer.Option(help="Seconds that they must span at least.", min=1)] = 120,
    watch: Annotated[bool, typer.Option("--watch", help="Go on after the first verdict, until interrupted.")] = False,
    output: Annotated[Output, typer.Option(help="json: a document for each verdict.")] = Output.TABLE,
) -> None:
    """Judge whether consumer groups keep up: lag in records and in time, with words for what is wrong. Read only.

    One sample proves nothing, so it samples for two minutes before it says anything.

    Exit code: 0 every group passes; 1 one fails; 2 bad options, or Kafka cannot be reached or refuses;
    3 hold or inconclusive. After Ctrl-C that of the last verdict, 3 when there was none.
    """
    from switchover.cli.lag import Question, client_properties, thresholds_of
    from switchover.cli.lag_screen import show
    from switchover.ports import Access, Refused, Unreachable

    try:
        question = Question(
            Access(bootstrap_server, client_properties(command_config)), tuple(dict.fromkeys(group or ())),
            frozenset(topic or ()), isolation is Isolation.READ_COMMITTED, thresholds_of(every, samples, span))
        raise typer.Exit(show(question, watch=watch, as_json=output is Output.JSON))
    except (Refused, Unreachable) as error:
        _give_up(str(error))


@app.command()
def consume(
    config: Annotated[Path | None, typer.Option(help="A file of properties.")] = None,
    property_: Annotated[list[str] | None, typer.Option("--property", "-X", help="KEY=VALUE; may be repeated.")] = None,
    topic: Annotated[list[str] | None, typer.Option(help="May be repeated.")] = None,
    whitelist: Annotated[str, typer.Option(help="Every topic whose whole name matches.")] = "",
    blacklist: Annotated[str, typer.Option(help="Every topic whose whole name does not match.")] = "",
    streams: Annotated[int, typer.Option(help="Streams for each topic, as the old consumer counts them.")] = 1,
) -> None:
    """Consume as a migration-enabled member of a group (KIP-125), to try it out; records go to standard output.

    It takes partitions of the group from its other members and commits. SIGTERM and Ctrl-C close it in order.
    """
    import logging

    from switchover.cli.consume import Wanted, configuration
    from switchover.cli.consume import consume as consumed
    from switchover.consumer.migration_consumer import BadConfiguration
    from switchover.consumer.migration_consumer import Unreachable as NoAnswer

    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    logging.getLogger("kazoo").setLevel(logging.ERROR)
    try:
        for line, is_record in consumed(configuration(config, property_ or ()),
                                        Wanted(topic or (), whitelist, blacklist, streams)):
            typer.echo(line, err=not is_record)
    except (BadConfiguration, NoAnswer) as error:
        _give_up(str(error))


class Job(StrEnum):
    """The jobs of the pipeline."""

    CAPTURE = "capture"
    INVENTORY = "inventory"
    BASELINE = "baseline"
    AUDIT = "audit"
    DRIFT = "drift"


@app.command()
def pipeline(
    job: Job,
    config: Annotated[Path, typer.Option(help="The jobs' configuration, a YAML file.")],
) -> None:
    """Run one job of the data pipeline on Spark, here, where Java 17 is.

    Exit code: 0 it came to its end, whatever its verdict; 2 it could not.
    """
    from switchover.pipeline.main import run

    raise typer.Exit(run(job.value, config))


@app.command()
def launch(
    job: Job,
    config: Annotated[Path, typer.Option(help="The jobs' configuration, whose store is /data in the pod.")],
    image: Annotated[str, typer.Option(help="The pipeline's image.")],
    claim: Annotated[str, typer.Option(help="The volume claim that holds the store.")],
    name: Annotated[str, typer.Option(help="Of the object; pipeline-JOB by default.")] = "",
    launcher: Annotated[Launcher, typer.Option(help="SparkApplication: of the operator that the cluster has.")]
    = Launcher.JOB,
    schedule: Annotated[str, typer.Option(help="A CronJob at these times, such as '0 3 * * *'; not of SparkApplications.")]
    = "",
    cpu: Annotated[str, typer.Option(help="What the pod requests; each executor as well.")] = "1",
    memory: Annotated[str, typer.Option(help="What the pod requests, and its limit.")] = "2Gi",
    secret: Annotated[list[str] | None, typer.Option(help="Mounted at /etc/switchover-secrets/NAME; repeatable.")] = None,
    service_account: Annotated[str, typer.Option(help="The pod's; for SparkOnKubernetes one that may create pods.")] = "",
    executors: Annotated[int, typer.Option(help="With SparkOnKubernetes: how many, of 2 GiB and one task.", min=1)] = 2,
) -> None:
    """Print the manifest that runs a job of the pipeline in Kubernetes, for kubectl apply or Git.

    Nobody is contacted, but for SparkApplication: the API server tells which of both operators it has.
    """
    from switchover.cli.launch import NotUsable, manifest

    run = Run(name or f"pipeline-{job.value}", job.value, image, "", claim, cpu, memory, secrets=tuple(secret or ()),
              service_account=service_account, executors=executors, labels={"app.kubernetes.io/managed-by": "switchover"})
    try:
        typer.echo(manifest(run, config, launcher, schedule), nl=False)
    except NotUsable as error:
        _give_up(str(error))


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(installed_version("switchover"))


def _give_up(why: str) -> NoReturn:
    typer.echo(f"switchover: {why}", err=True)
    raise typer.Exit(2)
