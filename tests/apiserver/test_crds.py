"""The CRDs in a real API server: accepted, defaulting, and refusing in words."""

import json
import re
import shlex
from copy import deepcopy
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from apiserver.examples import REFUSED, Refused, Resource, documented, documented_of, names
from switchover.api.conditions import ConditionType, set_condition
from switchover.api.consumer_group_migration import ConsumerGroupMigrationSpec, ConsumerGroupMigrationStatus
from switchover.api.kafka_migration import KafkaMigration, KafkaMigrationSpec, KafkaMigrationStatus
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.plan_preview import LINES_SHOWN, PlanPreview
from switchover.api.status import (
    UNSEEN,
    AcceptedApproval,
    Answer,
    Evidence,
    Finding,
    GateStreak,
    Measurements,
    MoveKind,
    Progress,
    Series,
    StepRecord,
    Transition,
    WaitingFor,
)
from switchover.cli.explain import section
from switchover.cluster.plan import PLAN as CLUSTER
from switchover.groups.plan import plan_of
from switchover.reasons.cluster import QUOTA_STOPS_DUAL_WRITE

GROUP, VERSION = "switchover.dev", "v1alpha1"
PLURALS = {"KafkaMigration": "kafkamigrations", "ConsumerGroupMigration": "consumergroupmigrations"}
PLAN_HASH = "7f3a5c21"
NOW = "2026-11-21T20:02:03Z"


class Resources:
    """The resources of one namespace."""

    def __init__(self, api_client: client.ApiClient, namespace: str) -> None:
        self._api = client.CustomObjectsApi(api_client)
        self._namespace = namespace

    def create(self, resource: Resource) -> Resource:
        return self._api.create_namespaced_custom_object(
            GROUP, VERSION, self._namespace, PLURALS[resource["kind"]], resource, field_validation="Strict"
        )

    def get(self, resource: Resource) -> Resource:
        return self._api.get_namespaced_custom_object(GROUP, VERSION, self._namespace, *self._address(resource))

    def replace(self, resource: Resource) -> Resource:
        return self._api.replace_namespaced_custom_object(
            GROUP, VERSION, self._namespace, *self._address(resource), resource
        )

    def write_status(self, resource: Resource, status: dict[str, Any]) -> Resource:
        """With the resourceVersion that was read, as the operator writes it."""
        return self._api.replace_namespaced_custom_object_status(
            GROUP, VERSION, self._namespace, *self._address(resource), {**resource, "status": status}
        )

    @staticmethod
    def _address(resource: Resource) -> tuple[str, str]:
        return PLURALS[resource["kind"]], resource["metadata"]["name"]


@pytest.fixture
def resources(crds: list[Resource], api_client: client.ApiClient, namespace: str) -> Resources:
    return Resources(api_client, namespace)


@pytest.fixture(scope="module")
def refusing(crds: list[Resource], api_client: client.ApiClient) -> Resources:
    """For what is refused: a namespace of its own for each would cost most of the time."""
    client.CoreV1Api(api_client).create_namespace({"metadata": {"name": "test-refused"}})
    return Resources(api_client, "test-refused")


def refusal(error: ApiException) -> str:
    assert error.status == 422, error.body
    return json.loads(error.body)["message"]


def test_the_crds_are_established_and_structural(crds):
    for crd in crds:
        conditions = {condition["type"]: condition for condition in crd["status"]["conditions"]}
        assert conditions["Established"]["status"] == "True"
        assert conditions["NamesAccepted"]["status"] == "True"
        assert "NonStructuralSchema" not in conditions
    assert sorted(crd["spec"]["names"]["shortNames"][0] for crd in crds) == ["cgmig", "kmig"]


@pytest.mark.parametrize("resource", documented(), ids=lambda resource: resource["metadata"]["name"])
def test_documented_resources_are_accepted_with_no_field_unknown(resources, resource):
    resource["metadata"]["name"] += "-documented"
    created = resources.create(resource)
    assert created["status"] == UNSEEN


