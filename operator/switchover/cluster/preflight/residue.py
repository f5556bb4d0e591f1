"""Nothing is left of an earlier attempt: with a stale `/migration` the controllers would delete every topic."""

from collections.abc import Iterator

from switchover.api.kafka_migration import StartPreset
from switchover.cluster import names
from switchover.cluster.door.layout import ContainerMissing, container_of, preset_of
from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.cluster.reading import kubernetes_in_preflight, workloads, zookeeper_of
from switchover.engine.gate import Verdict, check, fail, seen, wait, warn
from switchover.kubernetes.gitops import HELM
from switchover.reasons.notes import NAME_OF_THE_CHART
from switchover.reasons.preflight import NAME_TAKEN, RESIDUE
from switchover.reasons.walk import NO_CONTROLLER, NOT_OBSERVED

NONE_RUNS = "make sure that no KRaft controller runs"
"""They may be a quorum that is in use, whose log is its cluster."""


def find_znodes(picture: Picture) -> Iterator[Verdict]:
    state = zookeeper_of(picture)
    if state.migration is not None:
        told = "it is empty (KAFKA-19480)" if state.migration.empty else f"its offset is {state.migration.offset}"
        yield fail(RESIDUE, f"/migration exists in ZooKeeper, {told}: something is left of an earlier attempt",
                   subject="/migration", unblocks=f"{NONE_RUNS}, then delete /migration")
    if state.controller is None:
        yield wait(NO_CONTROLLER, "/controller does not exist: no broker is the controller", subject="/controller",
                   unblocks="a broker becomes the controller")
    elif not state.controller.ephemeral:
        yield fail(RESIDUE, "/controller is not ephemeral: KRaft controllers claimed it in an earlier attempt",
                   subject="/controller", observed=f"node {state.controller.node_id}",
                   unblocks=f"{NONE_RUNS}, then delete /controller")


def find_objects(picture: Picture) -> Iterator[Verdict]:
    state = kubernetes_in_preflight(picture)
    if state.controller_claims:
        yield fail(RESIDUE, "volumes of controllers of an earlier attempt exist: their log would be taken for this one",
                   subject=f"claim {state.controller_claims[0]}",
                   unblocks=f"{NONE_RUNS}, then delete the claims {', '.join(state.controller_claims)}")
    reserved = seen(picture.facts.examination.objects, NOT_OBSERVED, "objects with the controllers' names")
    own = {f"Secret {names.node_files(brokers)}" for brokers in picture.broker_sets}
    for found, manager in sorted(reserved.items()):
        if found not in own:
            yield fail(RESIDUE, f"{found} exists already", subject=found,
                       unblocks=f"choose another spec.controllers.name, or {NONE_RUNS}, then delete it")
        elif manager != names.MANAGER:
            yield fail(NAME_TAKEN, f"{found} exists and is not Switchover's, which would write over it or have it replaced",
                       subject=found, observed=manager or "no label app.kubernetes.io/managed-by", threshold=names.MANAGER,
                       unblocks="rename or delete it")


def find_names_of_charts(picture: Picture) -> Iterator[Verdict]:
    """Bitnami's charts call what they render for controllers so once their values say KRaft, and Helm then refuses the
    upgrade (docs/facts/hand-over.md); by then the name cannot be changed any more."""
    controllers = picture.spec.controllers.name
    for name, brokers, workload in workloads(picture):
        release = name.removesuffix("-broker")
        if HELM not in workload.marks or controllers != f"{release}-controller":
            continue
        try:
            preset = preset_of(container_of(workload.template, brokers))
        except ContainerMissing:
            continue                                   # told by its own reason
        if preset is StartPreset.BITNAMI:
            yield warn(NAME_OF_THE_CHART, f"the chart of StatefulSet {name} has objects called {controllers} once its values"
                       " say KRaft: Helm would refuse that upgrade, since Switchover's have the name",
                       subject=f"StatefulSet {controllers}", observed=controllers,
                       cure=f"set spec.controllers.name to {release}-kraft")


NAMES = check("Names", find_objects, "no object stands where Switchover's will", needs=(Need.EXAMINATION,))

CHECKS = (
    check("Residue", find_znodes, "nothing is left of an earlier attempt in ZooKeeper"),
    NAMES,
    check("NamesOfCharts", find_names_of_charts, "no chart has the controllers' name for objects to come"),
)
