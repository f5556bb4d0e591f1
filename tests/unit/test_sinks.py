"""Text of others in each place that it goes to: as many lines, words and elements as of any other text."""

import asyncio
import io
import json
import logging
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from html.parser import HTMLParser
from typing import Any, ClassVar

import jsonpatch
import pytest
import yaml
from hypothesis import given, settings
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from fakes.clock import Clock
from switchover.api.status import Severity
from switchover.cli import acts, display
from switchover.cli.command import Output, clean
from switchover.cli.display import changes, tree
from switchover.cli.export import Document
from switchover.cli.objects import Found
from switchover.cli.report import report_of
from switchover.cli.report_page import html, markdown
from switchover.cluster.rehearsal import report as rehearsal
from switchover.engine.calls import Call, News
from switchover.engine.figures import Figure
from switchover.engine.message import FIELDS, message_of
from switchover.kubernetes.client.migrations import MESSAGE_LIMIT, KubernetesMigrations
from switchover.process.metrics import Metrics
from switchover.text.visible import OneLine
from unit.foreign_text import WORDS
from unit.test_report import WRITTEN
from unit.told_walks import told_walk

Shape = Any


def _object(text: str) -> Found:
    found = told_walk("cluster held")
    status = found.resource["status"]
    wait = {"gate": "G", "verdict": "Wait", "reason": "R", "subject": text, "message": text, "unblocks": text}
    finding = {"gate": "G", "code": "C", "severity": "Blocker", "subject": text, "message": text, "cure": text}
    return Found(found.kind, {**found.resource, "status": {**status, "waitingFor": [wait], "findings": [finding]}})


def _lines(text: str) -> Shape:
    lines = text.split("\n")
    assert [line for line in lines if not line.isprintable()] == []
    return len(lines)


def _page(text: str) -> Shape:
    class Page(HTMLParser):
        found: ClassVar[list[str]] = []

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.found.append(f"{tag} {sorted(name for name, _ in attrs)}")

        def handle_comment(self, data: str) -> None:
            self.found.append("comment")

    Page.found = []
    event = {"lastTimestamp": "2026-11-18T11:08:12Z", "type": "Warning", "reason": "R", "message": text}
    Page().feed(html(report_of(_object(text), [event], [text], "0.1.0", WRITTEN)))
    return Page.found


def _cells(text: str) -> Shape:
    _lines(text)
    return [(line[:1] in "#*|", len(re.findall(r"(?<!\\)\|", line))) for line in text.split("\n")]


def _markdown(text: str) -> Shape:
    return _cells(markdown(report_of(_object(text), [], [text], "0.1.0", WRITTEN)))


def _rehearsal(text: str) -> Shape:
    found = rehearsal.Finding(rehearsal.Stage.COPY, "MalformedNode", Severity.BLOCKER, text, text, text)
    return _cells(rehearsal.as_markdown(rehearsal.Report("d", (found,)), text))


def _printed(what: Any) -> Shape:
    out = io.StringIO()
    Console(file=out, width=100_000).print(what)
    return _lines(out.getvalue())


def _tree(text: str) -> Shape:
    return _printed(tree(_object(text).resource, 0.0))


def _changes(text: str) -> Shape:
    return [_lines(line) for line in changes(None, _object(text).resource)]


def _table(text: str) -> Shape:
    found = _object("a")
    found.resource["status"]["waitingForSummary"] = text
    return _printed(display.table([found], 1.8e9, everywhere=True))


def _documents(text: str) -> Shape:
    value = clean({text: [text]})
    what = {"a": text, "b": [value]}
    written = [display.document(what, form) for form in (Output.YAML, Output.JSON)]
    assert json.loads(written[1]) == what
    assert text.encode(errors="replace").decode() != text or yaml.safe_load(written[0]) == what, "no half of a pair in YAML"
    return [all(line.isprintable() and line.isascii() for line in each.split("\n")) for each in written]


def _export(text: str) -> Shape:
    told = str(Document(text, {"kind": "Service", "metadata": {"name": "a"}}))
    _lines(told)
    *comment, rest = told.split("\nkind: ")
    assert [line for line in comment[0].split("\n") if not line.startswith("# ")] == []
    return rest


def _json_patch(text: str) -> Shape:
    before = dict(_object("a").resource)
    operations = acts.approval_patch(before, acts.Approval("Finalize", text, text, "0" * 16))
    after = jsonpatch.apply_patch(deepcopy(before), json.loads(json.dumps(operations)))
    assert {**after, "spec": 0} == {**before, "spec": 0}
    assert after["spec"]["approvals"][-1] == {"name": "Finalize", "planHash": "0" * 16, "approver": text, "reason": text}
    return [(each["op"], each["path"]) for each in operations]


def _webhook(text: str) -> Shape:
    call = Call("Stalled", "GroupLag", text, warning=True, news=News.STALLED)
    sent = message_of(call, News.STALLED, "KafkaMigration", text, text, text, "", {each: f"${each}" for each in FIELDS})
    assert b"\n" not in sent
    assert not re.search("[<>]|&(?!(amp|lt|gt);)", sent.decode())
    return [_lines(each) for each in json.loads(sent).values()]


def _event(text: str) -> Shape:
    class Server:
        namespace, sent = "prod", None

        def path(self, *of: str) -> str:
            return "/".join(of)

        async def request(self, verb: str, path: str, body: Mapping[str, Any]) -> None:
            self.sent = body

    server = Server()
    migrations = KubernetesMigrations(server, Clock(), "KafkaMigration", "kafkamigrations")   # type: ignore[arg-type]
    asyncio.run(migrations.announce("a", "u", "R", clean(text) * 100, warning=True))
    assert server.sent is not None
    message = server.sent["message"]
    assert len(message.encode()) <= MESSAGE_LIMIT
    assert message == clean(text) * 100 or message.endswith("…"), "what is cut is no shorter name"
    return _lines(message)


def _metrics(text: str) -> Shape:
    text = text.encode(errors="replace").decode()
    registry = CollectorRegistry()
    told = Metrics(registry, lambda: 0.0).migrations("KafkaMigration", text)
    told.update(text, text, (Figure("switchover_step", (text, text), 1.0),), {text: 1.0})
    read = [(sample.name, sample.labels) for family in text_string_to_metric_families(generate_latest(registry).decode())
            for sample in family.samples if "migration" in sample.labels]
    assert {labels["migration"] for _, labels in read} == {text}
    return sorted((name, sorted(labels)) for name, labels in read)


def _log(text: str) -> Shape:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.addFilter(OneLine())
    logger = logging.Logger("others")
    logger.addHandler(handler)
    logger.warning("topic %s", text)
    return _lines(out.getvalue())


SINKS: Mapping[str, Callable[[str], Shape]] = {
    "page": _page, "markdown": _markdown, "rehearsal": _rehearsal, "tree": _tree, "changes": _changes, "table": _table,
    "documents": _documents, "export": _export, "JSON patch": _json_patch, "webhook": _webhook, "event": _event,
    "metrics": _metrics, "log": _log}


@pytest.mark.parametrize("sink", SINKS)
def test_text_of_others_is_text_and_no_more(sink: str) -> None:
    plain = SINKS[sink]("a")

    @settings(max_examples=25)
    @given(WORDS)
    def judged(text: str) -> None:
        assert SINKS[sink](f"a{text}") == plain

    judged()
