"""What GitOps tools read in a migration, by their own code: kstatus, Flux's fork and its expressions, Argo CD's scripts."""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from apiserver.conftest import ROOT, sandbox
from patience import stretched
from switchover.api.consumer_group_migration import ConsumerGroupMigration
from switchover.api.kafka_migration import KafkaMigration
from switchover.engine.intent import RETRY, retry_of
from unit.statuses import Object, all_objects

ARGO_CD = ROOT / "deploy" / "argocd" / "argocd-cm.yaml"
FLUX = ROOT / "deploy" / "flux" / "kustomization.yaml"
KINDS = {"KafkaMigration": KafkaMigration, "ConsumerGroupMigration": ConsumerGroupMigration}


class Read(NamedTuple):
    """What each tool must read. kstatus, Flux's fork of it and its expressions agree in every phase."""

    kstatus: str
    argo: str


UNDER_WAY, FINISHED, FAILED = Read("InProgress", "Progressing"), Read("Current", "Healthy"), Read("Failed", "Degraded")
HELD = Read("InProgress", "Suspended")
READ: dict[str, tuple[Read, Read]] = {
    # phase: with readinessPolicy OnCompletion, and with OnAcceptance once the plan is accepted
    "Pending": (UNDER_WAY, UNDER_WAY),
    "Planned": (HELD, HELD),
    "Running": (UNDER_WAY, FINISHED),
    "AwaitingApproval": (HELD, FINISHED),
    "Paused": (HELD, FINISHED),
    "Stalled": (FAILED, FAILED),
    "RollingBack": (UNDER_WAY, FINISHED),
    "RollingBack by itself": (UNDER_WAY, UNDER_WAY),
    "RolledBack": (FINISHED, FINISHED),
    "RolledBack by itself": (FAILED, FAILED),
    "Succeeded": (FINISHED, FINISHED),
}
NOT_LOOKED_AT = Read("InProgress", "Progressing")
DEFECT_AT_FIRST_SIGHT = Read("InProgress", "Degraded")
"""kstatus asks for the observed generation first, and it is not observed: a pass did not come to its end."""


class Judged(NamedTuple):
    of: Object
    verdict: dict[str, Any]


@pytest.fixture(scope="module")
def judged() -> list[Judged]:
    objects = all_objects()
    return [Judged(*each) for each in zip(objects, evaluate(objects), strict=True)]


def evaluate(objects: Iterable[Object], flux: Path = FLUX) -> list[dict[str, Any]]:
    """What each tool reads in each object, as `flux`, a file with a Kustomization, and Argo CD's ConfigMap have it read."""
    told = subprocess.run([Path(sandbox("build", "gitops")) / "gitops", ARGO_CD, flux], input=json.dumps(list(objects)),
                          capture_output=True, text=True, timeout=stretched(60))
    assert told.returncode == 0, told.stderr
    verdicts: list[dict[str, Any]] = json.loads(told.stdout)
    return verdicts


def phase_of(found: Object) -> str:
    status = found["status"]
    by_itself = (status.get("rollback") or {}).get("failure") and "Roll" in status["phase"]
    return f"{status['phase']} by itself" if by_itself else status["phase"]


def is_accepted(found: Object) -> bool:
    progress = found["status"].get("progress") or {}
    past = progress.get("step") != "Preflight" or progress.get("direction") == "Backward"
    return found["spec"].get("readinessPolicy") == "OnAcceptance" and past


def expected(found: Object) -> Read:
    status, generation = found["status"], found["metadata"].get("generation", 0)
    if status["observedGeneration"] != generation:
        has_words = any(each["type"] == "Stalled" and each["status"] == "True" and each["observedGeneration"] == generation
                        for each in status.get("conditions", ()))
        return DEFECT_AT_FIRST_SIGHT if has_words else NOT_LOOKED_AT
    return READ[phase_of(found)][is_accepted(found)]


def test_every_tool_reads_every_phase_of_both_kinds_as_the_table_says(judged):
    wrong = []
    for of, verdict in judged:
        statuses = verdict["kstatus"]["status"], verdict["fluxKstatus"]["status"], verdict["flux"]
        read = [Read(status, verdict["argo"]["status"]) for status in statuses]
        if read != [expected(of)] * 3:
            wrong.append((of["kind"], phase_of(of), is_accepted(of), expected(of), read, verdict["kstatus"]["message"]))
    assert not wrong, f"{len(wrong)} of {len(judged)}: {wrong[:3]}"


