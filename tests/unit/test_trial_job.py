"""The Job in which a template of the user's is tried: a broker's pod but for Kafka, and nobody else's business."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from switchover.answers.observed import Known, Unknown
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.meta import AcceptedRisk
from switchover.cluster import names
from switchover.cluster.door import mount
from switchover.cluster.ending import trial_job
from switchover.cluster.ending.own_configuration import KEYS
from switchover.cluster.picture import Picture
from switchover.engine.effects import Create, Delete, Effect
from switchover.engine.position import NodeRecord
from unit.kraft_gates import USERS_NEW, has_tried, to_own, users_new
from unit.pictures import NOW, UID, moment, spoil_each, spoil_workload, stateful_set, value, with_fact, workload_of

NAME = names.trial("kafka", UID)
DATA = {"name": "data", "mountPath": "/var/lib/kafka"}
CONFIG = {"name": "config", "mountPath": "/etc/kafka"}


def template_with(pod: Mapping[str, Any] | None = None, **container: Any) -> dict[str, Any]:
    """The user's new template with these fields of its pod's spec and of its container."""
    found = deepcopy(USERS_NEW)
    found["spec"] |= pod or {}
    found["spec"]["containers"][0] |= container
    return found


def before_it(template: Mapping[str, Any] | None = None) -> Picture:
    """No Job yet."""
    picture = with_fact(to_own(), "trials", {"kafka": Known(None, NOW)})
    return spoil_workload(picture, template=template) if template is not None else picture


def effects(picture: Picture) -> tuple[Effect, ...]:
    return trial_job.keep(picture, value(picture.facts.kubernetes))


def job(picture: Picture) -> dict[str, Any]:
    (made,) = effects(picture)
    assert isinstance(made, Create)
    return dict(made.manifest)


def pod(fields: Mapping[str, Any] | None = None, **container: Any) -> dict[str, Any]:
    """The spec of the Job's pod."""
    template = template_with(fields, **container)
    before = deepcopy(template)
    found: dict[str, Any] = job(before_it(template))["spec"]["template"]["spec"]
    assert template == before, "nothing is changed in place"
    return found


def kafka(fields: Mapping[str, Any] | None = None, **container: Any) -> dict[str, Any]:
    (found,) = pod(fields, **container)["containers"]
    return dict(found)


def laid_out(fields: Mapping[str, Any] | None = None, **container: Any) -> list[str]:
    """Where `meta.properties` is laid out, its text first."""
    arguments: list[str] = pod(fields, **container)["initContainers"][0]["command"]
    return arguments[6:]


# --- whose it is ----------------------------------------------------------------------------------------------------------


def test_it_belongs_to_the_migration_and_nobody_selects_its_pod() -> None:
    found = job(before_it())
    assert found["metadata"]["name"] == NAME
    assert [owner["uid"] for owner in found["metadata"]["ownerReferences"]] == [UID]
    metadata = found["spec"]["template"]["metadata"]
    assert metadata["labels"] == names.labels("to-kraft")
    assert not metadata["labels"].keys() & USERS_NEW["metadata"]["labels"].keys()
    assert metadata["annotations"] == USERS_NEW["metadata"]["annotations"], "webhooks go by them"


def test_its_pod_is_in_the_brokers_mesh_and_has_their_identity() -> None:
    """By the labels that injectors read, where nothing selects brokers by them."""
    template = template_with()
    template["metadata"]["labels"] |= {"sidecar.istio.io/inject": "true", "app.kubernetes.io/name": "kafka"}
    found = job(before_it(template))["spec"]["template"]["metadata"]["labels"]
    assert found == {**names.labels("to-kraft"), "sidecar.istio.io/inject": "true"}


def test_its_name_is_one_that_its_pods_labels_may_have() -> None:
    for name in ("k", "a" * 52, f"{'a' * 47}.b", "a.b"):
        found = names.trial(name, UID)
        assert len(found) <= 63
        assert ".-" not in found
        assert "-trial-" in found
    assert names.trial(f"{'a' * 60}b", UID) != names.trial(f"{'a' * 60}c", UID), "whatever is cut off"


def test_it_runs_once_and_ends() -> None:
    found = job(before_it())["spec"]
    assert found["backoffLimit"] == 0
    assert found["activeDeadlineSeconds"] == 1800
    assert found["template"]["spec"]["restartPolicy"] == "Never"


def test_no_secret_of_ours_is_needed() -> None:
    """A Role may name the Secrets that it is for."""
    found = pod()
    assert [each for each in found["volumes"] if "secret" in each] == []
    assert mount.VOLUME not in str(found)


# --- as whom it runs ------------------------------------------------------------------------------------------------------


def test_it_runs_as_the_broker_that_goes_first() -> None:
    """kafka-2 leads least. Its pod is another one, and what asks for the pod's name is told the broker's."""
    found = job(before_it())
    spec = found["spec"]["template"]["spec"]
    assert (spec["hostname"], spec["subdomain"]) == ("kafka-2", "kafka-headless")
    (there,) = spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert there["preference"] == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-2"]}]}
    compared = trial_job.compared_with(value(has_tried(to_own()).facts.trials["kafka"]))
    assert compared is not None
    assert (compared.pod, compared.node_id) == ("kafka-2", 2)
    assert compared.settings["listeners"] == "INTERNAL://:9092,CLIENTS://:9094"
    assert compared.settings.keys() <= {*KEYS}