@pytest.mark.parametrize("refused", REFUSED, ids=names)
def test_wrong_values_are_refused_in_words(refusing, refused: Refused):
    with pytest.raises(ApiException) as error:
        refusing.create(refused.resource())
    assert refused.server in refusal(error.value)


def test_names_that_would_not_fit_in_a_label_are_refused(resources):
    resource = documented_of("KafkaMigration")[0]
    resource["metadata"]["name"] = "k" * 64
    with pytest.raises(ApiException) as error:
        resources.create(resource)
    assert "metadata.name: Too long: may not be more than 63" in refusal(error.value)


def test_unknown_fields_are_refused_by_a_strict_client_and_dropped_otherwise(crds, kubectl, namespace, resources):
    resource = documented_of("KafkaMigration")[0]
    resource["spec"]["soakSecond"] = 5
    with pytest.raises(ApiException) as error:
        resources.create(resource)
    assert (
        error.value.status,
        json.loads(error.value.body)["message"].endswith('unknown field "spec.soakSecond"'),
    ) == (
        400,
        True,
    )
    kubectl("-n", namespace, "create", "--validate=false", "-f", "-", stdin=json.dumps(resource))
    assert "soakSecond" not in resources.get(resource)["spec"]


def test_the_server_applies_the_same_defaults_as_the_models(resources):
    least = documented_of("KafkaMigration")[0]
    created = resources.create(least)
    assert created["spec"]["gates"]["copyTimeoutSeconds"] == 30
    assert created["spec"]["controllers"]["replicas"] == 3
    assert created["spec"]["rollout"]["steps"][0] == {"pods": 1, "bakeSeconds": 300}
    assert KafkaMigration.model_validate(created).spec == KafkaMigration.model_validate(least).spec


def edited(resource: Resource, path: str, value: object) -> Resource:
    """The resource with one part of its spec changed; "-" adds to a list."""
    changed = deepcopy(resource)
    *parents, last = path.split(".")
    target = changed["spec"]
    for parent in parents:
        target = target[int(parent)] if isinstance(target, list) else target[parent]
    target[last] = value
    return changed


ALWAYS = {
    "desiredState": "Paused", "holds": ["Soak", "Finalize"], "acceptedRisks": ["PasswordsInClear"],
    "approvals": [{"name": "Soak", "planHash": PLAN_HASH, "approver": "bob"}], "backups": {"skipReason": "a test"},
    "windows": [], "gates.stableSamples": 5, "rollout.steps": [{"pods": 2}], "readinessPolicy": "OnAcceptance",
    "onFailure": "RollBack", "rehearsal.enabled": False, "soakSeconds": 61, "zookeeperRetentionSeconds": 61,
    "zookeeper.shared": True}
OF_CONTROLLERS = {"controllers.replicas": 5, "controllers.template.image": "registry.example/kafka:3.9.1"}
OF_ALL = {
    "zookeeper.connect": "elsewhere:2181", "kafka.bootstrapServers": "elsewhere:9092", "brokers.0.container": "other",
    "brokers.0.start": {"script": "/kafka/start.sh"}, "upgrade": {"image": "kafka:3.9.1"}}
BROKER, CONTROLLER = ({"name": name, "nodeId": 0, "assigned": mode} for name, mode in (
    ("kafka-0", Mode.ZOOKEEPER), ("kafka-controller-0", Mode.MIGRATION_CONTROLLER)))


@pytest.mark.parametrize(("step", "opened", "nodes", "locked"), [
    ("Rehearse", True, (), {}), ("UpgradeBrokers", False, (), {}), ("UpgradeBrokers", True, (BROKER,), OF_ALL),
    ("ProvisionControllers", False, (BROKER,), OF_ALL),
    ("ProvisionControllers", True, (BROKER, CONTROLLER), OF_ALL | OF_CONTROLLERS),
    ("Rehearse", True, (BROKER, CONTROLLER), OF_ALL | OF_CONTROLLERS),      # turned forward again, in the same attempt
    ("MoveBrokers", True, (), OF_ALL | OF_CONTROLLERS), ("", False, (), OF_ALL | OF_CONTROLLERS)])
