"""How far a node has come on its way up: what its pod is at, since when, and whether that takes longer than is usual."""

from collections.abc import Mapping

from switchover.answers.observed import Known
from switchover.api.kafka_migration import NodeMode
from switchover.cluster.picture import Picture
from switchover.engine.rollout import Phase
from switchover.engine.windows import utc
from switchover.kubernetes.workloads import Pod, Stage
from switchover.text.command import kubectl

USUAL_SECONDS: Mapping[Stage, float] = {
    Stage.PENDING: 60.0, Stage.PREPARING: 300.0, Stage.INITIALIZING: 120.0, Stage.ENDED: 0.0, Stage.RUNNING: 300.0}
"""How long a pod may stay at one stage before that is called too long (docs/runbooks/PodInTrouble.md): an image may be
large, and a broker that was not stopped in order reads its logs before it listens."""


def phase_of(picture: Picture, name: str, pod: Pod | None) -> Phase | None:
    """Where a node on record is that does not run in its assigned mode yet; None for one that does, and is Ready."""
    if pod is None:
        return _absent(picture, name)
    record, (stage, container, since) = picture.position.nodes[name], pod.reached
    mode = picture.mode(record.node_id)
    # A controller that stands still answers nobody.
    arrived = mode.value == record.assigned if isinstance(mode, Known) else record.assigned == NodeMode.STOPPED
    if arrived and pod.ready:
        return None
    if pod.terminating:
        return Phase(f"pod {name} is ending", False, "")
    of = f"container {container}" if container else "container"
    then = f" since {utc(since)}" if since is not None else ""
    match stage:
        case Stage.PENDING:
            what = f"has no node{then}"
        case Stage.PREPARING:
            what = f"pulls the image of its {of}, or mounts its volumes{then}"
        case Stage.INITIALIZING:
            what = f"runs its init {of}{then}"
        case Stage.ENDED:
            what = f"starts its {of} again{then}"
        case _ if arrived:
            what = f"runs{then} in its mode, but its {of} is not Ready"
        case _ if not isinstance(mode, Known):
            what = f"runs{then}, but Kafka does not answer ({mode.why})"
        case _:
            what = f"runs{then}, but in mode {mode.value}, not in {record.assigned}"
    usual = USUAL_SECONDS[stage]
    late = since is not None and picture.now - since > usual
    message = f"pod {name} {what}"
    if late and usual:
        message += f", longer than the usual {usual:.0f} s"
    if pod.trouble:
        message += f": {pod.trouble}"
    return Phase(message, bool(pod.trouble) or late, _command(picture, name, stage, container))


def _absent(picture: Picture, name: str) -> Phase:
    """A pod that does not exist, and why, by the StatefulSet's events."""
    workload = picture.workload_of(name)
    why = workload.absent.get(name, "") if workload is not None else ""
    message = f"pod {name} does not exist at this moment"
    return Phase(f"{message}: {why}" if why else message, bool(why),
                 kubectl(picture.namespace, "describe statefulset {}", name.rpartition("-")[0]))


def _command(picture: Picture, name: str, stage: Stage, container: str) -> str:
    """The command that shows more of it."""
    if stage in (Stage.PENDING, Stage.PREPARING):
        return kubectl(picture.namespace, "describe pod {}", name)
    return kubectl(picture.namespace, "logs {}" + (" --container {}" if container else "")
                   + (" --previous" if stage is Stage.ENDED else ""), name, container)
