"""How many pods a workload has, where all of them are stopped and started."""

import jsonpatch
import pytest

from switchover.groups.workloads.autoscalers import scale
from unit.consumers import after, manifest, workload


def test_scaled_by_its_scale_if_nobody_wrote_since():
    effect = scale(workload(manifest(replicas=3)), 5)
    assert (effect.subresource, str(effect)) == ("scale", "scale Deployment orders: 3 to 5 replicas")
    seen = {"kind": "Deployment", "metadata": {"name": "orders", "uid": "uid-of-the-workload", "resourceVersion": "70"},
            "spec": {"replicas": 3}}
    assert after(seen, effect)["spec"] == {"replicas": 5}
    for field in ("uid", "resourceVersion"):
        with pytest.raises(jsonpatch.JsonPatchTestFailed):
            after({**seen, "metadata": {**seen["metadata"], field: "another"}}, effect)
