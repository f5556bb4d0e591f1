"""`switchover explain`, and the pure parts of doctor, logs and wait."""

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import switchover
from switchover.answers.errors import Refused
from switchover.cli import doctor, follow, gates, operators
from switchover.cli.explain import explain, paths, plain, reasons, schemas, section
from switchover.cli.follow import End, Goal, duration, end_of
from switchover.cli.main import app
from switchover.cli.objects import KAFKA_MIGRATION, Found
from switchover.engine.every_step import EveryStep
from switchover.engine.intent import RETRY, retry_of
from switchover.reasons import REASONS
from switchover.reasons.notes import NOTES

ENGINE = Path(switchover.__file__).parent / "engine"
RUNBOOKS = Path(__file__).parents[2] / "docs" / "runbooks"


def test_every_reason_is_explained_from_the_package() -> None:
    assert {*reasons()} == {*REASONS, *NOTES}
    for name, text in (("AwaitingApproval", (RUNBOOKS / "AwaitingApproval.md").read_text()),
                       ("GroupLag", f"# GroupLag\n\n{plain(section(REASONS['GroupLag']))}")):
        urgency = REASONS[name].urgency
        assert explain(name) == text.replace(f"Urgency: {urgency.short}.", f"Urgency: {urgency}.")


def test_a_gate_is_explained_as_the_column_shows_it() -> None:
    told = explain("AllInSync")
    assert told.startswith("# AllInSync\n")
    assert "Can wait for NoWitness, OutOfSync." in told
    assert "\n## " not in told


def test_what_a_kind_of_workload_finds_is_explained_with_the_gate_that_asks_it() -> None:
    told = explain("WorkloadsAreOurs")
    assert "DeploymentNotHeld" in told
    assert "StrategyReset" in told


@pytest.mark.parametrize("gate", ["Approval", "Replace/kafka-1", "Bake"])
def test_what_the_walk_itself_waits_for_is_explained_as_the_summary_names_it(gate: str) -> None:
    assert explain(gate).startswith(f"# {gate.partition('/')[0]}\n")


def test_every_gate_that_the_walk_adds_has_its_section() -> None:
    source = "".join((ENGINE / name).read_text() for name in ("plan.py", "rollout.py"))
    added = {*re.findall(r'judge\.add\(f?"(\w+)', source), *(field.name.capitalize() for field in fields(EveryStep))}
    assert added >= {"Approval", "Replace", "Lease", "Deletion"}
    assert added <= {*gates.names()}


@pytest.mark.parametrize(("what", "lines"), [
    ("kmig.spec.soakSeconds", ["kmig.spec.soakSeconds <integer>", "  default: 86400"]),
    ("spec.holds", ["kmig.spec.holds <[]string>", "cgmig.spec.holds <[]string>", "  default: Finalize"]),
    ("kmig.spec.desiredState", ["  default: Running"]),
    ("kmig.status.summary", [
        "  Where it stands and what it waits for, in one sentence: the message of Stalled while that is True, else of Ready."
        " Its figures are as old as the status."]),
    ("cgmig.spec.protocol", ["cgmig.spec.protocol <object>", "  .to <string>  The protocol that the group ends with"]),
    ("kmig.status.waitingFor.unblocks", ["kmig.status.waitingFor.unblocks <string>", "  What would open the gate."])])
def test_a_field_is_explained_in_each_kind_that_has_it(what: str, lines: list[str]) -> None:
    told = explain(what).splitlines()
    assert set(lines) <= set(told)


@pytest.mark.parametrize(("what", "hint"), [
    ("awaitingApproval", "did you mean AwaitingApproval"), ("spec.nothing", "reasons stand in"), ("", "is neither"),
    ("../install", "is neither a reason nor a finding nor a gate nor a field")])
def test_what_is_neither_is_refused_with_what_comes_near(what: str, hint: str) -> None:
    with pytest.raises(Refused, match=hint):
        explain(what)


def test_help_is_short_or_long_and_shows_brackets() -> None:
    """Of a style that takes `[pipeline]` for markup nothing was left of it (D10)."""
    runner = CliRunner()
    short, long = (runner.invoke(app, [option]) for option in ("-h", "--help"))
    assert short.output == long.output != ""
    assert "status" in long.output
    assert "..." not in long.output.replace("[ARGS]...", ""), "what a command does is said whole, in a line of 80 columns"
    assert runner.invoke(app, ["--version"]).output == runner.invoke(app, ["version"]).output
    assert app.rich_markup_mode is None


# --- doctor, logs, wait -------------------------------------------------------------------------------------------------


def test_a_crd_that_lacks_a_field_is_older() -> None:
    ours = schemas()["KafkaMigration"]
    assert {"spec", "spec.approvals", "spec.approvals.planHash", "status.waitingFor.unblocks"} <= {*paths(ours)}
    assert doctor._crd("KafkaMigration", ours, {"KafkaMigration": ours}).good
    older = json.loads(json.dumps(ours))
    del older["properties"]["spec"]["properties"]["soakSeconds"]
    line = doctor._crd("KafkaMigration", ours, {"KafkaMigration": older})
    assert line.good is False
    assert "it lacks spec.soakSeconds; install this release's chart" in line.text
    assert doctor._crd("KafkaMigration", ours, {}).good is False


