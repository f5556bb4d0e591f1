"""Strategic merge patches of pod templates: what we make of one is what a real API server makes of it, is told from what was
before, and is taken back exactly."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import yaml

from apiserver.consumers import deployment, perform, read, stateful_set, up
from switchover.answers.clock import WallClock
from switchover.answers.errors import Refused, Unreachable
from switchover.api.consumer_group_migration import ConsumerGroupMigrationSpec, ContainerChange
from switchover.api.template_patch import parsed
from switchover.engine.position import Position
from switchover.groups.observe.observer import GroupObserver
from switchover.groups.picture import Facts, Picture
from switchover.groups.preflight.workloads import find_refused_change
from switchover.groups.workloads import change
from switchover.groups.workloads import stateful_set as ordered
from switchover.groups.workloads.change import Wanted
from switchover.kubernetes import gitops
from switchover.kubernetes.client.api_server import ApiServer
from switchover.kubernetes.client.survey import KubernetesSurvey
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.kubernetes.members import MemberWorkload
from switchover.kubernetes.strategic_merge import BadPatch, merged

STRATEGIC = "application/strategic-merge-patch+json"
PORT = {"containerPort": 53, "name": "dns", "protocol": "TCP"}
APP: dict[str, Any] = {
    "name": "app", "image": "localhost/orders:1", "command": ["java", "-jar"], "args": ["--group", "orders"],
    "env": [{"name": "FIRST", "value": "1"}, {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "LAST", "value": "$(FIRST)"}],
    "envFrom": [{"configMapRef": {"name": "orders"}}],
    "ports": [{"containerPort": 8080}, {"containerPort": 9090, "name": "metrics"}],
    "volumeMounts": [{"name": "config", "mountPath": "/etc/orders"}, {"name": "scratch", "mountPath": "/tmp"}],
    "resources": {"limits": {"memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "1Gi"}},
    "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 5},
    "securityContext": {"capabilities": {"drop": ["NET_RAW", "CHOWN"]}},
}
POD: dict[str, Any] = {
    "terminationGracePeriodSeconds": 0, "nodeSelector": {"disk": "ssd"},
    "initContainers": [{"name": "first", "image": "localhost/init:1"}, {"name": "second", "image": "localhost/init:1"}],
    "containers": [
        {"name": "sidecar", "image": "localhost/sidecar:1", "ports": [PORT, {**PORT, "name": "udp", "protocol": "UDP"}],
         "env": [{"name": "A", "value": "a"}, {"name": "B", "value": "b"}]}, APP],
    "volumes": [{"name": "config", "configMap": {"name": "orders-1"}}, {"name": "scratch", "emptyDir": {}},
                {"name": "all", "projected": {"sources": [
                    {"configMap": {"name": "orders-1"}}, {"secret": {"name": "orders-1"}}]}}],
    "tolerations": [{"key": "spot", "operator": "Exists"}], "hostAliases": [{"ip": "198.18.0.1", "hostnames": ["a", "b"]}],
    "imagePullSecrets": [{"name": "registry"}],
    "topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}],
}

SAME = {
    "a ConfigMap's name": "spec: {volumes: [{name: config, configMap: {name: orders-2}}]}",
    "a key that comes, and one that goes": """
        spec: {volumes: [{name: config, configMap: {defaultMode: 256, items: [{key: a, path: b}]}}], nodeSelector: null}""",
    "a volume of another kind": "spec: {volumes: [{name: config, configMap: null, secret: {secretName: orders}}]}",
    "a volume of another kind, by what stays":
        "spec: {volumes: [{name: config, $retainKeys: [name, emptyDir], emptyDir: {sizeLimit: 1Gi}}]}",
    "a new volume and its mount": """
        spec:
          volumes: [{name: new, configMap: {name: orders-2}}]
          containers: [{name: app, volumeMounts: [{name: new, mountPath: /etc/new}]}]""",
    "a mount that is moved": """
        spec: {containers: [{name: app, volumeMounts: [
          {mountPath: /etc/orders, $patch: delete}, {mountPath: /etc/elsewhere, name: config}]}]}""",
    "a volume that goes": """
        spec:
          volumes: [{name: scratch, $patch: delete}]
          containers: [{name: app, volumeMounts: [{mountPath: /tmp, $patch: delete}]}]""",
    "a new init container": "spec: {initContainers: [{name: convert, image: localhost/init:1, command: [convert]}]}",
    "a new init container, last": """
        spec:
          $setElementOrder/initContainers: [{name: first}, {name: second}, {name: convert}]
          initContainers: [{name: convert, image: localhost/init:1}]""",
    "a new init container between": """
        spec:
          $setElementOrder/initContainers: [{name: first}, {name: convert}, {name: second}]
          initContainers: [{name: convert, image: localhost/init:1}]""",
    "an init container that goes": "spec: {initContainers: [{name: first, $patch: delete}]}",
    "no init containers": "spec: {initContainers: null}",
    "no init containers, each by name":
        "spec: {initContainers: [{name: second, $patch: delete}, {name: first, $patch: delete}]}",
    "a new container": """
        spec: {containers: [{name: new, image: localhost/new:1, ports: [{containerPort: 80}], livenessProbe: {
          tcpSocket: {port: 80}}, env: [{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]}]}""",
    "a container that goes": "spec: {containers: [{name: sidecar, $patch: delete}]}",
    "variables: changed, new, gone": """
        spec: {containers: [{name: app, env: [
          {name: LAST, value: last}, {name: FIRST, $patch: delete}, {name: NEW, value: new}]}]}""",
    "a variable that gets a source": """
        spec: {containers: [{name: app, env: [
          {name: FIRST, value: null, valueFrom: {secretKeyRef: {name: a, key: b}}}]}]}""",
    "a variable that gets a value": "spec: {containers: [{name: app, env: [{name: POD, value: x, valueFrom: null}]}]}",
    "all variables": "spec: {containers: [{name: app, env: [{$patch: replace}, {name: ONE, value: '1'}]}]}",
    "variables of another container":
        "spec: {containers: [{name: sidecar, env: [{name: C, value: c}, {name: A, value: aa}]}]}",
    "what is said before": "spec: {containers: [{name: app, env: [{name: NEW, value: a}, {name: LAST, value: b}]}]}",
    "what is said after": "spec: {containers: [{name: app, env: [{name: LAST, value: b}, {name: NEW, value: a}]}]}",
    "an order of variables":
        "spec: {containers: [{name: app, $setElementOrder/env: [{name: LAST}, {name: POD}, {name: FIRST}]}]}",
    "arguments": "spec: {containers: [{name: app, args: [--group, payments, --new]}]}",
    "an argument less": "spec: {containers: [{name: app, $deleteFromPrimitiveList/args: [--group, nothing]}]}",
    "a capability less": """
        spec: {containers: [{name: app, securityContext: {capabilities: {$deleteFromPrimitiveList/drop: [CHOWN]}}}]}""",
    "a list that is replaced":
        "spec: {containers: [{name: app, envFrom: [{secretRef: {name: orders}}, {configMapRef: {name: orders}}]}]}",
    "a list that is emptied": "spec: {containers: [{name: app, envFrom: [], command: []}], tolerations: []}",
    "a port": "spec: {containers: [{name: app, ports: [{containerPort: 8080, name: http}, {containerPort: 8081}]}]}",
    "a port that is there twice": "spec: {containers: [{name: sidecar, ports: [{containerPort: 53, name: domain}]}]}",
    "resources": "spec: {containers: [{name: app, resources: {limits: {memory: 2Gi, cpu: 500m}, requests: {cpu: null}}}]}",
    "a probe of another kind": """
        spec: {containers: [{name: app, readinessProbe: {httpGet: null, exec: {command: [ok]}}}]}""",
    "no probe": "spec: {containers: [{name: app, readinessProbe: null}]}",
    "a probe more": "spec: {containers: [{name: app, startupProbe: {exec: {command: [ok]}, failureThreshold: 30}}]}",
    "a projected source": """
        spec: {volumes: [{name: all, projected: {sources: [{configMap: {name: orders-2}}, {secret: {name: orders-1}}]}}]}""",
    "a token": """
        spec: {volumes: [{name: token, projected: {sources: [{serviceAccountToken: {path: token}},
          {downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}]}}]}""",
    "annotations": "metadata: {annotations: {checksum/config: abc, restarted: by-hand}}",
    "grace, affinity, selector": """
        spec: {terminationGracePeriodSeconds: 60, nodeSelector: {zone: a}, affinity: {nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {
            matchExpressions: [{key: zone, operator: Exists}]}}]}}}""",
    "keyed by others": """
        spec:
          hostAliases: [{ip: 198.18.0.2, hostnames: [c]}, {ip: 198.18.0.1, hostnames: [d]}]
          imagePullSecrets: [{name: other}]
          topologySpreadConstraints: [{topologyKey: zone, maxSkew: 2}]
          tolerations: [{key: other, operator: Exists}]""",
    "what is not there, deleted": """
        spec: {volumes: [{name: nothing, $patch: delete}], affinity: {$patch: delete}, priorityClassName: null,
               containers: [{name: app, lifecycle: {preStop: null}}]}""",
}
STORED = ("a key that comes, and one that goes", "a volume of another kind, by what stays", "a new volume and its mount",
          "a new init container between", "a container that goes", "variables: changed, new, gone", "an argument less",
          "a probe of another kind", "keyed by others")
"""Of these those that are written in every run; all of them are tried on the API server."""
REPLACED = {
    "a probe, by what stays": (
        "spec: {containers: [{name: app, readinessProbe: {$retainKeys: [exec], exec: {command: [ok]}}}]}",
        "spec.containers[app].readinessProbe.timeoutSeconds"),
    "a map as a whole": ("spec: {volumes: [{name: config, configMap: {$patch: replace, name: orders-2}}]}",
                         "spec.volumes[config].configMap.defaultMode"),
    "volumes as a whole": ("spec: {containers: [{name: app, volumeMounts: null}], volumes: [{$patch: replace},"
                           " {name: config, configMap: {name: orders-2}}]}", "spec.volumes[config].configMap.defaultMode"),
    "a quantity": ("spec: {containers: [{name: app, resources: {limits: {memory: 2048Mi}}}]}",
                   "spec.containers[app].resources.limits.memory"),
    "an empty value": ("spec: {containers: [{name: sidecar, env: [{name: C, value: ''}]}]}",
                       "spec.containers[sidecar].env[C]"),
}
"""Where the API server keeps something else than the patch says; the place that tells."""
NOTHING = {
    "a directive of its own": "spec: {volumes: [{name: config, $patch: mystery}]}",
    "merge": "spec: {volumes: [{name: config, $patch: merge}]}",
    "an item without its key": "spec: {volumes: [{configMap: {name: a}}]}",
    "an item deleted without its key": "spec: {volumes: [{$patch: delete}]}",
    "a key that does not stay": "spec: {volumes: [{name: config, $retainKeys: [name], emptyDir: {}}]}",
    "another order than it is said in": """
        spec: {$setElementOrder/initContainers: [{name: b}, {name: a}],
               initContainers: [{name: a, image: localhost/a}, {name: b, image: localhost/b}]}""",
    "plain values for objects": "spec: {volumes: [config]}",
}


def made(kind: str = "Deployment") -> dict[str, Any]:
    found = deployment(0) if kind == "Deployment" else stateful_set(0)
    found["spec"]["template"]["spec"] = POD
    return found


async def strategic(server: ApiServer, patch: dict[str, Any]) -> dict[str, Any]:
    """The template that the API server makes; nothing is stored."""
    answer = await server.request("PATCH", server.path("apps/v1", "Deployment", "orders"), {"spec": {"template": patch}},
                                  content_type=STRATEGIC, dry_run="All")
    template: dict[str, Any] = answer["spec"]["template"]
    return template


async def kept(server: ApiServer, template: dict[str, Any]) -> dict[str, Any]:
    """A template as the API server would keep it."""
    answer = await server.json_patch(server.path("apps/v1", "Deployment", "orders"),
                                     [{"op": "replace", "path": "/spec/template", "value": template}], dry_run=True)
    found: dict[str, Any] = answer["spec"]["template"]
    return found


def modes(original: MemberWorkload, text: str) -> tuple[Wanted, Wanted]:
    """The original and what the patch makes of it."""
    both = (original.template, change.changed(original.template, "app", ContainerChange(patch=text)))
    return Wanted(both[0], both), Wanted(both[1], both)


async def test_what_we_make_of_a_patch_is_what_the_api_server_makes_of_it(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    apply(made())
    original = await up(server, workloads)
    for name, text in {**SAME, **{name: text for name, (text, _) in REPLACED.items()}}.items():
        patch = yaml.safe_load(text)
        ours = await kept(server, merged(original.template, patch))
        assert ours == await strategic(server, patch), name
        before, after = modes(original, text)
        if name in SAME and before != after:
            assert change.differing(replace(original, template=ours), "app", after) == (), name
            assert change.differing(replace(original, template=ours), "app", before), name
    assert (await read(workloads)).template == original.template


async def test_what_is_no_patch_for_the_api_server_is_none_for_us(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    apply(made())
    original = await up(server, workloads)
    for text in NOTHING.values():
        with pytest.raises((Refused, Unreachable), match=r"\((400|422)\)|answers 500"):
            await strategic(server, yaml.safe_load(text))
        with pytest.raises(BadPatch):
            merged(original.template, parsed(text))


@pytest.mark.parametrize("patches", [STORED, pytest.param(tuple(SAME), marks=pytest.mark.long)], ids=["some", "all"])
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
async def test_it_is_written_seen_and_taken_back(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None], kind: str, patches: tuple[str, ...]
) -> None:
    """What the API server fills in is no difference, and of what it filled in nothing stays."""
    apply(made(kind))
    if kind == "StatefulSet":
        await perform(workloads, ordered.hold(await up(server, workloads, kind)))
    original = await up(server, workloads, kind)
    for name in patches:
        before, after = modes(original, SAME[name])
        if before == after:
            continue
        assert change.differing(original, "app", before) == (), name
        assert change.differing(original, "app", after), name
        await perform(workloads, change.write(await up(server, workloads, kind), "app", after, "the change", change.EMPTY))
        written = await up(server, workloads, kind)
        if kind == "Deployment":
            assert written.template == await kept(server, dict(after)), name
        assert change.differing(written, "app", after) == (), name
        assert change.differing(written, "app", before), name
        await perform(workloads, change.write(written, "app", before, "as it was", change.EMPTY))
        assert (await up(server, workloads, kind)).template == original.template, name


async def test_what_the_api_server_keeps_otherwise_is_told_by_its_place(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    """Such a change would never be seen to be done."""
    apply(made())
    original = await up(server, workloads)
    for name, (text, place) in REPLACED.items():
        _, after = modes(original, text)
        found = replace(original, template=await kept(server, dict(after)))
        assert change.differing(found, "app", after)[0] == place, name


async def test_what_others_change_meanwhile_stays(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None], kubectl: Callable[..., Any],
    namespace: str,
) -> None:
    apply(made())
    original = await up(server, workloads)
    before, after = modes(original, SAME["a new volume and its mount"])
    await perform(workloads, change.write(original, "app", after, "the change", change.EMPTY))
    theirs = {"metadata": {"annotations": {"restartedAt": "now"}}, "spec": {
        "volumes": [{"name": "theirs", "emptyDir": {}}], "initContainers": [{"name": "theirs", "image": "localhost/init:1"}],
        "containers": [{"name": "app", "volumeMounts": [{"name": "theirs", "mountPath": "/theirs"}]}]}}
    kubectl("-n", namespace, "patch", "deployment", "orders", "--patch", yaml.safe_dump({"spec": {"template": theirs}}))
    found = await up(server, workloads)
    assert change.differing(found, "app", after) == (), "it is none of ours"
    theirs_too = {"spec": {"volumes": [{"name": "new", "configMap": {"name": "orders-3"}}]}}
    kubectl("-n", namespace, "patch", "deployment", "orders", "--patch", yaml.safe_dump({"spec": {"template": theirs_too}}))
    found = await up(server, workloads)
    parts = change.differing(found, "app", after)
    assert parts == ("spec.volumes[new]",)
    writer = gitops.last_writer(found, parts)
    assert writer is not None
    assert writer.name == "kubectl-patch"
    await perform(workloads, change.write(found, "app", before, "as it was", change.EMPTY))
    assert (await read(workloads)).template == await kept(server, merged(original.template, theirs))


# --- Preflight ----------------------------------------------------------------------------------------------------------


class NoKafka:
    """Kafka is not asked for any of this."""

    async def clients(self) -> Any:
        raise Unreachable("there is no Kafka here")

    async def close(self) -> None: ...


async def tried(server: ApiServer, workloads: KubernetesWorkloads, **changes: str) -> list[tuple[str, str]]:
    """What Preflight finds of these patches, as the operator sees them: reasons and messages."""
    spec = ConsumerGroupMigrationSpec.model_validate({
        "group": "orders", "kafka": {"bootstrapServers": "kafka:9092"}, "protocol": {"to": "Consumer"},
        "workloads": [{"name": "orders", "container": "app", **{name: {"patch": text} for name, text in changes.items()}}]})
    observer = GroupObserver(workloads, KubernetesSurvey(server), NoKafka(), WallClock())
    picture = Picture("to-consumer", server.namespace, "uid", spec, Position(step="Preflight"), Facts(), 0.0)
    return [(found.reason, found.message) for found in find_refused_change(await observer.see(picture, ""))]


async def test_preflight_tries_every_change_on_the_api_server(
    server: ApiServer, workloads: KubernetesWorkloads, apply: Callable[..., None]
) -> None:
    apply(made())
    before = (await up(server, workloads)).template
    assert await tried(server, workloads, bridge=SAME["a new init container"], template=SAME["a new container"]) == []
    [refused] = await tried(server, workloads, template="""
        spec: {containers: [{name: app, volumeMounts: [{name: nowhere, mountPath: /x}]}]}""")
    assert refused[0] == "ChangeRefused"
    assert 'spec.template.spec.containers[1].volumeMounts[0].name: Not found: "nowhere"' in refused[1]
    [undone] = await tried(server, workloads, template=REPLACED["a map as a whole"][0])
    assert undone[0] == "ChangeUndone"
    assert "spec.volumes[config].configMap.defaultMode" in undone[1]
    assert (await read(workloads)).template == before, "nothing was stored"
