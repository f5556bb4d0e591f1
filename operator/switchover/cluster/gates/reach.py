"""That controllers can tell the brokers what they decide, before they have anything to decide."""

from switchover.cluster import names
from switchover.cluster.gates.read import kubernetes_of
from switchover.cluster.picture import Picture
from switchover.engine.gate import Gate, Verdict, passed, unknown, wait
from switchover.kubernetes.reports import REACH
from switchover.outside.observed import Known
from switchover.reasons.brokers import BROKERS_OUT_OF_REACH, REACH_UNKNOWN
from switchover.reasons.walk import NOT_OBSERVED


def check_controllers_reach_brokers(picture: Picture) -> Verdict:
    """Every controller's pod has reached every broker's inter-broker listener when it started."""
    state = kubernetes_of(picture)
    if isinstance(state, Verdict):
        return state
    workload = state.controllers
    if workload is None:
        told = picture.told_by_controllers()
        if not isinstance(told, Known):
            return unknown(REACH_UNKNOWN, f"{told.why}, so no controller could try it, and none is made", subject="brokers",
                           unblocks="every broker runs, and is registered")
        return unknown(NOT_OBSERVED, "the controllers' StatefulSet does not exist")
    if not any(each["name"] == REACH for each in workload.template["spec"].get("initContainers") or ()):
        return passed("a release that did not ask made the controllers")
    for name in picture.controllers:
        pod = workload.pods.get(name)
        if pod is None or pod.unreached is None:
            return unknown(REACH_UNKNOWN, f"pod {name} has not reported which brokers it reaches", subject=f"pod {name}",
                           unblocks="its pod starts, and reports")
        if pod.unreached:
            return wait(
                BROKERS_OUT_OF_REACH, f"pod {name} cannot connect to {', '.join(pod.unreached)}: once the cluster is"
                " claimed, brokers would hear nothing from their controllers", subject=f"pod {name}",
                observed=len(pod.unreached), threshold=0, unblocks="let pods with the label"
                f" {names.CONTROLLERS_LABEL}={picture.spec.controllers.name} connect there (NetworkPolicy); then"
                f" kubectl --namespace {picture.namespace} delete pod --selector"
                f" {names.CONTROLLERS_LABEL}={picture.spec.controllers.name}")
    return passed("every controller has reached every broker")


CONTROLLERS_REACH_BROKERS: Gate[Picture] = Gate("ControllersReachBrokers", check_controllers_reach_brokers)
