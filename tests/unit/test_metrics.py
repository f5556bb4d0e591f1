"""What a scrape says of migrations: by uid alone, with no word of a tenant, and nothing of what could not be observed."""

import re
from collections.abc import Iterable
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from made_reasons import wait
from switchover.answers.observed import Known, Unknown
from switchover.api.kafka_migration import KafkaMigrationStatus
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster import figures as kraft
from switchover.cluster import modes
from switchover.cluster.facts import Facts
from switchover.cluster.figures import METADATA_TYPE, figures
from switchover.cluster.kind import kafka_migrations
from switchover.cluster.picture import Picture
from switchover.cluster.plan import PLAN
from switchover.cluster.status import next_status
from switchover.engine import figures as common
from switchover.engine.figures import Figure, waits_of
from switchover.engine.gate import Judgement, Streak, passed
from switchover.engine.plan import decide
from switchover.engine.policy import Policy
from switchover.engine.position import Batch, NodeRecord, Position
from switchover.engine.status import Spent
from switchover.groups.kind import consumer_group_migrations
from switchover.metadata.cluster import Difference
from switchover.metadata.parity import Parity
from switchover.process.metrics import INFO, METRICS, Metrics
from switchover.reasons import runbook_of
from unit.pictures import ACTIVE, NOW, OFFSET, POST, PRE, UID, migration, moment, spec_of, spoil, with_fact
from unit.small_plan import BACKWARD, intent
from unit.statuses import all_objects
from unit.test_kraft_status import PICTURES, folded, taken_back

KINDS = {"KafkaMigration": kafka_migrations(Policy(), ""), "ConsumerGroupMigration": consumer_group_migrations(Policy())}


def told(picture: Picture) -> KafkaMigrationStatus:
    return next_status(migration(), picture, decide(PLAN, picture, intent(), {}, NOW), Spent(), None, {})


def values(picture: Picture) -> dict[tuple[str, ...], float]:
    """Every figure but the zeros of those with one value for each word."""
    found = figures(picture.spec, told(picture), picture)
    return {(item.metric.removeprefix("switchover_"), *item.labels): item.value for item in found if item.value is not False}


def moving() -> Picture:
    return moment("MoveBrokers", (Mode.KRAFT, Mode.MIGRATION), Mode.MIGRATION_CONTROLLER, ("kafka-0",), ACTIVE)


def scraped(registry: CollectorRegistry) -> str:
    return generate_latest(registry).decode()


# --- the figures ----------------------------------------------------------------------------------------------------------


def test_the_kips_metrics_in_the_middle_of_the_move():
    picture = spoil(moving(), "quorum", high_watermark=OFFSET + 5)
    found = values(picture)
    assert found["migration_state", "MigrationActive"] == 1
    assert found["zk_migration_state",] == 1
    assert found["dual_write_lag_records",] == 4
    assert found["dual_write_age_seconds",] == 0
    assert found["parity_differences",] == 0
    assert {key[1:] for key in found if key[0] == "broker_metadata_type"} == {
        ("kafka-0", "KRaft"), ("kafka-1", "Dual"), ("kafka-2", "Dual")}
    assert found["node_assigned_mode", "kafka-controller-0", "controller", "MigrationController"] == 1
    assert found["node_observed_mode", "kafka-0", "broker", "KRaft"] == 1
    assert found["step", "MoveBrokers", "Forward"] == 1
    assert found["attempt",] == 1
    assert found["phase", "Running"] == 1


def test_every_metric_is_told_at_some_moment_and_each_has_its_labels():
    statuses = [(picture, told(picture)) for picture in (moving(), moment("Preflight"))]
    statuses += [(moving(), folded(PICTURES[name]())) for name in ("MoveBrokers without dual write", "Finalize held")]
    statuses.append((moving(), folded(taken_back("GroupLag"), direction=BACKWARD)))
    found = [item for picture, status in statuses for item in figures(picture.spec, status, picture)]
    assert {item.metric for item in found} == {**kraft.METRICS, **common.METRICS}.keys() - {"switchover_gate_wait_seconds"}
    for item in found:
        assert len(item.labels) == len(METRICS[item.metric].labels), item


