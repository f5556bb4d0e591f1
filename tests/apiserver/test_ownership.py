"""Who wrote what of a StatefulSet, as a real API server tells it, and whether the cures that we print cure."""

import shlex
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from switchover.adapters.api_server import ApiServer, connect
from switchover.adapters.clock import WallClock
from switchover.adapters.kubernetes import KubernetesWorkloads
from switchover.core.gate import Verdict
from switchover.core.kraft import gitops, template
from switchover.core.kraft.facts import Workload
from switchover.core.kraft.gates.workloads import check_template_is_ours
from unit.pictures import moment, spec_of, spoil

Kubectl = Callable[..., Any]
LABELS = {"app": "kafka"}
BROKERS = spec_of().brokers[0]


def stateful_set(**annotations: str) -> dict[str, Any]:
    """The user's manifest, as it lies in Git."""
    container = {"name": "kafka", "image": "localhost/kafka:1",
                 "volumeMounts": [{"name": "config", "mountPath": "/etc/kafka"}]}
    volumes = [{"name": "config", "configMap": {"name": "kafka-config"}}]
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "kafka", "labels": {"kustomize.toolkit.fluxcd.io/name": "kafka"}, "annotations": annotations},
        "spec": {
            "serviceName": "kafka", "replicas": 2, "podManagementPolicy": "Parallel", "selector": {"matchLabels": LABELS},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [container], "volumes": volumes}},
        },
    }


@pytest_asyncio.fixture
async def workloads(kubeconfig: Path, namespace: str) -> AsyncIterator[KubernetesWorkloads]:
    server: ApiServer = await connect(namespace, str(kubeconfig))
    yield KubernetesWorkloads(server, WallClock())
    await server.close()


@pytest.fixture
def run(kubectl: Kubectl, namespace: str) -> Callable[..., Any]:
    """kubectl in the test's namespace; a manifest goes to its standard input."""

    def run(*arguments: str, manifest: Any = None, check: bool = True) -> Any:
        text = yaml.safe_dump(manifest) if manifest is not None else None
        return kubectl("--namespace", namespace, *arguments, stdin=text, check=check)

    return run


async def read(workloads: KubernetesWorkloads) -> Workload:
    found = await workloads.stateful_set("kafka")
    assert found is not None
    return found


async def take_over(workloads: KubernetesWorkloads) -> None:
    await workloads.patch_stateful_set("kafka", template.patch(await read(workloads), BROKERS, ["kafka-0", "kafka-1"], ()))
    assert template.is_ours(await read(workloads), BROKERS)


def judged(workload: Workload, namespace: str) -> Verdict:
    picture = spoil(moment("MoveBrokers", "CBB", "PPP"), "kubernetes", brokers={"kafka": workload})
    assert namespace
    return check_template_is_ours(picture)


async def test_marks_and_writers_of_a_fresh_object(workloads: KubernetesWorkloads, run: Callable[..., Any]) -> None:
    run("apply", "-f", "-", manifest=stateful_set(secret="kept here"))
    found = await read(workloads)
    assert found.marks == {"kustomize.toolkit.fluxcd.io/name": "kafka"}, "no other annotation leaves the adapter"
    writer = gitops.last_writer(found, ("mounts",))
    assert writer is not None
    assert (writer.name, writer.operation) == ("kubectl-client-side-apply", "Update")
    assert writer.parts == {"volumes", "mounts", "strategy", "replicas"}
    assert (found.owner, found.claim_templates) == ("", ())


async def test_an_autoscaler_is_seen_by_the_scale_subresource(
    workloads: KubernetesWorkloads, run: Callable[..., Any]
) -> None:
    run("apply", "-f", "-", manifest=stateful_set())
    run("scale", "statefulset", "kafka", "--replicas", "3")
    scaled = [manager for manager in (await read(workloads)).managers if manager.subresource == "scale"]
    assert [manager.parts for manager in scaled] == [{"replicas"}]


@pytest.mark.parametrize("how", ["client-side", "server-side"])
async def test_a_revert_is_named_and_the_printed_commands_undo_it(
    workloads: KubernetesWorkloads, run: Callable[..., Any], namespace: str, how: str
) -> None:
    flux = ("--server-side", "--force-conflicts", "--field-manager", "kustomize-controller")
    manager = "kubectl-client-side-apply" if how == "client-side" else "kustomize-controller"
    options = () if how == "client-side" else flux
    run("apply", *options, "-f", "-", manifest=stateful_set())
    await take_over(workloads)
    run("apply", *options, "-f", "-", manifest=stateful_set(again="yes"))
    changed = await read(workloads)
    verdict = judged(changed, namespace)
    assert verdict.reason == "RevertedByGitOps"
    assert verdict.message.startswith(f"{manager} ("), verdict.message
    for command in verdict.unblocks.split("; then "):
        program, *words = shlex.split(command.replace("--namespace kafka", f"--namespace {namespace}"))
        assert program == "kubectl"
        run(*words)
    healed = await read(workloads)
    assert template.changed_back(healed, BROKERS) == ()
    assert gitops.tool_of(healed, namespace) is not None
    assert gitops.tool_of(healed, namespace).quiet
