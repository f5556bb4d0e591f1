"""`switchover report`: what it tells of real statuses, and that nothing in one does anything to a page."""

import json
import re
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchover.answers.errors import Refused
from switchover.cli.objects import KAFKA_MIGRATION, KINDS, Found
from switchover.cli.report import LISTS, Report, report_of
from switchover.cli.report_page import LEAST, PLOTS, WIDTH, html, json_of, markdown, plots, rows, split
from switchover.cli.reporting import WRITERS, form_of, into_file
from switchover.cli.timeline import Stage
from switchover.cluster.plan import PLAN
from unit.told_walks import GIVEN, NAMES, SPENT, told_walk

WRITTEN = datetime(2027, 2, 1, tzinfo=UTC)
EVENT = {"lastTimestamp": "2026-11-18T11:08:12Z", "type": "Warning", "reason": "Stalled", "message": "GroupLag: 9 s"}
LATER = {"eventTime": "2026-11-18T11:09:12.000000Z", "type": "Normal", "reason": "Succeeded", "message": "moved"}


def reported(found: Found | str, events: Any = ()) -> Report:
    return report_of(told_walk(found) if isinstance(found, str) else found, events, ["0.1.0"], "0.1.0", WRITTEN)


def mute(stages: tuple[Stage, ...]) -> list[Stage]:
    """Without what was said."""
    return [replace(stage, said="", batches=tuple(replace(each, what="") for each in stage.batches)) for stage in stages]


def names(stages: tuple[Stage, ...], *, backward: bool) -> list[str]:
    return [each.step for each in stages if each.backward is backward]


# --- what is told -------------------------------------------------------------------------------------------------------


def test_a_finished_cluster_tells_its_whole_way() -> None:
    found = reported("cluster done")
    steps = [each["name"] for each in told_walk("cluster done").resource["status"]["steps"]]
    assert (found.phase, found.sentence) == ("Succeeded", "the cluster runs on KRaft")
    assert names(found.stages, backward=False) == steps
    assert not names(found.stages, backward=True)
    assert all(each.start and each.end for each in found.stages)
    assert [each.start for each in found.stages] == sorted(each.start for each in found.stages)
    assert (found.active_seconds, found.gate_seconds, found.human_seconds) == (SPENT.active, SPENT.gates, SPENT.human)
    assert [(each.name, each.approver, each.reason) for each in found.approvals] == [
        (step, GIVEN["approver"], GIVEN["reason"]) for step in ("Finalize", "HandOver")]
    assert {each.plan_hash for each in found.approvals} == {found.plan_hash}
    assert [int(each.value) > 0 for each in found.restarts] == [True, True]
    assert dict(found.about)["Nodes by observed mode"] == "3 KRaft, 3 KRaftController"


def test_a_batch_tells_what_moved_when_it_was_proven_and_when_it_had_baked() -> None:
    (moved,) = (each for each in reported("cluster done").stages if each.step == "MoveBrokers")
    assert [each.what for each in moved.batches] == [f"kafka-{number} to mode KRaft" for number in (2, 1, 0)]
    assert all(moved.start < each.start < each.proven < each.end <= moved.end for each in moved.batches)


def test_the_evidence_of_what_cannot_be_taken_back_is_what_every_gate_said_before_it() -> None:
    found = reported("cluster done")
    finalize, *others = found.irreversible
    assert [(each.step, each.begun) for each in found.irreversible] == [
        ("Finalize", True), ("HandOver", True), ("ReleaseZooKeeper", True)]
    assert finalize.move == "Finalize begins; approved by alice@example.org (CHG-1182); backups skipped: a cluster on paper"
    answers = {each.name: each for each in finalize.answers}
    entry = {gate.name for step in PLAN.steps if step.name == "Finalize" for gate in step.forward.enter}
    assert entry <= answers.keys()
    assert {each.verdict for each in finalize.answers} == {"Pass"}
    assert (answers["Soaked"].message, answers["DualWrite"].message) == ("soaked", "lag 0, 0.0 s old")
    assert answers["Soaked"].time < answers["DualWrite"].time, "the one ended the step before, the other let this one begin"
    assert [each.message for each in finalize.moves][1:] == ["Soak done", finalize.move]
    assert [each.name for each in finalize.approvals] == ["Finalize"]
    assert all(each.answers for each in others)
    for text in (html(found), markdown(found)):
        assert "leader 3001, epoch 7, all voters at the high watermark" in text