def test_what_nothing_was_made_of_may_change_although_a_plan_is_on_record(resources, step, opened, nodes, locked):
    resource = resources.create(documented_of("KafkaMigration")[1])
    progress = {"step": step, "openTime": NOW if opened else None}
    recorded = resources.write_status(resource, KafkaMigrationStatus(
        plan_hash=PLAN_HASH, progress=progress, nodes=nodes).manifest())
    for path, value in locked.items():
        with pytest.raises(ApiException) as error:
            resources.replace(edited(recorded, path, value))
        message, name = refusal(error.value), recorded["metadata"]["name"]
        begun = "ProvisionControllers" if path in OF_CONTROLLERS else "UpgradeBrokers"
        assert f"spec.{path.split('.')[0]}: Invalid value" in message
        assert (f"must stay as it was: {begun} has begun with it; to change it: switchover rollback kmig/{name}; change it"
                f" once that is RolledBack; then switchover retry kmig/{name}") in message
    for path, value in (ALWAYS | OF_ALL | OF_CONTROLLERS).items():
        if path not in locked:
            recorded = resources.replace(edited(recorded, path, value))
    assert recorded["status"]["planHash"] == PLAN_HASH
    resources.write_status(recorded, KafkaMigrationStatus(attempt=2, nodes=nodes).manifest())
    recorded = resources.get(recorded)
    for path, value in locked.items():
        recorded = resources.replace(edited(recorded, path, value))


def test_where_there_is_no_way_back_no_rollback_is_proposed(resources):
    resource = resources.create(documented_of("KafkaMigration")[1])
    recorded = resources.write_status(resource, KafkaMigrationStatus(
        plan_hash=PLAN_HASH, progress={"step": "HandOver"}, nodes=(BROKER, CONTROLLER),
        rollback={"available": False, "lostAtStep": "Finalize"}).manifest())
    with pytest.raises(ApiException) as error:
        resources.replace(edited(recorded, "controllers.replicas", 5))
    assert "ProvisionControllers has begun with it; the point of no return is passed" in refusal(error.value)


def test_what_a_group_is_may_change_until_its_pods_are_on_record(resources):
    group = resources.create(documented_of("ConsumerGroupMigration")[0])
    name = group["metadata"]["name"]
    more = [*group["spec"]["workloads"], {"name": "more", "container": "app", "template": {"image": "app:2"}}]
    waits = resources.write_status(group, ConsumerGroupMigrationStatus(
        plan_hash=PLAN_HASH, progress={"step": "Baseline"}).manifest())
    changed = resources.replace(edited(waits, "workloads", more))
    begun = resources.write_status(changed, ConsumerGroupMigrationStatus(
        plan_hash=PLAN_HASH, progress={"step": "Baseline", "openTime": NOW}, slots=({"name": "orders/0"},)).manifest())
    begun = resources.replace(edited(begun, "soakSeconds", 61))
    begun["spec"]["workloads"] = group["spec"]["workloads"]
    begun["spec"]["audit"] = {"enabled": False}
    with pytest.raises(ApiException) as error:
        resources.replace(begun)
    message = refusal(error.value)
    assert "spec.workloads: Invalid value" in message
    assert "spec.audit: Invalid value" in message
    assert f"Baseline has begun with it; to change it: switchover rollback cgmig/{name}; change it once" in message


