"""What a migration may name and make of pods: what they have already, and what the chart allows."""

from typing import Any

import pytest

from switchover.engine.policy import ANYTHING, NOTHING_MORE, Policy, matches, repository
from switchover.kubernetes.brought_in import PODS


@pytest.mark.parametrize(("image", "expected"), [
    ("kafka", "kafka"),
    ("kafka:3.9", "kafka"),
    ("registry.example:5000/team/kafka", "registry.example:5000/team/kafka"),
    ("registry.example:5000/team/kafka:3.9@sha256:0123", "registry.example:5000/team/kafka"),
    ("localhost/kafka@sha256:0123", "localhost/kafka"),
])
def test_repository(image: str, expected: str) -> None:
    assert repository(image) == expected


@pytest.mark.parametrize(("image", "present", "allowed", "finds"), [
    ("kafka:2", "kafka:1", (), False),
    ("kafka:2", "", (), True),
    ("evil/kafka:1", "kafka:1", (), True),
    ("kafka-evil:1", "kafka:1", (), True),
    ("registry.example:5000/kafka:2", "registry.example:5001/kafka:1", (), True),
    ("registry.example/team/app:2", "app:1", ("registry.example/team/*",), False),
    ("registry.example.evil/team/app:2", "app:1", ("registry.example/team/*",), True),
    ("other/app:2", "app:1", ("registry.example/team/*", "other/app"), False),
    ("other/app/evil:2", "app:1", ("other/app",), True),
    ("other/app:2", "app:1", ("other/app:2",), False),
    ("other/app:1", "app:1", ("other/app:2",), True),
    ("other/app", "app:1", ("other/app:2",), True),
    ("other/app:2@sha256:0666", "app:1", ("other/app:2", "other/app:*"), True),     # the digest is what would be pulled
    ("other/app@sha256:0123", "app:1", ("other/app@sha256:0123",), False),
    ("other/app@sha256:0666", "app:1", ("other/app@sha256:0123",), True),
    ("other/app:2", "app:1", ("other/app@sha256:0123",), True),
    ("registry.example:5000/app:3.9.1", "app:1", ("registry.example:5000/*:3.9.*",), False),
    ("registry.example:5000/app:3.8.1", "app:1", ("registry.example:5000/*:3.9.*",), True),
    ("app:2", "app:1", ("app:1",), True),                   # of the container's own repository the chart names a tag
    ("app:2", "app:1", ("app:1", "app:2"), False),
    ("app:1", "app:1", ("app:2",), False),                  # what it runs already
    ("app:2", "app:1", ("other:1",), False),
])
def test_images(image: str, present: str, allowed: tuple[str, ...], finds: bool) -> None:
    found = list(Policy(images=allowed).find_image("spec.image", image, present))
    assert [finding.reason for finding in found] == ["ImageNotAllowed"] * finds


@pytest.mark.parametrize(("allowed", "finds"), [((), True), (("orders-*",), False), (("orders",), True), (("*",), False)])
def test_names(allowed: tuple[str, ...], finds: bool) -> None:
    assert matches("orders-1", allowed) is not finds


def test_the_cure_is_what_is_missing() -> None:
    [finding] = NOTHING_MORE.find_image("spec.image", "evil:5/kafka:1", "kafka:1")
    assert finding.unblocks == ("whoever installed the chart can allow it, in a checkout of its version: helm upgrade"
                                " switchover helm/switchover --namespace kafka --reset-then-reuse-values"
                                " --set-json 'allow.images=[\"evil:5/kafka\"]'")
    [finding] = Policy(images=("kafka:1", "other")).find_image("spec.image", "kafka:2", "kafka:1")
    assert finding.message == "spec.image is kafka:2, and of kafka the chart allows only kafka:1"
    assert """--set-json 'allow.images=["kafka:1","other","kafka:2"]'""" in finding.unblocks


@pytest.mark.parametrize("name", ["x,*", "*", "payments-*"])
def test_no_command_allows_a_pattern_that_somebody_else_chose_as_a_name(name: str) -> None:
    assert "helm" not in NOTHING_MORE.allow("secrets", name)
    assert """--set-json 'allow.secrets=["a,b"]'""" in NOTHING_MORE.allow("secrets", "a,b")


# --- what is made of pods -------------------------------------------------------------------------------------------------

BEFORE: dict[str, Any] = {
    "metadata": {"annotations": {"sidecar.istio.io/inject": "true", "checksum/config": "1"}, "labels": {"app": "orders"}},
    "spec": {"tolerations": [{"operator": "Exists", "effect": "NoExecute"}], "hostAliases": [{"ip": "10.0.0.1"}],
             "containers": [{"name": "app", "ports": [{"containerPort": 80, "hostPort": 80}]}]}}
