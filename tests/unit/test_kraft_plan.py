"""The plan of a KafkaMigration: the shape of its table, its orders, sizes and goals."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from switchover.answers.observed import Unknown
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster import goals, modes, nodes, template
from switchover.cluster.door import mount
from switchover.cluster.door.brokers import DATA_FIELD
from switchover.cluster.door.mount import DOOR
from switchover.cluster.gates.workloads import STARTED_BY_ITS_EDITS
from switchover.cluster.picture import Picture, observed_mode
from switchover.cluster.plan import PLAN
from switchover.engine.effects import Apply, DeletePod, Effect, Evict, Provide, WriteNodeFiles
from switchover.engine.position import NodeRecord, Position
from switchover.engine.rollout import BatchSize, Sight
from switchover.groups.plan import plans
from switchover.kubernetes.reports import REACH
from switchover.zookeeper.nodes import ControllerNode
from unit.pictures import (
    ACTIVE,
    BROKERS,
    CONTROLLERS,
    NOW,
    PRE,
    UID,
    Cluster,
    answer,
    moment,
    spec_of,
    spoil,
    spoil_each,
    spoil_pod,
    stateful_set,
    value,
    with_fact,
    workload_of,
)

STEPS = [step.name for step in PLAN.steps]


def test_no_step_has_both_a_remediation_and_batches_that_can_be_void() -> None:
    """Of both, what ends a batch would be the same move on record (engine/status.py)."""
    assert not any(leg.void and leg.rescues for step in PLAN.steps for leg in (step.forward, step.back) if leg is not None)


def test_batches_of_one_step_alone_can_be_void() -> None:
    """It follows from gates that a restart wants before and after: whoever adds one voids batches without saying so."""
    found = {(step.name, gate.name) for plan in (PLAN, *plans()) for step in plan.steps
             for leg in (step.forward, step.back) if leg is not None for gate in leg.void}
    assert found == {("ReleaseZooKeeper", "ZooKeeperStopped")}


# --- the shape of the table ---------------------------------------------------------------------------------------------


def test_names_of_steps_are_unique_and_begin_with_preflight():
    assert len(set(STEPS)) == len(STEPS)
    assert STEPS[0] == "Preflight"


def test_there_is_one_point_of_no_return_and_it_is_held_and_has_no_way_back():
    assert PLAN.point_of_no_return == "Finalize"
    step = next(step for step in PLAN.steps if step.name == "Finalize")
    assert step.hold
    assert step.back is None
    assert step.forward.enter
    assert PLAN.steps.index(step) > 0


def test_nothing_before_preflight_passed_touches_anything():
    preflight = PLAN.steps[0].forward
    assert preflight.goal(moment("Preflight")) == ()
    assert preflight.rollouts == ()


def test_gates_of_one_pass_have_names_of_their_own():
    for step in PLAN.steps:
        for leg in (step.forward, step.back):
            if leg is None:
                continue
            for rollout in leg.rollouts or (None,):
                together = (*leg.watch, *leg.done, *((*rollout.before, *rollout.after) if rollout else ()))
                by_name: dict[str, set[int]] = {}
                for gate in together:
                    by_name.setdefault(gate.name, set()).add(id(gate))
                assert [name for name, gates in by_name.items() if len(gates) > 1] == [], step.name


def test_every_step_ends_with_evidence_or_a_rollout():
    assert [step.name for step in PLAN.steps if not step.forward.done and not step.forward.rollouts] == []


def test_no_broker_is_taken_for_moved_before_its_process_tells_its_edits():
    rollouts = [rollout for step in PLAN.steps for leg in (step.forward, step.back) if leg for rollout in leg.rollouts]
    moving = [rollout for rollout in rollouts if rollout.mode in (*modes.WITHOUT_QUORUM, Mode.MIGRATION, Mode.KRAFT)]
    assert {rollout.mode for rollout in moving} == {*modes.WITHOUT_QUORUM, Mode.MIGRATION, Mode.KRAFT}
    assert [rollout.mode for rollout in moving if STARTED_BY_ITS_EDITS not in rollout.after] == []


# --- modes --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [Mode.ZOOKEEPER, Mode.MIGRATION, Mode.KRAFT, *modes.RUNNING_CONTROLLERS])
def test_a_node_is_known_by_what_it_answers(mode):
    assert observed_mode(answer(mode)) == mode


def test_a_node_that_fits_no_mode_has_none():
    assert observed_mode(replace(answer(Mode.KRAFT), api_keys={18: 3})) == ""


# --- orders -------------------------------------------------------------------------------------------------------------


def left(picture: Picture, mode: str) -> list[str]:
    return value(nodes.brokers_to(mode, picture))


def test_brokers_that_lead_least_go_first():
    picture = moment("EnableMigration", Mode.ZOOKEEPER, Mode.MIGRATION_CONTROLLER, state=PRE)
    assert left(picture, Mode.MIGRATION) == ["kafka-1", "kafka-0", "kafka-2"]


def test_the_zookeeper_controllers_broker_goes_last_however_little_it_leads():
    picture = moment("EnableMigration", Mode.ZOOKEEPER, Mode.MIGRATION_CONTROLLER, state=PRE)
    for broker in BROKERS.values():
        controlling = spoil(picture, "zookeeper", controller=ControllerNode(broker, True, -1))
        assert BROKERS[left(controlling, Mode.MIGRATION)[-1]] == broker


def test_brokers_that_are_assigned_already_are_not_moved_again():
    brokers = (Mode.ZOOKEEPER, Mode.MIGRATION, Mode.ZOOKEEPER)
    picture = moment("EnableMigration", brokers, Mode.MIGRATION_CONTROLLER, state=PRE)
    assert left(picture, Mode.MIGRATION) == ["kafka-0", "kafka-2"]


def test_once_kraft_rules_nobody_is_last_for_being_the_controller():
    picture = moment("MoveBrokers", Mode.MIGRATION, Mode.MIGRATION_CONTROLLER, state=ACTIVE)
    assert left(picture, Mode.KRAFT) == ["kafka-2", "kafka-1", "kafka-0"]


def test_enable_migration_leaves_one_broker_to_copy_metadata():
    picture = moment("EnableMigration", Mode.ZOOKEEPER, Mode.MIGRATION_CONTROLLER, state=PRE)
    assert value(nodes.all_but_the_last_to_migration(picture)) == ["kafka-1", "kafka-0"]
    one = moment("EnableMigration", (Mode.MIGRATION, Mode.MIGRATION, Mode.ZOOKEEPER), Mode.MIGRATION_CONTROLLER, state=PRE)
    assert value(nodes.all_but_the_last_to_migration(one)) == []
    assert value(nodes.the_last_to_migration(one)) == ["kafka-2"]


def test_without_a_zookeeper_controller_there_is_no_order_to_migration():
    picture = spoil(moment("EnableMigration", Mode.ZOOKEEPER, Mode.MIGRATION_CONTROLLER, state=PRE), "zookeeper",
                    controller=None)
    assert isinstance(nodes.brokers_to(Mode.MIGRATION, picture), Unknown)


def test_without_a_witness_there_is_no_order():
    picture = moment("EnableMigration", Mode.ZOOKEEPER, Mode.MIGRATION_CONTROLLER, state=PRE)
    silent = with_fact(picture, "views", dict.fromkeys(BROKERS.values(), Unknown("no answer")))
    assert isinstance(nodes.brokers_to(Mode.MIGRATION, silent), Unknown)
    assert isinstance(nodes.brokers_to(Mode.KRAFT, with_fact(picture, "zookeeper", Unknown("no answer"))), Unknown)


def test_controllers_go_followers_first_and_the_leader_of_this_moment_last():
    picture = moment("Finalize", Mode.KRAFT, Mode.MIGRATION_CONTROLLER, state=ACTIVE)
    assert value(nodes.controllers_to_kraft(picture)) == ["kafka-controller-1", "kafka-controller-2", "kafka-controller-0"]
    moved = spoil(picture, "quorum", leader_id=3001)
    assert value(nodes.controllers_to_kraft(moved))[-1] == "kafka-controller-1"
    assert isinstance(nodes.controllers_to_kraft(with_fact(picture, "quorum", Unknown("no leader"))), Unknown)


# --- sizes --------------------------------------------------------------------------------------------------------------


def sizes(*steps: dict[str, int]) -> tuple[BatchSize, ...]:
    return nodes.sizes(moment("EnableMigration", Mode.ZOOKEEPER, Mode.MIGRATION_CONTROLLER, rollout={"steps": list(steps)}))


def test_batches_are_as_large_as_the_spec_says_and_bake_as_long():
    told = sizes({"pods": 1, "bakeSeconds": 300}, {"pods": 2, "bakeSeconds": 60})
    assert told == (BatchSize(1, 300.0), BatchSize(2, 60.0))


@pytest.mark.parametrize(("percent", "pods"), [(1, 1), (33, 1), (34, 2), (67, 3), (100, 3)])
def test_a_share_is_rounded_up_to_whole_pods(percent, pods):
    assert sizes({"percent": percent, "bakeSeconds": 0})[0].pods == pods


def test_controllers_go_one_by_one_whatever_the_spec_says_of_brokers():
    picture = moment("Finalize", Mode.KRAFT, Mode.MIGRATION_CONTROLLER, rollout={"steps": [{"pods": 3}]})
    assert nodes.one_by_one(picture) == (BatchSize(1, 0.0),)


# --- goals --------------------------------------------------------------------------------------------------------------


def provisioning() -> Picture:
    """ProvisionControllers has begun and nothing is done yet."""
    position = Position(step="ProvisionControllers", opened=NOW, nodes={
        **{name: NodeRecord(node_id, Mode.ZOOKEEPER) for name, node_id in BROKERS.items()},
        **{name: NodeRecord(node_id, Mode.MIGRATION_CONTROLLER) for name, node_id in CONTROLLERS.items()}})
    return Cluster().picture(position)


def kinds(effects: tuple[Effect, ...]) -> list[str]:
    return [kind for effect in effects for kind in (
        [effect.manifest["kind"]] if isinstance(effect, Apply) else
        [each["kind"] for each in effect.manifests] if isinstance(effect, Provide) else [type(effect).__name__])]


def in_turn(step: str, cluster: Cluster, position: Position) -> list[list[str]]:
    """What a goal asks for, pass after pass, until it is true."""
    goal = next(item for item in PLAN.steps if item.name == step).forward.goal
    told = []
    while effects := goal(cluster.picture(position)):
        told.append(kinds(effects))
        for effect in effects:
            cluster.perform(effect)
        assert len(told) < 10, "the goal never becomes true"
    return told


def test_brokers_are_claimed_first_then_files_are_written_then_controllers_are_made():
    cluster = Cluster()
    assert in_turn("ProvisionControllers", cluster, provisioning().position) == [
        ["StatefulSet"], ["ControllerRevision"], ["WriteNodeFiles"], ["Service", "PodDisruptionBudget", "StatefulSet"]]
    assert cluster.claimed_by == UID
    assert {node.mode for node in cluster.controllers.values()} == {Mode.MIGRATION_CONTROLLER}


def test_originals_are_kept_first_then_files_are_written_then_the_template_is_changed():
    cluster = Cluster()
    assert in_turn("EnableMigration", cluster, provisioning().position) == [
        ["ControllerRevision"], ["WriteNodeFiles"], ["Patch"]]
    assert template.is_ours(cluster.workload(), spec_of().brokers[0])
    assert cluster.replaced == [], "the change restarts nothing"


def test_a_goal_without_its_facts_asks_for_nothing():
    blind = with_fact(provisioning(), "kubernetes", Unknown("no answer"))
    assert goals.claim_and_provision(blind) == goals.take_templates_over(blind) == ()
    claimed = Cluster(claimed_by=UID).picture(provisioning().position)
    unsure = with_fact(claimed, "broker_settings", {})
    assert goals.claim_and_provision(unsure) == goals.take_templates_over(unsure) == (), "what the brokers were is not known"


def test_no_controller_is_made_before_all_of_its_edits_are_known():
    cluster = Cluster()
    for _ in range(2):
        for effect in goals.claim_and_provision(cluster.picture(provisioning().position)):
            cluster.perform(effect)
    picture = cluster.picture(provisioning().position)
    assert kinds(goals.claim_and_provision(picture)) == ["WriteNodeFiles"]
    blind = with_fact(picture, "zookeeper", Unknown("no answer"))
    assert goals.controller_files(blind) == (), "the cluster's id is formatted into their logs"
    without_login = spoil(picture, "kubernetes", listener_credentials="Secret keys does not exist")
    assert goals.controller_files(without_login) == ()


def made(picture: Picture) -> tuple[Mapping[str, Any], ...]:
    [effect] = goals.claim_and_provision(picture)
    assert isinstance(effect, Provide)
    return effect.manifests


def test_no_controller_is_made_that_could_not_try_every_broker():
    """It tries those that it is told when its pod starts: of one that restarts just then nobody would ever have known."""
    cluster = Cluster()
    for _ in range(3):
        for effect in goals.claim_and_provision(cluster.picture(provisioning().position)):
            cluster.perform(effect)
    picture = cluster.picture(provisioning().position)
    (*_, stateful_set) = made(picture)
    tries = next(each for each in stateful_set["spec"]["template"]["spec"]["initContainers"]
                 if each["name"] == REACH)
    assert len(tries["command"]) == 4 + len(picture.brokers)
    registered = value(picture.facts.zookeeper).brokers
    others = {broker: listeners for broker, listeners in registered.items() if broker != max(registered)}
    restarting = spoil(picture, "zookeeper", brokers=others)
    assert goals.claim_and_provision(restarting) == ()


def test_a_listeners_name_is_the_same_in_small_letters():
    picture = spoil_each(Cluster().picture(provisioning().position), "broker_settings",
                         lambda settings: {**settings, "inter.broker.listener.name": "internal"})
    assert value(picture.brokers_of("kafka")).listener == "internal"
    assert len(value(picture.listeners_for_controllers())) == len(picture.brokers) == 3


def test_a_template_that_can_no_longer_be_taken_over_is_left_to_the_gates():
    cluster = Cluster()
    in_turn("EnableMigration", cluster, provisioning().position)
    cluster.manifest["spec"]["template"]["spec"]["containers"][0]["volumeMounts"][0]["name"] = "config"
    hybrid = cluster.picture(provisioning().position)
    assert goals.take_templates_over(hybrid) == ()


def test_files_follow_the_record_and_are_written_once():
    cluster = Cluster()
    in_turn("EnableMigration", cluster, provisioning().position)
    assert goals.broker_files(cluster.picture(provisioning().position)) == ()
    moved = provisioning().position.with_batch(["kafka-1"], Mode.MIGRATION, NOW)
    effects = goals.broker_files(cluster.picture(moved))
    assert kinds(effects) == ["WriteNodeFiles"]
    assert isinstance(effects[0], WriteNodeFiles)
    assert effects[0].files.keys() == {mount.SCRIPT_KEY, *BROKERS}
    assert effects[0].files[mount.SCRIPT_KEY] == DOOR
    flagged = [pod for pod in BROKERS if "migration.enable=true" in effects[0].files[pod]]
    assert flagged == ["kafka-1"]


def test_edits_that_cannot_be_told_stay_as_they_were_written():
    """A Secret of the controllers' listener that is gone for a moment: the brokers in mode Migration go on with their
    edits."""
    picture = moment("MoveBrokers", Mode.MIGRATION, Mode.MIGRATION_CONTROLLER, state=ACTIVE)
    (written,) = goals.broker_files(picture)
    assert isinstance(written, WriteNodeFiles)
    blind = spoil(picture, "kubernetes", listener_credentials="Secret keys does not exist",
                  node_files={"kafka": written.files})
    assert goals.broker_files(blind) == ()
    outdated = spoil(blind, "kubernetes", node_files={"kafka": {**written.files, mount.SCRIPT_KEY: "an older one"}})
    assert goals.broker_files(outdated) == (written,), "the script is written anew, the edits as they were"
    assert goals.broker_files(spoil(blind, "kubernetes", node_files={})) == ()


# --- nothing of the user's is lost --------------------------------------------------------------------------------------


def kept(cluster: Cluster) -> Mapping[str, object]:
    assert cluster.original is not None
    return cluster.original


def provisioned() -> Cluster:
    """The original is kept, the controllers run, and no broker's template is changed yet."""
    cluster = Cluster()
    in_turn("ProvisionControllers", cluster, provisioning().position)
    assert kept(cluster)["template"] == cluster.manifest["spec"]["template"]
    return cluster


