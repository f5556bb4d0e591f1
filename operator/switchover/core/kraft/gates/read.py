"""How gates read a picture: the value, or the verdict that it is unknown."""

from switchover.core.gate import Verdict, unknown
from switchover.core.kraft.facts import LogImage, Quorum, ZooKeeperState
from switchover.core.kraft.picture import Picture
from switchover.core.observed import Known


def samples(picture: Picture) -> int:
    return picture.spec.gates.stable_samples


def log_of(picture: Picture) -> LogImage | Verdict:
    log = picture.facts.log
    if isinstance(log, Known):
        return log.value
    return _trouble(picture) or unknown("MetadataLogUnknown", log.why, subject="metadata log")


def quorum_of(picture: Picture) -> Quorum | Verdict:
    quorum = picture.facts.quorum
    if isinstance(quorum, Known):
        return quorum.value
    return _trouble(picture) or unknown("QuorumUnknown", quorum.why, subject="quorum")


def _trouble(picture: Picture) -> Verdict | None:
    """The controllers do not answer: where Kubernetes knows why one does not come up, that is told."""
    state = picture.facts.kubernetes
    pods = state.value.controllers.pods if isinstance(state, Known) and state.value.controllers is not None else {}
    troubled = [name for name, pod in sorted(pods.items()) if pod.trouble]
    if not troubled:
        return None
    name = troubled[0]
    alike = f"; {len(troubled) - 1} more do not come up" if len(troubled) > 1 else ""
    return unknown("ControllerInTrouble", f"pod {name}: {pods[name].trouble}{alike}", subject=f"pod {name}",
                   unblocks=f"kubectl --namespace {picture.namespace} logs {name} --previous says what ended it")


def zookeeper_of(picture: Picture) -> ZooKeeperState | Verdict:
    state = picture.facts.zookeeper
    return state.value if isinstance(state, Known) else unknown("ZooKeeperUnknown", state.why, subject="ZooKeeper")


def silence(picture: Picture) -> float | Verdict:
    """Seconds in which nobody has written `/migration`.

    Unknown until that was seen to happen, or is longer than the limit of dual write: differences to ZooKeeper's clock would
    make a dead driver look alive, or a live one dead.
    """
    written = picture.facts.migration_written
    if not isinstance(written, Known):
        return unknown("ZooKeeperUnknown", written.why, subject="/migration")
    stood = max(0.0, picture.now - written.value.since)
    if not written.value.seen_to_change and stood <= picture.spec.gates.dual_write_max_age_seconds:
        return unknown("ZooKeeperUnknown", "/migration has not been looked at for long enough to tell whether it is written",
                       subject="/migration")
    return stood


def is_claimed(state: ZooKeeperState) -> bool:
    """KRaft holds `/controller`: no broker can become the ZooKeeper controller."""
    return state.controller is not None and not state.controller.ephemeral
