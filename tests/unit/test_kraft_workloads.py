"""Who changed a template back, or made a restart due, is named with the command against it."""

from collections.abc import Mapping

from switchover.api.kafka_migration import NodeMode
from switchover.cluster.gates import workloads
from switchover.engine.gate import Verdict
from switchover.kubernetes.workloads import Manager
from switchover.metadata.parity import MigrationState
from unit.kraft_gates import at_rest
from unit.kraft_spoilers import hybrid, pod
from unit.pictures import NOW, moment, spoil, spoil_workload, value


def reverted(strategy: bool, marks: Mapping[str, str] | None = None) -> Verdict:
    """Mount (and strategy) put back at NOW by Argo CD's manager; kubectl wrote them once, and we did afterwards."""
    parts = frozenset({"mounts", *(["strategy"] if strategy else [])})
    picture = hybrid(moment("MoveBrokers", (NodeMode.KRAFT, NodeMode.MIGRATION), NodeMode.MIGRATION_CONTROLLER))
    if strategy:
        picture = spoil_workload(picture, update_strategy={"type": "RollingUpdate"})
    picture = spoil_workload(picture, marks=marks or {}, managers=(
        Manager("argocd-controller", "Apply", "", NOW, parts),
        Manager("kubectl-client-side-apply", "Update", "", NOW - 9000, frozenset({"mounts", "strategy"})),
        Manager("switchover", "Update", "", NOW + 1, frozenset({"volumes"})),
        Manager("kube-controller-manager", "Update", "scale", NOW + 2, frozenset({"replicas"})),
    ))
    return workloads.check_template_is_ours(picture)


def test_a_revert_names_who_wrote_what_changed_last():
    found = reverted(strategy=False, marks={"argocd.argoproj.io/tracking-id": "streaming:apps/StatefulSet:kafka/kafka"})
    assert found.message.startswith("argocd-controller (apply) for Argo CD Application streaming changed mounts of")
    assert found.observed == "argocd-controller"
    assert found.unblocks == ("argocd app set streaming --sync-policy none;"
                              " then kubectl --namespace kafka rollout undo statefulset kafka")


def test_a_revert_of_the_strategy_says_that_kubernetes_may_restart_brokers():
    found = reverted(strategy=True)
    assert "Kubernetes may now restart its pods by itself" in found.message
    strategy, template = found.unblocks.split("; then ")[1:]
    assert '"type":"OnDelete"' in strategy
    assert "rollout undo" in template


def test_a_revert_by_nobody_known_is_told_all_the_same():
    found = workloads.check_template_is_ours(
        hybrid(moment("MoveBrokers", (NodeMode.KRAFT, NodeMode.MIGRATION), NodeMode.MIGRATION_CONTROLLER)))
    assert found.message.startswith("somebody changed mounts of StatefulSet kafka back")


def test_who_put_the_image_of_before_the_upgrade_back_is_named() -> None:
    ours = moment("MoveBrokers", (NodeMode.KRAFT, NodeMode.MIGRATION), NodeMode.MIGRATION_CONTROLLER,
                  state=MigrationState.MIGRATION)
    original = dict(value(ours.facts.kubernetes).originals["kafka"] or {})
    upgraded = spoil(ours, "kubernetes", originals={"kafka": original | {
        "brokers": original["brokers"] | {"image": "kafka:3.9", "version": "3.8-IV0"}}})
    helm = Manager("helm", "Update", "", 0.0, frozenset({"image of kafka"}))
    found = workloads.check_template_is_ours(spoil_workload(upgraded, managers=(helm,)))
    assert (found.reason, found.observed) == ("RevertedByGitOps", "helm")
    assert "changed image of StatefulSet kafka back" in found.message
    assert "rollout undo statefulset kafka" in found.unblocks


def outdated(*managers: Manager) -> Verdict:
    """A pod that would restart, under a template that these wrote."""
    picture = spoil_workload(pod("kafka-1", revision="kafka-7c9d")(at_rest()), managers=managers)
    return workloads.check_no_pod_would_restart(picture)


def test_who_made_a_restart_due_is_named_with_the_command_that_gives_the_template_back() -> None:
    found = outdated(
        Manager("reloader", "Update", "", NOW, frozenset({"env of kafka", "annotations", "replicas"})),
        Manager("kubectl-client-side-apply", "Update", "", NOW - 9000, frozenset({"mounts", "command"})),
        Manager("switchover", "Update", "", NOW + 1, frozenset({"volumes", "strategy"})),
        Manager("kube-controller-manager", "Update", "scale", NOW + 2, frozenset({"replicas"})))
    assert found.message == ("kafka-1 does not have the update revision: Kubernetes would restart it; reloader wrote"
                             " annotations, env of kafka of its template last")
    assert found.unblocks.endswith(
        ": kubectl --namespace kafka rollout undo statefulset kafka --to-revision="
        "$(kubectl --namespace kafka get controllerrevision kafka-7c9d --output jsonpath={.revision})")


def test_a_restart_that_nobody_known_made_due_is_told_all_the_same() -> None:
    assert outdated().message == "kafka-1 does not have the update revision: Kubernetes would restart it"