def test_evidence_outlasts_the_history() -> None:
    found = told_walk("cluster done")
    found.resource["status"]["history"] = found.resource["status"]["history"][-3:]
    finalize, *_ = reported(found).irreversible
    assert (finalize.begun, bool(finalize.answers), finalize.moves) == (True, True, ())
    assert finalize.move.startswith("Finalize begins; approved by alice@example.org")


@pytest.mark.parametrize("left", [[], [{"name": "Finalize"}], [{"name": "Finalize", "beginTime": "2027-01-15T10:42:06Z",
                                                               "gates": "none"}], None], ids=repr)
def test_evidence_that_an_older_operator_did_not_record_is_unknown_and_not_fine(left: Any) -> None:
    found = told_walk("cluster done")
    if left is None:
        del found.resource["status"]["evidence"]
    else:
        found.resource["status"]["evidence"] = left
    (act,) = reported(found).irreversible
    assert (act.step, act.begun, act.answers) == ("Finalize", True, ())
    for text in (html(reported(found)), markdown(reported(found))):
        assert "What the gates said before it is Unknown: the status does not have it." in text


def test_a_step_that_waits_again_has_not_begun_whatever_the_history_has() -> None:
    found = told_walk("cluster done")
    found.resource["status"]["rollback"] = {"available": True}
    found.resource["status"]["evidence"] = found.resource["status"]["evidence"][:1]
    assert [(each.begun, each.moves, each.answers) for each in reported(found).irreversible] == [(False, (), ())]


@pytest.mark.parametrize(("name", "step"), [("cluster held", "Finalize"), ("group held", "Rollout")])
def test_a_hold_is_told_with_the_command_that_ends_it(name: str, step: str) -> None:
    found = reported(name)
    (waiting,) = (each for each in found.waiting if each.reason == "AwaitingApproval")
    assert (found.phase, waiting.subject) == ("AwaitingApproval", step)
    assert (found.stages[-1].step, found.stages[-1].held, found.stages[-1].opened) == (step, True, None)
    assert [each.begun for each in found.irreversible] == [False]
    page = html(found)
    assert waiting.unblocks.startswith("switchover approve ")
    assert waiting.unblocks in page
    assert "held for an approval, none is on record" in page
    assert "under way" in page
    assert re.search(r"has waited \d+d [\d:]+ so far", page)


def test_a_group_that_has_moved_tells_who_let_it() -> None:
    found = reported("group done")
    (rollout,) = (each for each in found.stages if each.step == "Rollout")
    assert rollout.said == "approved by alice@example.org (CHG-1182)"
    assert [(each.step, each.begun, each.move) for each in found.irreversible] == [("HandOver", True, "HandOver begins")]
    assert {"AllMoved", "Covered", "LagHealthy", "RecordHolds"} <= {each.name for each in found.irreversible[0].answers}
    assert names(found.stages, backward=False) == [
        each["name"] for each in told_walk("group done").resource["status"]["steps"]]


@pytest.mark.parametrize("name", ["cluster rolled back", "group rolled back", "group rolled back by itself"])
def test_what_was_taken_back_stands_after_what_was_done_the_last_step_first(name: str) -> None:
    found = reported(name)
    there, back = names(found.stages, backward=False), names(found.stages, backward=True)
    assert found.phase == "RolledBack"
    assert [each.backward for each in found.stages] == [False] * len(there) + [True] * len(back)
    assert back[0] == there[-1]
    assert back[-1] == "Preflight"
    assert [each.begun for each in found.irreversible] == [False]
    by_itself = "; it rolled back by itself from Canary for NotAMember" if "by itself" in name else ""
    assert (found.rollback, found.plan_hash) == (f"gone to its end{by_itself}", "")


