"""Whom an object of the Kubernetes API belongs to, whatever others have written there."""

import pytest

from switchover.kubernetes.client.ownership import DEEPEST, managers


@pytest.mark.parametrize("key", ['k:{"name":"kafka"', "k:[]", "k:7", 'k:{"containerPort":80}', "k:" + "[" * 100 + "]" * 100])
def test_a_made_up_key_of_managed_fields_owns_nothing(key: str) -> None:
    containers = {key: {"f:image": {}}, 'k:{"name":"kafka"}': {"f:env": {}}}
    fields = {"f:spec": {"f:template": {"f:spec": {"f:containers": containers}}}}
    [found] = managers({"metadata": {"managedFields": [{"manager": "x", "operation": "Update", "fieldsV1": fields}]}})
    assert found.parts == {"env of kafka"}


def test_every_place_of_a_template_has_its_manager() -> None:
    volume = {".": {}, "f:configMap": {".": {}, "f:name": {}}, "f:name": {}}
    port = {'k:{"containerPort":80,"protocol":"TCP"}': {"f:name": {}}}
    pod = {"f:volumes": {'k:{"name":"config"}': volume}, "f:containers": {'k:{"name":"app"}': {"f:ports": port}}}
    template = {"f:metadata": {"f:annotations": {"f:checksum/config": {}}}, "f:spec": pod, "f:made-up": 5}
    fields = {"f:spec": {"f:template": template}}
    [found] = managers({"metadata": {"managedFields": [{"manager": "x", "fieldsV1": fields}]}}, every_place=True)
    assert {"metadata.annotations.checksum/config", "spec.volumes[config]", "spec.volumes[config].configMap.name",
            "spec.containers[app].ports[80].name", "made-up"} < found.parts


def test_a_template_that_nests_without_end_is_read_so_far() -> None:
    fields: dict[str, object] = {}
    for _ in range(2_000):
        fields = {"f:a": fields}
    [found] = managers({"metadata": {"managedFields": [{"fieldsV1": {"f:spec": {"f:template": fields}}}]}}, every_place=True)
    assert len(found.parts) == DEEPEST
