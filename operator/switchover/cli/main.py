"""The command line `switchover`. What a command stands on is imported when it runs: help need not wait for it."""

import asyncio
import os
import sys
from collections.abc import Iterable
from enum import StrEnum
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from switchover.api.job_message import Job
from switchover.cli import migrations as migrations
from switchover.cli.command import (
    BootstrapServer,
    ClusterName,
    CommandConfig,
    Groups,
    Looked,
    Name,
    Output,
    Place,
    give_up,
    of_cluster,
    print_lines,
    refusals,
)
from switchover.cli.command import app as app
from switchover.kubernetes.launch import Launcher, Run
from switchover.process.settings import BadSettings, read_settings
from switchover.text.visible import OneLine, printable

if TYPE_CHECKING:
    from switchover.cli.plan import Look


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(installed_version("switchover"))
        raise typer.Exit


@app.callback()
def switchover(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True,
                                          help="Print the version.")] = False,
) -> None:
    """Carries Apache Kafka from ZooKeeper to KRaft, and its consumer groups to their new protocol, while traffic flows.

    NAME is kmig/NAME, cgmig/NAME, or NAME alone where only one kind has it.
    """


@app.command()
def run() -> None:
    """Run the operator until it gets SIGTERM or SIGINT. Its settings come from the environment."""
    from switchover.answers.errors import Refused, Unreachable
    from switchover.process.leadership import Deposed
    from switchover.process.run import run_operator

    os.environ.setdefault("USER", "switchover")       # Kopf asks who runs it; in a container nobody may know
    try:
        asyncio.run(run_operator(read_settings(os.environ)))
    except (BadSettings, Refused, Unreachable, Deposed) as error:
        give_up(str(error))
    except OSError as error:
        give_up(f"cannot start: {error}")


@app.command()
@of_cluster
def plan(
    place: Place,
    name: Name = "",
    file: Annotated[str, typer.Option("--file", "-f", help="Instead of NAME, a manifest with one migration, which need not "
                                                           "exist yet; - reads standard input.")] = "",
    output: Looked = Output.TABLE,
) -> None:
    """Show what the operator sees and would do now.

    That is gates, findings and what resolves each, restarts, and what they change. Nothing is written.

    Kafka and ZooKeeper must be reachable by the names in the spec. A manifest is looked at with your own rights.

    Exit code: 0 nothing is against it; 1 a blocker, or a gate that fails; 2 refused; 3 a warning, or something unseen.
    """
    from switchover.cli import plan as planning

    if bool(name) == bool(file):
        give_up("plan needs either the NAME of a migration, or --file with a manifest")
    look = asyncio.run(planning.look_at_file(place, _text_of(file)) if file else planning.look_from_here(place, name))
    _show_look(look, planning.as_lines(look), output)


@app.command()
@of_cluster
def preflight(
    place: Place,
    file: Annotated[str, typer.Option("--file", "-f", help="A manifest with one migration; - reads standard input.")],
    output: Looked = Output.TABLE,
) -> None:
    """Check whether a migration could begin. Nothing is written.

    It works before anything is installed, with your own rights.

    Kafka and ZooKeeper must be reachable by the names in the manifest.

    Exit code: 0 nothing is against it; 1 a blocker; 2 refused; 3 a warning, or something unseen.
    """
    from switchover.cli import plan as planning

    look = asyncio.run(planning.look_at_file(place, _text_of(file)))
    _show_look(look, planning.preflight(look), output)


def _show_look(look: "Look[Any]", lines: Iterable[str], output: Output) -> NoReturn:
    from switchover.cli import plan as planning
    from switchover.cli.display import document

    if output is Output.TABLE:
        print_lines(lines)
    else:
        typer.echo(document(planning.document(look), output), nl=False)
    raise typer.Exit(look.code)


