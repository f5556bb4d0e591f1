"""Which pod is which broker: by host names, by what brokers say at their pods' addresses, and never by a guess."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from fakes.clock import Clock
from switchover.answers.errors import Unreachable
from switchover.answers.observed import Known, Observed, Unknown
from switchover.cluster.facts import KubernetesState
from switchover.cluster.identity import at_their_pods, followed, identified, places
from switchover.cluster.observe.preflight import identities
from switchover.kafka.ports import KafkaNodes
from switchover.kubernetes.workloads import Pod, Workload
from switchover.network.addresses import Address
from switchover.zookeeper.nodes import ZooKeeperState

CLUSTER_ID = "aClusterAAAAAAAAAAAAAA"
PODS = ("kafka-0", "kafka-1", "kafka-2")
SILENT = Unknown("nobody listens there")
LISTENERS = {"listeners": "PLAINTEXT://:9092,external://0.0.0.0:19092"}


def said(*ids: int) -> Known[frozenset[int]]:
    return Known(frozenset(ids), 1.0)


def at(*hosts: str, port: int = 9092) -> Mapping[int, Mapping[str, Address]]:
    """Brokers 1, 2, … as they are registered."""
    return {index: {"PLAINTEXT": Address(host, port)} for index, host in enumerate(hosts, 1)}


def pod(name: str, *ips: str, host_ports: frozenset[int] | None = None) -> Pod:
    return Pod(name, f"uid-{name}", "node", True, False, "1", 0.0, False, "", ips=ips, host_ports=host_ports)


def kafka(*pods: Pod, name: str = "kafka", replicas: int = 3, first: int = 0) -> Workload:
    return Workload(name, "uid", replicas, {}, {}, "1", "", (), {each.name: each for each in pods}, first_ordinal=first)


THREE = kafka(pod("kafka-0", "10.0.0.1"), pod("kafka-1", "10.0.0.2"), pod("kafka-2", "10.0.0.3"))
BALANCED = at("lb-1.example", "lb-2.example", "lb-3.example", port=443)


def asked(registered: Mapping[int, Mapping[str, Address]], workload: Workload = THREE,
          settings: Mapping[str, str] = LISTENERS, listener: str = "PLAINTEXT") -> Mapping[str, tuple[Address, ...] | str]:
    bootstrap = {broker_id: listeners[listener] for broker_id, listeners in registered.items()}
    return places([workload], registered, bootstrap, dict.fromkeys(registered, Known(settings, 1.0)))


# --- who is who ---------------------------------------------------------------------------------------------------------

HOSTS = st.sampled_from([*PODS, "kafka-10", "10.0.0.1", "10.0.0.2", "10.0.0.3", "lb.example", "fd00::1", "node-1"])


@st.composite
def worlds(draw: st.DrawFn) -> tuple[dict[str, int], dict[int, dict[str, Address]], dict[str, Observed[frozenset[int]]]]:
    """Who the pods are in truth, what is registered, and what pods told. A host name that begins with a pod's is that
    pod's own; addresses may be old ones, of any pod. A broker tells the truth where it is asked, and is not always."""
    ids = draw(st.lists(st.integers(0, 5), min_size=3, max_size=3, unique=True))
    truth = dict(zip(PODS, ids, strict=True))
    registered: dict[int, dict[str, Address]] = {}
    for name, broker_id in [*truth.items(), ("stranger", 9)]:
        if draw(st.booleans()):
            hosts = draw(st.lists(HOSTS, min_size=1, max_size=2))
            honest = [f"{name}.kafka" if host in PODS else host for host in hosts]
            registered[broker_id] = {f"L{index}": Address(host, 9092) for index, host in enumerate(honest)}
    told: dict[str, Observed[frozenset[int]]] = {}
    for name, broker_id in truth.items():
        match draw(st.sampled_from(["silent", "told", "not asked"])):
            case "silent":
                told[name] = SILENT
            case "told":
                told[name] = said(*({broker_id} & registered.keys()))
    return truth, registered, told


@given(worlds())
def test_no_pod_is_taken_for_another_one(
        world: tuple[dict[str, int], dict[int, dict[str, Address]], dict[str, Observed[frozenset[int]]]]) -> None:
    truth, registered, told = world
    found = identified(PODS, registered, told)
    proven = all(
        truth[name] in registered and (isinstance(told.get(name), Known) or any(
            address.host.startswith(f"{name}.") for address in registered[truth[name]].values())) for name in PODS)
    assert found == truth if proven else isinstance(found, str)


@given(st.dictionaries(st.integers(0, 4), st.dictionaries(st.sampled_from("AB"), HOSTS.map(lambda host: Address(host, 9092)),
                                                          min_size=1), max_size=5),
       st.dictionaries(st.sampled_from(PODS), st.one_of(
           st.just(SILENT), st.frozensets(st.integers(0, 4), max_size=2).map(lambda ids: Known(ids, 1.0)))))
def test_each_pod_is_one_broker_and_each_broker_one_pod(
        registered: Mapping[int, Mapping[str, Address]], told: Mapping[str, Observed[frozenset[int]]]) -> None:
    """Whatever is registered and whatever they say."""
    found = identified(PODS, registered, told)
    if not isinstance(found, str):
        assert set(found) == {*PODS}
        assert len({*found.values()}) == len(PODS)