def test_what_a_container_asks_of_its_own_pod_is_what_it_would_be_told_there() -> None:
    def asks(name: str, path: str) -> dict[str, Any]:
        return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}

    asked = [asks("POD_NAME", "metadata.name"), asks("INDEX", "metadata.labels['apps.kubernetes.io/pod-index']"),
             asks("SET", "metadata.labels['statefulset.kubernetes.io/pod-name']"), asks("APP", "metadata.labels['app']"),
             asks("HOST_IP", "status.hostIP"), {"name": "PLAIN", "value": "x"},
             {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
    found = pod({"initContainers": [{"name": "init", "image": "i", "env": asked}]}, env=asked)
    for container in (found["initContainers"][-1], found["containers"][0]):
        assert container["env"] == [
            {"name": "POD_NAME", "value": "kafka-2"}, {"name": "INDEX", "value": "2"}, {"name": "SET", "value": "kafka-2"},
            {"name": "APP", "value": "kafka"}, *asked[4:]]


def test_it_may_go_where_brokers_may_and_presses_on_nobody() -> None:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": []}]}}
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname"}]}
    asks = {"name": "asks", "image": "client", "resources": {"limits": {"cpu": "500m", "memory": "64Mi"}}}
    found = pod({"affinity": {"podAntiAffinity": apart, "nodeAffinity": required}, "nodeSelector": {"disk": "fast"},
                 "initContainers": [asks], "tolerations": [{"operator": "Exists"}], "priorityClassName": "high",
                 "hostNetwork": True},
                resources={"requests": {"cpu": "4", "memory": "16Gi"}, "limits": {"memory": "16Gi"}})
    assert found["affinity"].keys() == {"nodeAffinity"}
    assert found["affinity"]["nodeAffinity"].items() >= required.items()
    assert (found["nodeSelector"], found["tolerations"]) == ({"disk": "fast"}, [{"operator": "Exists"}])
    assert not {"priorityClassName", "hostNetwork", "topologySpreadConstraints"} & found.keys()
    wanted = {"requests": {"cpu": "50m", "memory": "256Mi"}, "limits": {"memory": "16Gi"}}
    assert found["containers"][0]["resources"] == wanted
    assert [each["resources"] for each in found["initContainers"]] == [
        wanted, wanted, asks["resources"] | {"requests": {"cpu": "10m", "memory": "16Mi"}}]


# --- what is there --------------------------------------------------------------------------------------------------------


def test_before_the_users_own_init_containers_the_door_and_the_disk_are_there() -> None:
    found = pod({"initContainers": [{"name": "init-config", "image": "i", "ports": [{"containerPort": 1, "hostPort": 1}]}]})
    assert [each["name"] for each in found["initContainers"]] == ["switchover-trial", mount.KEEPER, "init-config"]
    assert found["initContainers"][-1]["ports"] == [{"containerPort": 1}]
    assert {each["terminationMessagePolicy"] for each in (*found["initContainers"], *found["containers"])} == {
        "FallbackToLogsOnError"}


def test_the_container_leads_to_the_door_and_has_nothing_that_asks_for_a_broker() -> None:
    probe = {"tcpSocket": {"port": "internal"}}
    found = kafka({"containers": [USERS_NEW["spec"]["containers"][0] | {
        "livenessProbe": probe, "startupProbe": probe, "lifecycle": {"preStop": {}}, "terminationMessagePath": "/own"},
        {"name": "exporter", "image": "e"}]})
    assert not {"livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "ports",
                "terminationMessagePath"} & found.keys()
    assert found["command"] == USERS_NEW["spec"]["containers"][0]["command"]
    paths = {each["mountPath"]: each for each in found["volumeMounts"]}
    theirs = {CONFIG["mountPath"], DATA["mountPath"]}
    assert {paths[path]["name"] for path in paths.keys() - theirs} == {mount.RUN_VOLUME, mount.FILES_VOLUME}
    assert (paths[mount.SCRIPT]["subPath"], paths[mount.EDITS]["subPath"]) == ("door.sh", "edits")
    assert paths["/opt/kafka/bin"]["subPath"] == mount.COPY


def test_in_place_of_all_that_a_broker_may_write_to_there_are_empty_directories() -> None:
    volumes = [
        {"name": "config", "configMap": {"name": "c"}}, {"name": "tls", "secret": {"secretName": "t"}},
        {"name": "vault", "csi": {"driver": "secrets-store"}}, {"name": "tmp", "emptyDir": {"medium": "Memory"}},
        {"name": "krb5", "hostPath": {"path": "/etc/krb5.conf"}}, {"name": "disk", "hostPath": {"path": "/mnt/kafka"}},
        {"name": "shared", "persistentVolumeClaim": {"claimName": "s"}}, {"name": "scratch", "ephemeral": {}},
        {"name": "unused", "persistentVolumeClaim": {"claimName": "u"}},
    ]
    mounted = [CONFIG, DATA, {"name": "krb5", "mountPath": "/etc/krb5.conf", "readOnly": True},
               *({"name": name, "mountPath": f"/{name}"} for name in ("disk", "shared", "scratch", "tls", "vault", "tmp"))]
    found = pod({"volumes": volumes}, volumeMounts=mounted)["volumes"]
    empty = ("disk", "shared", "scratch", "unused", "data")
    assert found == [*volumes[:5], *({"name": name, "emptyDir": {}} for name in empty), *mount.DIRECTORIES]


def test_log_directories_are_laid_out_where_the_broker_has_them() -> None:
    meta = "version=0\nbroker.id=2\ncluster.id=clusterOnPaperAAAAAAAA\n"
    assert laid_out() == [meta, "/var/lib/kafka/data"]
    assert laid_out(volumeMounts=[CONFIG]) == [meta], "what lies on no volume cannot be laid out"
    several = spoil_each(before_it(), "broker_settings", lambda live: {
        **live, "log.dirs": "/var/lib/kafka/a, /var/lib/kafka/b/"})
    [first, *_] = job(several)["spec"]["template"]["spec"]["initContainers"]
    assert first["command"][7:] == ["/var/lib/kafka/a", "/var/lib/kafka/b"]
    assert first["volumeMounts"] == [DATA, {"name": mount.RUN_VOLUME, "mountPath": mount.RUN}]


def test_what_an_apply_leaves_of_ours_is_not_tried() -> None:
    """Helm's upgrade changes what the chart has, and leaves our volumes and containers."""
    ours = deepcopy(dict(workload_of(moment("HandOver", Mode.KRAFT, Mode.KRAFT_CONTROLLER)).template))
    ours["metadata"] = USERS_NEW["metadata"]
    assert mount.VOLUME in str(ours)
    assert job(before_it(ours)) == job(before_it())


# --- when -----------------------------------------------------------------------------------------------------------------


def rolled(picture: Picture, settled: bool) -> Picture:
    own = {f"kafka-{n}": NodeRecord(n, Mode.OWN_KRAFT, settled=settled) for n in range(3)}
    return picture.at(replace(picture.position, nodes={**picture.position.nodes, **own}))


@pytest.mark.parametrize(("what", "wanted"), [
    (lambda p: p, True),
    (lambda p: rolled(p, settled=False), True),
    (lambda p: rolled(p, settled=True), False),
    (lambda p: replace(p, spec=users_new().spec), False),
    (lambda p: replace(p, spec=p.spec.model_copy(update={"accepted_risks": (AcceptedRisk.UNTRIED_TEMPLATE,)})), False),
    (lambda p: spoil_workload(p, template=stateful_set()["spec"]["template"]), False),
], ids=["asked for", "on its way", "rolled", "not asked for", "left out", "the one that says ZooKeeper"])
def test_there_is_a_job_as_long_as_a_broker_is_to_get_a_new_template(what: Any, wanted: bool) -> None:
    kinds = [type(effect) for effect in effects(what(has_tried(to_own())))]
    assert kinds == ([] if wanted else [Delete])
    assert bool(effects(what(before_it()))) == (wanted and not kinds)


def test_another_template_is_tried_for_itself_and_the_jobs_before_it_goes_by_its_uid() -> None:
    changed = spoil_workload(has_tried(to_own()), template=template_with(image="kafka:4"))
    (gone,) = effects(changed)
    assert isinstance(gone, Delete)
    assert (gone.kind, gone.name, gone.uid) == ("Job", NAME, "uid-of-trial")


def test_another_release_of_ours_tries_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may ask for other keys, or compare them otherwise: a report of before does not answer that."""
    before = has_tried(to_own())
    assert effects(before) == ()
    monkeypatch.setattr(trial_job, "EDITS", f"{trial_job.EDITS}tell another.key\n")
    assert [type(effect) for effect in effects(before)] == [Delete]


@pytest.mark.parametrize("blind", [
    lambda p: with_fact(p, "trials", {"kafka": Unknown("no answer")}),
    lambda p: with_fact(p, "trials", {}),
    lambda p: with_fact(p, "broker_settings", {2: Unknown("no answer")}),
    lambda p: with_fact(p, "views", {}),
])
def test_nothing_is_made_of_what_nobody_knows(blind: Any) -> None:
    assert effects(blind(before_it())) == ()


@pytest.mark.parametrize("written", [
    "", "{", "[]", "{}", '{"pod": 1}', '{"pod": "a", "id": "x", "addresses": [], "settings": {}}'])
def test_a_job_that_does_not_tell_with_what_it_is_compared_tells_nothing(written: str) -> None:
    found = value(has_tried(to_own()).facts.trials["kafka"])
    assert trial_job.compared_with(replace(found, given={trial_job.COMPARED_WITH: written})) is None
