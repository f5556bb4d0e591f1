"""Goals of the steps: claimed and let go in their order, and a StatefulSet's template only while it is at rest."""

from dataclasses import replace

import pytest

from switchover.answers.observed import Known
from switchover.api.status import Direction
from switchover.groups import goals
from switchover.groups.picture import INTERMEDIATE, ORIGINAL, TARGET, Picture
from switchover.groups.workloads import change, stateful_set
from switchover.kubernetes.members import Autoscaler
from unit.group_pictures import (
    BRIDGED,
    NOW,
    UID,
    moment,
    of_stateful_set,
    revision_of,
    source,
    spec_of,
    value,
    with_fact,
    with_pod,
    with_source,
    workload_of,
)

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD


def kept(**originals: object) -> Picture:
    """In Baseline, claimed; what of the original is kept as told."""
    picture = with_source(claimed_by=UID)(moment("Baseline"))
    found = value(moment("Canary").facts.fleet).originals["orders"]
    fleet = replace(value(picture.facts.fleet), originals={"orders": found | originals if originals else None})
    return with_fact(picture, "fleet", Known(fleet, NOW))


def scaler(kind: str = "HorizontalPodAutoscaler", **settings: object) -> Autoscaler:
    return Autoscaler("autoscaling/v2", kind, "orders", "uid-hpa", "1", settings)


# --- claimed and let go -------------------------------------------------------------------------------------------------


def test_claimed_kept_and_paused_in_this_order():
    unclaimed = with_source(autoscalers=(scaler(minReplicas=4),))(moment("Baseline"))
    assert [str(effect) for effect in goals.claim(unclaimed)] == ["patch Deployment orders: claimed"]
    assert [str(effect) for effect in goals.claim(with_source(autoscalers=(scaler(minReplicas=4),))(kept()))] == [
        "apply ControllerRevision deployment-orders-before-uid-of-t-1"]
    paused = with_source(autoscalers=(scaler(minReplicas=4),))(kept(replicas=6))
    assert [str(effect) for effect in goals.claim(paused)] == ["patch HorizontalPodAutoscaler orders: paused"]


def test_what_another_migration_has_claimed_is_left_alone():
    assert goals.claim(with_source(claimed_by="uid-2", autoscalers=(scaler(minReplicas=4),))(kept())) == ()


def test_an_autoscaler_that_cannot_be_paused_is_left_to_the_gate_that_tells_it():
    assert goals.claim(with_source(autoscalers=(scaler("VerticalPodAutoscaler"),))(kept(replicas=6))) == ()


def test_a_claim_is_taken_off_although_the_original_was_not_kept_yet():
    found = source(kept())
    assert goals.release(kept()) == (change.release(found),)


def test_an_autoscaler_that_came_later_keeps_its_own_settings():
    behavior = {"scaleUp": {"selectPolicy": "Max"}}
    late = with_source(autoscalers=(scaler(minReplicas=2, behavior=behavior),))(kept(autoscalers={}))
    assert goals.release(late) == (change.release(source(late)),)
    known = with_source(autoscalers=(scaler(minReplicas=1, behavior=behavior),))(kept(autoscalers={
        "HorizontalPodAutoscaler orders": {"minReplicas": 4, "behavior": behavior}}))
    assert [str(effect) for effect in goals.release(known)] == ["patch HorizontalPodAutoscaler orders: as it was"]


# --- a StatefulSet's template -------------------------------------------------------------------------------------------


def held(picture: Picture) -> Picture:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": source(picture).replicas}}
    return with_source(update_strategy=strategy)(picture)


def revision(picture: Picture, mode: str) -> str:
    made = picture.template("orders", mode)
    assert made is not None
    return revision_of(made)


def test_it_is_held_and_then_written():
    before = of_stateful_set("Canary", "OOOOOO", ())
    assert goals.template(TARGET)(before) == (stateful_set.hold(source(before)),)
    (written,) = goals.template(TARGET)(held(before))
    assert str(written) == "patch StatefulSet orders: target template"


def test_not_while_a_pod_that_goes_away_would_be_of_long_ago():
    before = with_source(current_revision="of-long-ago")(of_stateful_set("Canary", "OOOOOO", ()))
    assert goals.template(TARGET)(before) == ()
    assert goals.template(TARGET)(held(before)) == ()


def test_under_on_delete_its_revision_catches_up_first():
    """Held at once, a pod that is lost would come back of the very first template
    (tests/apiserver/test_member_stateful_sets.py)."""
    before = with_source(current_revision="of-long-ago", update_strategy={"type": "OnDelete"})(
        of_stateful_set("Canary", "OOOOOO", ()))
    assert goals.template(TARGET)(before) == (stateful_set.settle(source(before)),)
    assert goals.template(TARGET)(with_pod("orders-3", revision="another")(before)) == (), "it would be replaced at once"
    assert goals.template(TARGET)(with_source(caught_up=False)(before)) == (), "nobody knows what would be replaced"
    caught_up = with_source(current_revision=source(before).update_revision)(before)
    assert goals.template(TARGET)(caught_up) == (stateful_set.hold(source(before)),)


@pytest.mark.parametrize("current", [ORIGINAL, TARGET])
def test_turned_forward_in_the_middle_of_the_way_back_it_is_written_again(current):
    """Pods of both, the original template live: the way back had begun from a middle, or from the end."""
    turned = held(of_stateful_set("Canary", "OOOOTT", ()))
    original = turned.template("orders", ORIGINAL)
    turned = with_source(template=original, update_revision=revision_of(original),
                         current_revision=revision(turned, current))(turned)
    assert [str(effect) for effect in goals.template(TARGET)(turned)] == ["patch StatefulSet orders: target template"]


def bridged(step: str, modes: str, live: str, current: str, direction: Direction = BACKWARD) -> Picture:
    picture = held(moment(step, modes, direction=direction, spec=spec_of(workload_of("StatefulSet", **BRIDGED))))
    made = picture.template("orders", live)
    now_current = revision(picture, current)
    return with_source(template=made, update_revision=revision_of(made), current_revision=now_current)(picture)


@pytest.mark.parametrize(("modes", "current"), [("IIIIIT", INTERMEDIATE), ("TTTTTT", INTERMEDIATE), ("TTTTTT", TARGET)])
def test_back_from_the_target_the_bridge_is_written_at_once(modes, current):
    """Also where a pod of the target never gets Ready, so that nothing ever settles."""
    assert [str(effect) for effect in goals.template(INTERMEDIATE)(bridged("Canary", modes, TARGET, current))] == [
        "patch StatefulSet orders: intermediate template"]


@pytest.mark.parametrize(("step", "live", "earlier"), [
    ("BridgeCanary", INTERMEDIATE, ORIGINAL), ("Bridge", INTERMEDIATE, ORIGINAL), ("Canary", INTERMEDIATE, TARGET),
    ("Rollout", INTERMEDIATE, TARGET), ("Canary", TARGET, INTERMEDIATE), ("BridgeCanary", ORIGINAL, INTERMEDIATE)])
def test_a_pod_that_the_template_has_left_behind_is_of_the_mode_before_it_on_the_way(step, live, earlier):
    letters = {ORIGINAL: "O", INTERMEDIATE: "I", TARGET: "T"}
    picture = bridged(step, f"{letters[earlier] * 4}{letters[live] * 2}", live, live)
    assert [mode for _, mode, _ in picture.pods()] == [earlier] * 4 + [live] * 2
