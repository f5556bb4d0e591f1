"""One address in many spellings: Java's, Kubernetes' and people's."""

import pytest

from switchover.adapters.pods import read_member_pod
from switchover.core.addresses import canonical
from switchover.core.kraft.facts import Address
from switchover.ports import Access
from unit.group_pictures import moment, with_member, with_pod


@pytest.mark.parametrize(("text", "address"), [
    ("10.0.0.1", "10.0.0.1"), ("0:0:0:0:0:0:0:1", "::1"), ("fd00:0:0:1:0:0:0:a", "fd00:0:0:1::a"), ("FD00::A", "fd00::a"),
    ("::ffff:10.0.0.1", "10.0.0.1"), ("kafka-0", "kafka-0"), ("", ""), ("10.0.0.256", "10.0.0.256")])
def test_one_spelling_for_each_address(text: str, address: str) -> None:
    assert canonical(text) == address


def test_a_pod_of_dual_stack_has_two() -> None:
    found = {"metadata": {"name": "orders-0", "uid": "1"}, "spec": {}, "status": {
        "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00:0:0::1"}]}}
    assert read_member_pod(found).ips == {"10.0.0.1", "fd00::1"}
    assert read_member_pod({**found, "status": {}}).ips == frozenset()


def test_a_member_is_known_by_any_address_of_its_pod() -> None:
    picture = with_member(0, host="fd00::1")(with_pod("orders-0", ips=frozenset({"10.0.0.0", "fd00::1"}))(moment("Settle")))
    pod = next(pod for _, _, pod in picture.pods() if pod.name == "orders-0")
    assert [member.host for member in picture.members_of(pod)] == ["fd00::1"]
    assert picture.strangers() == ()


def test_a_server_of_ipv6_has_brackets_where_a_port_follows() -> None:
    assert Access("[::1]:9092,kafka:9093").addresses == [Address("::1", 9092), Address("kafka", 9093)]
    assert [str(each) for each in Access("[::1]:9092,kafka:9093").addresses] == ["[::1]:9092", "kafka:9093"]
