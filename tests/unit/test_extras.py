"""What is told of packages that are not installed, and what is not."""

import pytest

from switchover.extras import needed_by


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