@pytest.mark.parametrize("kind", KINDS)
def test_every_phase_is_among_what_is_read(judged, kind):
    assert {phase_of(of) for of, _ in judged if of["kind"] == kind} == set(READ)


def test_what_is_under_way_or_has_failed_says_in_words_what_for(judged):
    for of, verdict in judged:
        assert verdict["argo"]["message"], phase_of(of)
        if verdict["kstatus"]["status"] in ("InProgress", "Failed"):
            assert verdict["kstatus"]["message"], phase_of(of)
            assert verdict["fluxKstatus"]["message"], phase_of(of)


# --- actions in Argo CD -------------------------------------------------------------------------------------------------

LAST = ("Finalize", "HandOver")


def test_an_action_changes_what_its_name_says_and_leaves_a_spec_that_is_accepted(judged):
    wanted = {"pause": "Paused", "resume": "Running", "rollback": "RolledBack", "retry": "Running"}
    offered = set()
    for of, verdict in judged:
        for name, action in verdict["actions"].items():
            if action["disabled"]:
                assert "spec" not in action
                continue
            offered.add(name)
            after, before = action["spec"], of["spec"]
            KINDS[of["kind"]].model_validate({**of, "spec": after})
            changed = {"approvals": after["approvals"]} if name == "approve" else {"desiredState": wanted[name]}
            assert after == {**before, **changed}
            told = {RETRY: retry_of(of["metadata"]["uid"], of["status"].get("attempt", 1))} if name == "retry" else {}
            assert action.get("annotations", {}) == {**of["metadata"].get("annotations", {}), **told}
    assert offered == {"approve", *wanted}


def test_an_approval_by_argo_cd_is_for_the_plan_on_record_and_never_of_a_point_of_no_return(judged):
    steps, refused = set(), set()
    for of, verdict in judged:
        status = of["status"]
        awaited = ("AwaitingApproval", "True") in [(each["type"], each["status"]) for each in status.get("conditions", ())]
        step, action = (status.get("progress") or {}).get("step"), verdict["actions"]["approve"]
        assert action["disabled"] == (not awaited or step in LAST)
        if not action["disabled"]:
            steps.add(step)
            *_, given = action["spec"]["approvals"]
            assert (given["name"], given["planHash"]) == (step, status["planHash"])
        elif step in LAST:
            short = "kmig" if of["kind"] == "KafkaMigration" else "cgmig"
            command = f"switchover approve {short}/{of['metadata']['name']} {step} --namespace {of['metadata']['namespace']}"
            assert command in action["refusal"], "it is run whatever was offered"
            refused.add((of["kind"], step))
    assert steps == {"Rollout"}
    assert refused >= {("KafkaMigration", "Finalize"), ("ConsumerGroupMigration", "HandOver")}


def test_what_rolled_back_by_itself_can_be_tried_again_or_acknowledged(judged):
    """By one action each; before, there was none."""
    seen = set()
    for of, verdict in judged:
        status, actions = of["status"], verdict["actions"]
        back = (status.get("progress") or {}).get("direction") == "Backward"
        assert actions["retry"]["disabled"] == (not back)
        if phase_of(of) == "RolledBack by itself":
            seen.add(of["kind"])
            assert actions["rollback"]["disabled"] == (of["spec"]["desiredState"] == "RolledBack")
            assert actions["rollback"]["displayName"] == "Acknowledge the rollback"
            [again] = evaluate([{**of, "metadata": {**of["metadata"], "annotations": actions["retry"]["annotations"]},
                                 "spec": actions["retry"]["spec"]}])
            assert again["actions"]["retry"]["disabled"], "it counts once"
    assert seen == set(KINDS)


def test_what_has_ended_is_not_paused_and_what_cannot_go_back_is_not_rolled_back(judged):
    for of, verdict in judged:
        phase, actions = of["status"]["phase"], verdict["actions"]
        if phase in ("Succeeded", "RolledBack"):
            assert actions["pause"]["disabled"]
        if phase == "Succeeded" or not (of["status"].get("rollback") or {}).get("available", False):
            assert actions["rollback"]["disabled"]
