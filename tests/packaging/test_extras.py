"""The wheel in environments of its own, with one extra each and nothing but locked packages: every command, every module."""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from typer.models import OptionInfo

from documents import Block, of, run
from installed import ROOT, Installation, built_wheel, installed
from switchover.cli.main import app
from switchover.runtime.extras import OF_COMMAND

BARE = ""

EXTRAS = (BARE, *(extra for extra in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
                  if extra != "common"))          # which is there for the others alone
CONTAINS = {BARE: (), "consumer": (), "cli": ("cli",), "operator": ("cli", "operator"), "pipeline": ("cli", "pipeline")}
"""Whose commands run with an extra."""

NOT_IN_THE_IMAGE = ("report", "dashboard", "consume")
"""What the operator's image has nothing to draw with; and it has one client of Kafka, which is not an application's."""

OPERATOR = ("switchover.process.run", "switchover.process.handlers", "switchover.process.metrics",
            "switchover.process.probe")
PIPELINE = ("switchover.pipeline",)
CONSUMER = ("switchover.consumer", "switchover.cli.consume")
NOT_FOR = {"cli": (*OPERATOR, *PIPELINE), "operator": (*PIPELINE, *CONSUMER), "pipeline": OPERATOR}
"""Modules that are not for an extra; all others must be importable with it."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module", params=EXTRAS, ids=lambda extra: extra or "bare")
def installation(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory,
                 ) -> Iterator[Installation]:
    extra = request.param
    with installed(wheel, extra, extra or "bare", tmp_path_factory.mktemp(extra or "bare")) as found:
        yield found


def test_the_wheel_brings_its_licence_and_its_notice(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as found:
        for name in ("LICENSE", "NOTICE"):
            (inside,) = (each for each in found.namelist() if each.endswith(f".dist-info/licenses/{name}"))
            assert found.read(inside) == (ROOT / name).read_bytes()


def invocations(config: Path) -> Iterator[tuple[str, ...]]:
    """Every command with what it cannot do without: the first word that it knows, a configuration, or any text."""
    for info in app.registered_commands:
        assert info.callback is not None
        hints = get_type_hints(info.callback)
        arguments: list[str] = []
        for each in inspect.signature(info.callback).parameters.values():
            if each.default is each.empty:
                hint = hints[each.name]
                value = next(iter(hint)) if issubclass(hint, StrEnum) else config if issubclass(hint, Path) else "none"
                arguments += (*option(each), str(value))
        yield (info.name or info.callback.__name__, *arguments)


def option(parameter: inspect.Parameter) -> Sequence[str]:
    """An argument has no name on the command line."""
    metadata: Any = getattr(parameter.annotation, "__metadata__", ())
    is_option = any(isinstance(each, OptionInfo) for each in metadata)
    return (f"--{parameter.name.replace('_', '-')}",) if is_option else ()


TRIED = """
import gc, json, os, sys, traceback
from importlib import import_module
from pkgutil import walk_packages
import switchover
from switchover.cli.entry import main

lacks = {}
for each in walk_packages(switchover.__path__, "switchover."):
    try:
        import_module(each.name)
    except ImportError as error:
        lacks[each.name] = str(error)
    else:
        lacks[each.name] = ""
print(json.dumps(lacks), flush=True)
gc.freeze()
for arguments in json.load(sys.stdin):
    with open("stdout", "w+") as stdout, open("stderr", "w+") as stderr:
        if (child := os.fork()) == 0:
            os.dup2(stdout.fileno(), 1)
            os.dup2(stderr.fileno(), 2)
            sys.argv, ended = ["switchover", *arguments], 1
            try:
                ended = main() or 0
            except SystemExit as ending:
                ended = ending.code or 0
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(ended)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        stdout.seek(0), stderr.seek(0)
        print(json.dumps([status, stdout.read(), stderr.read()]), flush=True)