def test_a_rollback_that_nobody_asked_for_is_drawn_as_one_and_says_why() -> None:
    """It was drawn as going forward, since its sentence had changed."""
    found = reported("group rolled back by itself")
    first, *others = (each for each in found.stages if each.backward)
    assert first.step == "Canary"
    assert first.said.startswith("rolls back automatically from Canary: ")
    assert not any(each.said for each in others)
    assert any(bar.sort == "back" for row in rows(found) for bar in row.bars)
    for text in (html(found), markdown(found)):
        assert "rolls back automatically from Canary: " in text


@pytest.mark.parametrize("name", NAMES)
def test_the_timeline_reads_kinds_of_moves_and_no_words(name: str) -> None:
    told = told_walk(name)
    drawn = mute(reported(told).stages)
    for each in told.resource["status"]["history"]:
        each["message"] = "any words"
    assert mute(reported(told).stages) == drawn
    assert any(stage.opened for stage in drawn)


@pytest.mark.parametrize("name", NAMES)
def test_the_moves_of_the_release_before_are_read_by_their_words(name: str) -> None:
    """It called each of them Moved, and knew no direction."""
    told = told_walk(name)
    drawn = reported(told).stages
    for each in told.resource["status"]["history"]:
        each["reason"] = "Moved"
        del each["direction"]
    assert reported(told).stages == drawn


AUTOMATIC, ASKED = "rolls back automatically from MoveBrokers: kafka-0 does not come up", "turned backward at MoveBrokers"


@pytest.mark.parametrize("release", ["this one", "an earlier one"])
@pytest.mark.parametrize("kept", range(6))
@pytest.mark.parametrize(("note", "reason"), [(AUTOMATIC, "AutomaticRollback"), (ASKED, "Turned")])
def test_which_way_it_went_is_on_record(note: str, reason: str, kept: int, release: str) -> None:
    """Of a history that was cut, too. An earlier release has recorded sentences alone, which a cut one may lack."""
    back = [(("MoveBrokers/1", "MoveBrokers"), note, reason), (("MoveBrokers", "MoveBrokers"), "any words", "Moved"),
            (("MoveBrokers", "DualWrite"), "any words", "Moved"), (("DualWrite", "CopyMetadata"), "any words", "Moved")]
    ahead = [(("DualWrite", "MoveBrokers"), "any words", "Moved"), (("MoveBrokers", "MoveBrokers/1"), "any words", "Moved")]
    told = [{"time": f"2026-11-18T12:0{minute}:00Z", "from": places[0], "to": places[1], "message": words,
             **({"reason": why, "direction": "Backward" if minute > 1 else "Forward"} if release == "this one"
                else {"reason": "Moved"})}
            for minute, (places, words, why) in enumerate([*ahead, *back])]
    found = told_walk("cluster rolled back")
    found.resource["status"] |= {"steps": [], "history": told[kept:]}
    drawn = [(each.step, each.backward) for each in reported(found).stages]
    whole = [("DualWrite", False), ("MoveBrokers", False),
             ("MoveBrokers", True), ("DualWrite", True), ("CopyMetadata", True)]
    if release == "this one" or kept < 3:
        assert drawn == whole[(0, 1, 1, 2, 2, 3)[kept]:]
    assert [each.said for each in reported(found).stages if each.backward and each.said] == (
        [note] if reason == "AutomaticRollback" and kept < 3 else [])


def test_the_whole_of_a_short_history_has_a_beginning() -> None:
    found = reported("group rolled back")
    assert names(found.stages, backward=False)[0] == "Preflight"
    assert found.stages[0].start == found.start, "its record has the time of the way back"


def test_a_history_that_was_cut_is_told() -> None:
    assert any("last 50 moves" in note for note in reported("cluster done").notes)
    assert not reported("group done").notes


def test_a_gate_that_closed_again_is_told_where_it_did() -> None:
    found = told_walk("group held")
    move = {"time": "2026-11-18T11:08:03Z", "from": "Canary/1", "to": "Canary/1", "reason": "Moved",
            "message": "a watch gate closed: the bake starts anew"}
    history = found.resource["status"]["history"]
    history.insert(next(index for index, each in enumerate(history) if "batch 1 done" in each["message"]), move)
    (canary,) = (each for each in reported(found).stages if each.step == "Canary")
    assert [each.message for each in canary.troubles] == [move["message"]]


