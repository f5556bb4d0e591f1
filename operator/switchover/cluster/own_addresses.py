"""Where brokers are while their pods are replaced: a host name leads to the new pod, an address of the old one does not.

Metadata goes on telling the old one until the new broker has registered, and by then it may be another broker's.
"""

from collections.abc import Iterable, Mapping
from ipaddress import ip_address

from switchover.kubernetes.workloads import Pod, Workload
from switchover.network.addresses import Address, canonical, is_an_ip


def at_their_pods(told: Mapping[int, Address], brokers: Mapping[str, int], workloads: Iterable[Workload]) -> frozenset[str]:
    """The StatefulSets that have a broker which is told at its own pod's address; `brokers` are pod -> broker id."""
    return frozenset(workload.name for workload in workloads for name, pod in workload.pods.items()
                     if name in brokers and brokers[name] in told and canonical(told[brokers[name]].host) in pod.ips)


def followed(told: Mapping[int, Address | None], brokers: Mapping[str, int], workloads: Iterable[Workload],
             at_pods: frozenset[str]) -> Mapping[int, Address | None]:
    """Where each broker is: in the StatefulSets `at_pods` at the address that its pod has now. None: nobody knows.

    No broker is at the address of another one's pod, whoever tells so. The node's address, which pods on its network share,
    is nobody's.
    """
    pods = {name: pod for workload in workloads for name, pod in workload.pods.items() if name in brokers}
    owners = {ip: brokers[name] for name, pod in pods.items() if pod.host_ports is None for ip in pod.ips}
    found = dict(told)
    for name, broker_id in brokers.items():
        address = told.get(broker_id)
        if address is None or not is_an_ip(address.host):
            continue
        if name.rpartition("-")[0] in at_pods:
            found[broker_id] = _at(address, pods.get(name))
        elif owners.get(canonical(address.host), broker_id) != broker_id:
            found[broker_id] = None
    return found


def _at(told: Address, pod: Pod | None) -> Address | None:
    """Of a pod with addresses of both kinds, the one of the kind that was told."""
    version = ip_address(canonical(told.host)).version
    same = (ip for ip in (pod.ips if pod is not None else ()) if ip_address(ip).version == version)
    return next((Address(ip, told.port) for ip in same), None)