@pytest.mark.parametrize(("renewed", "good"), [("2026-11-27T10:00:00.000000Z", True), ("2026-11-27T09:00:00.000000Z", False),
                                               (None, False)])
def test_a_lease_that_nobody_renews_is_bad(renewed: str | None, good: bool) -> None:
    lease = {"metadata": {"name": "switchover-x"},
             "spec": {"holderIdentity": "pod", "leaseDurationSeconds": 60, "renewTime": renewed}}
    assert doctor._lease(lease, 1_795_773_630.0).good is good


UNSEEN = "none here, and one that serves it from another namespace cannot be seen: may not list pods"


@pytest.mark.parametrize(("renewed", "looked_at", "line"), [
    ("2026-11-27T10:00:00.000000Z", False, "ok  operator: none here, and one elsewhere renews Leases in it"),
    ("2026-11-27T09:00:00.000000Z", True, f"?   operator: {UNSEEN}"),
    ("2026-11-27T09:00:00.000000Z", False, f"BAD operator: {UNSEEN}")])
def test_an_operator_in_another_namespace_is_seen_by_its_leases(renewed: str, looked_at: bool, line: str) -> None:
    lease = {"metadata": {"name": "switchover-x"}, "spec": {"leaseDurationSeconds": 60, "renewTime": renewed}}
    found = doctor._elsewhere("none here", "may not list pods", [lease], 1_795_773_630.0, looked_at=looked_at)
    assert str(found) == line


def test_the_exit_code_is_of_what_is_wrong_and_not_of_what_was_not_seen() -> None:
    unseen, wrong = doctor.Line("a", None, ""), doctor.Line("b", False, "")
    assert (doctor.code([unseen]), doctor.code([unseen, wrong])) == (0, 1)
    assert [str(unseen)[:4], str(wrong)[:4]] == ["?   ", "BAD "]


def test_of_a_log_what_speaks_of_the_object_is_shown() -> None:
    found = Found(KAFKA_MIGRATION, {"metadata": {"name": "kafka", "namespace": "shop"}})
    log = [
        '{"timestamp": "T", "severity": "info", "message": "act: a", "migration": "kafka", "namespace": "shop"}',
        '{"timestamp": "T", "severity": "info", "message": "act: b", "migration": "kafka", "namespace": "bank"}',
        '{"timestamp": "T", "severity": "info", "message": "act: evict kafka-0", "migration": "kafka"}',
        '{"timestamp": "T", "severity": "info", "message": "act: evict x", "migration": "other"}',
        '{"timestamp": "T", "severity": "warn", "message": "kafka: nobody answers; next try in 2 s"}',
        '{"message": "not-kafka: nobody"}', "2026 switchover [WARNING] kafka: refused", "kafka is up", '{"broken']
    assert list(follow.about(log, found)) == [
        "T info act: a", "T info act: evict kafka-0", "T warn kafka: nobody answers; next try in 2 s",
        "2026 switchover [WARNING] kafka: refused"]


@pytest.mark.parametrize(("watch", "served"), [
    ("shop", True), ("bank,shop", True), ("*", True), ("bank", False), ("", False)])
def test_an_operator_elsewhere_counts_where_it_serves_the_namespace(watch: str, served: bool) -> None:
    variables = [{"name": "POD_NAMESPACE", "valueFrom": {}}, {"name": "WATCH", "value": watch}]
    pod = {"spec": {"containers": [{"name": "proxy"}, {"name": "operator", "env": variables}]}}
    assert operators.serves(pod, "shop") is served


def at(phase: str, *, hold: bool = False, observed: int = 2, retried: bool = False) -> Found:
    status: dict[str, Any] = {"phase": phase, "observedGeneration": observed}
    if hold:
        status["conditions"] = [{"type": "AwaitingApproval", "status": "True", "reason": "AwaitingApproval",
                                 "lastTransitionTime": "2026-11-21T20:00:00Z"}]
    annotations = {RETRY: retry_of("uid-1", 1)} if retried else {}
    metadata = {"name": "kafka", "generation": 2, "uid": "uid-1", "annotations": annotations}
    return Found(KAFKA_MIGRATION, {"metadata": metadata, "status": status})


@pytest.mark.parametrize(("found", "goal", "end"), [
    (at("Succeeded"), Goal.SUCCEEDED, End.REACHED), (at("RolledBack"), Goal.SUCCEEDED, End.MISSED),
    (at("RolledBack", retried=True), Goal.SUCCEEDED, None), (at("Stalled"), Goal.SUCCEEDED, None),
    (at("Succeeded", observed=1), Goal.SUCCEEDED, None),
    (at("AwaitingApproval", hold=True), Goal.HOLD, End.REACHED), (at("Running"), Goal.HOLD, None),
    (at("Succeeded"), Goal.HOLD, End.MISSED), (at("RolledBack"), Goal.ROLLED_BACK, End.REACHED)])
def test_waiting_ends_where_it_should_or_cannot_come_there(found: Found, goal: Goal, end: End | None) -> None:
    assert end_of(found, goal) is end


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("15m", 900), ("2h", 7200), ("1d", 86_400)])
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "0s", "-1m", "1.5h", "1w", "٣m", "99999999999"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="is no duration"):
        duration(text)
