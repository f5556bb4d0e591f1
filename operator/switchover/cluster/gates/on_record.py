"""The step on record against what is seen: a status is a record, not an order, and anybody may have written it.

What is seen is what the steps before this one left, forward and back: the cluster's id, the backups, the claims, the modes
that nodes can have, and what the metadata log says.
"""

import json
from collections.abc import Callable, Mapping, Sequence

from switchover.answers.observed import Known
from switchover.api.kafka_migration import KafkaMigrationStep as Step
from switchover.api.kafka_migration import NodeMode
from switchover.api.status import Direction
from switchover.api.status import Verdict as Outcome
from switchover.cluster import modes, names, template
from switchover.cluster.door import edits
from switchover.cluster.facts import KubernetesState
from switchover.cluster.gates.ending import check_zookeeper_released
from switchover.cluster.picture import Picture, observed_mode
from switchover.cluster.preflight.brokers import find_unwritable
from switchover.cluster.reading import is_claimed, kubernetes_of
from switchover.engine.approvals import PREFLIGHT
from switchover.engine.gate import Gate, Verdict, answered, fail, gravest, of, passed, unknown, wait
from switchover.engine.position import NodeRecord
from switchover.engine.record import RECORD
from switchover.engine.windows import utc
from switchover.kafka.node import NOT_LISTENING
from switchover.metadata.names import cluster_id
from switchover.metadata.parity import MigrationState
from switchover.reasons.cluster import METADATA_LOG_UNKNOWN
from switchover.reasons.walk import AWAITING_APPROVAL, CLUSTER_ID_CHANGED, NOT_OBSERVED, RECORD_CONTRADICTED
from switchover.text.command import kubectl

MIGRATION, POST = MigrationState.MIGRATION, MigrationState.POST_MIGRATION
_ORDER: Mapping[str, int] = {
    mode: place for sort in (modes.BROKERS, (NodeMode.STOPPED, *modes.RUNNING_CONTROLLERS))
    for place, mode in enumerate(sort)}
"""How far a node in this mode has come."""
IN_ONE_COMMAND = 5
"""Nodes that a printed command puts on record: it is not to be cut, and the next one is for the others."""
PUT_BACK = "restore the step that was on record (status.history has the moves)"


def _contradicted(picture: Picture, seen: str, subject: str, observed: object, threshold: str,
                  unblocks: str = PUT_BACK) -> Verdict:
    message = f"the status says {picture.position.step}, but {seen}: something else wrote that status, or it is an older one"
    return fail(RECORD_CONTRADICTED, message, subject=subject, observed=observed, threshold=threshold, unblocks=unblocks)


def find_cluster(picture: Picture) -> Verdict:
    """ZooKeeper and the brokers are those of the cluster on record; who does not answer is for the gates that ask."""
    at, recorded = picture.position, picture.recorded_cluster
    if at.step == PREFLIGHT or not recorded:
        return passed("no cluster is on record yet")
    restore = (f"restore the id {recorded!r} where it was changed; if status.clusterId was changed, restore the one that"
               " brokers and ZooKeeper have")
    try:
        cluster_id(recorded)
    except ValueError as error:
        return fail(CLUSTER_ID_CHANGED, f"status.clusterId: {error}; nothing is moved or written",
                    subject="status.clusterId", observed=repr(recorded), unblocks=restore)
    zookeeper = picture.facts.zookeeper
    answers = {} if picture.step.expected.released or not isinstance(zookeeper, Known) else {
        "ZooKeeper's /cluster/id": zookeeper.value.cluster_id}
    answers |= {f"broker {broker_id}": view.value.cluster_id for broker_id, view in sorted(picture.facts.views.items())
                if isinstance(view, Known) and view.value.cluster_id}
    for who, said in answers.items():
        if said != recorded:
            return fail(CLUSTER_ID_CHANGED, f"{who} says that the cluster is {said[:60]!r}, but Preflight found"
                        f" {recorded!r}: nothing is moved or written", subject=who, observed=repr(said[:60]),
                        threshold=repr(recorded), unblocks=restore)
    return passed("the cluster is the one on record")


def find_unwritten(picture: Picture) -> Verdict:
    """Edits can be written of what the backups have of the brokers; without a backup Preflight checks their settings."""
    if picture.step.expected.released or not isinstance(state := picture.facts.kubernetes, Known):
        return passed("no edits are written")
    backed_up = [name for name in picture.broker_sets if state.value.originals.get(name) is not None]
    found = (each for each in find_unwritable(picture, backed_up) if each.outcome is Outcome.FAIL)
    return gravest(found, "edits can be written of it")


