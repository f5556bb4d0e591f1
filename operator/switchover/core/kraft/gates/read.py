"""How gates read a picture: the value, or the verdict that it is unknown."""

from switchover.core.gate import Verdict, unknown
from switchover.core.kraft.facts import LogImage, Quorum, ZooKeeperState
from switchover.core.kraft.picture import Picture
from switchover.core.observed import Known


def samples(picture: Picture) -> int:
    return picture.spec.gates.stable_samples


def log_of(picture: Picture) -> LogImage | Verdict:
    log = picture.facts.log
    return log.value if isinstance(log, Known) else unknown("MetadataLogUnknown", log.why, subject="metadata log")


def quorum_of(picture: Picture) -> Quorum | Verdict:
    quorum = picture.facts.quorum
    return quorum.value if isinstance(quorum, Known) else unknown("QuorumUnknown", quorum.why, subject="quorum")


def zookeeper_of(picture: Picture) -> ZooKeeperState | Verdict:
    state = picture.facts.zookeeper
    return state.value if isinstance(state, Known) else unknown("ZooKeeperUnknown", state.why, subject="ZooKeeper")


def is_claimed(state: ZooKeeperState) -> bool:
    """KRaft holds `/controller`: no broker can become the ZooKeeper controller."""
    return state.controller is not None and not state.controller.ephemeral