"""
"""What each module lacks ("": nothing), and then, by line, what the program does with each list of arguments. All modules
are imported once, each command is a copy of the process that has them, and tries again what could not be imported. A copy
ends at once: to take every module of it apart cost as much as to import them."""

Done = subprocess.CompletedProcess[str]


def tried(installation: Installation, *commands: Sequence[str]) -> tuple[dict[str, str], list[Done]]:
    """What each module of the package lacks in this environment, and what each command did."""
    script = installation.run("python", "-c", TRIED, stdin=json.dumps(commands))
    assert script.returncode == 0, script.stderr
    lacks, *did = map(json.loads, script.stdout.splitlines())
    return lacks, [Done(command, *each) for command, each in zip(commands, did, strict=True)]


EXPLAINED = (("explain", "AwaitingApproval"), ("explain", "GroupLag"), ("explain", "AllInSync"))
NO_PICTURES = ("report", "none", "--format", "md")


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one environment: by module what it lacks, and what each command did."""

    extra: str
    lacks: dict[str, str]
    each: list[Done]
    explained: list[Done]
    no_pictures: Done


@pytest.fixture(scope="module")
def trial(installation: Installation) -> Trial:
    config = installation.directory / "pipeline.yaml"
    config.write_text("cluster: demo\nstore: /data\n")
    lacks, did = tried(installation, *EXPLAINED, NO_PICTURES, *invocations(config))
    count = len(EXPLAINED)
    return Trial(installation.extra, lacks, did[count + 1:], did[:count], did[count])


def test_every_command_works_or_says_which_extra_it_needs(trial: Trial) -> None:
    """It works: it did what it does, or it refused what it was given in words."""
    for done in trial.each:
        command = done.args[0]
        extra = OF_COMMAND.get(command, "cli")
        needs = f"switchover {command} needs switchover[{extra}]: pip install 'switchover[{extra}]' "
        assert done.returncode in (0, 2), done
        if done.returncode == 2:
            assert re.fullmatch(r"switchover\b.*\n", done.stderr), done.stderr        # one line: no traceback
        lacks = extra not in CONTAINS[trial.extra] or (trial.extra == "operator" and command in NOT_IN_THE_IMAGE)
        assert done.stderr.startswith(needs) == lacks, done


@pytest.mark.long
def test_a_process_of_its_own_does_what_the_copy_did(installation: Installation, trial: Trial) -> None:
    """Whatever order it imports its modules in, and to its very end."""
    for copy in trial.each:
        alone = installation.run("switchover", *copy.args)
        assert (alone.returncode, alone.stdout, alone.stderr) == (copy.returncode, copy.stdout, copy.stderr), copy.args


def test_without_a_command_it_tells_what_there_is(installation: Installation) -> None:
    """Its commands, or the extras."""
    done = installation.run("switchover")
    assert done.returncode == 2
    names = [command for command, *_ in invocations(Path())] if CONTAINS[installation.extra] else [
        f"'switchover[{extra}]'" for extra in EXTRAS if extra]
    assert all(name in done.stdout + done.stderr for name in names), done
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("installation", ["cli"], indirect=True)
def test_the_runbooks_travel_and_kubectl_finds_its_plugin(installation: Installation, trial: Trial) -> None:
    runbook, lag, gate = trial.explained
    page = (ROOT / "docs/runbooks/AwaitingApproval.md").read_text()
    short = page.splitlines()[2]                           # explain says what that urgency means
    said = next(line for line in runbook.stdout.splitlines() if line.startswith(short.removesuffix(".")))
    assert (runbook.returncode, runbook.stdout.replace(said, short)) == (0, page), runbook
    assert len(said) > len(short)
    assert lag.stdout.startswith("# GroupLag\n\nUrgency: ")
    assert gate.stdout.startswith("# AllInSync\n")
    assert installation.run("kubectl-switchover", "explain", "AwaitingApproval").stdout == runbook.stdout
    done = installation.run("kubectl_complete-switchover", "explain", "AwaitingAp")
    assert done.stdout.splitlines() == ["AwaitingApproval", ":4"], done


def all_found(lacks: dict[str, str], extra: str) -> None:
    """Every module that is for the extra finds its packages."""
    assert "switchover.kafka.ports" in lacks
    assert {name: why for name, why in lacks.items() if why and not name.startswith(NOT_FOR[extra])} == {}


@pytest.mark.parametrize("installation", NOT_FOR, indirect=True)
def test_every_module_finds_its_packages(trial: Trial) -> None:
    """Those as well that a command imports only once it is at work."""
    all_found(trial.lacks, trial.extra)


@pytest.mark.parametrize("installation", ["operator"], indirect=True)
def test_a_report_without_pictures_needs_nothing_that_draws(trial: Trial) -> None:
    done = trial.no_pictures
    assert (done.returncode, "matplotlib" in done.stderr) == (2, False), done
    assert done.stderr.startswith("switchover: "), done


