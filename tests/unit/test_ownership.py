"""Whom an object of the Kubernetes API belongs to, whatever others have written there."""

import pytest

from switchover.adapters.ownership import managers


@pytest.mark.parametrize("key", ['k:{"name":"kafka"', "k:[]", "k:7", 'k:{"containerPort":80}', "k:" + "[" * 100 + "]" * 100])
def test_a_made_up_key_of_managed_fields_owns_nothing(key: str) -> None:
    containers = {key: {"f:image": {}}, 'k:{"name":"kafka"}': {"f:env": {}}}
    fields = {"f:spec": {"f:template": {"f:spec": {"f:containers": containers}}}}
    [found] = managers({"metadata": {"managedFields": [{"manager": "x", "operation": "Update", "fieldsV1": fields}]}})
    assert found.parts == {"env of kafka"}