def test_the_steps_of_the_rules_are_those_of_the_plans():
    """Where nothing of an attempt is touched: by the rules of the API server, and by the plan."""
    group = ConsumerGroupMigrationSpec.model_validate(documented_of("ConsumerGroupMigration")[0]["spec"])
    for steps, spec in ((CLUSTER.steps, KafkaMigrationSpec), (plan_of(group).steps, ConsumerGroupMigrationSpec)):
        first = next(index for index, step in enumerate(steps) if step.records_nodes)
        assert (steps[first].name, steps[0].name) == (spec.untouched[""].step, "Preflight")
        for step in steps[1:first]:
            assert f"'{step.name}'" in spec.untouched[""].cel
        assert spec.untouched[""].cel.count("'") == 2 * first, "and no other step"


SUMMARY = "MoveBrokers, batch 1 (kafka-0) waits for AllInSync: broker 0 is fenced"


def full_status() -> KafkaMigrationStatus:
    conditions = set_condition(
        (),
        ConditionType.RECONCILING,
        True,
        "Waiting",
        SUMMARY,
        Progress(start_time=NOW).start_time,
        1,
    )
    return KafkaMigrationStatus(
        observed_generation=1,
        phase="Running",
        summary=SUMMARY,
        plan_hash=PLAN_HASH,
        metadata_state="MigrationActive",
        cluster_id="MkU3OEVBNTcwNTJENDM2Qg",
        nodes=[{"name": "kafka-0", "node_id": 0, "assigned": Mode.KRAFT, "observed": Mode.MIGRATION, "evicting": "uid",
                "evictions": 1}],
        progress=Progress(
            step="MoveBrokers",
            index=6,
            total=11,
            batch=1,
            batch_nodes=["kafka-0"],
            percent=55,
            summary="7/11 55%",
            start_time=NOW,
            step_start_time=NOW,
            estimated_completion_time="2026-11-21T20:30:00Z",
        ),
        waiting_for=[WaitingFor(gate="AllInSync", verdict="Wait", reason="BrokerFenced", subject="broker 0", since=NOW)],
        waiting_for_count=1,
        waiting_for_summary="BrokerFenced broker 0",
        gates=[GateStreak(name="AllInSync", passes=2, since=NOW, verdict="Pass")],
        rollback={"available": True, "estimated_seconds": 300},
        restarts=[{"name": Mode.MIGRATION, "batches": 3, "average_seconds": 17, "slowest_seconds": 21}],
        plan=PlanPreview(
            steps=[{"name": "Finalize", "restarts": 3, "estimated_seconds": 180, "hold": True}],
            nodes=[{"name": "kafka", "nodes": 3, "restarts_each": 2}],
            changes=[{"name": "kafka/KRaft", "lines": ["+ node.id=<each its own>"] * LINES_SHOWN, "own": ["node.id"]}],
            restarts=10, broker_restart_seconds=120, controller_restart_seconds=60, estimated_seconds=4800,
            estimated_completion_time=NOW),
        approvals=[AcceptedApproval(name="Soak", plan_hash=PLAN_HASH, approver="alice", accepted_time=NOW)],
        steps=[StepRecord(name="Preflight", start_time=NOW, end_time=NOW, seconds=0)],
        history=[Transition(time=NOW, from_="DualWrite", to="MoveBrokers", reason="GatesPassed")],
        findings=[Finding(code="OneReplica", severity="Warning", message="one topic has one replica")],
        conditions=conditions,
    )


def test_a_whole_status_comes_back_as_it_was_written(resources):
    created = resources.create(documented_of("KafkaMigration")[1])
    status = full_status()
    assert resources.write_status(created, status.manifest())["status"] == status.manifest()
    assert KafkaMigration.model_validate(resources.get(created)).status == status


def test_a_status_of_before_modes_had_names_is_accepted_and_so_is_what_people_write_beside_it(resources):
    """As long as an operator of before may write, and for migrations that have ended."""
    created = resources.create(documented_of("KafkaMigration")[1])
    letters = full_status().manifest()
    letters["nodes"][0].update(assigned="C", observed="B")
    letters["restarts"][0]["name"] = "B"
    written = resources.write_status(created, letters)
    assert written["status"]["nodes"][0]["assigned"] == "C"
    written["spec"]["desiredState"] = "Paused"
    changed = resources.replace(written)
    named = KafkaMigration.model_validate(changed).status
    assert resources.write_status(changed, named.manifest())["status"] == full_status().manifest()