RIGHTS = {
    "sidecar.istio.io/userVolume": '[{"name":"h","hostPath":{"path":"/"}}]', "sidecar.istio.io/proxyImage": "evil/proxy:1",
    "sidecar.istio.io/inject": "false", "vault.hashicorp.com/agent-inject": "true", "vault.hashicorp.com/role": "payments",
    "vault.hashicorp.com/agent-inject-command-x": "sh -c 'curl evil'", "iam.amazonaws.com/role": "admin",
    "k8s.v1.cni.cncf.io/networks": "kube-system/host-net", "io.kubernetes.cri-o.userns-mode": "host",
    "container.apparmor.security.beta.kubernetes.io/app": "unconfined", "sidecar.opentelemetry.io/inject": "evil/x",
    "checksums/evil": "1", "prometheus.io": "1"}
"""What somebody's webhook or runtime makes of an annotation."""
BEYOND: list[tuple[str, dict[str, Any]]] = [
    ("hostPort", {"containers": [{"name": "app", "ports": [{"hostPort": 81}]}]}),
    ("hostPort", {"initContainers": [{"name": "first", "ports": [{"hostPort": 80, "hostIP": "10.0.0.1"}]}]}),
    ("hostAliases", {"hostAliases": [{"ip": "10.0.0.66", "hostnames": ["db.payments"]}]}),
    ("dnsConfig", {"dnsConfig": {"nameservers": ["10.0.0.66"]}}),
    ("dnsConfig", {"dnsConfig": {"searches": ["evil.example"]}}),
    ("tolerateAll", {"tolerations": [{"operator": "Exists"}]}),
    ("tolerateAll", {"tolerations": [{"operator": "Exists", "key": "", "effect": "NoSchedule"}]}),
    ("probeHost", {"containers": [{"name": "app", "livenessProbe": {"httpGet": {"host": "169.254.169.254", "port": 80}}}]}),
    ("probeHost", {"containers": [{"name": "app", "lifecycle": {"preStop": {"tcpSocket": {"host": "a", "port": 1}}}}]}),
]


def of(field: str, **given: Any) -> dict[str, Any]:
    return {**BEFORE, "metadata": {**BEFORE["metadata"], field: {**BEFORE["metadata"][field], **given}}}


@pytest.mark.parametrize("field", ["annotations", "labels"])
@pytest.mark.parametrize("key", RIGHTS)
def test_an_annotation_and_a_label_take_leave(key: str, field: str) -> None:
    found = [*NOTHING_MORE.find_pod_changes("spec.x", BEFORE, of(field, **{key: RIGHTS[key]}))]
    assert [each.message for each in found] == [
        f"spec.x changes {field} of the pods that the chart's allow.{field} does not list: {key}"]
    assert found[0].unblocks.endswith(f""" --set-json 'allow.{field}=["{key}"]'""")
    assert not [*Policy(**{field: (key,)}).find_pod_changes("spec.x", BEFORE, of(field, **{key: RIGHTS[key]}))]


def test_taking_one_away_takes_leave_as_well() -> None:
    told = [*NOTHING_MORE.find_pod_changes("spec.x", BEFORE, {"metadata": {}, "spec": BEFORE["spec"]})]
    assert [each.observed for each in told] == ["sidecar.istio.io/inject", "app"]


@pytest.mark.parametrize(("name", "spec"), BEYOND)
def test_what_leads_out_of_the_pod_takes_leave(name: str, spec: dict[str, Any]) -> None:
    after = {**BEFORE, "spec": {**BEFORE["spec"], **spec}}
    assert [each.observed for each in NOTHING_MORE.find_pod_changes("spec.x", BEFORE, after)] == [name]
    assert not [*Policy(pods=(name,)).find_pod_changes("spec.x", BEFORE, after)]


def test_every_name_has_a_case() -> None:
    assert {name for name, _ in BEYOND} == {*PODS}


@pytest.mark.parametrize("after", [
    BEFORE, of("annotations", **{"checksum/config": "2", "prometheus.io/scrape": "true"}),
    {**BEFORE, "spec": {**BEFORE["spec"], "dnsConfig": {"options": [{"name": "ndots", "value": "2"}]},
                        "tolerations": [{"operator": "Exists", "key": "a"}, {"operator": "Exists", "effect": "NoExecute"}]}},
    {**BEFORE, "spec": {"containers": 5, "initContainers": [7, {"ports": {}, "lifecycle": []}], "tolerations": "all"}},
], ids=["the same", "checksums and Prometheus", "what stays in the pod", "what the API server refuses"])
def test_what_takes_no_leave(after: dict[str, Any]) -> None:
    assert not [*NOTHING_MORE.find_pod_changes("spec.x", BEFORE, after)]


def test_the_command_keeps_what_is_allowed_already() -> None:
    policy = Policy(annotations=("example.com/*",))
    [finding] = policy.find_pod_changes("spec.x", BEFORE, of("annotations", **{"example.com/a": "1", "b": "2"}))
    assert """ --reset-then-reuse-values --set-json 'allow.annotations=["example.com/*","b"]'""" in finding.unblocks
    assert not [*ANYTHING.find_pod_changes("spec.x", BEFORE, {**BEFORE, "metadata": {}})]
