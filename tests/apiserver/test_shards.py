"""Several operators for the migrations of one namespace, each with those that its selector matches, on a real API server."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from adapters.clusters import node
from apiserver.many_migrations import migration
from apiserver.processes import running
from patience import until

Kubectl = Callable[..., Any]
SELECTORS = {
    "one": {"matchLabels": {"shard": "a"}},
    "rest": {"matchExpressions": [{"key": "shard", "operator": "NotIn", "values": ["a"]}]},
}
MINE = {"labelled": ("one", 0), "other": ("rest", 0), "bare": ("rest", 0)}
"""Whose each migration is, and was from the start."""
LABELS = {"labelled": {"shard": "a"}, "other": {"shard": "b"}, "bare": {}}


def test_each_migration_is_acted_on_by_one_operator_and_goes_over_with_its_label(
    kubeconfig: Path, namespace: str, crds: object, kubectl: Kubectl, tmp_path: Path
) -> None:
    """They are to run, so that each has a Lease which tells whose it is; Blockers hold them."""
    def get(what: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(kubectl("-n", namespace, "get", what, "--output", "json").stdout)["items"]
        return found

    def holders() -> dict[str, tuple[str, int]]:
        """Of each migration the operator that has its Lease, and how often it has gone to another one."""
        names = {each["metadata"]["uid"]: each["metadata"]["name"] for each in get("cgmig")}
        found = [each["spec"] for each in get("leases") if each["metadata"]["name"].startswith("switchover-group-")]
        return {names[spec["holderIdentity"].split("/")[0]]: (spec["holderIdentity"].split("/")[2], spec["leaseTransitions"])
                for spec in found}

    def why() -> str:
        return f"{holders()}, {[path.read_text()[-1500:] for path in tmp_path.glob('*.log')]}"

    with ExitStack() as stack, node(tmp_path / "broker", "4.4") as broker:
        broker.begin()
        for name, labels in LABELS.items():
            wanted = migration(name, str(broker.address))
            wanted["metadata"]["labels"] = labels
            wanted["spec"]["desiredState"] = "Running"
            kubectl("-n", namespace, "create", "-f", "-", stdin=json.dumps(wanted))
        for name, selector in SELECTORS.items():
            stack.enter_context(running(kubeconfig, namespace, tmp_path / f"{name}.log", POD_NAME=name,
                                        LEADER_LEASE=f"switchover-{name}", SELECTOR=json.dumps(selector)))
        until(lambda: holders() == MINE, why)
        kubectl("-n", namespace, "label", "cgmig", "labelled", "shard=b", "--overwrite")
        until(lambda: holders() == {**MINE, "labelled": ("rest", 1)}, why)