def test_a_status_of_the_largest_size_fits(resources):
    created = resources.create(documented_of("KafkaMigration")[0])
    text = "x" * 1024
    full = full_status()
    status = full.evolve(
        nodes=[
            {"name": f"kafka-{number}", "assigned": Mode.MIGRATION_CONTROLLER, "observed": Mode.MIGRATION_CONTROLLER}
            for number in range(1000)],
        waiting_for=[full.waiting_for[0].evolve(message=text, unblocks=text)] * 20,
        history=[full.history[0].evolve(message=text)] * 50,
        evidence=[Evidence(name=f"Step{number}", message=text, gates=[
            Answer(name=f"Gate{gate}", time=NOW, verdict="Pass", message=text, observed=text, threshold=text)
            for gate in range(64)]) for number in range(4)],
        measurements=Measurements(times=[NOW] * 384, series=[
            Series(name=f"GroupLag/{number}", values=[2**53] * 384) for number in range(24)]),
        findings=[full.findings[0].evolve(message=text, cure=text)] * 100,
    )
    assert len(resources.write_status(created, status.manifest())["status"]["nodes"]) == 1000


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metadataState": "Kraft"}, 'supported values: "ZooKeeper", "MigrationEligible"'),
        ({"nodes": [{"name": "kafka-0", "assigned": "D"}]},
         'supported values: "", "ZooKeeper", "ZooKeeperPinned", "ZooKeeperRaised", "Migration", "KRaft", "OwnKRaft"'),
        ({"attempt": 0}, "should be greater than or equal to 1"),
        ({"history": [{"time": "yesterday", "to": "Soak", "reason": "X"}]}, "must be of type date-time"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_a_status_that_the_models_could_not_hold_is_refused(resources, change, words):
    created = resources.create(documented_of("KafkaMigration")[0])
    with pytest.raises(ApiException) as error:
        resources.write_status(created, change)
    assert words in refusal(error.value)


def test_a_stale_status_write_changes_nothing(resources):
    read = resources.create(documented_of("KafkaMigration")[0])
    resources.write_status(read, {"attempt": 2})
    with pytest.raises(ApiException) as error:
        resources.write_status(read, {"attempt": 3})
    assert error.value.status == 409
    assert resources.get(read)["status"]["attempt"] == 2


def test_status_survives_a_spec_write_and_the_spec_a_status_write(resources):
    created = resources.create(documented_of("KafkaMigration")[0])
    sneaky = {**created, "spec": {**created["spec"], "desiredState": "RolledBack"}}
    written = resources.write_status(sneaky, {"observedGeneration": 1, "phase": "Running"})
    assert written["spec"]["desiredState"] == "Running"
    replaced = resources.replace({**written, "status": {"phase": "Succeeded"}})
    assert replaced["status"] == {"observedGeneration": 1, "phase": "Running"}


def test_what_the_schema_does_not_know_is_not_kept(resources):
    created = resources.create(documented_of("KafkaMigration")[0])
    written = resources.write_status(created, {"observedGeneration": 1, "kopf": {"dummy": "x"}, "other": "x"})
    assert written["status"] == {"observedGeneration": 1}


def test_the_command_of_a_runbook_finds_what_was_repaired(kubectl, namespace, resources):
    created = resources.create(documented_of("KafkaMigration")[0])
    resources.write_status(created, {"history": [
        {"time": NOW, "to": "DualWrite", "reason": reason, "message": f"it is {reason}"}
        for reason in ("StepBegun", MoveKind.DUAL_WRITE_REPAIRED, "StepDone")]})
    command = re.search(r"^kubectl .*$", section(QUOTA_STOPS_DUAL_WRITE), re.MULTILINE)[0].replace("NAME", "kafka")
    told = kubectl("-n", namespace, *shlex.split(command)[1:]).stdout
    assert told.splitlines() == [f"{NOW} it is DualWriteRepaired"]


def test_kubectl_prints_the_columns(crds, kubectl, namespace, resources):
    created = resources.create(documented_of("KafkaMigration")[0])
    heading, line = kubectl("-n", namespace, "get", "kmig").stdout.splitlines()
    assert heading.split() == ["NAME", "PHASE", "STEP", "PROGRESS", "ETA", "WAITING-FOR", "ROLLBACK", "AGE"]
    assert line.split()[:4] == ["kafka", "Pending", "an", "operator"], "what it waits for before anybody has looked"
    resources.write_status(created, full_status().manifest())
    heading, line = kubectl("-n", namespace, "get", "kmig", "-o", "wide").stdout.splitlines()
    values = {}
    columns = ["NAME", "PHASE", "STEP", "PROGRESS", "ETA", "WAITING-FOR", "ROLLBACK", "METADATA", "AGE",
               "SUMMARY"]
    for column, following in zip(columns, [*columns[1:], None], strict=True):
        end = heading.index(following) if following else None
        values[column] = line[heading.index(column) : end].strip()
    assert values.pop("AGE").endswith("s")
    assert values == {
        "NAME": "kafka",
        "PHASE": "Running",
        "STEP": "MoveBrokers",
        "PROGRESS": "7/11 55%",
        "ETA": "2026-11-21T20:30:00Z",
        "WAITING-FOR": "BrokerFenced broker 0",
        "ROLLBACK": "true",
        "METADATA": "MigrationActive",
        "SUMMARY": SUMMARY,
    }


def test_describe_ends_with_what_matters(crds, kubectl, namespace, resources):
    """kubectl sorts the fields of a custom resource by name; what a terminal shows of so many lines is the end of them."""
    created = resources.create(documented_of("KafkaMigration")[0])
    resources.write_status(created, full_status().manifest())
    text = kubectl("-n", namespace, "describe", "kmig", "kafka").stdout
    fields = [line.strip().partition(":")[0] for line in text.partition("\nStatus:\n")[2].splitlines()
              if line.startswith("  ") and not line.startswith("   ")]
    assert fields == sorted(fields)
    assert fields[fields.index("Steps"):] == [
        "Steps", "Summary", "UID", "Waiting For", "Waiting For Count", "Waiting For Summary"]
    assert text.splitlines()[-1].startswith("Events:")


def test_kubectl_knows_the_category_and_explains_every_field(crds, kubectl, namespace, resources):
    resources.create(documented_of("KafkaMigration")[0])
    resources.create(documented_of("ConsumerGroupMigration")[0])
    listed = kubectl("-n", namespace, "get", "switchover", "-o", "name").stdout.split()
    assert listed == ["consumergroupmigration.switchover.dev/orders", "kafkamigration.switchover.dev/kafka"]
    explained = kubectl("explain", "kmig.spec.gates.brokerSessionTimeoutSeconds").stdout
    assert "after a change of leader every broker must stay unfenced for longer" in " ".join(explained.split())


def test_an_approval_is_one_merge_by_server_side_apply(crds, kubectl, namespace, resources):
    """Approvals are a map by name, so that Git may own one of them and a person another."""
    resource = documented_of("KafkaMigration")[0]
    resources.create(resource)
    for name in ("Soak", "Finalize"):
        approval = {"name": name, "planHash": PLAN_HASH, "approver": "alice"}
        manifest = {key: resource[key] for key in ("apiVersion", "kind", "metadata")}
        manifest["spec"] = {"approvals": [approval]}
        kubectl(
            "-n",
            namespace,
            "apply",
            "--server-side",
            f"--field-manager={name.lower()}",
            "-f",
            "-",
            stdin=json.dumps(manifest),
        )
    assert [approval["name"] for approval in resources.get(resource)["spec"]["approvals"]] == ["Soak", "Finalize"]