def test_what_a_pod_says_outweighs_names() -> None:
    """A Service kafka-1 may lead to kafka-0: counted from one."""
    services = at("kafka-1", "kafka-2", "kafka-3")
    truth = {"kafka-0": 1, "kafka-1": 2, "kafka-2": 3}
    assert isinstance(identified(PODS, services, {}), str)
    assert identified(PODS, services, {name: said(broker_id) for name, broker_id in truth.items()}) == truth
    assert "pods kafka-0 and kafka-1 both seem to be broker 1" in identified(
        PODS, services, {"kafka-0": said(1), "kafka-1": SILENT, "kafka-2": SILENT})


def test_an_address_alone_is_no_proof() -> None:
    assert isinstance(identified(PODS, at("10.0.0.1", "10.0.0.2", "10.0.0.3"), {}), str)


def test_the_message_names_the_pod_and_what_is_there() -> None:
    shown = "Registered: 1 at 10.0.0.1:9092; 2 at 10.0.0.2:9092; 3 at [fd00::3]:9092"
    registered = at("10.0.0.1", "10.0.0.2", "fd00::3")
    told = {"kafka-0": said(1), "kafka-1": SILENT, "kafka-2": said(3)}
    assert identified(PODS, registered, told) == (
        "no broker advertises a host name that begins with kafka-1, and the pod did not answer which broker it is: nobody"
        f" listens there. {shown}")
    assert identified(PODS, registered, {**told, "kafka-1": said()}) == (
        f"the broker in pod kafka-1 says that it is none of those that are registered. {shown}")
    assert identified(PODS, registered, {**told, "kafka-1": said(2, 3)}) == (
        f"pod kafka-1 answers as brokers 2, 3. {shown}")
    assert identified(PODS, at("kafka-0", "kafka-0.x"), {}) == (
        "brokers 1, 2 advertise host names that begin with kafka-0. Registered: 1 at kafka-0:9092; 2 at kafka-0.x:9092")
    assert str(identified(PODS, {}, {})).endswith("Registered: none")
    assert str(identified(PODS, at(*["lb"] * 7), {})).endswith("5 at lb:9092 and 2 more")


# --- where they are asked -----------------------------------------------------------------------------------------------


def test_nobody_is_asked_where_names_tell() -> None:
    assert asked(at("kafka-0.kafka", "kafka-1.kafka", "kafka-2.kafka")) == {}


def test_a_pod_is_asked_where_it_is_advertised_to_be() -> None:
    registered = at("10.0.0.1", "10.0.0.2", "10.0.0.3", port=9095)
    assert asked(registered, settings={}) == {
        "kafka-0": (Address("10.0.0.1", 9095),), "kafka-1": (Address("10.0.0.2", 9095),),
        "kafka-2": (Address("10.0.0.3", 9095),)}
    spelled = at("0:0:0:0:0:0:0:a", port=9095)
    assert asked(spelled, kafka(pod("kafka-0", "::a"), replicas=1), {}) == {"kafka-0": (Address("::a", 9095),)}


def test_behind_a_balancer_it_is_asked_at_the_port_that_brokers_listen_on() -> None:
    assert asked(BALANCED)["kafka-1"] == (Address("10.0.0.2", 9092),)
    external = {1: {"EXTERNAL": Address("lb.example", 443), "PLAINTEXT": Address("10.9.9.9", 9092)}}
    assert asked(external, listener="EXTERNAL")["kafka-0"] == (Address("10.0.0.1", 19092),)


def test_ordinals_may_begin_anywhere() -> None:
    """`spec.ordinals.start`, stable since Kubernetes 1.31."""
    from_one = kafka(pod("kafka-1", "10.0.0.1"), pod("kafka-2", "10.0.0.2"), replicas=2, first=1)
    assert asked(at("kafka-1.kafka", "kafka-2.kafka"), from_one) == {}
    assert asked(BALANCED, from_one) == {"kafka-1": (Address("10.0.0.1", 9092),), "kafka-2": (Address("10.0.0.2", 9092),)}


def test_each_address_of_a_pod_is_asked() -> None:
    both = kafka(pod("kafka-0", "10.0.0.1", "fd00::1"), replicas=1)
    assert asked(BALANCED, both) == {"kafka-0": (Address("10.0.0.1", 9092), Address("fd00::1", 9092))}


def test_a_pod_that_cannot_be_asked() -> None:
    found = asked(BALANCED, kafka(pod("kafka-0"), pod("kafka-2", "10.0.0.3")))
    assert found["kafka-0"] == "pod kafka-0 has no address at this moment"
    assert found["kafka-1"] == "pod kafka-1 has no address at this moment"
    assert asked(BALANCED, settings={})["kafka-0"] == "no broker has answered at which port it listens"
    assert asked(BALANCED, settings={"listeners": "PLAINTEXT://:0,PLAINTEXT://:99999,PLAINTEXT"})["kafka-0"] == (
        "no broker has answered at which port it listens")