def test_differences_are_counted_and_never_named():
    planted = Difference("topic", "orders", "3 partitions", "nothing")
    found = values(with_fact(moving(), "parity", Known(Parity((planted,), 0, proven=False), NOW)))
    assert found["parity_differences",] == 1
    assert not any("orders" in key for key in found)


def test_what_cannot_be_seen_is_absent_and_what_is_on_record_is_not():
    blind = values(replace(moving(), facts=Facts()))
    assert not {key[0] for key in blind} & {
        "zk_migration_state", "parity_differences", "dual_write_lag_records", "dual_write_age_seconds", "node_observed_mode",
        "broker_metadata_type"}
    assert blind["node_assigned_mode", "kafka-0", "broker", Mode.KRAFT] == 1


@pytest.mark.parametrize("picture", [
    moment("ProvisionControllers", Mode.ZOOKEEPER, Mode.MIGRATION_CONTROLLER, (), PRE),
    moment("ReleaseZooKeeper", Mode.KRAFT, Mode.KRAFT_CONTROLLER, (), POST),
    with_fact(moving(), "zookeeper", Unknown("no answer"))], ids=["before the copy", "after the end", "ZooKeeper unseen"])
def test_a_lag_is_told_only_while_there_is_dual_write(picture):
    assert not {key[0] for key in values(picture)} & {"dual_write_lag_records", "dual_write_age_seconds"}


def test_an_empty_log_is_told_as_kafka_tells_it():
    assert values(spoil(moving(), "log", migration_state=None))["zk_migration_state",] == -1


# --- what calls for a person ----------------------------------------------------------------------------------------------


def calling(found: Iterable[Figure]) -> dict[str, tuple[str, ...]]:
    """The figures that are there only while somebody is called for, with their labels."""
    named = {item.metric.removeprefix("switchover_"): item.labels for item in found}
    return {name: named[name] for name in (
        "stalled", "stalled_since_timestamp_seconds", "automatic_rollback", "awaiting_approval") if name in named}


def test_whoever_must_act_is_told_by_the_conditions_whatever_the_phase():
    phases = set()
    for each in all_objects():
        kind = KINDS[each["kind"]]
        status, own = each["status"], kind.read(each)
        true = {item["type"]: item for item in status.get("conditions", ()) if item["status"] == "True"}
        failure = (status.get("rollback") or {}).get("failure")
        found = calling(kind.figures(own, None))
        assert found == {
            **({"stalled": (true["Stalled"]["reason"], runbook_of(true["Stalled"]["reason"])),
                "stalled_since_timestamp_seconds": ()} if "Stalled" in true else {}),
            **({"automatic_rollback": (failure, runbook_of(failure))} if failure else {}),
            **({"awaiting_approval": (status["progress"]["step"],)} if "AwaitingApproval" in true else {})}
        assert found == calling(common.without_decision(status, kind.steps)), "also where no pass comes to a decision"
        phases |= {status["phase"]} if found else set()
    assert phases == {"Stalled", "RollingBack", "RolledBack", "AwaitingApproval", "Succeeded", "Paused"}


def test_the_series_of_an_earlier_reason_vanishes_and_no_word_of_a_status_becomes_a_label():
    registry = CollectorRegistry()
    metrics = Metrics(registry, lambda: 0.0).migrations("KafkaMigration", "shop")
    stalled = folded(PICTURES["MoveBrokers without dual write"]())
    condition, *others = (each for each in stalled.conditions if each.type == "Stalled")
    for reason, told_as in (("MigrationNodeGone", "MigrationNodeGone"), ("OutOfSync", "OutOfSync"), ('evil"} x', "Unknown")):
        changed = stalled.evolve(conditions=(condition.evolve(reason=reason), *others),
                                 rollback=stalled.rollback.evolve(failure=reason))
        metrics.update("kafka", UID, figures(spec_of(), changed, None), {})
        for name in ("stalled", "automatic_rollback"):
            assert re.findall(rf'switchover_{name}{{.*reason="([^"]*)"', scraped(registry)) == [told_as]
    metrics.update("kafka", UID, figures(spec_of(), folded(moving()), None), {})
    assert "switchover_stalled{" not in scraped(registry)


