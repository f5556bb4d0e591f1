"""The nodes can talk to each other: the controllers' listener has its credentials, and controllers reach the brokers."""

from collections.abc import Mapping

from switchover.answers.observed import Known
from switchover.cluster import names
from switchover.cluster.controllers import listener
from switchover.cluster.picture import Picture
from switchover.cluster.reading import kubernetes_of
from switchover.engine.gate import Gate, Verdict, fail, passed, several, unknown, wait
from switchover.kubernetes.reports import REACH
from switchover.network.credentials import Unusable
from switchover.reasons.cluster import (
    BROKERS_OUT_OF_REACH,
    LISTENER_CREDENTIALS_CHANGED,
    LISTENER_CREDENTIALS_UNUSABLE,
    REACH_UNKNOWN,
)
from switchover.reasons.walk import NOT_OBSERVED
from switchover.text.command import kubectl


def check_listener_credentials(picture: Picture) -> Verdict:
    """The Secret can be read, and a password in it is the one that the controllers run with.

    A node that starts with another password could not talk to the others. Certificates may change: each node takes the new
    ones when it is restarted, and trusts whom its truststore names.
    """
    own = picture.spec.controllers.listener
    state = kubernetes_of(picture)
    if own.credentials_ref is None:
        return passed("the controllers' listener has no credentials")
    secret = f"Secret {own.credentials_ref.name}"
    credentials = state.listener_credentials
    try:
        if isinstance(credentials, str):
            raise Unusable(credentials)
        wanted = listener.node_settings(own, credentials)
    except Unusable as why:
        return fail(LISTENER_CREDENTIALS_UNUSABLE, f"{secret}: {why}; no node is moved, since edits cannot be written",
                    subject=secret, unblocks="restore the Secret as it was")
    if not listener.same_login(wanted, picture.controller_files):
        return fail(LISTENER_CREDENTIALS_CHANGED, f"the user or password in {secret} is not the one that the controllers"
                    " run with: a node that starts now could not talk to the others", subject=secret,
                    unblocks="restore the old user and password until the migration has ended")
    return passed("the credentials of the controllers' listener are as they were")


LISTENER_CREDENTIALS: Gate[Picture] = Gate("ListenerCredentials", check_listener_credentials)


# --- reach ----------------------------------------------------------------------------------------------------------------
# Controllers reach the brokers, before they have anything to send them.

def check_controllers_reach_brokers(picture: Picture) -> Verdict:
    """Every broker's inter-broker listener has answered every controller's pod when it started."""
    state = kubernetes_of(picture)
    workload = state.controllers
    if workload is None:
        addresses = picture.listeners_for_controllers()
        if not isinstance(addresses, Known):
            return unknown(REACH_UNKNOWN, f"{addresses.why}: no controller could try to connect there, so none is created",
                           subject="brokers", unblocks="wait until every broker runs and is registered")
        return unknown(NOT_OBSERVED, "the controllers' StatefulSet does not exist")
    asks = next((each for each in workload.template["spec"].get("initContainers") or () if each["name"] == REACH), None)
    if asks is None:
        return passed("a release that did not ask made the controllers")
    for name in picture.controllers:
        pod = workload.pods.get(name)
        if pod is None or pod.unreached is None:
            return unknown(REACH_UNKNOWN, f"pod {name} has not reported which brokers it reaches", subject=f"pod {name}",
                           unblocks="wait until the pod starts and reports")
        if pod.unreached:
            return _out_of_reach(picture, name, pod.unreached)
    if any(word.startswith("tls://") for word in asks.get("command") or ()):
        return passed("a TLS server answers every controller at every broker's address; each controller logs in to one"
                      " before Kafka runs")
    return passed("every controller has reached every broker")


def _out_of_reach(picture: Picture, name: str, unreached: Mapping[str, bool]) -> Verdict:
    """Where nothing takes a connection the network is in the way, else whatever takes it."""
    own = f"{names.CONTROLLERS_LABEL}={picture.spec.controllers.name}"
    away = [address for address, connected in unreached.items() if not connected]
    silent = [address for address, connected in unreached.items() if connected]
    faults = [*([f"cannot connect to {several(away)}"] if away else []),
              *([f"connects to {several(silent)}, where Kafka does not answer"] if silent else [])]
    steps = [*([f"let pods with the label {own} connect there (NetworkPolicy)"] if away else []),
             *(["let the proxy before the broker pass on what these pods send (a mesh's sidecar accepts only connections of"
                " its mesh)"] if silent else [])]
    return wait(BROKERS_OUT_OF_REACH, f"pod {name} {', and '.join(faults)}: after the claim the controllers could not reach"
                " the brokers", subject=f"pod {name}", observed=len(unreached), threshold=0,
                unblocks=f"{'; '.join(steps)}; then {kubectl(picture.namespace, 'delete pod --selector {}', own)}")


CONTROLLERS_REACH_BROKERS: Gate[Picture] = Gate("ControllersReachBrokers", check_controllers_reach_brokers)
