"""What the commands have in common: the program, its options, how a refusal is shown, and what reaches a terminal."""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from switchover.text.visible import printable

if TYPE_CHECKING:
    from rich.console import Console

    from switchover.network.credentials import Access

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
                  context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
WIDE = 10_000
"""Columns of an output of which no line is cut or folded."""


class Output(StrEnum):
    """How it is shown."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


@dataclass(frozen=True, slots=True)
class Place:
    """API server and namespace; "" is left to the kubeconfig, and in a pod to its service account."""

    namespace: str = ""
    context: str = ""
    kubeconfig: str = ""


def give_up(why: str, code: int = 2) -> NoReturn:
    """One line on standard error, and the end."""
    typer.echo(f"switchover: {printable(why)}", err=True)
    raise typer.Exit(code)


def print_lines(lines: Iterable[str]) -> None:
    """Lines on standard output, whatever is in them."""
    for line in lines:
        typer.echo(printable(line))


@contextmanager
def refusals() -> Iterator[None]:
    """Every refusal of the other side as one line, with exit code 2."""
    from switchover.answers.errors import Fenced, Refused, Unreachable

    try:
        yield
    except Fenced as error:
        give_up(f"{error}: somebody changed it at the same moment; try again")
    except (Refused, Unreachable) as error:
        give_up(as_text(error))


def as_text(error: Exception) -> str:
    """A refusal as a person reads it, with whom to ask where a right is missing, and what to look at in a silence."""
    from switchover.kubernetes.client.api_server import Forbidden, Silent

    if isinstance(error, Silent):
        return f"{error}; does `kubectl cluster-info`, with the same context, reach it?"
    if not isinstance(error, Forbidden):
        return str(error)
    return (f"{error.message}. Whoever installed the chart binds its Roles to you (docs/security.md); "
            "`switchover doctor` lists the rights that are missing")


def _contexts(ctx: typer.Context, incomplete: str) -> list[str]:
    from switchover.cli.completion import contexts

    return contexts(ctx.params, incomplete)


def _namespaces(ctx: typer.Context, incomplete: str) -> list[str]:
    from switchover.cli.completion import namespaces

    return namespaces(ctx.params, incomplete)


def _names(ctx: typer.Context, incomplete: str) -> list[str]:
    from switchover.cli.completion import names

    return names(ctx.params, incomplete)


def _clusters(ctx: typer.Context, incomplete: str) -> list[str]:
    from switchover.cli.completion import names

    return names(ctx.params, incomplete, kinds=("kmig",))


def _steps(ctx: typer.Context, incomplete: str) -> list[str]:
    from switchover.cli.completion import steps

    return steps(ctx.params, incomplete)


Name = Annotated[str, typer.Argument(metavar="NAME", autocompletion=_names,
                                     help="kmig/NAME, cgmig/NAME, or NAME alone where only one kind has it.")]
ClusterName = Annotated[str, typer.Argument(metavar="NAME", autocompletion=_clusters, help="A KafkaMigration.")]
Step = Annotated[str, typer.Argument(metavar="STEP", autocompletion=_steps, help="The step to approve.")]
Shown = Annotated[Output, typer.Option("--output", "-o", help="json and yaml print the whole object.")]
Looked = Annotated[Output, typer.Option("--output", "-o", help="json and yaml print every gate and finding.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

BootstrapServer = Annotated[str, typer.Option(help="One or more brokers, HOST:PORT, separated by commas.")]
CommandConfig = Annotated[Path | None, typer.Option(help="A file of client properties, as Kafka's own tools take it; "
                                                           "certificates and keys as PEM text.")]
Groups = Annotated[list[str] | None, typer.Option("--group", help="A consumer group; may be repeated. Default: all.")]

_PLACE = {
    "namespace": Annotated[str, typer.Option("--namespace", "-n", autocompletion=_namespaces,
                                             help="Default: that of the kubeconfig's context.")],
    "context": Annotated[str, typer.Option("--context", autocompletion=_contexts, help="The kubeconfig's context.")],
    "kubeconfig": Annotated[str, typer.Option("--kubeconfig", help="Default: KUBECONFIG, else ~/.kube/config, else, in "
                                                                   "a pod, its service account.")],
}


def access_to(servers: str, file: Path | None) -> "Access":
    """Kafka with the rights of those client properties. Refused when they cannot be read."""
    from switchover.answers.errors import Refused
    from switchover.network.credentials import Access
    from switchover.text import properties_file

    try:
        return Access(servers, properties_file.read(file) if file is not None else {})
    except properties_file.Unreadable as error:
        raise Refused(str(error)) from None


def of_cluster(function: Callable[..., Any]) -> Callable[..., Any]:
    """A command that talks to Kubernetes: it takes the Place as its first argument, and the options for it are added."""
    @wraps(function)
    def run(**given: Any) -> Any:
        place = Place(*(given.pop(name) for name in _PLACE))
        with refusals():
            return function(place, **given)

    _, *own = inspect.signature(function, eval_str=True).parameters.values()
    options = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default="", annotation=annotation)
               for name, annotation in _PLACE.items()]
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own] + options
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def console(*, folds: bool = True) -> "Console":
    """Standard output, for tables; `folds`: a terminal's lines. A command that we fold would be pasted as several."""
    from rich.console import Console

    return Console(highlight=False, width=None if folds and sys.stdout.isatty() else WIDE)


def clean(value: Any) -> Any:
    """A JSON value with every text in it, and every key, printable."""
    match value:
        case str():
            return printable(value)
        case Mapping():
            return {printable(str(key)): clean(each) for key, each in value.items()}
        case Sequence():
            return [clean(each) for each in value]
        case _:
            return value
