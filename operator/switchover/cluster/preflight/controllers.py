"""Whether the controllers of the spec can be made for these brokers. Preflight looks, and so does ProvisionControllers
right before it makes them: until then the spec may change, and so may the namespace."""

from collections.abc import Iterator

from switchover.cluster import names
from switchover.cluster.controllers import manifests
from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.cluster.preflight import configuration, objects, residue, security
from switchover.cluster.reading import brokers_by_pod, configured, workloads
from switchover.engine.gate import Gate, Verdict, check, fail
from switchover.kubernetes.selectors import selects
from switchover.reasons.preflight import LISTENER_NAME_TAKEN, NODE_ID_TAKEN, SEVERAL_BUDGETS
from switchover.text.command import kubectl


def find_listener_names(picture: Picture) -> Iterator[Verdict]:
    listener = picture.spec.controllers.listener.name
    for found in configured(picture):
        if listener in {item.partition("://")[0].strip() for item in found.keys.get("listeners", "").split(",")}:
            subject = f"broker {found.broker_id}"
            yield fail(LISTENER_NAME_TAKEN, f"{subject} has a listener {listener} of its own", subject=subject,
                       unblocks="choose another spec.controllers.listener.name")


def find_node_ids(picture: Picture) -> Iterator[Verdict]:
    for shared in sorted({*brokers_by_pod(picture).values()} & {*picture.controllers.values()}):
        yield fail(NODE_ID_TAKEN, f"controller id {shared} is a broker's id", subject=f"broker {shared}",
                   unblocks="choose another spec.controllers.firstNodeId")


def find_budgets(picture: Picture) -> Iterator[Verdict]:
    """The controllers get a budget of their own: one more that selects them, such as the namespace's, would be too many."""
    own = picture.spec.controllers.name
    _, _, first = next(workloads(picture))
    labels = manifests.pod_labels(picture.name, picture.spec, first.template, (first.selector, *first.selectors.values()))
    selectors = {name: each for _, _, workload in workloads(picture) for name, each in workload.selectors.items()}
    for budget, selector in sorted(selectors.items()):
        if budget == own or not selects(selector, labels):
            continue
        but_them = {"key": names.CONTROLLERS_LABEL, "operator": "DoesNotExist"}
        expressions = [*((selector or {}).get("matchExpressions") or ()), but_them]
        subject = f"PodDisruptionBudget {budget}"
        yield fail(SEVERAL_BUDGETS, f"{subject} would select the controllers, beside the one that the migration makes for"
                   " them: Kubernetes refuses to evict such a pod", subject=subject, observed=2, threshold=1,
                   unblocks=kubectl(picture.namespace, "patch poddisruptionbudget {} --type merge --patch {}", budget,
                                    {"spec": {"selector": {"matchExpressions": expressions}}}))


CHECKS = (
    check("ListenerName", find_listener_names, "no broker has a listener of the controllers' name",
          needs=(Need.EXAMINATION,)),
    check("NodeIds", find_node_ids, "no broker has an id of a controller"),
    check("ControllersBudget", find_budgets, "one budget selects the controllers"),
)
OF_CONTROLLERS: tuple[Gate[Picture], ...] = (
    *CHECKS, configuration.LISTENERS_OF_RUN_TIME, *security.CHECKS, objects.IMAGE_ALLOWED, objects.STORAGE, residue.NAMES)
"""All of Preflight that reads spec.controllers, but for what only warns."""