def find_claims(picture: Picture) -> Verdict:
    """The brokers' StatefulSets are this migration's, or nobody's where it may not have claimed them. Nodes are on record
    first."""
    at = picture.position
    if picture.step.expected.released:
        return passed("released")
    if not isinstance(state := picture.facts.kubernetes, Known):
        return passed("not read")                               # nothing is done without it
    for name, workload in state.value.brokers.items():
        if workload is None:
            continue                                            # Preflight and the gates of each step report it
        holder, subject = workload.claimed_by, f"StatefulSet {name}"
        if holder == picture.uid and (at.step == PREFLIGHT or not (at.nodes or picture.step.expected.claimed)):
            return _contradicted(picture, f"{subject} is claimed by this migration", subject, holder, "nobody")
        if at.step != PREFLIGHT and holder not in ("", picture.uid):
            return _contradicted(
                picture, f"{subject} is claimed by the migration with uid {holder}", subject, holder, picture.uid,
                f"let that migration end; if it is gone, see the runbook; {PUT_BACK}")
        if not holder and picture.step.expected.claimed and at.direction is Direction.FORWARD:
            return _contradicted(
                picture, f"{subject} is not claimed by this migration", subject, "nobody", picture.uid,
                f"{PUT_BACK}; if somebody removed its annotation: {_claim_again(picture, name)}")
    return passed("the claims are as the record has them")


def _claim_again(picture: Picture, name: str) -> str:
    return kubectl(picture.namespace, "annotate statefulset {} {}={}", name, names.CLAIM, picture.uid)


def find_originals(picture: Picture) -> Verdict:
    """The backup of a StatefulSet is the one that was written. Going forward it is written again until a pod needs it."""
    if picture.step.expected.released:
        return passed("released")
    if not isinstance(state := picture.facts.kubernetes, Known):
        return passed("not read")                               # nothing is done without it
    for name, brokers in picture.broker_sets.items():
        workload = state.value.brokers.get(name)
        forward = picture.position.direction is Direction.FORWARD
        again = forward and workload is not None and template.is_untouched(workload, brokers) and (
            not picture.position.left(picture.pods_of(name), NodeMode.ZOOKEEPER))
        if picture.keeps(name) is False and not again:
            subject = f"ControllerRevision {picture.original_of(name)}"
            believed = kubectl(picture.namespace, "patch kmig {} --subresource status --type merge --patch {}", picture.name,
                               {"status": {"made": None}})
            return fail(
                RECORD_CONTRADICTED, f"{subject} is not the backup of StatefulSet {name} that this migration wrote:"
                " something else made it, and a rollback would restore it", subject=subject,
                unblocks="restore it from a backup of yours; if you made it, as the runbook of OriginalMissing shows:"
                         f" {believed}")
    return passed("the backups are those that were written")


def find_assigned(picture: Picture) -> Verdict:
    """No node is assigned a mode to which this step, and those before it, bring none."""
    at, expected = picture.position, picture.step.expected
    if not expected.brokers:
        return passed("no node is on record yet")
    if not picture.brokers and expected.claimed:
        return _contradicted(picture, "no broker is on record", "status.nodes", "none", "every broker")
    for name, record in sorted(at.nodes.items()):
        can = expected.controllers if name in picture.controllers else expected.brokers
        if record.assigned not in can:
            return _contradicted(picture, f"has {name} in mode {record.assigned}, which that step gives to none",
                                 name, record.assigned or "none", " or ".join(sorted(can)))
    return passed("every node is assigned a mode of this step")


def find_controller(picture: Picture) -> Verdict:
    """Before there are controllers KRaft has claimed nothing: with such a claim new ones would delete topics. Preflight has
    a check of its own."""
    at = picture.position
    if at.step == PREFLIGHT or at.direction is Direction.BACKWARD or picture.step.expected.log:
        return passed("there may be a claim")
    if not isinstance(zookeeper := picture.facts.zookeeper, Known) or not is_claimed(zookeeper.value):
        return passed("no claim is seen")                       # no controller is made where it is not known
    return _contradicted(picture, "KRaft holds /controller in ZooKeeper", "/controller", zookeeper.value.controller,
                         "a broker's")


def find_unprovided(picture: Picture) -> Verdict:
    """Before they are on record there are no controllers, nor after a rollback has removed them: any that are there are a
    quorum, whose volumes must stay. In Preflight they may be those of an earlier object."""
    at = picture.position
    here, provides = (picture.plan.index(step) or 0 for step in (at.step, Step.PROVISION_CONTROLLERS))
    none_yet = here < provides or (here == provides and not any(name in at.nodes for name in picture.controllers))
    if at.step == PREFLIGHT or not none_yet:
        return passed("there may be controllers")
    if not isinstance(state := picture.facts.kubernetes, Known) or state.value.controllers is None:
        return passed("no controllers are seen")                # nothing is done without it
    subject = f"StatefulSet {state.value.controllers.name}"
    return _contradicted(picture, f"{subject} of the controllers exists", subject, "controllers", "none")


