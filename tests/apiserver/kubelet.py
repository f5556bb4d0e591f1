"""What a kubelet would do to a pod, and manifests that several tests need: no node runs here."""

from typing import Any

from switchover.kubernetes.client.api_server import ApiServer
from switchover.kubernetes.members import MemberPod
from switchover.kubernetes.workloads import Pod


def budget(name: str, selector: dict[str, Any], unavailable: int = 1) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"maxUnavailable": unavailable, "selector": selector},
    }


async def run_as_kubelet(server: ApiServer, pod: Pod | MemberPod, *, ready: bool = True, container: str = "kafka",
                         **state: Any) -> None:
    """Bind the pod and write the status that a kubelet would."""
    path = server.path("v1", "Pod", pod.name)
    if not pod.node:
        target = {"apiVersion": "v1", "kind": "Node", "name": "node-0"}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod.name}, "target": target}
        await server.request("POST", f"{path}/binding", binding)
    told = {
        "name": container, "image": "localhost/kafka:1", "imageID": "", "ready": ready, "restartCount": 0,
        "state": state or {"running": {"startedAt": "2026-11-21T20:00:00Z"}},
    }
    status = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        "containerStatuses": [told],
    }
    await server.json_patch(f"{path}/status", [{"op": "add", "path": "/status", "value": status}])
