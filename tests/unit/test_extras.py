"""What is told of packages that are not installed, and what is not."""

import re
from pathlib import Path

import pytest
import typer

from switchover.cli.main import app
from switchover.runtime.extras import OF_COMMAND, needed_by

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_readme_names_the_commands_of_each_extra() -> None:
    rows = dict(re.findall(r"^\* `pip install '\.\[(\w+)\]'`: (.*?)(?=^\*|^$)", README, re.MULTILINE | re.DOTALL))
    every = {*typer.main.get_command(app).commands}     # type: ignore[attr-defined]
    assert {*re.findall(r"`(?:switchover )?(\w+)`", rows["cli"])} == every - {*OF_COMMAND}
    for command, extra in OF_COMMAND.items():
        assert f"`switchover {command}`" in rows[extra]


@pytest.mark.parametrize(("command", "extra"), [("lag", "cli"), ("run", "operator"), ("pipeline", "pipeline")])
def test_a_missing_package_is_told_with_its_extra(command: str, extra: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left, needed_by(command):
        raise ModuleNotFoundError("No module named 'aiohttp.web'", name="aiohttp.web")
    assert left.value.code == 2
    assert capsys.readouterr().err == (f"switchover {command} needs switchover[{extra}]: pip install 'switchover[{extra}]'"
                                       " (aiohttp is not installed)\n")


@pytest.mark.parametrize("error", [
    ModuleNotFoundError("No module named 'switchover.gone'", name="switchover.gone"),
    ModuleNotFoundError("No module named '_sqlite3'", name="_sqlite3"),
    ModuleNotFoundError("raised by hand"),
    ImportError("cannot import name 'gone' from 'aiohttp'", name="aiohttp"),
], ids=str)
def test_what_no_extra_mends_is_not_hidden(error: ImportError) -> None:
    with pytest.raises(ImportError) as raised, needed_by("lag"):
        raise error
    assert raised.value is error