def find_edits(picture: Picture) -> Verdict:
    """No node that has settled has edits of a mode that comes after the one on record: they are written after the record.
    Nor has one of a batch forward, whose edits are those of the mode before it or its own.

    Such edits mean an older record, unless a process in the recorded mode shows that they alone were changed. To obey an
    older one would have a node start in a mode that it has left.
    """
    at = picture.position
    if picture.step.expected.released:
        return passed("no mode of ours comes after")
    if not isinstance(state := picture.facts.kubernetes, Known):
        return passed("not read")                               # nothing is done without it
    moving = at.batch.nodes if at.batch is not None and not at.batch.rescue and at.direction is Direction.FORWARD else ()
    found = {name: mode for name, record in at.nodes.items()
             if (record.settled or name in moving)
             and (mode := _starts_in(picture, state.value, name)) != NodeMode.NONE
             and (_ORDER[mode] - _ORDER.get(record.assigned, 0)) * (1 if at.direction is Direction.FORWARD else -1) > 0
             and not _runs_in(picture, record)}
    if not found:
        return passed("no node's edits are ahead of the record")
    name, mode = min(found.items())
    expected = picture.step.expected
    fits = all(mode in (expected.controllers if each in picture.controllers else expected.brokers)
               for each, mode in found.items())
    return _contradicted(
        picture, f"has {name} in mode {at.nodes[name].assigned}, while its edits are those of {mode}", name, mode,
        at.nodes[name].assigned, _or_put_on_record(picture, "what the nodes have", [
            operation for index, each in enumerate(at.nodes) if each in sorted(found)[:IN_ONE_COMMAND] for operation in (
                {"op": "test", "path": f"/status/nodes/{index}/name", "value": each},
                {"op": "replace", "path": f"/status/nodes/{index}/assigned", "value": str(found[each])})])
        if fits else PUT_BACK)


def _starts_in(picture: Picture, state: KubernetesState, name: str) -> NodeMode:
    """The mode of a node's edits, where its pod starts by them."""
    own = name.rpartition("-")[0]
    if name not in picture.controllers:
        workload = state.brokers.get(own)
        if workload is None or not template.is_ours(workload, picture.broker_sets[own]):
            return NodeMode.NONE
    return edits.mode_of(state.node_files.get(own, {}).get(name, ""))


def _runs_in(picture: Picture, record: NodeRecord) -> bool:
    """By its ApiVersions alone, to which all modes without a quorum are one."""
    answer = picture.facts.answers.get(record.node_id)
    if not isinstance(answer, Known) or answer.value == NOT_LISTENING:
        return False
    mode = observed_mode(answer.value)
    if not record.settled:                                      # its pod may be the one before its batch
        return mode in _ORDER and _ORDER[mode] <= _ORDER.get(record.assigned, 0)
    return mode == record.assigned or (mode == NodeMode.ZOOKEEPER and record.assigned in modes.WITHOUT_QUORUM)


def _or_put_on_record(picture: Picture, what: str, patch: Sequence[Mapping[str, object]]) -> str:
    recorded = kubectl(picture.namespace, "patch kmig {} --subresource=status --type=json --patch {}", picture.name,
                       json.dumps(patch, separators=(",", ":")))
    return f"{PUT_BACK}; if you have no newer status, put on record {what}: {recorded}"


def find_log(picture: Picture) -> Verdict:
    """After Finalize the log must say so; before it, a log that cannot be read is for the gates that read it."""
    at, log = picture.position, picture.facts.log
    if at.direction is Direction.BACKWARD:
        return _find_rollback(picture)
    wanted = picture.step.expected.log
    if not wanted:
        return passed("there need be none yet")
    if not isinstance(log, Known):
        released = picture.step.expected.released
        return (unknown(METADATA_LOG_UNKNOWN, of("metadata log", log.why), subject="metadata log") if released
                else passed("not read"))
    found = log.value.migration_state
    if at.step == picture.plan.point_of_no_return and at.opened is not None:
        wanted = (MIGRATION, POST)
    if found is None or found in wanted:
        return passed("the metadata log says so too")
    return _contradicted(picture, f"the metadata log says {found.name}", at.step, found.name,
                         " or ".join(each.name for each in wanted), _to_finalize(picture) if found is POST else PUT_BACK)


