"""What our adapters read of a group on a real broker, laid into a picture, so that the project's own gates judge it."""

from collections.abc import Iterator, Mapping
from typing import Any

from patience import stretched
from switchover.answers.ask import known
from switchover.answers.clock import WallClock
from switchover.answers.observed import NOT_ASKED, Known
from switchover.api.status import Severity
from switchover.engine.gate import Verdict
from switchover.groups import preflight
from switchover.groups.gates.protocol import to_consumer
from switchover.groups.picture import Picture
from switchover.kafka.client.groups import WireGroups
from switchover.network.addresses import Address
from switchover.network.credentials import Access
from unit.group_pictures import moment, spec_of, value, with_fact, with_pod


async def sight(
    server: Address, group: str, *, step: str = "Preflight", modes: str = "O", properties: Mapping[str, str] | None = None,
    **spec: Any,
) -> Picture:
    """A healthy Deployment of pods that all are at 127.0.0.1, as clients on loopback seem to be; all of Kafka is read.

    With one pod every member runs in it; of several each has those whose client id contains the pod's name.
    """
    seconds = stretched(30)
    picture = moment(step, modes, spec=spec_of(group=group, **spec))
    fleet = value(picture.facts.fleet)
    workloads = [workload for workload in fleet.sources.values() if workload is not None]
    for each in [name for workload in workloads for name in workload.pods]:
        picture = with_pod(each, ips=frozenset({"127.0.0.1"}))(picture)
    groups, clock = WireGroups(Access(str(server), properties or {}), seconds=seconds), WallClock()
    cluster = await groups.cluster()
    seen = await known(groups.describe(group), seconds, clock)
    topics = sorted({topic for member in seen.value.members for topic in (*member.topics, *(
        partition.topic for partition in member.target))}) if isinstance(seen, Known) else []
    brokers = {number: await known(groups.broker(address, number), seconds, clock)
               for number, address in cluster.brokers.items()}
    readiness = await known(groups.readiness(group, topics), seconds, clock) if to_consumer(picture) else NOT_ASKED
    for fact, answer in {
        "group": seen, "brokers": brokers, "readiness": readiness,
        "partitions": await known(groups.partitions(topics), seconds, clock),
        "coordinated": await known(groups.coordinated(), seconds, clock),
        "offsets_topic": await known(groups.offsets_topic(), seconds, clock),
    }.items():
        picture = with_fact(picture, fact, answer)
    return picture


def told(picture: Picture) -> set[str]:
    """The reasons of all that Preflight finds and the status would tell, but for what is merely good to know."""
    return {each.reason for each in found(picture) if each.severity in (Severity.BLOCKER, Severity.WARNING)}


def found(picture: Picture) -> Iterator[Verdict]:
    """All that Preflight finds."""
    for gate in preflight.GATES:
        verdict = gate.check(picture)
        yield from verdict.findings or (verdict,)
