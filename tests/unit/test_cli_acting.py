"""What a person may ask of a migration: the words before it is done, and the patch that it is."""

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

from switchover.answers.errors import Refused
from switchover.cli import acts
from switchover.cli.acts import Act, Approval
from switchover.cli.objects import KINDS, Found
from switchover.engine.intent import RETRY

RECORDED = Path(__file__).parent / "last_release"
APPROVAL = Approval("Finalize", "alice", "CHG-1182", "0123456789abcdef")


def recorded(short: str = "kmig", **status: Any) -> Found:
    """In the middle of a batch, as the operator has written it."""
    (kind,) = (kind for kind in KINDS if kind.short == short)
    resource = json.loads((RECORDED / f"{kind.name.lower()}.json").read_text())
    resource["metadata"]["resourceVersion"] = "7"
    resource["status"] |= status
    return Found(kind, resource)


def patched(resource: Mapping[str, Any], operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    changed: dict[str, Any] = jsonpatch.apply_patch(deepcopy(resource), list(operations))
    return changed


def given(name: str, plan: str = "fedcba9876543210") -> dict[str, str]:
    return {"name": name, "planHash": plan, "approver": "bob"}


# --- approvals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("before", "names"), [
    (None, ["Finalize"]), ([], ["Finalize"]), ([given("HandOver")], ["HandOver", "Finalize"]),
    ([given("Finalize"), given("HandOver")], ["Finalize", "HandOver"])],
    ids=["none", "an empty list", "another step's", "one of another plan"])
def test_an_approval_is_added_and_every_other_one_stays(before: Any, names: list[str]) -> None:
    resource = deepcopy(dict(recorded().resource))
    resource["spec"].pop("approvals", None)
    if before is not None:
        resource["spec"]["approvals"] = before
    after = patched(resource, acts.approval_patch(resource, APPROVAL))["spec"]["approvals"]
    assert [each["name"] for each in after] == names
    assert [each for each in after if each["name"] == "Finalize"] == [
        {"name": "Finalize", "planHash": APPROVAL.plan_hash, "approver": "alice", "reason": "CHG-1182"}]
    assert [each for each in after if each["name"] != "Finalize"] == [
        each for each in before or () if each["name"] != "Finalize"]


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_it_is_an_approval_of_the_object_that_was_read_alone(field: str) -> None:
    resource = recorded().resource
    other = deepcopy(dict(resource))
    other["metadata"][field] = "another"
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        patched(other, acts.approval_patch(resource, APPROVAL))


def test_the_plan_to_approve_is_the_one_on_record() -> None:
    assert acts.plan_to_approve(recorded(planHash="abcdef0123456789"), "Finalize") == "abcdef0123456789"


@pytest.mark.parametrize(("found", "step", "words"), [
    (recorded(planHash=""), "Finalize", "kmig/.* has no plan to approve yet"),
    (recorded(planHash="abcdef01", uid="of-another-object"), "Finalize", "no plan to approve yet"),
    (recorded(), "Finalise", r"has no step Finalise that could be approved; it has Rehearse, .*Finalize"),
    (recorded(), "Preflight", "no step Preflight"),
    (recorded("cgmig"), "Finalize", "has no step Finalize that could be approved; it has .*HandOver")])
