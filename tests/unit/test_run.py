"""The operator put together: it watches what it serves, and nothing else."""

import json
import subprocess
import sys
from contextlib import nullcontext
from typing import Any

import pytest

from switchover.process import run
from switchover.process.settings import read_settings


class Anything:
    """Stands for the API server and for the metrics' server: nobody asks them anything here."""

    async def close(self) -> None: ...

    def within(self, namespace: str) -> "Anything":
        return self

    async def missing_rights(self, secrets: tuple[str, ...]) -> tuple[str, ...]:
        return ()

    def shutdown(self) -> None: ...

    def server_close(self) -> None: ...

    def join(self, seconds: float) -> None: ...


@pytest.fixture
def watches(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What Kopf is asked to watch; nobody tells anything."""
    asked: list[dict[str, Any]] = []

    async def connected(*_: Any, **__: Any) -> Anything:
        return Anything()

    async def watched(stop_flag: Any, **arguments: Any) -> None:
        asked.append(arguments)

    monkeypatch.setattr(run, "connect", connected)
    monkeypatch.setattr(run.kopf, "operator", watched)
    monkeypatch.setattr(run, "KubernetesSurvey", lambda *_: Anything())
    monkeypatch.setattr(run, "log_as", lambda _: None)
    monkeypatch.setattr(run, "answering", lambda *_: nullcontext())
    monkeypatch.setattr(run.sys, "setrecursionlimit", lambda _: None)
    monkeypatch.setattr(run, "look_seldom", lambda: None)
    return asked


async def operate(**settings: str) -> None:
    await run.run_operator(read_settings({"POD_NAMESPACE": "kafka", "POD_NAME": "operator-0", **settings}))


@pytest.mark.parametrize(("kinds", "watched"), [
    ("KafkaMigration", {"kafkamigrations"}),
    ("ConsumerGroupMigration", {"consumergroupmigrations"}),
    ("ConsumerGroupMigration,KafkaMigration", {"kafkamigrations", "consumergroupmigrations"}),
])
async def test_it_watches_the_kinds_that_it_serves(
    kinds: str, watched: set[str], watches: list[dict[str, Any]]
) -> None:
    """It would be refused the others, and Kopf's watch tries again for ever."""
    await operate(KINDS=kinds)
    (only,) = watches
    assert {handler.selector.any_name for handler in only["registry"]._watching.get_all_handlers()
            } == {f"{each}" for each in watched}


@pytest.mark.parametrize(("watch", "asked"), [
    ("", {"namespaces": ["kafka"]}), ("shop", {"namespaces": ["shop"]}), ("shop,bank", {"namespaces": ["shop", "bank"]}),
    ("*", {"clusterwide": True})])
async def test_it_watches_the_namespaces_that_it_serves(
    watch: str, asked: dict[str, Any], watches: list[dict[str, Any]]
) -> None:
    """Its own is one of them only if it is named."""
    await operate(WATCH=watch)
    (only,) = watches
    assert {key: only[key] for key in ("namespaces", "clusterwide") if key in only} == asked


LOGS = """
import logging, sys
from switchover.process.run import log_as
from switchover.process.settings import read_settings
log_as(read_settings({"POD_NAMESPACE": "kafka", "POD_NAME": "operator-0", "LOG_FORMAT": sys.argv[1]}))
logging.getLogger("switchover.others").info("topic %s", "\\x1b[2J\\u202egnp\\nINFO forged")
"""


@pytest.mark.parametrize("form", ["json", "text"])
def test_what_others_have_named_is_one_line_of_either_log(form: str) -> None:
    """A process of its own: the format is that of all loggers."""
    told = subprocess.run([sys.executable, "-c", LOGS, form], capture_output=True, text=True, check=True).stderr
    assert told.endswith("\n")
    assert told[:-1].isprintable()
    message = json.loads(told)["message"] if form == "json" else told[:-1]
    assert message.endswith("topic \x1b[2J\u202egnp\nINFO forged" if form == "json" else
                            r"topic \x1b[2J\u202egnp\nINFO forged")
