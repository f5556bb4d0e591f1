"""The soak, the finalized log, ZooKeeper without clients, and the user's own template."""

from collections.abc import Mapping
from posixpath import join, relpath
from typing import Any

from switchover.answers.observed import NOT_ASKED, Known
from switchover.api.meta import AcceptedRisk
from switchover.cluster import template
from switchover.cluster.door.brokers import ContainerMissing, container_of
from switchover.cluster.ending import trial_job, zookeeper_users
from switchover.cluster.ending.own_configuration import Broker, Difference, differences, log_dirs
from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.cluster.reading import kubernetes_of, log_of, samples, silence, until, zookeeper_of
from switchover.engine.gate import SEEN_AGAIN, Gate, Verdict, fail, of, passed, seen, several, unknown, wait
from switchover.kubernetes.reports import started_with
from switchover.kubernetes.workloads import JobRun, Workload
from switchover.metadata.parity import MigrationState
from switchover.reasons.walk import (
    BROKER_SILENT,
    CONTROLLER_FLAGGED,
    NOT_BACK_WITHOUT_ZOOKEEPER,
    NOT_FINALIZED,
    NOT_OBSERVED,
    PODS_NEED_ZOOKEEPER,
    RETAINING,
    SOAKING,
    STILL_DUAL_WRITING,
    ZOOKEEPER_IN_USE,
    ZOOKEEPER_RUNS,
    ZOOKEEPER_UNVERIFIED,
)
from switchover.reasons.workloads import CONTAINER_MISSING, OWN_CONFIGURATION_DIFFERS, TRIAL_FAILED, TRIAL_RUNNING
from switchover.text.command import kubectl


def _lasted(picture: Picture) -> float:
    """Seconds since the step was opened."""
    since = picture.position.opened
    return picture.now - since if since is not None else 0.0


def check_soaked(picture: Picture) -> Verdict:
    lasted = _lasted(picture)
    if lasted < picture.spec.soak_seconds:
        return wait(SOAKING, "all brokers run on KRaft, and dual write goes on", observed=f"{lasted:.0f} s",
                    threshold=f"{picture.spec.soak_seconds} s", unblocks="nothing to do: the soak ends by itself")
    return passed("soaked")


def check_finalized(picture: Picture) -> Verdict:
    """POST_MIGRATION is in the log, and no controller is registered with the flag."""
    log = log_of(picture)
    if log.migration_state is not MigrationState.POST_MIGRATION:
        state = log.migration_state.name if log.migration_state is not None else "none"
        return wait(NOT_FINALIZED, "the metadata log does not say POST_MIGRATION", subject="metadata log", observed=state,
                    threshold="POST_MIGRATION", unblocks="wait until a controller without the migration flag leads")
    flagged = sorted(node_id for node_id, ready in log.controllers.items() if ready)
    if flagged:
        return wait(CONTROLLER_FLAGGED, f"controllers {flagged} are registered with the migration flag",
                    subject=f"controller {flagged[0]}",
                    unblocks="wait: they register again within seconds of their restart without the flag")
    return passed("POST_MIGRATION, no controller has the flag")


def check_dual_write_ended(picture: Picture) -> Verdict:
    """`/migration` is not written any more. The node itself stays for ever and is evidence of nothing else."""
    state = zookeeper_of(picture)
    if state.migration is None:
        return passed("there is no /migration")
    age = silence(picture)
    if age <= picture.spec.gates.dual_write_max_age_seconds:
        return wait(STILL_DUAL_WRITING, "/migration was written a moment ago", subject="/migration",
                    observed=f"{age:.1f} s", threshold=f"> {picture.spec.gates.dual_write_max_age_seconds} s",
                    unblocks="nothing to do: the writes end; if they do not, find the controller that still has the flag")
    return passed("/migration is frozen")