@pytest.mark.parametrize(("status", "step"), [
    ({}, "Preflight"), ({"progress": 5, "rollback": [], "conditions": "x"}, "Preflight"),
    ({"conditions": [7, {"type": "Stalled"}, {}], "progress": {"step": 7}}, "Preflight"),
    ({"progress": {"step": 'evil"}', "direction": "Sideways"}, "rollback": {"failure": 7}}, "Unknown")], ids=str)
def test_a_status_of_any_shape_is_told(status, step):
    found = {(item.metric, *item.labels): item.value for item in common.without_decision(status, PLAN.names)}
    assert found["switchover_phase", "Stalled"] == 1
    assert found["switchover_step", step, "Forward"] == 1
    assert calling(common.without_decision(status, PLAN.names)) == {}


# --- restarts -------------------------------------------------------------------------------------------------------------


def test_a_pod_put_on_record_is_counted_once_however_often_it_is_evicted():
    picture = moving()
    name, record = "kafka-0", picture.position.nodes["kafka-0"]
    chosen = replace(picture, position=picture.position.with_node(name, replace(record, evicting="", evictions=0)))

    def folded(before: KafkaMigrationStatus, old: Position, new: Position) -> KafkaMigrationStatus:
        own = migration().model_copy(update={"status": before})
        decision = replace(decide(PLAN, chosen, intent(), {}, NOW), position=new)
        return next_status(own, chosen.at(old), decision, Spent(), None, {})

    at = chosen.position
    recorded = at.with_node(name, replace(record, evicting="uid-1", evictions=1))
    first = folded(KafkaMigrationStatus(), at, recorded)
    assert (first.broker_restarts, first.controller_restarts) == (1, 0)
    assert folded(first, recorded, recorded).broker_restarts == 1                       # evicted again and again
    assert folded(first, recorded, at).broker_restarts == 1                             # assigned anew
    second = folded(first, recorded, at.with_node(name, replace(record, evicting="uid-2", evictions=2)))
    assert second.broker_restarts == 2
    controller = at.with_node("kafka-controller-1", NodeRecord(3001, Mode.KRAFT_CONTROLLER, "uid-3", 1))
    assert folded(second, at, controller).controller_restarts == 1


# --- the scrape -----------------------------------------------------------------------------------------------------------


def test_no_word_of_a_tenant_is_ever_a_label():
    canary = 'canary"} evil{x="\n'
    picture = moving()
    nodes = {**picture.position.nodes}
    picture = replace(
        picture, name=canary,
        spec=spec_of(gates={"groups": [{"name": canary}]}, backups={"skipReason": canary},
                     approvals=[{"name": "Finalize", "planHash": "0123456789abcdef", "approver": canary}]),
        position=replace(picture.position, nodes=nodes, batch=Batch(1, ("kafka-0",), NOW)))
    decision = decide(PLAN, picture, intent(), {}, NOW)
    assert canary in "".join(item.verdict.message + item.verdict.subject for item in decision.judged.values())
    own = migration().model_copy(update={"spec": picture.spec})
    status = next_status(own, picture, decision, Spent(), None, {}).model_copy(
        update={"progress": told(picture).progress.model_copy(update={"step": canary})})
    registry = CollectorRegistry()
    Metrics(registry, lambda: 0.0).migrations("KafkaMigration", "shop").update(
        canary, UID, figures(picture.spec, status, picture), waits_of(decision.judged.values(), 1.0))
    text = scraped(registry)
    (named,) = [line for line in text.splitlines() if "canary" in line]
    assert named.startswith(f'{INFO}{{kind="KafkaMigration",migration="{UID}",name="canary\\"}} evil')
    assert f'switchover_step{{direction="Forward",migration="{UID}",step="Unknown"}} 1.0' in text


def judged(gate: str, opened: bool) -> Judgement:
    verdict = passed() if opened else wait("Reason", "words")
    return Judgement(gate, verdict, Streak(verdict.outcome, NOW, 0), opened, False)


