"""What belongs to no namespace, and may not be read, is asked for once: each refusal stands in somebody's audit log."""

from collections import Counter

import pytest

from fakes.api_server import NAMESPACE
from simulation.migration_world import MigrationWorld


def test_a_refused_reading_is_not_asked_for_in_every_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    world = MigrationWorld(monkeypatch)
    world.want("Planned")
    asked: list[str] = []
    judge = world.witness.asked

    def noted(method: str, path: str) -> None:
        asked.append(path)
        judge(method, path)

    monkeypatch.setattr(world.witness, "asked", noted)
    begin = world.timeline.now()
    assert world.live(lambda: world.timeline.now() > begin + 300)
    assert asked.count(f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims") > 20, "passes went on"
    beyond = Counter(path for path in asked if "/namespaces/" not in path and not path.endswith("reviews"))
    assert beyond == {"/api/v1/nodes/node-0": 1, "/apis/storage.k8s.io/v1/storageclasses": 1}
    assert {"NodesUnseen", "StorageClassUnseen"} <= {finding["code"] for finding in world.status["findings"]}