def check_retained(picture: Picture) -> Verdict:
    lasted = _lasted(picture)
    if lasted < picture.spec.zookeeper_retention_seconds:
        return wait(RETAINING, "ZooKeeper stays until its retention is over", observed=f"{lasted:.0f} s",
                    threshold=f"{picture.spec.zookeeper_retention_seconds} s", unblocks="nothing to do: it ends by itself")
    return passed("retention is over")


def check_zookeeper_unused(picture: Picture) -> Verdict:
    """No client is connected to any ZooKeeper server, ourselves not counted, and no node's pod asks for one."""
    for server, connections in sorted(picture.facts.zookeeper_connections.items()):
        if not isinstance(connections, Known):
            why = of(f"ZooKeeper server {server}", connections.why)
            return unknown(ZOOKEEPER_UNVERIFIED, why, subject=server,
                           unblocks=_without_srvr(picture) if connections.refused else SEEN_AGAIN)
        if connections.value:
            return wait(ZOOKEEPER_IN_USE, f"{connections.value} clients are connected to ZooKeeper server {server}",
                        subject=server, observed=connections.value, threshold=0,
                        unblocks="stop whatever still uses this ZooKeeper, Kafka's command line tools too. If others use it,"
                                 " and it stays: spec.zookeeper.shared: true")
    if not picture.facts.zookeeper_connections:
        return unknown(ZOOKEEPER_UNVERIFIED, "no ZooKeeper server was asked")
    state = kubernetes_of(picture)
    connect = picture.spec.zookeeper.connect
    controllers = picture.spec.controllers.name
    for name, workload in {**state.brokers, controllers: state.controllers}.items():
        if workload is not None and (asking := ", ".join(zookeeper_users.users(workload.template, connect))):
            way = "apply a template without it, and let the pods restart while ZooKeeper still runs"
            if name == controllers:
                way = ("while ZooKeeper runs, remove it from the template, then delete the pods one by one, the leader last:"
                       f" {kubectl(picture.namespace, 'edit statefulset {}', name)}")
            return wait(PODS_NEED_ZOOKEEPER, f"{asking} of StatefulSet {name} asks for ZooKeeper: without it no pod starts"
                        " again", subject=f"StatefulSet {name}", observed=asking, threshold="none",
                        unblocks=way)
    return passed("no client is connected to ZooKeeper")


def _without_srvr(picture: Picture) -> str:
    """What helps where a server does not say who its clients are: one that is stopped has none."""
    return ("add srvr to its 4lw.commands.whitelist and restart it. If others use this ZooKeeper: spec.zookeeper.shared:"
            f" true. If not, stop it, but leave its volumes: {zookeeper_users.stop(picture)}")


def check_zookeeper_released(picture: Picture) -> Verdict:
    """As above; an ensemble that is shared has other clients, and stays, so that pods may ask for it."""
    if picture.spec.zookeeper.shared:
        return passed("others use this ZooKeeper too")
    return check_zookeeper_unused(picture)


def check_zookeeper_stopped(picture: Picture) -> Verdict:
    """No server accepts a connection: refused, or its name is gone. Silence proves nothing."""
    asked = picture.facts.zookeeper_connections
    up = sorted(server for server, clients in asked.items() if isinstance(clients, Known) and clients.value is not None)
    if up:
        return _not_back(picture) or wait(
            ZOOKEEPER_RUNS, "ZooKeeper seems to be unused: to prove it, a broker and a controller must start while it is"
            " stopped", subject=", ".join(up), observed=f"{len(up)} servers accept connections",
            threshold="none",
            unblocks="if others use it: spec.zookeeper.shared: true. If not, stop it, but leave its volumes; Switchover then"
                     f" restarts both: {zookeeper_users.stop(picture)}")
    for server, clients in sorted(asked.items()):
        seen(clients, ZOOKEEPER_UNVERIFIED, server,
             "make sure that it is stopped: it must refuse connections, or its name must be gone; silence is no proof")
    return passed("no server of ZooKeeper accepts a connection") if asked else unknown(
        ZOOKEEPER_UNVERIFIED, "no ZooKeeper server was asked")