def upgraded(cluster: Cluster) -> None:
    """The user gives the brokers another image."""
    cluster.manifest["spec"]["template"]["spec"]["containers"][0]["image"] = "registry/kafka:3.9.2"


@pytest.mark.parametrize("step", ["ProvisionControllers", "EnableMigration"])
def test_what_the_user_has_changed_since_is_kept_in_place_of_what_was(step):
    cluster = provisioned()
    upgraded(cluster)
    changed = deepcopy(cluster.manifest["spec"]["template"])
    told = in_turn(step, cluster, provisioning().position)
    assert told[:2] == [["Delete"], ["ControllerRevision"]], "it cannot be written over"
    assert kept(cluster)["template"] == changed, "and the way back gives it back"


def test_another_update_strategy_is_kept_too():
    cluster = provisioned()
    cluster.manifest["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    assert in_turn("EnableMigration", cluster, provisioning().position)[:2] == [["Delete"], ["ControllerRevision"]]
    assert kept(cluster)["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    assert cluster.manifest["spec"]["updateStrategy"] == {"type": "OnDelete"}


@pytest.mark.parametrize("gone", ["nothing", "volumes", "initContainers"])
def test_a_template_with_anything_of_ours_in_it_is_never_kept(gone):
    cluster = provisioned()
    in_turn("EnableMigration", cluster, provisioning().position)
    before = kept(cluster)
    upgraded(cluster)
    cluster.manifest["spec"]["template"]["spec"].pop(gone, None)
    picture = cluster.picture(provisioning().position)
    assert goals.back_up_originals(picture, value(picture.facts.kubernetes)) == ()
    in_turn("EnableMigration", cluster, provisioning().position)
    assert kept(cluster) == before


@pytest.mark.parametrize("brokers", [(Mode.MIGRATION, Mode.ZOOKEEPER), Mode.MIGRATION])
def test_once_a_broker_moved_nothing_else_is_kept(brokers):
    """The whole template of the user's is back: for the gates to tell, and the one that was kept is what goes back."""
    theirs = Cluster()
    upgraded(theirs)
    picture = moment("EnableMigration", brokers, Mode.MIGRATION_CONTROLLER, state=PRE)
    assert goals.take_templates_over(spoil(picture, "kubernetes", brokers={"kafka": theirs.workload()})) == ()


def test_what_raised_brokers_tell_is_not_taken_for_what_they_were():
    """In ProvisionControllers somebody applies a template of their own; that it was 3.5 no broker tells any more."""
    cluster = Cluster(protocol="3.5")
    theirs = deepcopy(cluster.manifest)
    in_turn("RaiseProtocolVersion", cluster, provisioning().position)
    before = kept(cluster)
    for node in cluster.brokers.values():
        node.mode = Mode.ZOOKEEPER_RAISED
    cluster.manifest = theirs
    upgraded(cluster)
    raised = {name: NodeRecord(node_id, Mode.ZOOKEEPER_RAISED) for name, node_id in BROKERS.items()}
    at = provisioning().position
    in_turn("ProvisionControllers", cluster, replace(at, nodes={**at.nodes, **raised}))
    assert kept(cluster) == before


def test_a_template_of_ours_is_not_kept_where_the_original_is_gone():
    cluster = provisioned()
    in_turn("EnableMigration", cluster, provisioning().position)
    cluster.original = None
    assert in_turn("EnableMigration", cluster, provisioning().position) == [], "the gate TemplateIsOurs tells it"


def test_an_original_without_what_the_brokers_were_is_of_an_older_release():
    cluster = provisioned()
    cluster.original = {key: each for key, each in kept(cluster).items() if key != DATA_FIELD}
    found = cluster.picture(provisioning().position).brokers_of("kafka")
    assert isinstance(found, Unknown)
    assert "end the migration with the older release of Switchover that wrote it" in found.why
    assert goals.broker_files(cluster.picture(provisioning().position.with_batch(["kafka-1"], Mode.MIGRATION, NOW))) == ()


def test_what_the_brokers_were_is_read_from_what_was_kept_once_they_are_touched():
    cluster = Cluster(protocol="3.5")
    asked = cluster.picture(provisioning().position).brokers_of("kafka")
    in_turn("EnableMigration", cluster, provisioning().position)
    cluster.protocol = "3.9"                                      # what a raised broker tells
    assert value(cluster.picture(provisioning().position).brokers_of("kafka")) == value(asked)
    assert value(asked).raised


def test_a_pod_is_evicted_when_it_is_ready_and_deleted_when_it_is_not():
    ready, ill = (Sight("u", is_ready, False, NOW, Mode.ZOOKEEPER) for is_ready in (True, False))
    assert nodes.replace_pod(provisioning(), "kafka-0", ready) == Evict("kafka-0", "u")
    assert nodes.replace_pod(provisioning(), "kafka-0", ill) == DeletePod("kafka-0", "u")


def test_a_node_is_seen_as_its_pod_and_its_own_answer():
    picture = moment("EnableMigration", (Mode.MIGRATION, Mode.ZOOKEEPER), Mode.MIGRATION_CONTROLLER, state=PRE)
    seen = value(nodes.sight(picture, "kafka-0"))
    assert (seen.uid, seen.ready, seen.mode) == ("kafka-0/1", True, Mode.MIGRATION)
    silent = with_fact(picture, "answers", {0: Unknown("no answer")})
    assert value(nodes.sight(silent, "kafka-0")).mode == ""
    assert value(nodes.sight(spoil_pod(picture, "kafka-0", ready=False), "kafka-0")).ready is False
    gone = spoil(picture, "kubernetes", brokers={"kafka": replace(workload_of(picture), pods={})})
    assert value(nodes.sight(gone, "kafka-0")).uid == ""
    assert value(nodes.sight(picture, "kafka-controller-1")).mode == Mode.MIGRATION_CONTROLLER
    assert isinstance(nodes.sight(with_fact(picture, "kubernetes", Unknown("no answer")), "kafka-0"), Unknown)


def test_of_a_broker_in_another_mode_it_is_told_that_its_edits_did_not_reach_it():
    picture = moment("EnableMigration", (Mode.MIGRATION, Mode.ZOOKEEPER), Mode.MIGRATION_CONTROLLER, ("kafka-0",), PRE)
    wrong = spoil_each(picture, "answers", lambda _: answer(Mode.ZOOKEEPER), 0)
    trouble = value(nodes.sight(wrong, "kafka-0")).trouble
    assert "was not started by /opt/kafka/bin/kafka-server-start.sh of container kafka" in trouble
    marked = spoil_each(wrong, "markers", lambda _: "switchover.B.0a1b2c3d", 0)
    silent = with_fact(wrong, "markers", {0: Unknown("no answer")})
    mute = with_fact(picture, "answers", {0: Unknown("no answer")})
    for told in (picture, marked, silent, mute, with_fact(wrong, "markers", {})):
        assert value(nodes.sight(told, "kafka-0")).trouble == ""
    crashing = spoil_pod(wrong, "kafka-0", trouble="container kafka: CrashLoopBackOff")
    assert value(nodes.sight(crashing, "kafka-0")).trouble == "container kafka: CrashLoopBackOff"


def test_a_broker_on_its_way_back_to_mode_zookeeper_misses_no_edits():
    picture = moment("EnableMigration", (Mode.ZOOKEEPER, Mode.MIGRATION), Mode.MIGRATION_CONTROLLER, ("kafka-0",), PRE)
    assert value(nodes.sight(spoil_each(picture, "answers", lambda _: answer(Mode.MIGRATION), 0), "kafka-0")).trouble == ""


def test_the_strategies_come_back_and_the_claims_go_last():
    cluster = Cluster(claimed_by=UID)
    in_turn("EnableMigration", cluster, provisioning().position)
    taken_over = deepcopy(cluster.manifest["spec"]["template"])
    assert in_turn("HandOver", cluster, provisioning().position) == [], "Kubernetes would restart every pod"
    for node in cluster.brokers.values():
        node.revision = cluster.workload().update_revision
    assert in_turn("HandOver", cluster, provisioning().position) == [["Patch"], ["Patch"]]
    assert cluster.manifest["spec"]["updateStrategy"]["type"] == "RollingUpdate"
    assert cluster.manifest["spec"]["template"] == taken_over
    assert cluster.claimed_by == ""


@pytest.mark.parametrize("annotations", [{}, {"checksum/configuration": "of KRaft settings"}])
def test_under_a_template_that_is_not_ours_no_strategy_comes_back(annotations):
    """It was applied a moment ago: the update revision that was read is of the one before, which every pod has."""
    cluster = Cluster(claimed_by=UID)
    in_turn("EnableMigration", cluster, provisioning().position)
    for node in cluster.brokers.values():
        node.revision = cluster.workload().update_revision
    seen = cluster.workload()
    theirs = stateful_set()["spec"]["template"]
    theirs["metadata"]["annotations"] = annotations
    picture = cluster.picture(provisioning().position)
    stale = spoil(picture, "kubernetes", brokers={"kafka": replace(seen, template=theirs)})
    assert goals.hand_over(stale) == ()
    assert goals.hold_outdated(stale) == ()
    rolling = spoil(picture, "kubernetes", brokers={"kafka": replace(
        seen, template=theirs, update_strategy={"type": "RollingUpdate"})})
    assert len(goals.hold_outdated(rolling)) == 1


def test_what_is_given_back_already_and_claimed_by_another_is_left_alone():
    cluster = Cluster(claimed_by="another")
    in_turn("EnableMigration", cluster, provisioning().position)
    cluster.manifest["spec"]["updateStrategy"] = dict(cluster.original["updateStrategy"])
    assert in_turn("HandOver", cluster, provisioning().position) == []