MEMBER = """
from switchover.consumer.migration_consumer import MigrationConsumer, Unreachable
consumer = MigrationConsumer(
    {"group.id": "orders", "zookeeper.connect": "127.0.0.1:1", "zookeeper.connection.timeout.ms": 100})
try:
    consumer.subscribe(["orders"])
except Unreachable as error:
    print(error)
finally:
    consumer.close()
"""


@pytest.mark.parametrize("installation", ["consumer"], indirect=True)
def test_a_consumer_is_made_of_its_extra_alone(installation: Installation) -> None:
    done = installation.run("python", "-c", MEMBER)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ZooKeeper at 127.0.0.1:1 does not answer within 0.1 s\n"


APPS = ROOT / "sandbox/apps"


@pytest.mark.parametrize("installation", ["consumer"], indirect=True)
def test_the_members_of_the_clients_image_are_made_of_it_too(installation: Installation) -> None:
    """Its Dockerfile installs what the extra locks, and copies these."""
    copied = re.findall(r"^COPY (\w+) /opt/", (ROOT / "sandbox/images/client/Dockerfile").read_text(), re.MULTILINE)
    modules = [".".join(file.relative_to(APPS).with_suffix("").parts)
               for app in copied for file in sorted((APPS / app).rglob("*.py"))]
    assert {"load.producer", "member.__main__", "zkmember.__main__"} <= set(modules)
    done = installation.run("python", "-c", f"import {', '.join(modules)}", PYTHONPATH=str(APPS))
    assert done.returncode == 0, done.stderr
    done = installation.run("python", "-m", "zkmember", PYTHONPATH=str(APPS), ZOOKEEPER_CONNECT="127.0.0.1:1",
                            CONSUMER_ZOOKEEPER_CONNECTION_TIMEOUT_MS="100")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2, "zkmember: ZooKeeper at 127.0.0.1:1 does not answer within 0.1 s")


@pytest.mark.parametrize("installation", [BARE, "pipeline"], ids=["bare", "pipeline"], indirect=True)
def test_a_job_started_without_the_command_line_says_so_too(installation: Installation) -> None:
    done = installation.run("python", "-m", "switchover.pipeline", "capture", "--config", "nowhere")
    assert done.returncode == 2
    assert done.stderr.startswith("switchover pipeline capture: nowhere: " if installation.extra else
                                  "switchover pipeline needs switchover[pipeline]: ")


UNREACHABLE = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
current-context: x
"""


@pytest.mark.parametrize("installation", ["operator"], indirect=True)
def test_nothing_loads_what_the_image_leaves_out(installation: Installation) -> None:
    """The last of this extra: its packages are not whole afterwards."""
    (packages,) = installation.programs.parent.glob("lib/python3*/site-packages")
    left_out = re.findall(r"^ && rm -r (.+) \\$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)[0].split()
    assert left_out
    for each in (*map(packages.joinpath, left_out), *packages.rglob("tests")):
        shutil.rmtree(each)
    kubeconfig = installation.directory / "kubeconfig"
    kubeconfig.write_text(UNREACHABLE)
    lacks, (done,) = tried(installation, ("list", "--kubeconfig", str(kubeconfig)))
    all_found(lacks, "operator")
    assert (done.returncode, done.stderr.count("\n"), "127.0.0.1:1" in done.stderr) == (2, 1, True), done


@pytest.mark.long
@pytest.mark.parametrize("block", of("tests/packaging/test_extras.py"), ids=str)
def test_the_commands_of_the_pages_install_it(block: Block, wheel: Path, tmp_path: Path) -> None:
    """By pip, from the index that this machine has and the wheel: no index has a release yet."""
    subprocess.run((sys.executable, "-m", "venv", tmp_path / "venv"), check=True)
    settings = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    settings["PIP_FIND_LINKS"] = f"{settings.get('PIP_FIND_LINKS', '')} {wheel.parent}"
    run(block, tmp_path, block.script, seconds=600, PATH=str(tmp_path / "venv/bin"), **settings)
    made, module = (tmp_path / "switchover", "switchover.cli.main") if "[cli]" in block.script else (
        tmp_path / "venv", "switchover.consumer.migration_consumer")
    subprocess.run((made / "bin/python", "-P", "-c", f"import {module}"), check=True)
