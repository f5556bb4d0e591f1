"""Which pod is which broker.

Two things prove it. A registration in ZooKeeper that advertises a host name that begins with the pod's: such a name leads
to the pod, whatever address it has. And the broker itself, asked at the pod's own address. That a registration advertises
the pod's address proves nothing: it outlives its broker by a session, in which the address may be another pod's already.
It is a place to ask at.
"""

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address

from switchover.answers.observed import Known, Observed
from switchover.kubernetes.workloads import Pod, Workload
from switchover.network.addresses import Address, canonical, is_an_ip

# --- own addresses --------------------------------------------------------------------------------------------------------
# Where brokers are while their pods are replaced: a host name leads to the new pod, an address of the old one does not.
#
# Metadata has the old one until the new broker has registered, and by then it may be another broker's.

def at_their_pods(advertised: Mapping[int, Address], brokers: Mapping[str, int],
                  workloads: Iterable[Workload]) -> frozenset[str]:
    """The StatefulSets that have a broker which advertises its own pod's address; `brokers` are pod -> broker id."""
    return frozenset(
        workload.name for workload in workloads for name, pod in workload.pods.items()
        if name in brokers and brokers[name] in advertised and canonical(advertised[brokers[name]].host) in pod.ips)


def followed(advertised: Mapping[int, Address | None], brokers: Mapping[str, int], workloads: Iterable[Workload],
             at_pods: frozenset[str]) -> Mapping[int, Address | None]:
    """Where each broker is: in the StatefulSets `at_pods` at the address that its pod has now. None: nobody knows.

    No broker is at the address of another one's pod, whatever is advertised. The node's address, which pods on its network
    share, belongs to none.
    """
    pods = {name: pod for workload in workloads for name, pod in workload.pods.items() if name in brokers}
    owners = {ip: brokers[name] for name, pod in pods.items() if pod.host_ports is None for ip in pod.ips}
    found = dict(advertised)
    for name, broker_id in brokers.items():
        address = advertised.get(broker_id)
        if address is None or not is_an_ip(address.host):
            continue
        if name.rpartition("-")[0] in at_pods:
            found[broker_id] = _at(address, pods.get(name))
        elif owners.get(canonical(address.host), broker_id) != broker_id:
            found[broker_id] = None
    return found


def _at(advertised: Address, pod: Pod | None) -> Address | None:
    """Of a pod with addresses of both kinds, the one of the kind that is advertised."""
    version = ip_address(canonical(advertised.host)).version
    same = (ip for ip in (pod.ips if pod is not None else ()) if ip_address(ip).version == version)
    return next((Address(ip, advertised.port) for ip in same), None)


Registered = Mapping[int, Mapping[str, Address]]
"""/brokers/ids: broker id -> listener name -> address."""
SHOWN = 5


def identified(pods: Sequence[str], registered: Registered,
               answers: Mapping[str, Observed[frozenset[int]]]) -> Mapping[str, int] | str:
    """Pod -> broker id: each pod is exactly one, and each broker one pod; else which pod's id is not known, and why.

    What pods answered outweighs names.
    """
    found: dict[str, int] = {}
    for pod in pods:
        answer = answers.get(pod)
        ids = answer.value if isinstance(answer, Known) else _named(pod, registered)
        if len(ids) != 1:
            return f"{_why(pod, ids, answer)}. Registered: {_shown(registered)}"
        [broker_id] = ids
        if (other := next((name for name, taken in found.items() if taken == broker_id), None)) is not None:
            return f"pods {other} and {pod} both seem to be broker {broker_id}. Registered: {_shown(registered)}"
        found[pod] = broker_id
    return found


def places(workloads: Iterable[Workload], registered: Registered, bootstrap: Mapping[int, Address],
           settings: Mapping[int, Observed[Mapping[str, str]]]) -> Mapping[str, tuple[Address, ...] | str]:
    """Where each pod is to be asked which broker it is, or why it cannot be asked; nothing where host names show all.

    It is asked at its own addresses, on the listener that we have the credentials for: the one at which `bootstrap`, the
    brokers' addresses in Metadata, is registered. Its port in the pod is known by the registrations that have
    an address of the pod, and by the brokers' own setting `listeners`.
    """
    sets = tuple(workloads)
    if not isinstance(identified([pod for workload in sets for pod in workload.wanted], registered, {}), str):
        return {}
    spoken = {name for broker_id, listeners in registered.items() for name, address in listeners.items()
              if _same(address, bootstrap.get(broker_id))}
    ports = {port for answer in settings.values() if isinstance(answer, Known)
             for port in _ports(answer.value.get("listeners", ""), spoken)}
    advertised = [address for listeners in registered.values() for name, address in listeners.items() if name in spoken]
    return {name: _place(name, workload.pods.get(name), advertised, ports)
            for workload in sets for name in workload.wanted}


def _place(name: str, pod: Pod | None, advertised: Sequence[Address], ports: set[int]) -> tuple[Address, ...] | str:
    if pod is None or not pod.ips:
        return f"pod {name} has no address at this moment"
    own = {Address(ip, port) for ip in pod.ips for port in ports}
    own |= {Address(canonical(address.host), address.port) for address in advertised if canonical(address.host) in pod.ips}
    if not own:
        return "no broker has answered at which port it listens"
    reserved = [place for place in own if pod.host_ports is None or place.port in pod.host_ports]
    if not reserved:
        return (f"it is on its node's network, and the template's containerPorts do not name port"
                f" {min(place.port for place in own)}: whatever listens there may be another pod")
    return tuple(sorted(reserved, key=str))


def _ports(listeners: str, wanted: set[str]) -> set[int]:
    """The ports of these listeners in a broker's setting `listeners`; Kafka has their names in capitals."""
    found = (item.strip().rpartition(":") for item in listeners.split(","))
    ports = (int(port) for where, _, port in found
             if where.partition("://")[0].upper() in wanted and port.isascii() and port.isdigit())
    return {port for port in ports if 0 < port < 65536}


def _same(one: Address, other: Address | None) -> bool:
    return other is not None and (canonical(one.host).lower(), one.port) == (canonical(other.host).lower(), other.port)


def _named(pod: str, registered: Registered) -> frozenset[int]:
    """The brokers that advertise a host name which begins with the pod's."""
    return frozenset(broker_id for broker_id, listeners in registered.items()
                     if any(address.host.split(".")[0] == pod for address in listeners.values()))


def _why(pod: str, ids: frozenset[int], answer: Observed[frozenset[int]] | None) -> str:
    if isinstance(answer, Known):
        return f"pod {pod} answers as brokers {_listed(ids)}" if ids else (
            f"the broker in pod {pod} says that it is none of those that are registered")
    name = f"brokers {_listed(ids)} advertise host names that begin with {pod}" if ids else (
        f"no broker advertises a host name that begins with {pod}")
    return f"{name}, and the pod did not answer which broker it is: {answer.why}" if answer is not None else name


def _listed(ids: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(ids)))


def _shown(registered: Registered) -> str:
    """What each broker advertises."""
    each = [f"{broker_id} at {' and '.join(sorted({str(address) for address in listeners.values()}))}"
            for broker_id, listeners in sorted(registered.items())]
    more = f" and {len(each) - SHOWN} more" if len(each) > SHOWN else ""
    return "; ".join(each[:SHOWN]) + more if each else "none"
