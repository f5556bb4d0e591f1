"""Which containers of a controller's pod have a token of the brokers' ServiceAccount: copied ones, where it is theirs."""

from copy import deepcopy

from switchover.cluster.controllers import manifests as controllers
from switchover.kubernetes.names import TOKEN
from unit.pictures import spec_of
from unit.test_kraft_controllers import known_of, template_with, with_controllers

ASKS = {"name": "init-config", "image": "kubectl", "command": ["kubectl", "get", "node"]}
PROXY = {"name": "proxy", "image": "envoy", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}


def with_tokens(*containers, own=None, **fields):
    """The controllers' pod where these containers of the brokers' pods have a token."""
    source = template_with({"initContainers": [deepcopy(ASKS)], **fields})
    source["spec"]["containers"].append(deepcopy(PROXY))
    own = own or spec_of()
    workload = controllers.manifests("to-kraft", own, own.brokers[0], {"template": source}, ("data",), known_of(source, own),
                                     with_token={*containers})
    return workload[2]["spec"]["template"]["spec"]


def token_of(spec, name):
    """The mount of a token in a container, and the volume that it is of."""
    own = next(each for each in (*spec["initContainers"], *spec["containers"]) if each["name"] == name)
    mounts = [each for each in own.get("volumeMounts") or () if each["mountPath"] == TOKEN]
    return [next(volume for volume in spec["volumes"] if volume["name"] == each["name"]) for each in mounts]


def test_what_is_copied_may_ask_the_api_server_as_in_the_brokers_pods_and_kafka_may_not():
    spec = with_tokens("kafka", "init-config", "proxy")
    assert spec["automountServiceAccountToken"] is False
    asks = token_of(spec, "init-config")
    assert asks == token_of(spec, "proxy")
    assert [source for volume in asks for each in volume["projected"]["sources"] for source in each] == [
        "serviceAccountToken", "configMap", "downwardAPI"]
    assert token_of(spec, "kafka") == []
    assert [token_of(spec, each["name"]) for each in spec["initContainers"] if "switchover" in each["name"]] == [[], []]


def test_what_has_no_token_in_the_brokers_pods_has_none():
    spec = with_tokens("kafka", "proxy")
    assert token_of(spec, "init-config") == []
    none = with_tokens()
    assert not any("token" in volume["name"] for volume in none["volumes"])


def test_where_the_whole_pod_has_a_token_kubernetes_gives_it():
    spec = with_tokens("kafka", "init-config", own=with_controllers(template={"automountServiceAccountToken": True}))
    assert token_of(spec, "init-config") == []


def test_a_token_that_the_template_mounts_itself_stays():
    theirs = {"name": "own-token", "mountPath": TOKEN}
    spec = with_tokens("init-config", initContainers=[{**ASKS, "volumeMounts": [theirs]}],
                       volumes=[{"name": "own-token", "projected": {"sources": []}}])
    assert token_of(spec, "init-config") == [{"name": "own-token", "projected": {"sources": []}}]