def _not_back(picture: Picture) -> Verdict | None:
    """A broker that is down: while one is, nobody is asked to stop ZooKeeper."""
    for name, node_id in sorted(picture.brokers.items()):
        pod, answers = picture.pod_of(name), isinstance(picture.facts.answers.get(node_id), Known)
        if pod is None or not pod.ready or not answers:
            why = pod.trouble if pod is not None and pod.trouble else f"{name} is not Ready, or does not answer"
            return wait(BROKER_SILENT, why, subject=name, unblocks=until("the broker answers", picture, name))
    return None


def check_back_without_zookeeper(picture: Picture) -> Verdict:
    """The node that was evicted while ZooKeeper is stopped runs again. Where it does not, ZooKeeper is started first."""
    kubernetes_of(picture)
    for name in picture.batch:
        record, pod = picture.position.nodes[name], picture.pod_of(name)
        mode = picture.mode(record.node_id)
        if pod is not None and (pod.uid == record.evicting or (pod.ready and isinstance(mode, Known))):
            continue
        trouble = f": {pod.trouble}" if pod is not None and pod.trouble else ""
        return wait(NOT_BACK_WITHOUT_ZOOKEEPER, f"{name} was restarted while ZooKeeper is stopped, and does not answer yet"
                    f"{trouble}", subject=name, observed=mode.value if isinstance(mode, Known) else "no answer",
                    threshold=record.assigned, unblocks="wait until it answers. If it does not, start ZooKeeper again:"
                    f" {zookeeper_users.start(picture)}")
    return passed("nothing waits for ZooKeeper")


def _patience(picture: Picture) -> float:
    return float(picture.spec.gates.step_patience_seconds)


ASKED = (Need.CLIENTS_OF_ZOOKEEPER, Need.ZOOKEEPER_SETS)
SOAKED: Gate[Picture] = Gate("Soaked", check_soaked)
FINALIZED: Gate[Picture] = Gate("Finalized", check_finalized)
DUAL_WRITE_ENDED: Gate[Picture] = Gate("DualWriteEnded", check_dual_write_ended)
RETAINED: Gate[Picture] = Gate("Retained", check_retained)
ZOOKEEPER_UNUSED: Gate[Picture] = Gate("ZooKeeperUnused", check_zookeeper_released, samples=samples, needs=ASKED)
ZOOKEEPER_STOPPED: Gate[Picture] = Gate("ZooKeeperStopped", check_zookeeper_stopped, samples=samples, needs=ASKED)
BACK_WITHOUT_ZOOKEEPER: Gate[Picture] = Gate(
    "BackWithoutZooKeeper", check_back_without_zookeeper, patience=_patience, needs=(Need.ZOOKEEPER_SETS,))


# --- own template ---------------------------------------------------------------------------------------------------------
# Whether brokers would come back by the user's own template: a Job tries it before any broker has it.

def check_own_template_tried(picture: Picture) -> Verdict:
    """The settings that each new template starts Kafka with were seen, and are those that a broker must run with."""
    state = kubernetes_of(picture)
    if AcceptedRisk.UNTRIED_TEMPLATE in picture.spec.accepted_risks:
        return passed(f"spec.acceptedRisks has {AcceptedRisk.UNTRIED_TEMPLATE}")
    for name, workload in state.brokers.items():
        original = state.originals.get(name)
        if workload is None or not template.is_brought(workload, picture.broker_sets[name], original):
            continue
        if (shut := _shut(picture, workload, original)) is not None:
            return shut
    return passed("what each new template starts Kafka with is what its brokers must run with")


