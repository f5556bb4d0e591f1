"""The file against the brokers that run: what we render from it must not change more than the migration means to.

A file that something else rewrites at start, or that was edited since, would bring its difference in with the first restart.
"""

from collections.abc import Iterator, Mapping

from switchover.core.gate import Unseen, Verdict, fail, unknown, warn
from switchover.core.kraft import modes
from switchover.core.kraft.examination import BrokerExamination
from switchover.core.kraft.picture import Picture
from switchover.core.kraft.preflight.reading import Configured, check, configured, pods, several
from switchover.core.observed import Known, Unknown

DECISIVE = (
    "broker.id", "zookeeper.connect", "inter.broker.protocol.version", "log.dirs", "listeners", "advertised.listeners",
    "listener.security.protocol.map", "inter.broker.listener.name", "security.inter.broker.protocol",
    "control.plane.listener.name", "sasl.mechanism.inter.broker.protocol", "sasl.enabled.mechanisms",
    "authorizer.class.name", "super.users", "allow.everyone.if.no.acl.found", "broker.rack",
)
"""A broker that came back with another value of these would be another broker, or out of reach."""
TOLERABLE = (
    "min.insync.replicas", "default.replication.factor", "num.partitions", "unclean.leader.election.enable",
    "auto.create.topics.enable", "log.retention.hours", "log.retention.ms", "log.retention.bytes", "message.max.bytes",
    "offsets.topic.replication.factor", "transaction.state.log.replication.factor", "transaction.state.log.min.isr",
    "broker.session.timeout.ms", "replica.lag.time.max.ms",
)
SYNONYMS = {"log.dirs": "log.dir", "broker.id": "node.id"}
RELEASES = frozenset({"inter.broker.protocol.version"})
"""Values of which only the release counts: 3.9 is what 3.9-IV0 is."""
BY_THE_IMAGE = frozenset(modes.BROKER_ONLY) - modes.BROKER_KEYS
"""What an image may add to its variables by itself: no mode changes it, no controller needs it, and it adds it again."""


def find_drift(picture: Picture) -> Iterator[Verdict]:
    """Static values, as DescribeConfigs tells them, against the file and the command line."""
    brokers = pods(picture)
    for found in configured(picture):
        for name, broker_id in sorted(brokers.items()):
            if name.rpartition("-")[0] != found.workload.name:
                continue
            told = picture.facts.examination.brokers.get(broker_id, Unknown(f"broker {broker_id} was not asked"))
            if not isinstance(told, Known):
                raise Unseen(unknown("SettingsUnknown", told.why, subject=f"broker {broker_id}"))
            yield from _differences(found, broker_id, told.value)


def _differences(found: Configured, broker_id: int, told_of: BrokerExamination) -> Iterator[Verdict]:
    for keys, decisive in ((DECISIVE, True), (TOLERABLE, False)):
        different = {
            key: (filed, runs) for key in keys
            if (filed := _filed(found, key)) is not None and not _same(key, filed, runs := _live(told_of, key, filed))
        }
        if not different:
            continue
        told = "; ".join(f"{key} is {runs or 'not set'}, and {filed or 'not set'} in the file"
                         for key, (filed, runs) in list(different.items())[:5])
        message, subject = f"broker {broker_id} does not run with what {found.source} says: {told}", several(different)
        cure = "restart the brokers with this file, or correct it"
        filed, runs = next(iter(different.values()))
        if decisive:
            yield fail("FileIsNotLive", message, subject=subject, observed=runs, threshold=filed, unblocks=cure)
        else:
            yield warn("FileDiffers", message, subject=subject, observed=runs, threshold=filed, cure=cure)


def _live(told: BrokerExamination, key: str, filed: str) -> str:
    """The value that the broker runs with. Of one that it hides only this is known: it is set, maybe as in the file."""
    if key in told.hidden:
        return filed or "set, to what the broker hides"
    return _value(told.static_settings, key)


def _filed(found: Configured, key: str) -> str | None:
    """What the broker was started with by file and command line, "" when it is in neither, None when nobody can tell."""
    value = _value(found.overridden, key) or _value(found.keys, key)
    added = not value and found.by_environment and key in BY_THE_IMAGE
    return None if "$" in value or added else value


def _value(settings: Mapping[str, str], key: str) -> str:
    return (settings.get(key) or settings.get(SYNONYMS.get(key, ""), "")).strip()


def _same(key: str, filed: str, live: str) -> bool:
    if key in RELEASES:
        return not filed or filed.split("-")[0] == live.split("-")[0]
    return _items(filed) == _items(live)


def _items(value: str) -> list[str]:
    """Lists with or without spaces after their commas are the same."""
    return [item.strip() for item in value.split(",")]


CHECKS = (check("ConfigurationIsLive", find_drift, "the brokers run with what the files say"),)
