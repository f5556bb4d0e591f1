"""What the chart must allow before a migration may: by the command that Preflight prints, with the real chart."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from apiserver import charts
from apiserver.charts import CHART, NO_CRDS, ROOT
from switchover.engine.gate import Verdict
from switchover.engine.policy import Policy
from switchover.process.settings import Settings, read_settings
from unit.group_gates import GATES
from unit.group_pictures import AUDIT, at_start, workload_of

PATCH = """
metadata: {annotations: {vault.hashicorp.com/role: orders}}
spec: {volumes: [{name: keys, secret: {secretName: "12345"}}]}
"""
"""A Secret whose name would be a number to `--set`."""
GIVEN = ("logLevel=debug", "allow.images={registry.example/team/*}")


@pytest.mark.long
@pytest.mark.case("ImageNotAllowed", "ClaimNotAllowed", "SecretNotAllowed", "PodChangeNotAllowed")
def test_whoever_installed_the_chart_allows_what_is_named_by_the_commands_that_are_printed(
        kubeconfig: Path, crds: object, api_client: client.ApiClient, paste: Callable[..., None], namespace: str,
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)                              # a checkout
    settings = [word for value in GIVEN for word in ("--set", value)]
    charts.helm("--kubeconfig", str(kubeconfig), "install", "ops", str(CHART), "--namespace", namespace, *NO_CRDS, *settings)

    def running() -> Settings:
        """What the operator's pod reads."""
        found: Any = client.AppsV1Api(api_client).read_namespaced_deployment("ops-switchover", namespace)
        [container] = found.spec.template.spec.containers
        given = {each.name: each.value for each in container.env if each.value is not None}
        return read_settings({**given, "POD_NAMESPACE": namespace, "POD_NAME": "ops"})

    def found(policy: Policy) -> dict[str, Verdict]:
        picture = at_start(workloads=(workload_of(template={"image": "evil/orders:2", "patch": PATCH}),),
                           audit={**AUDIT, "image": "registry.example/team/pipeline:1"})
        return {each.reason: each for each in GATES["Allowed"].check(replace(picture, policy=policy)).findings}

    wrong = found(running().allow)
    assert wrong.keys() == {"ImageNotAllowed", "ClaimNotAllowed", "SecretNotAllowed", "PodChangeNotAllowed"}
    while wrong:
        reason, told = wrong.popitem()
        paste(told.unblocks or "")
        assert found(running().allow).keys() == wrong.keys(), f"{reason} alone is gone"
    assert running().log_level == "DEBUG", "what was given to the release stays"
    assert running().allow.images == ("registry.example/team/*", "evil/orders")
    charts.helm("--kubeconfig", str(kubeconfig), "uninstall", "ops", "--namespace", namespace)