@app.command()
@of_cluster
def rehearse(
    place: Place,
    file: Annotated[str, typer.Option("--file", "-f", help="The manifest of a KafkaMigration; - reads standard input.")],
    release: Annotated[str, typer.Option(help="The brokers' inter.broker.protocol.version, 3.6 to 3.9.")] = "3.9",
    output: Annotated[Path | None, typer.Option(help="The report for a change ticket, as .json or .md.")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the Job for an hour, to look at it.")] = False,
    image: Annotated[str, typer.Option(envvar="IMAGE", help="The operator's image, which runs in the replica's pod.")] = "",
) -> None:
    """Rehearse a migration on a replica of the cluster's metadata.

    The replica is thrown away afterwards. The cluster is not changed.

    Exit code: 0 it would go through; 1 it would not; 2 it could not be rehearsed.
    """
    from switchover.answers.errors import Fenced
    from switchover.cli.rehearse import rehearse as rehearsed
    from switchover.cli.rehearse import written
    from switchover.cluster.rehearsal.report import lines

    try:
        name, found = asyncio.run(rehearsed(place, image, _text_of(file), release, keep=keep, say=_line))
        print_lines(lines(found))
        if output is not None:
            written(found, name, output)
    except Fenced as error:
        give_up(f"{error}: another rehearsal is under way")
    except OSError as error:
        give_up(str(error))
    raise typer.Exit(0 if found.passed else 1)


class Secrets(StrEnum):
    """What an export does with Secrets."""

    OMIT = "omit"
    INCLUDE = "include"


@app.command()
@of_cluster
def export(
    place: Place,
    name: ClusterName,
    output: Annotated[Path | None, typer.Option(help="Write one file for each object into this directory.")] = None,
    secrets: Annotated[Secrets, typer.Option(help="The Secrets of the nodes' edits, which may hold passwords.")]
    = Secrets.OMIT,
) -> None:
    """Print what belongs in Git after Finalize, as YAML. Nothing is changed."""
    from switchover.cli.export import as_stream, export_from_here, into_directory

    documents = asyncio.run(export_from_here(place, name, secrets is Secrets.INCLUDE))
    if output is None:
        typer.echo(as_stream(documents), nl=False)
    else:
        print_lines(into_directory(documents, output))


class Isolation(StrEnum):
    """How the groups read."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class Protocol(StrEnum):
    """The two protocols of a group."""

    CONSUMER = "Consumer"
    CLASSIC = "Classic"


class LagOutput(StrEnum):
    """How the lag is shown."""

    TABLE = "table"
    JSON = "json"


@app.command()
def lag(
    bootstrap_server: BootstrapServer,
    command_config: CommandConfig = None,
    group: Groups = None,
    topic: Annotated[list[str] | None, typer.Option(help="Only this topic; may be repeated. Default: all.")] = None,
    isolation: Annotated[Isolation, typer.Option(help="How the groups read: their isolation.level.")]
    = Isolation.READ_UNCOMMITTED,
    every: Annotated[float, typer.Option(help="Seconds between two samples.", min=1, max=75)] = 15,
    samples: Annotated[int, typer.Option(help="Samples that a verdict needs at least.", min=2)] = 8,
    span: Annotated[float, typer.Option(help="Seconds that they must span at least.", min=1)] = 120,
    once: Annotated[bool, typer.Option("--once", help="Take one sample: says what it proves, and what needs time.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Go on after the first verdict until interrupted.")] = False,
    output: Annotated[LagOutput, typer.Option("--output", "-o", help="json: a document for each verdict.")]
    = LagOutput.TABLE,
) -> None:
    """Judge whether consumer groups keep up. Read only.

    It shows lag in records and in time, and says what is wrong.

    One sample proves little, so it samples for two minutes before it says anything.

    Exit code: 0 every group passes; 1 one fails; 2 bad options, or Kafka cannot be reached or refuses;
    3 hold or inconclusive. After Ctrl-C that of the last verdict, 3 when there was none.
    """
    from switchover.answers.errors import Refused
    from switchover.cli.command import access_to
    from switchover.cli.lag import Question, thresholds_of
    from switchover.cli.lag_output import show

    with refusals():
        if once and watch:
            raise Refused("--once looks once, and --watch goes on: give one of them")
        question = Question(
            access_to(bootstrap_server, command_config), tuple(dict.fromkeys(group or ())),
            frozenset(topic or ()), isolation is Isolation.READ_COMMITTED,
            thresholds_of(every, samples, span, once=once))
        raise typer.Exit(show(question, watch=watch, as_json=output is LagOutput.JSON))


@app.command()
def groups(
    bootstrap_server: BootstrapServer,
    command_config: CommandConfig = None,
    group: Groups = None,
    to: Annotated[Protocol, typer.Option(help="The protocol that they are to move to.")] = Protocol.CONSUMER,
    output: Annotated[Output, typer.Option("--output", "-o", help="json and yaml: with every finding and what resolves it.")]
    = Output.TABLE,
) -> None:
    """List all groups of a cluster, and whether they can move.

    Of each it shows type, state, members, strategy, and what stands in the way of its move. Read only.

    Without --group it needs Describe on the Cluster: brokers leave out what a user may not see, and do not say so.

    Exit code: 0 all was seen; 2 Kafka cannot be reached, or refuses; 3 something could not be seen.
    """
    from switchover.answers.clock import WallClock
    from switchover.cli.command import access_to, console
    from switchover.cli.display import document as written
    from switchover.cli.groups import document, look, table

    with refusals():
        found = asyncio.run(look(access_to(bootstrap_server, command_config), group or (), to.value, WallClock()))
        if output is Output.TABLE:
            screen = console()
            for each in table(found):
                screen.print(each)
        else:
            typer.echo(written(document(found), output), nl=False)
        raise typer.Exit(found.code)


@app.command()
def consume(
    config: Annotated[Path | None, typer.Option(help="A file of properties.")] = None,
    property_: Annotated[list[str] | None, typer.Option("--property", "-X", help="KEY=VALUE; may be repeated.")] = None,
    topic: Annotated[list[str] | None, typer.Option(help="May be repeated.")] = None,
    whitelist: Annotated[str, typer.Option(help="Every topic whose whole name matches.")] = "",
    blacklist: Annotated[str, typer.Option(help="Every topic whose whole name does not match.")] = "",
    streams: Annotated[int, typer.Option(help="Streams for each topic, as the old consumer counts them.")] = 1,
) -> None:
    """Consume as a migration-enabled member of a group (KIP-125).

    It is for trying out: records go to standard output. It takes partitions of the group from its other members, and
    commits. SIGTERM and Ctrl-C close it in order.
    """
    import logging

    from switchover.cli.consume import Wanted, configuration
    from switchover.cli.consume import consume as consumed
    from switchover.consumer.migration_consumer import BadConfiguration, ForeignMembers
    from switchover.consumer.migration_consumer import Unreachable as NoAnswer

    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(OneLine())
    logging.getLogger("kazoo").setLevel(logging.ERROR)
    try:
        for line, is_record in consumed(configuration(config, property_ or ()),
                                        Wanted(topic or (), whitelist, blacklist, streams)):
            typer.echo(printable(line), err=not is_record)
    except (BadConfiguration, ForeignMembers, NoAnswer) as error:
        give_up(str(error))


@app.command()
def pipeline(
    job: Annotated[Job, typer.Argument(help="Which job.")],
    config: Annotated[Path, typer.Option(help="The jobs' configuration, a YAML file.")],
) -> None:
    """Run one job of the data pipeline on Spark, on this machine.

    It needs Java 17.

    Exit code: 0 it came to its end, whatever its verdict; 2 it could not.
    """
    from switchover.pipeline.main import run

    raise typer.Exit(run(job.value, config))


@app.command()
@of_cluster
def launch(
    place: Place,
    job: Annotated[Job, typer.Argument(help="Which job.")],
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
    """Print the manifest that runs a pipeline job in Kubernetes.

    It is for kubectl apply or Git.

    Works offline, except with SparkApplication: the API server is asked which of the two operators it has.
    """
    from switchover.cli.launch import NotUsable, manifest

    run = Run(name or f"pipeline-{job.value}", job.value, image, "", claim, cpu, memory, secrets=tuple(secret or ()),
              service_account=service_account, executors=executors, labels={"app.kubernetes.io/managed-by": "switchover"})
    try:
        typer.echo(manifest(run, config, launcher, schedule, place), nl=False)
    except NotUsable as error:
        give_up(str(error))


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(installed_version("switchover"))


def _line(line: str) -> None:
    print_lines((line,))


def _text_of(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        give_up(f"{file} cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        give_up(f"{file} is no text")