def _to_finalize(picture: Picture) -> str:
    """Where controllers have finalized, an older record that has every broker on KRaft goes on in Finalize. No batch of an
    earlier step goes with it: Finalize would wait for its node."""
    if any(picture.position.nodes[name].assigned != NodeMode.KRAFT for name in picture.brokers):
        return PUT_BACK
    return _or_put_on_record(picture, "that Finalize has begun", [
        {"op": "replace", "path": "/status/progress/step", "value": "Finalize"},
        {"op": "add", "path": "/status/progress/batch", "value": 0},
        {"op": "add", "path": "/status/progress/batchNodes", "value": []},
        {"op": "add", "path": "/status/progress/openTime", "value": utc(picture.now)}])


def _find_rollback(picture: Picture) -> Verdict:
    """Nothing is taken back after Finalize, and no controller stops while a broker runs on KRaft."""
    at, log = picture.position, picture.facts.log
    if at.step == PREFLIGHT:
        return passed("it is rolled back: what happens to the cluster since is not ours")
    if isinstance(log, Known) and log.value.migration_state is POST:
        return _contradicted(picture, "is in a rollback while the metadata log says POST_MIGRATION", at.step, POST.name,
                             "another state")
    if not picture.step.expected.without_kraft:
        return passed("brokers may still run on KRaft")
    registered = log.value.brokers.items() if isinstance(log, Known) else ()
    on_kraft = {node_id for node_id, item in registered if not item.migrating_zk and not item.fenced}
    answered = {node_id: picture.mode(node_id) for node_id in picture.facts.views}
    on_kraft |= {node_id for node_id, mode in answered.items()
                 if isinstance(mode, Known) and mode.value == NodeMode.KRAFT}
    if on_kraft:
        return _contradicted(picture, f"is in a rollback while broker {min(on_kraft)} still runs on KRaft",
                             f"broker {min(on_kraft)}", f"brokers {sorted(on_kraft)}", "none")
    return passed("no broker runs on KRaft")


def find_users_of_zookeeper(picture: Picture) -> Verdict:
    """At the end of the plan ZooKeeper is still unused; one that is gone cannot be asked."""
    if not picture.position.finished or not picture.step.expected.released:
        return passed("the end is not on record")
    found = answered(check_zookeeper_released, picture)
    return passed(found.message) if found.outcome is Outcome.UNKNOWN else found


FINDERS: tuple[Callable[[Picture], Verdict], ...] = (
    find_cluster, find_unwritten, find_log, find_claims, find_controller, find_unprovided, find_originals, find_assigned,
    find_edits, find_users_of_zookeeper)


def check_record_holds(picture: Picture) -> Verdict:
    """The step on record is where the cluster is."""
    found = (find(picture) for find in FINDERS)
    return gravest((each for each in found if each.outcome is not Outcome.PASS), "what is seen says so too")


def check_finalize_begun(picture: Picture) -> Verdict:
    """The first effect of Finalize is seen: a controller's edits without the migration flag, or what follows from it."""
    log, state = picture.facts.log, picture.facts.kubernetes
    if isinstance(log, Known) and log.value.migration_state is POST:
        return passed("the metadata log says POST_MIGRATION")
    seen = [picture.mode(node_id) for node_id in picture.controllers.values()]
    if any(isinstance(mode, Known) and mode.value == NodeMode.KRAFT_CONTROLLER for mode in seen):
        return passed("a controller has finalized")
    files = state.value.node_files.get(picture.spec.controllers.name, {}) if isinstance(state, Known) else {}
    if not files:
        return unknown(NOT_OBSERVED, "the controllers' edits were not read")
    if any(edits.settings_of(files[pod]).get(modes.MIGRATION_FLAG) != "true" for pod in picture.controllers if pod in files):
        return passed("a controller's file is the finalized one")
    return wait(AWAITING_APPROVAL, "every controller's file has the migration flag: Finalize has not begun",
                unblocks="the first controller is restarted without the flag")


def check_hand_over_begun(picture: Picture) -> Verdict:
    """The first effect of HandOver is seen: a restored update strategy, a claim that is removed, or a broker that runs by
    the user's own template."""
    state = kubernetes_of(picture)
    for name, workload in state.brokers.items():
        original = state.originals.get(name)
        if workload is not None and (workload.claimed_by != picture.uid or (
                original is not None and workload.update_strategy == original["updateStrategy"])):
            return passed(f"StatefulSet {name} is handed over")
        if workload is not None and template.is_users_new(workload, picture.broker_sets[name], original) and any(
                pod.revision == workload.update_revision for pod in workload.pods.values()):
            return passed(f"a broker of StatefulSet {name} runs by its new template")
    return wait(AWAITING_APPROVAL, "every StatefulSet is still held and claimed: HandOver has not begun",
                unblocks="the first StatefulSet is handed over")


RECORD_HOLDS: Gate[Picture] = Gate(RECORD, check_record_holds)