def test_a_step_whose_approval_no_longer_counts_waits_again() -> None:
    found = told_walk("group done")
    history = found.resource["status"]["history"]
    opened = next(index for index, each in enumerate(history) if each["message"].startswith("Rollout begins"))
    history[opened + 1:] = [{**history[opened], "reason": "StepWaitsAgain", "message": "any words"}]
    last = reported(found).stages[-1]
    assert (last.step, last.opened) == ("Rollout", None)
    assert [each.reason for each in last.troubles] == ["StepWaitsAgain"]


def test_what_was_measured_is_drawn_on_the_scale_of_the_timeline() -> None:
    found = reported("group rolled back")
    lag, gap = plots(found)
    assert [each.title for each in (lag, gap)] == [
        "Lag of the groups, records", "Gap: how long a partition with records had no commit, s"]
    assert [(each.of, each.worst, each.last) for each in (*lag.curves, *gap.curves)] == [
        ("orders", "240 records", "120 records"), ("orders", "3 s", "0 s")]
    begins = {row.name: row.bars[0].x for row in rows(found) if not row.is_batch}
    assert dict(lag.marks[:4]) == {x: name for name, x in list(begins.items())[:4]}
    (line,) = lag.lines
    assert [x for x, _ in line] == sorted(x for x, _ in line)
    assert line[-1][0] <= WIDTH
    page = html(found)
    assert page.count('<svg class="plot"') == 2
    assert "worst 240 records at 2026-11-18 11:07:48 UTC, last 120 records" in page
    assert "| Lag of the groups, records | orders | 240 records | 2026-11-18 11:07:48 UTC | 120 records |" in markdown(found)


def test_dual_write_and_restarts_of_a_cluster_are_drawn() -> None:
    found = {each.title.split(",")[0]: each for each in plots(reported("cluster done"))}
    assert list(found) == [title for title, _ in PLOTS.values()]
    status = told_walk("cluster done").resource["status"]
    (restarts,) = found["Pods put on record to be replaced"].curves
    assert restarts.last == f"{status['brokerRestarts'] + status['controllerRestarts']} pods"
    (behind,) = found["Dual write: records that ZooKeeper did not have"].lines
    assert [None in {value for _, value in behind}, {value for _, value in behind} - {None}] == [True, {0}]


def test_measurements_that_are_not_there_are_unknown_and_not_none() -> None:
    found = told_walk("group done")
    found.resource["status"]["measurements"] = {"times": [], "series": []}
    empty = reported(found)
    del found.resource["status"]["measurements"]
    gone = reported(found)
    for write in (html, markdown):
        assert "Nothing was measured" in write(empty)
        assert "Unknown: the status does not have them." in write(gone)
        assert "Nothing was measured" not in write(gone)


@pytest.mark.parametrize(("unread", "said"), [
    ({"times": ["noon"]}, "Unknown: the status does not have them."),
    ({"series": "none"}, "Unknown: the status does not have them."),
    ({"series": [{"name": "GroupLag/orders", "values": ["x"]}]}, "Unknown: the status does not have them."),
    ({"series": [{"name": "GroupLag/orders", "values": [-1]}]}, "Nothing was measured")],
    ids=["a time", "the series", "a value", "all unobserved"])
def test_where_no_plot_is_drawn_the_report_says_why(unread: Any, said: str) -> None:
    found = told_walk("group done")
    found.resource["status"]["measurements"] |= unread
    for write in (html, markdown):
        assert said in write(reported(found))


def test_a_second_attempt_begins_after_the_end_of_the_first() -> None:
    found = told_walk("group rolled back")
    found.resource["status"]["history"] += [
        {"time": "2026-11-18T12:00:00Z", "from": "RolledBack", "to": "Preflight", "reason": "Moved",
         "message": "turned forward at Preflight"},
        {"time": "2026-11-18T12:00:09Z", "from": "Preflight", "to": "Baseline", "reason": "Moved",
         "message": "Preflight done"}]
    assert [(each.step, each.backward) for each in reported(found).stages[-3:]] == [
        ("Preflight", True), ("Preflight", False), ("Baseline", False)]


