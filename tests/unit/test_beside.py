"""What stands beside a workload is found by what it is about, and nothing that concerns the workload is left out."""

from typing import Any

import pytest

from switchover.kubernetes.client.index import ANYTHING, SUBJECTS, subject, subjects
from switchover.kubernetes.selectors import selects

LABELS = {"app": "orders", "tier": "back"}
WORKLOAD: dict[str, Any] = {"metadata": {"name": "orders"}, "spec": {"template": {
    "metadata": {"labels": LABELS},
    "spec": {"volumes": [{"persistentVolumeClaim": {"claimName": "orders-data"}}, {"emptyDir": {}}]}}}}
BUDGETS = {
    "its own": {"matchLabels": {"app": "orders"}},
    "of two labels": {"matchLabels": {"tier": "back", "app": "orders"}},
    "by an expression": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
    "of everything": {},
    "of another": {"matchLabels": {"app": "payments"}},
    "of another in the same tier": {"matchLabels": {"tier": "back", "app": "payments"}},
    "of nothing": None,
}


@pytest.mark.parametrize("selector", BUDGETS.values(), ids=BUDGETS)
def test_every_budget_that_selects_its_pods_is_found(selector: dict[str, Any] | None) -> None:
    found = subject("poddisruptionbudgets", {"metadata": {"name": "budget"}, "spec": {"selector": selector}})
    assert found in subjects("Deployment", WORKLOAD) or not selects(selector, LABELS)


def test_a_budget_of_another_is_not() -> None:
    found = subject("poddisruptionbudgets", {"metadata": {"name": "budget"}, "spec": {"selector": BUDGETS["of another"]}})
    assert found not in subjects("Deployment", WORKLOAD)


@pytest.mark.parametrize(("plural", "spec"), [
    ("horizontalpodautoscalers", {"scaleTargetRef": {"kind": "Deployment", "name": "orders"}}),
    ("scaledobjects", {"scaleTargetRef": {"name": "orders"}}),                       # KEDA's default is a Deployment
    ("verticalpodautoscalers", {"targetRef": {"kind": "Deployment", "name": "orders"}}),
])
def test_its_autoscalers_are_found_and_those_of_a_namesake_are_not(plural: str, spec: dict[str, Any]) -> None:
    about = subject(plural, {"metadata": {"name": "any"}, "spec": spec})
    assert about in subjects("Deployment", WORKLOAD)
    assert about not in subjects("StatefulSet", WORKLOAD)


def test_its_claims_are_found_and_others_are_not() -> None:
    assert subject("persistentvolumeclaims", {"metadata": {"name": "orders-data"}}) in subjects("Deployment", WORKLOAD)
    assert subject("persistentvolumeclaims", {"metadata": {"name": "payments-data"}}) not in subjects("Deployment", WORKLOAD)


@pytest.mark.parametrize("odd", [
    {}, {"spec": None}, {"spec": 1}, {"spec": {"scaleTargetRef": "orders", "selector": "app=orders"}},
    {"spec": {"scaleTargetRef": {"name": {"of": "nothing"}}, "selector": {"matchLabels": [1]}}}])
@pytest.mark.parametrize("plural", sorted(SUBJECTS))
def test_what_cannot_be_read_ends_no_watch(plural: str, odd: dict[str, Any]) -> None:
    assert {subject(plural, odd)}


def test_a_budget_that_cannot_be_read_is_left_out_of_nothing() -> None:
    assert subject("poddisruptionbudgets", {"metadata": {"name": "odd"}, "spec": {"selector": "app=orders"}}) == ANYTHING
