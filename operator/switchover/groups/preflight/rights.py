"""What Switchover itself may do: in Kubernetes and in Kafka."""

from collections.abc import Iterator

from switchover.answers.observed import Known, Observed
from switchover.engine.gate import Unseen, Verdict, check, fail, seen, unknown
from switchover.engine.policy import find_unchecked
from switchover.groups.facts import Need
from switchover.groups.picture import Picture
from switchover.reasons.preflight import KUBERNETES_RIGHT_MISSING, READING_REFUSED
from switchover.reasons.walk import NOT_OBSERVED
from switchover.shared.grouped import grouped


def find_refusals(picture: Picture) -> Iterator[Verdict]:
    """Every reading that was refused: it will be refused until a person acts, so it is no matter of waiting."""
    facts = picture.facts
    readings: dict[str, Observed[object]] = {
        "the workloads": facts.fleet, f"group {picture.spec.group}": facts.group, "the cluster": facts.cluster_id,
        "offsets": facts.samples, "the groups of every coordinator": facts.coordinated,
        "__consumer_offsets": facts.offsets_topic, "the consumer protocol": facts.readiness,
        "our rights in Kubernetes": facts.missing_rights,
        "ZooKeeper": facts.zookeeper, "our rights in ZooKeeper": facts.missing_zookeeper_rights,
        **{f"broker {broker}": told for broker, told in facts.brokers.items()},
    }
    if not any(isinstance(reading, Known) for reading in readings.values()):
        raise Unseen(unknown(NOT_OBSERVED, "nothing could be read yet"))
    refused = grouped((reading.why, subject) for subject, reading in readings.items()
                      if not isinstance(reading, Known) and reading.refused and not reading.malformed)
    for why, subjects in refused.items():
        yield fail(READING_REFUSED, why, subject=", ".join(subjects[:5]), unblocks="give what the message asks for")


def find_missing_rights(picture: Picture) -> Iterator[Verdict]:
    missing = seen(picture.facts.missing_rights, NOT_OBSERVED, "our rights in Kubernetes")
    if missing:
        told = ", ".join(missing[:20])
        yield fail(KUBERNETES_RIGHT_MISSING, f"this account may not {told} in its namespace", subject="Role switchover",
                   observed=f"{len(missing)} missing", threshold="all that the chart's Role grants",
                   unblocks="install the chart's Role, or grant these")


def find_unchecked_hosts(picture: Picture) -> Iterator[Verdict]:
    yield from find_unchecked(picture.facts.unchecked)


CHECKS = (
    check("HostsChecked", find_unchecked_hosts, "servers must have certificates for their own names"),
    check("Readings", find_refusals, "nothing refuses to be read",
          needs=(Need.LOAD, Need.READINESS, Need.RIGHTS, Need.RIGHTS_IN_ZOOKEEPER)),
    check("Rights", find_missing_rights, "Switchover may do all that a migration needs", needs=(Need.RIGHTS,)),
)