def test_events_are_told_in_their_order_and_so_is_that_they_could_not_be_read() -> None:
    assert [each.reason for each in reported("group done", [LATER, EVENT]).events] == ["Stalled", "Succeeded"]
    unread = reported("group done", [
        EVENT, {**LATER, "eventTime": "9999-12-31T23:59:59-10:00"}, {**LATER, "eventTime": 3.5e99}])
    assert "| Unknown | Normal | Succeeded | moved |" in markdown(unread)
    assert html(unread).count("Unknown") == 2
    refused = reported("group done", "you may not list Events")
    assert refused.notes == ("Events could not be read: you may not list Events",)


# --- the three forms ----------------------------------------------------------------------------------------------------


SVG_STYLE = re.compile(r"(?:[a-z-]+: [\w#., '()%-]+(?:; )?)+")
"""A style of a plot: names of properties, colours, fonts; no address."""


class Page(HTMLParser):
    """The elements and attributes of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, value in attrs if name != "style" or not SVG_STYLE.fullmatch(value or "")}
        self.links += [value or "" for name, value in attrs if name == "xlink:href"]
        self.ids |= {value or "" for name, value in attrs if name == "id"}
        self.links += [value or "" for name, value in attrs if name == "href"]

    def handle_data(self, data: str) -> None:
        self.text += data


ELEMENTS = {
    "html", "head", "meta", "title", "style", "body", "header", "nav", "main", "section", "h1", "h2", "h3", "p", "br",
    "span", "b", "a", "ul", "ol", "li", "div", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "svg", "rect",
    "g", "path", "defs", "use", "text", "clippath"}


@pytest.mark.parametrize("name", NAMES)
def test_a_page_stands_alone_and_its_parts_are_reached_by_keyboard(name: str) -> None:
    text = html(reported(name, [EVENT]))
    page = Page(text)
    assert page.tags <= ELEMENTS, "no script, no picture, nothing from elsewhere"
    assert not [each for each in page.attributes if each.startswith("on") or each in ("src", "style")]
    assert not {each.removeprefix("#") for each in page.links} - page.ids
    assert "url(" not in text.replace("url(#", ""), "but for a plot's own parts"
    assert "default-src 'none'" in text
    assert text.startswith("<!doctype html>")


@pytest.mark.parametrize("name", NAMES)
def test_the_bars_lie_side_by_side_on_the_drawing(name: str) -> None:
    found = reported(name)
    bars = [bar for row in rows(found) if not row.is_batch for bar in row.bars]
    assert all(bar.width > 0 for bar in bars)
    for before, after in pairwise(bars):
        assert after.x == pytest.approx(before.x + before.width)
    assert bars[0].x == pytest.approx(0)
    assert bars[-1].x + bars[-1].width == pytest.approx(WIDTH)
    drawn = [bar for row in rows(found) for bar in row.bars]
    assert min(bar.x for bar in drawn) >= 0
    assert max(bar.x + bar.width for bar in drawn) <= WIDTH + LEAST
    shares = [bar.width for *_, bar in split(found) if bar is not None]
    assert not shares or sum(shares) == pytest.approx(WIDTH)
    assert bool(shares) is bool(found.active_seconds)


IN_JSON = {
    "approvals": ("approvals", "step=name", "approver", "reason", "time=acceptedTime", "plan_hash=planHash"),
    "findings": ("findings", "code", "severity", "subject", "message", "cure"),
    "gates": ("gates", "name", "verdict", "since"),
    "paces": ("restarts", "mode=name", "batches", "average_seconds=averageSeconds", "slowest_seconds=slowestSeconds"),
    "waiting": ("waitingFor", "gate", "verdict", "reason", "subject", "message", "observed", "threshold", "since",
                "unblocks", "runbook=runbookURL")}
"""Parts of a report in JSON, with the part of the status that each is, and the names of its fields there."""


@pytest.mark.parametrize("name", NAMES)
def test_json_and_markdown_are_of_the_same_data(name: str) -> None:
    found = reported(name, [EVENT])
    status, told = told_walk(name).resource["status"], json.loads(json_of(found))
    for part, (key, *names) in IN_JSON.items():
        pairs = [each.partition("=")[::2] for each in names]
        assert told[part] == [{there: each.get(here or there, "") for there, here in pairs} for each in status.get(key, ())]
    assert (told["written"], told["end"], told["attempt"]) == (
        "2027-02-01T00:00:00Z", status["progress"].get("completeTime", ""), status["attempt"])
    assert told["stages"][-1].keys() == {each.name for each in fields(Stage)}
    assert [each["backward"] for each in told["moves"]] == [each["direction"] == "Backward" for each in status["history"]]
    text = markdown(found)
    for row in rows(found):
        assert any(line.startswith(f"| {row.name} |") for line in text.splitlines())
    assert all(f"| {each.name} | {each.verdict} |" in text for each in found.gates)


def test_the_form_is_what_is_said_else_what_the_file_is_called() -> None:
    assert [form_of("", Path(f"report.{form}")) for form in WRITERS] == list(WRITERS)
    assert (form_of("md", Path("report.html")), form_of("", None)) == ("md", "html")
    with pytest.raises(Refused, match=r"none of \.html, \.json, \.md; say --format"):
        form_of("", Path("report.pdf"))


def test_a_file_that_cannot_be_written_is_refused_in_words(tmp_path: Path) -> None:
    into_file("done", tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == "done"
    with pytest.raises(Refused, match="No such file or directory"):
        into_file("done", tmp_path / "none" / "report.html")


# --- what others have written -------------------------------------------------------------------------------------------


HOSTILE = "\u202egpj\u2066\n</td><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[2J\n| # [a](javascript:b) `c`\"'"
DANGEROUS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


KEPT = ("time", "Time", "Timestamp")


def everywhere(value: Any, change: Callable[[str], Any]) -> Any:
    """Every text changed, but for the times, by which the timeline is made."""
    match value:
        case str():
            return change(value)
        case dict():
            return {key: each if key.endswith(KEPT) else everywhere(each, change) for key, each in value.items()}
        case list():
            return [everywhere(each, change) for each in value]
        case _:
            return value


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", WRITERS)
def test_no_name_or_message_does_anything_to_a_page(name: str, form: str) -> None:
    found = told_walk(name)
    spoilt = Found(found.kind, everywhere(found.resource, lambda text: text + HOSTILE))
    event = {**EVENT, "message": HOSTILE}
    report = report_of(spoilt, [event], [HOSTILE], "0.1.0", WRITTEN)
    text = WRITERS[form](report)
    assert not DANGEROUS.search(text)
    if form == "html":
        page = Page(text)
        assert page.tags <= ELEMENTS
        assert all(each.startswith("#") for each in page.links), "no address of a foreign scheme is a link"
        assert r"\u202egpj\u2066\n" in page.text, "what cannot be seen is written out"
    elif form == "md":
        assert "<" not in text
        assert not re.search(r"(?<!\\)[\[`]", text)
        assert all(len(re.findall(r"(?<!\\)\|", line)) > 2 for line in text.splitlines() if line.startswith("|"))


def test_an_address_is_a_link_only_where_it_is_one_of_the_web() -> None:
    found = reported("cluster held")
    (first, *_) = found.waiting
    for address, links in (("https://docs.example/Runbook.md", True), ("javascript:alert(1)", False), ("docs/x", False)):
        page = Page(html(replace(found, waiting=(first.evolve(runbook_url=address),))))
        assert (address in page.links) is links


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.short)
@pytest.mark.parametrize("resource", [
    {"metadata": {"name": "a"}}, {"metadata": {"name": "a"}, "status": None},
    {"metadata": {"name": "a", "generation": 1}, "spec": {}, "status": {"observedGeneration": -1, "phase": "Pending"}}],
    ids=["none", "null", "never looked at"])
def test_an_object_that_nobody_has_looked_at_has_a_page_that_says_so(kind: Any, resource: dict[str, Any]) -> None:
    text = html(reported(Found(kind, resource)))
    assert "No operator has looked at this object yet" in text
    for each in (text, markdown(reported(Found(kind, resource)))):
        assert "Unknown: the status has no step and no move yet." in each
    assert '<span class="took">Unknown</span>' in text, "time that nobody counted is not 0"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.short)
def test_a_status_of_the_release_before_has_a_page(kind: Any) -> None:
    resource = json.loads((Path(__file__).parent / "last_release" / f"{kind.name.lower()}.json").read_text())
    found = reported(Found(kind, resource))
    assert [each.step for each in found.stages] == [each["name"] for each in resource["status"]["steps"]]
    assert resource["status"]["progress"]["step"] in html(found)


def test_modes_that_were_letters_are_reported_by_name() -> None:
    resource = json.loads((Path(__file__).parent / "last_release" / "kafkamigration.json").read_text())
    assert {node["observed"] for node in resource["status"]["nodes"]} == {"B", "P"}
    found = reported(Found(KAFKA_MIGRATION, resource))
    assert dict(found.about)["Nodes by observed mode"] == "3 Migration, 3 MigrationController"
    assert [pace.name for pace in found.paces] == ["Migration"]


def test_what_cannot_be_read_is_left_out_by_its_name() -> None:
    """Also a phase of a newer release, which is no phase that this one knows."""
    found = told_walk("group done")
    moves = len(found.resource["status"]["history"])
    found.resource["status"]["phase"] = "Asleep"
    del found.resource["status"]["history"][1]["time"]
    report = reported(found)
    assert (report.phase, len(report.moves)) == ("", moves - 1)
    (note,) = report.notes
    assert note.startswith("Left out, since this program cannot read it in the status: phase: ")
    assert "; history.1.time: Field required" in note


def test_of_a_spec_that_cannot_be_read_no_image_is_told_and_that_is_said() -> None:
    found = told_walk("cluster done")
    del found.resource["spec"]["kafka"]
    report = reported(found)
    assert "Controllers" not in dict(report.versions)
    assert "Left out, since this program cannot read it in the spec: kafka: Field required" in report.notes


@pytest.mark.parametrize("name", NAMES)
def test_what_is_missing_is_unknown_and_no_other_figure(name: str) -> None:
    found = told_walk(name)
    for key in ("activeSeconds", "gateWaitSeconds", "humanWaitSeconds", "startTime"):
        del found.resource["status"]["progress"][key]
    for key in ("planHash", "phase", "rollback", "conditions", "attempt", "evidence"):
        del found.resource["status"][key]
    report = reported(found)
    text = markdown(report)
    for line in ("* Plan: Unknown", "* Attempt: Unknown", "* Began: Unknown", "* Rollback: Unknown", "| Active | Unknown |"):
        assert line in text
    assert [(each.begun, bool(each.moves)) for each in report.irreversible] == [(None, "done" in name)]
    assert "Unknown whether it has begun" in text


def test_a_list_that_is_not_there_is_no_empty_one() -> None:
    found = told_walk("group done")
    found.resource["status"] |= {"approvals": [], "waitingFor": []}
    there = (html(reported(found)), markdown(reported(found)))
    for key in LISTS:
        del found.resource["status"][key]
    gone = (html(reported(found)), markdown(reported(found)))
    assert [text.count("None on record.") for text in there] == [1, 1]
    assert [(text.count("None on record."), len(re.findall("Unknown: the status does not have (?:them|it)", text)))
            for text in gone] == [(0, len(LISTS))] * 2


WORDS = st.text(max_size=8)
JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**60), 2**60), WORDS, st.just("0001-01-01T00:00:00Z"),
    st.lists(st.one_of(st.none(), WORDS, st.dictionaries(WORDS, st.none()))), st.dictionaries(WORDS, st.integers()))


@given(st.data())
def test_no_status_of_any_shape_ends_in_a_traceback(data: st.DataObject) -> None:
    found = told_walk(data.draw(st.sampled_from(NAMES)))
    for _ in range(data.draw(st.integers(1, 4))):
        at: Any = found.resource
        key: Any = data.draw(st.sampled_from(["spec", "status", "status", "status"]))
        while isinstance(at[key], dict | list) and at[key] and data.draw(st.integers(0, 3)):
            at = at[key]
            key = data.draw(st.sampled_from(list(at) if isinstance(at, dict) else range(len(at))))
        at[key] = data.draw(JUNK)
    report = reported(found)
    for write in WRITERS.values():
        assert write(report)