def _shut(picture: Picture, workload: Workload, original: Mapping[str, Any] | None) -> Verdict | None:
    """Why a StatefulSet's new template cannot be rolled to; None where it can."""
    name, brokers = workload.name, picture.broker_sets[workload.name]
    subject = f"StatefulSet {name}"
    try:
        container_of(workload.template, brokers)
    except ContainerMissing as why:
        return fail(CONTAINER_MISSING, f"{subject}: {why}", subject=name, unblocks="correct the template")
    job = seen(picture.facts.trials.get(name, NOT_ASKED), NOT_OBSERVED, subject,
               saying=f"the trial of the new template of {subject} was not seen: ")
    found = started_with(job.message, job.nonce) if job is not None else None
    if job is None or job.given.get(trial_job.TRIES) != trial_job.digest(workload, brokers):
        seen(trial_job.goes_first(picture, name), NOT_OBSERVED, subject,
             saying=f"it is not known with what the new template of {subject} must be compared: ")
        return wait(TRIAL_RUNNING, f"the new template of {subject} is tried in a Job before a broker has it",
                    subject=subject, unblocks="nothing to do: its Job is created")
    now = trial_job.compared_with(job)
    if (found is None or now is None) and (job.ended or job.message):
        detail = job.detail or "its pod ended, and Kafka's start script was not run"
        return fail(TRIAL_FAILED, f"the new template of {subject} did not get as far as starting Kafka: {detail}."
                    " No broker has it", subject=f"Job {job.name}", unblocks=_correct(picture, job))
    if found is None or now is None:
        return wait(TRIAL_RUNNING, f"the new template of {subject} is tried first: {job.detail}",
                    subject=f"Job {job.name}",
                    unblocks=f"nothing to do: it ends by itself; if its pod cannot run, {_accept(picture)}")
    moved = _moved(workload, picture, now, original)
    differing = (*differences(found, now), *moved)
    if not differing:
        return None
    first = differing[0]
    return fail(OWN_CONFIGURATION_DIFFERS, f"with the new template of {subject}, tried as {now.pod},"
                f" {several(differing)}. No broker has it", subject=f"Job {job.name}",
                observed=f"{first.key}: {first.found or 'not set'}", threshold=f"must {first.wanted}",
                unblocks=_correct(picture, job, as_meant=not moved))


def _moved(workload: Workload, picture: Picture, now: Broker, original: Mapping[str, Any] | None) -> list[Difference]:
    """Log directories that would lie in another place than a broker's do now, whatever they are called."""
    brokers = picture.broker_sets[workload.name]
    if original is None:
        return []
    theirs, ours = container_of(workload.template, brokers), container_of(original["template"], brokers)
    return [Difference(f"the place of {each}", _place(theirs, each), f"be {_place(ours, each)}, where the data is")
            for each in log_dirs(now.settings) if _place(theirs, each) != _place(ours, each)]


def _place(container: Mapping[str, Any], path: str) -> str:
    """The volume that a path of a container lies on, and where in it."""
    found = template.mount_below(container, path)
    if found is None:
        return "the container's own file system"
    inner = join(found.get("subPath") or found.get("subPathExpr") or "", relpath(path, found["mountPath"]))
    return f"{inner} on volume {found['name']}"


def _correct(picture: Picture, job: JobRun, *, as_meant: bool = True) -> str:
    """Nobody means brokers to start without their data."""
    return ("correct the values or the manifest and apply it: a changed template is tried again. To try the same one again:"
            f" {kubectl(picture.namespace, 'delete job {}', job.name)}"
            + (f". If it is meant so, {_accept(picture)}" if as_meant else ""))


def _accept(picture: Picture) -> str:
    accepted = {"spec": {"acceptedRisks": [*picture.spec.accepted_risks, AcceptedRisk.UNTRIED_TEMPLATE]}}
    patch = kubectl(picture.namespace, "patch kmig {} --type merge --patch {}", picture.name, accepted)
    return f"accept the risk, then approve HandOver again: {patch}"


OWN_TEMPLATE_TRIED: Gate[Picture] = Gate("OwnTemplateTried", check_own_template_tried, needs=(Need.TRIALS,))