def test_on_the_nodes_network_a_pod_is_asked_at_ports_that_are_kept_for_it() -> None:
    """Two brokers of one node have the same address."""
    first, second = (pod(f"kafka-{index}", "192.0.2.1", host_ports=frozenset({port})) for index, port in
                     enumerate((9092, 9192)))
    registered = {1: {"PLAINTEXT": Address("192.0.2.1", 9092)}, 2: {"PLAINTEXT": Address("192.0.2.1", 9192)}}
    assert asked(registered, kafka(first, second, replicas=2)) == {
        "kafka-0": (Address("192.0.2.1", 9092),), "kafka-1": (Address("192.0.2.1", 9192),)}
    unnamed = kafka(replace(first, host_ports=frozenset()), replicas=1)
    assert asked(registered, unnamed)["kafka-0"] == (
        "it is on its node's network, and the template's containerPorts do not name port 9092: whatever listens there may be"
        " another pod")


class Nodes:
    """Answers by address; what is not there does not listen."""

    def __init__(self, answers: Mapping[str, int]) -> None:
        self.answers = answers

    async def identity(self, node: Address, cluster_id: str, among: Iterable[int]) -> frozenset[int]:
        assert cluster_id == CLUSTER_ID
        if str(node) not in self.answers:
            raise Unreachable("no answer")
        return frozenset({self.answers[str(node)]} & {*among})


async def ask(answers: Mapping[str, int], *pods: Pod) -> Mapping[str, Observed[frozenset[int]]]:
    state = KubernetesState({"kafka": kafka(*pods), "gone": None}, {}, {}, None, (), "")
    zookeeper = ZooKeeperState(CLUSTER_ID, None, 1, None, BALANCED, False)
    told = {broker_id: listeners["PLAINTEXT"] for broker_id, listeners in BALANCED.items()}
    settings = {1: Known(LISTENERS, 1.0), 2: SILENT}
    return await identities(cast("KafkaNodes", Nodes(answers)), Clock(1.0), Known(state, 1.0), Known(zookeeper, 1.0), told,
                            settings)


async def test_each_pod_is_asked_for_all_registered_brokers() -> None:
    found = await ask({"10.0.0.1:9092": 3, "[fd00::2]:9092": 1, "10.0.0.3:9092": 7}, pod("kafka-0", "10.0.0.1"),
                      pod("kafka-1", "10.0.0.2", "fd00::2"), pod("kafka-2", "10.0.0.3"))
    assert {name: answer.value for name, answer in found.items() if isinstance(answer, Known)} == {
        "kafka-0": {3}, "kafka-1": {1}, "kafka-2": set()}


async def test_a_pod_that_is_silent_says_where_it_was_asked() -> None:
    found = await ask({}, pod("kafka-0", "10.0.0.1"))
    assert found["kafka-0"] == Unknown("10.0.0.1:9092: no answer")
    assert found["kafka-1"] == Unknown("pod kafka-1 has no address at this moment")


async def test_nobody_is_asked_while_pods_or_registrations_are_not_known() -> None:
    assert await identities(cast("KafkaNodes", Nodes({})), Clock(1.0), SILENT, SILENT, {}, {}) == {}


# --- and where they are later -------------------------------------------------------------------------------------------

IDS = {"kafka-0": 1, "kafka-1": 2, "kafka-2": 3}
TOLD = {1: Address("10.0.0.1", 9092), 2: Address("10.0.0.2", 9092), 3: Address("10.0.0.3", 9092)}
NAMES = {1: Address("kafka-0.kafka", 9092), 2: Address("lb.example", 443), 3: Address("203.0.113.7", 31003)}


def test_a_new_pod_is_found_at_its_new_address() -> None:
    assert at_their_pods(TOLD, IDS, [THREE]) == {"kafka"}
    assert followed(TOLD, IDS, [THREE], frozenset({"kafka"})) == TOLD
    swapped = kafka(pod("kafka-0", "10.0.0.2"), pod("kafka-1", "10.0.0.1", "fd00::1"))
    assert followed(TOLD, IDS, [swapped], frozenset({"kafka"})) == {
        1: Address("10.0.0.2", 9092), 2: Address("10.0.0.1", 9092), 3: None}
    assert followed({1: Address("fd00:0::9", 9092), 2: None}, IDS, [swapped], frozenset({"kafka"})) == {1: None, 2: None}


def test_names_and_balancers_stay_where_they_are() -> None:
    assert at_their_pods(NAMES, IDS, [THREE]) == frozenset()
    assert followed(NAMES, IDS, [THREE], frozenset()) == NAMES
    assert followed(NAMES, IDS, [kafka()], frozenset({"kafka"})) == NAMES | {3: None}


def test_no_broker_is_at_the_address_of_another_pod() -> None:
    stale = {1: Address("10.0.0.3", 9092)}
    assert followed(stale, IDS, [THREE], frozenset()) == {1: None}
    node = kafka(pod("kafka-2", "10.0.0.3", host_ports=frozenset()))
    assert followed(stale, IDS, [node], frozenset()) == stale, "the node's address is nobody's"