def test_waiting_adds_up_by_gate_and_vanishes_with_its_migration():
    registry = CollectorRegistry()
    migrations = Metrics(registry, lambda: 0.0).migrations("KafkaMigration", "shop")
    waits = waits_of([judged("AllInSync", False), judged("QuorumUp", True), judged("Replace/kafka-1", False),
                      judged("Replace/kafka-2", False)], 2.5)
    migrations.update("one", "uid-1", (), waits)
    migrations.update("one", "uid-1", (), waits)
    migrations.update("two", "uid-2", (), waits)

    def waited(gate: str, uid: str) -> float | None:
        return registry.get_sample_value("switchover_gate_wait_seconds_total", {"migration": uid, "gate": gate})

    assert (waited("AllInSync", "uid-1"), waited("AllInSync", "uid-2")) == (5.0, 2.5)
    assert waited("Replace", "uid-1") == 5.0
    assert waited("QuorumUp", "uid-1") is None
    migrations.gone("one")
    assert "uid-1" not in scraped(registry)
    assert waited("AllInSync", "uid-2") == 2.5
    migrations.update("two", "uid-3", (), waits)                    # another object of the same name
    assert waited("AllInSync", "uid-3") == 2.5
    assert "uid-2" not in scraped(registry)


def test_each_migration_has_one_metric_that_says_its_name_and_namespace_to_join_on():
    registry = CollectorRegistry()
    metrics = Metrics(registry, lambda: 0.0)
    clusters, members = metrics.migrations("KafkaMigration", "shop"), metrics.migrations("ConsumerGroupMigration", "shop")
    clusters.update("kafka", "uid-1", (), {})
    members.update("kafka", "uid-2", (), {})
    metrics.migrations("KafkaMigration", "bank").update("kafka", "uid-3", (), {})

    def info(kind: str, uid: str, namespace: str = "shop") -> float | None:
        return registry.get_sample_value(
            "switchover_migration_info", {"migration": uid, "namespace": namespace, "kind": kind, "name": "kafka"})

    assert (info("KafkaMigration", "uid-1"), info("ConsumerGroupMigration", "uid-2")) == (1, 1)
    assert (info("KafkaMigration", "uid-3", "bank"), info("KafkaMigration", "uid-1", "bank")) == (1, None)
    clusters.gone("kafka")
    assert (info("KafkaMigration", "uid-1"), info("ConsumerGroupMigration", "uid-2")) == (None, 1)
    assert info("KafkaMigration", "uid-3", "bank") == 1, "another one of that name, elsewhere"


def test_what_is_counted_is_counted_from_zero() -> None:
    """For Prometheus, a counter that begins with one has not increased: the first defect would alert nobody."""
    registry = CollectorRegistry()
    metrics = Metrics(registry, lambda: 0.0)

    def counted(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"switchover_{name}_total", labels)

    kinds = ("fenced", "unreachable", "refused", "work", "defect", "watch")
    assert {counted("pass_failures", kind=kind) for kind in kinds} == {0}
    assert (counted("notifications", outcome="sent"), counted("notifications", outcome="failed")) == (0, 0)
    metrics.notified(True)
    metrics.notified(False)
    metrics.notified(False)
    assert (counted("notifications", outcome="sent"), counted("notifications", outcome="failed")) == (1, 2)


def test_what_waits_and_how_old_the_watches_are_is_asked_at_each_scrape() -> None:
    registry = CollectorRegistry()
    metrics, seen = Metrics(registry, lambda: 0.0), [3, 2, 40.0]
    metrics.watch_turns(lambda: seen[0], lambda: seen[1])
    metrics.watch_age(lambda: seen[2])
    for seen[0], seen[2] in ((3, 40.0), (0, 1.5)):
        told = [registry.get_sample_value(f"switchover_{name}")
                for name in ("passes_waiting", "passes_running", "watch_age_seconds")]
        assert told == seen


def test_a_broker_has_a_metadata_type_in_every_mode() -> None:
    assert METADATA_TYPE.keys() == set(modes.BROKERS)
