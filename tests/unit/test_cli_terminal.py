"""Nothing that others named does anything to a terminal."""

import io
import logging
import sys
from typing import Any

import pytest
from rich.console import Console

from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.status import Severity
from switchover.cli import follow, migrations
from switchover.cli.command import Output, clean
from switchover.cli.display import changes, tree
from switchover.cli.export import Document
from switchover.cli.objects import KAFKA_MIGRATION, Found
from switchover.cluster.rehearsal.report import Finding, Report, Stage, as_markdown
from switchover.text.visible import OneLine, printable

EVIL = "\x1b[2J\x1b]0;title\x07 a\nb\r\u202egnp\u2066x\u200f\x9b31m\u2028"


@pytest.mark.parametrize("text", ["plain", "Übergabe → 7", "'quoted' \"twice\""])
def test_what_can_be_seen_stays(text: str) -> None:
    assert printable(text) == text


def test_escapes_marks_of_direction_and_line_ends_are_written_out() -> None:
    shown = printable(EVIL)
    assert shown.isprintable()
    assert shown.startswith(r"\x1b[2J\x1b]0;title\x07 a\nb\r\u202egnp\u2066x")


def test_every_text_of_a_value_is_cleaned_keys_as_well() -> None:
    assert clean({"a\n": [EVIL, 7, None, True, {"b": "\u202e"}]}) == {
        r"a\n": [printable(EVIL), 7, None, True, {"b": r"\u202e"}]}


def test_the_tree_and_the_lines_of_an_object_that_others_have_named_are_clean() -> None:
    wait = {"gate": "G", "verdict": "Wait", "reason": "R", "subject": EVIL, "message": EVIL, "unblocks": EVIL}
    resource = {
        "kind": "KafkaMigration", "metadata": {"name": EVIL, "namespace": EVIL},
        "status": {"phase": "Running", "progress": {"step": "MoveBrokers", "batch": 1, "batchNodes": [EVIL]},
                   "nodes": [{"name": EVIL, "assigned": Mode.KRAFT, "observed": Mode.MIGRATION}], "waitingFor": [wait]}}
    out = io.StringIO()
    Console(file=out, width=2000, force_terminal=False).print(tree(resource, 0.0))
    assert all(line.isprintable() for line in out.getvalue().splitlines())
    assert r"\u202egnp" in out.getvalue()
    assert all(line.isprintable() for line in changes(None, resource))


@pytest.mark.parametrize("watch", [False, True])
def test_a_command_of_status_is_one_line_on_a_narrow_terminal(
        watch: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Folded, it would be pasted as several; what is drawn again and again is folded all the same."""
    unblocks = "kubectl --namespace kafka delete pod " + "a" * 60
    wait = {"gate": "G", "verdict": "Wait", "reason": "R", "message": "m", "unblocks": unblocks}
    found = Found(KAFKA_MIGRATION, {
        "kind": "KafkaMigration", "metadata": {"name": "kafka", "namespace": "kafka", "generation": 1},
        "status": {"phase": "Running", "progress": {"step": "MoveBrokers"}, "waitingFor": [wait]}})

    async def read(*_: Any) -> Found:
        return found

    async def watched(_: Any, __: Any, on: Console) -> None:
        on.print(tree(found.resource, 0.0))

    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(follow, "read", read)
    monkeypatch.setattr(follow, "watch", watched)
    migrations.status(name="kafka", watch=watch, output=Output.TABLE, namespace="", context="", kubeconfig="")
    assert (unblocks in capsys.readouterr().out) is not watch


def test_what_an_export_says_beside_its_objects_is_clean() -> None:
    """Edits of nodes, for one, which whoever may write the Secret has written."""
    text = str(Document(f"advertised.listeners={EVIL}", {"kind": "Service", "metadata": {"name": EVIL}}))
    assert all(line.isprintable() for line in text.split("\n"))
    assert text.startswith(r"# advertised.listeners=\x1b[2J")


def test_a_rehearsal_s_report_for_a_ticket_is_clean_and_no_markup() -> None:
    """Its znodes are named by whoever writes to ZooKeeper."""
    evil = f"{EVIL}</td> | [a](http://b) <script>"
    found = Finding(Stage.COPY, "MalformedNode", Severity.BLOCKER, evil, evil, evil)
    text = as_markdown(Report("d", (found,)), evil)
    assert all(line.isprintable() for line in text.split("\n"))
    assert "<" not in text
    assert text.splitlines()[-1].count(" | ") == 5, "a bar of theirs ends no cell"


@pytest.mark.parametrize("arguments", [(), ("x",)])
def test_a_log_that_is_text_has_a_line_for_each_message(arguments: tuple[str, ...]) -> None:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.addFilter(OneLine())
    logger = logging.Logger("others")
    logger.addHandler(handler)
    logger.warning(f"{EVIL} %s" if arguments else f"{EVIL} 100%", *arguments)
    assert out.getvalue() == f"{printable(EVIL)} {'x' if arguments else '100%'}\n"
