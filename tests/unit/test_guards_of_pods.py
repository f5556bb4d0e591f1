"""Which PodDisruptionBudgets select a pod: Kubernetes goes by the pod's own labels, of which its template has not all."""

from dataclasses import replace
from typing import Any

from simulation.virtual_time import Timeline
from switchover.kubernetes.client.api_server import ApiServer
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from unit.pictures import moment, spoil_workload, workload_of
from unit.preflight_pictures import check

LABELS = {"app": "kafka"}
POD_NAME = "statefulset.kubernetes.io/pod-name"
BUDGETS = {"kafka": LABELS, "kafka-0": {POD_NAME: "kafka-0"}, "coming": {"tier": "data"}}


class Server(ApiServer):
    """Has a StatefulSet with three pods, a budget for all of them, one by the name of the first, and one by a label that
    the template has got since they were made."""

    def __init__(self) -> None:
        self.namespace = "kafka"

    async def get(self, path: str) -> dict[str, Any]:
        template = {"metadata": {"labels": {**LABELS, "tier": "data"}}, "spec": {"containers": []}}
        return {"metadata": {"name": "kafka", "uid": "u", "resourceVersion": "1", "generation": 1},
                "spec": {"replicas": 3, "selector": {"matchLabels": LABELS}, "template": template}}

    async def events(self, uid: str, most: int) -> list[dict[str, Any]]:
        return []

    async def items(self, path: str, labels: Any = None) -> list[dict[str, Any]]:
        match path.rpartition("/")[2]:
            case "poddisruptionbudgets":
                return [{"metadata": {"name": name, "generation": 1, "uid": name},
                         "spec": {"selector": {"matchLabels": selected}},
                         "status": {"observedGeneration": 1, "expectedPods": 1, "desiredHealthy": int(name == "kafka-0")}}
                        for name, selected in BUDGETS.items()]
            case "pods":
                return [{"metadata": {"name": f"kafka-{n}", "uid": f"p{n}", "labels": {**LABELS, POD_NAME: f"kafka-{n}"},
                                      "ownerReferences": [{"uid": "u", "controller": True}]},
                         "spec": {"containers": []}, "status": {}} for n in range(3)]
        return []


async def test_a_brokers_pod_has_budgets_that_its_template_has_not() -> None:
    found = await KubernetesWorkloads(Server(), Timeline()).stateful_set("kafka")
    assert found is not None
    assert {name: pod.budgets for name, pod in found.pods.items()} == {
        "kafka-0": ("kafka", "kafka-0"), "kafka-1": ("kafka",), "kafka-2": ("kafka",)}
    assert found.budgets == ("kafka", "coming")
    assert found.strict_budgets == ("kafka-0",)
    picture = spoil_workload(moment("Preflight"), budgets=found.budgets, pods=found.pods)
    told = [finding for finding in check("Budgets", picture).findings if finding.reason == "SeveralBudgets"]
    assert [(finding.message, finding.unblocks) for finding in told] == [
        ("the next pods of StatefulSet kafka have more than one PodDisruptionBudget (kafka, coming): Kubernetes refuses to"
         " evict such a pod",
         "delete one, unless it guards other pods too: kubectl --namespace kafka delete poddisruptionbudget coming"),
        ("pod kafka-0 has more than one PodDisruptionBudget (kafka, kafka-0): Kubernetes refuses to evict such a pod",
         "delete one, unless it guards other pods too: kubectl --namespace kafka delete poddisruptionbudget kafka-0")]


def test_where_both_select_all_of_them_no_name_is_guessed() -> None:
    picture = moment("Preflight")
    pods = {name: replace(pod, budgets=("all", "kafka")) for name, pod in workload_of(picture).pods.items()}
    [told] = check("Budgets", spoil_workload(picture, pods=pods)).findings
    assert told.message.startswith("pods kafka-0, kafka-1, kafka-2 have more than one PodDisruptionBudget (all, kafka)")
    assert told.unblocks == ("kubectl --namespace kafka delete poddisruptionbudget NAME, where NAME is the one of all, kafka"
                             " that guards nothing else")


async def test_and_so_may_a_consumers_pod() -> None:
    found = (await KubernetesWorkloads(Server(), Timeline()).member_workloads([("StatefulSet", "kafka")]))["kafka"]
    assert found is not None
    assert found.budgets.keys() == BUDGETS.keys()