def test_what_cannot_be_approved_is_refused(found: Found, step: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        acts.plan_to_approve(found, step)


def test_it_says_what_cannot_be_undone_and_what_it_takes_the_place_of() -> None:
    found = recorded(waitingFor=[
        {"gate": "Approval", "verdict": "Wait", "reason": "AwaitingApproval", "subject": "Finalize"},
        {"gate": "Backups", "verdict": "Wait", "reason": "BackupsMissing"}])
    found.resource["spec"]["approvals"] = [given("Finalize", "11111111")]      # type: ignore[index]
    words = "\n".join(acts.approval_lines(found, APPROVAL))
    assert "plan 0123456789abcdef, attempt" in words
    assert "Finalize is the point of no return: once it has begun, no step can be taken back" in words
    assert "it also waits for Backups Wait BackupsMissing" in words
    assert "it takes the place of bob's approval of plan 11111111" in words
    assert "does not wait for this approval now" not in words
    harmless = "\n".join(acts.approval_lines(recorded(), Approval("Soak", "alice", "", "0123456789abcdef")))
    assert "point of no return" not in harmless
    assert "it does not wait for this approval now: it stands at MoveBrokers" in harmless


# --- the other acts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("short", ["kmig", "cgmig"])
def test_a_retry_names_the_object_and_its_attempt_and_keeps_the_annotations_that_there_are(short: str) -> None:
    resource = deepcopy(dict(recorded(short, attempt=3).resource))
    resource["metadata"]["annotations"] = {"mine": "stays", RETRY: "an older one"}
    resource["spec"]["desiredState"] = "RolledBack"
    after = patched(resource, acts.retry_patch(resource))
    assert after["metadata"]["annotations"] == {"mine": "stays", RETRY: f"{resource['metadata']['uid']}/3"}
    assert after["spec"]["desiredState"] == "Running"


BY_ITSELF = {"available": True, "failure": "GroupLag", "failureStep": "Canary", "failureGate": "LagHealthy",
             "failureMessage": "5 behind"}
BACK = {"step": "Canary", "direction": "Backward"}
ENDED = {"step": "Preflight", "direction": "Backward", "completeTime": "2026-11-29T10:00:00Z"}
WHY = "automatically from Canary because of GroupLag: LagHealthy: 5 behind"


@pytest.mark.parametrize("short", ["kmig", "cgmig"])
@pytest.mark.parametrize(("progress", "stands"), [(BACK, f"is rolling back {WHY}, and stands at Canary"),
                                                  (ENDED, f"has rolled back {WHY}")])
def test_after_an_automatic_rollback_every_act_says_what_happened(short: str, progress: Any, stands: str) -> None:
    found = recorded(short, progress=progress, rollback=BY_ITSELF, attempt=2)
    again = f"switchover retry {found.name} --namespace sim"
    with pytest.raises(Refused, match=f"{stands}: resume changes nothing; {again} begins attempt 3"):
        acts.refuse(found, Act.RESUME)
    for act in (Act.ROLLBACK, Act.RETRY):
        acts.refuse(found, act)
        assert f"it {stands}" in "\n".join(acts.lines(found, act))
    paused = wanting(recorded(short, progress=progress, rollback=BY_ITSELF, attempt=2), "Paused")
    acts.refuse(paused, Act.RESUME)
    assert f"it {stands}, and that goes on; {again} begins attempt 3" in [*acts.lines(paused, Act.RESUME)]


@pytest.mark.parametrize(("status", "words"), [
    ({}, "kmig/.* is not rolled back: it stands at MoveBrokers, .* first switchover rollback kmig/"),
    ({"phase": "Succeeded"}, "has succeeded: there is nothing to retry")])
def test_what_is_not_rolled_back_is_not_retried(status: Any, words: str) -> None:
    with pytest.raises(Refused, match=words):
        acts.refuse(recorded(**status), Act.RETRY)


def test_a_retry_is_asked_for_once_and_again_after_somebody_wanted_otherwise() -> None:
    found = recorded(progress=BACK, rollback=BY_ITSELF)
    asked = Found(found.kind, patched(found.resource, acts.retry_patch(found.resource)))
    assert asked.is_retried
    with pytest.raises(Refused, match="attempt 2 begins by itself after that"):
        acts.refuse(asked, Act.RETRY)
    acts.refuse(wanting(asked, "RolledBack"), Act.RETRY)


@pytest.mark.parametrize(("act", "state"), [(Act.PAUSE, "Paused"), (Act.RESUME, "Running"), (Act.ROLLBACK, "RolledBack")])
def test_an_act_changes_the_desired_state_and_nothing_else(act: Act, state: str) -> None:
    resource = recorded().resource
    after = patched(resource, acts.desired_patch(resource, act))
    assert after["spec"].pop("desiredState") == state
    before = deepcopy(dict(resource))
    before["spec"].pop("desiredState", None)
    assert after == before


def test_abandoning_keeps_the_annotations_that_there_are() -> None:
    resource = deepcopy(dict(recorded().resource))
    resource["metadata"]["annotations"] = {"mine": "stays"}
    after = patched(resource, acts.abandon_patch(resource))
    assert after["metadata"]["annotations"] == {"mine": "stays", "switchover.dev/abandon": "true"}


def wanting(found: Found, state: str) -> Found:
    found.resource["spec"]["desiredState"] = state                            # type: ignore[index]
    return found


@pytest.mark.parametrize(("found", "act", "words"), [
    (wanting(recorded(), "Paused"), Act.PAUSE, "spec.desiredState is Paused already"),
    (recorded(), Act.RESUME, "spec.desiredState is Running already"),
    (recorded(phase="Succeeded"), Act.ROLLBACK, "has succeeded: there is nothing to rollback"),
    (recorded(rollback={"available": False, "lostAtStep": "Finalize"}), Act.ROLLBACK,
     "the point of no return was passed with Finalize")])
def test_what_would_do_nothing_or_cannot_be_done_is_refused(found: Found, act: Act, words: str) -> None:
    with pytest.raises(Refused, match=words):
        acts.refuse(found, act)


@pytest.mark.parametrize(("found", "act", "words"), [
    (recorded(), Act.PAUSE, "no step and no batch begins"),
    (recorded(), Act.ROLLBACK, "these steps are rolled back, the last one first: MoveBrokers, "),
    (recorded(rollback={"available": True, "estimatedSeconds": 200}), Act.ROLLBACK, "it takes about 3:20"),
    (recorded(), Act.ABANDON, "it stays half done, nodes by mode: 1 KRaft, 2 Migration, 3 MigrationController"),
    (recorded("cgmig"), Act.ABANDON, "a Deployment that is held rolls nothing out by itself"),
    (recorded(progress={"step": "Preflight"}), Act.ABANDON, "it is not under way"),
    (wanting(recorded(phase="RolledBack", attempt=2), "RolledBack"), Act.RESUME, "attempt 3 begins"),
    (wanting(recorded(), "Paused"), Act.RESUME, "it goes on from MoveBrokers")])
def test_each_act_says_what_it_does_and_what_it_costs(found: Found, act: Act, words: str) -> None:
    assert words in "\n".join(acts.lines(found, act))


def spoilt(**changes: Any) -> Found:
    """With the first node's mode, and more, as a newer release may have it."""
    nodes = deepcopy(recorded().resource["status"]["nodes"])
    nodes[0]["assigned"] = "Dreaming"
    return recorded(nodes=nodes, **changes)


@pytest.mark.parametrize(("found", "act", "said", "unsaid"), [
    (spoilt(), Act.ABANDON, "1 unknown", "as it was"),
    (spoilt(progress={"step": 3}), Act.ABANDON, "which stands at an unknown step", "not under way"),
    (spoilt(progress={"step": "Dream"}), Act.ROLLBACK, "which steps are rolled back is unknown", "nothing was changed")])
def test_what_cannot_be_read_is_unknown_before_an_act_and_no_default(found: Found, act: Act, said: str, unsaid: str) -> None:
    text = "\n".join(acts.lines(found, act))
    assert said in text
    assert "left out, since this program cannot read it: " in text
    assert "nodes.0.assigned: " in text
    assert unsaid not in text


def test_an_approval_says_what_was_left_out() -> None:
    assert "nodes.0.assigned: " in "\n".join(acts.approval_lines(spoilt(), APPROVAL))
