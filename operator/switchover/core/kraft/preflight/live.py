"""What the brokers run with: their release, mode, protocol version and ids, and whether the file says the same."""

from collections.abc import Iterator, Mapping

from switchover.core.gate import Verdict, fail, unknown
from switchover.core.kraft import modes
from switchover.core.kraft.picture import Picture
from switchover.core.kraft.preflight.reading import Unseen, check, configured, pods
from switchover.core.observed import Known, Unknown

FETCH = 1
FETCH_OF_3_9 = 17
"""Kafka 3.9 is the first release whose brokers speak Fetch v17, and the last one with ZooKeeper (FetchRequest.json)."""
PROTOCOL = "inter.broker.protocol.version"


def find_wrong_versions(picture: Picture) -> Iterator[Verdict]:
    protocols: dict[int, str] = {}
    for name, broker_id in sorted(pods(picture).items()):
        answer = picture.facts.answers.get(broker_id, Unknown(f"broker {broker_id} was not asked"))
        if not isinstance(answer, Known):
            yield unknown("BrokerSilent", answer.why, subject=name)
            continue
        if picture.mode(broker_id) != Known("A", answer.at):
            yield fail("NotInZooKeeperMode", f"broker {broker_id} ({name}) is not a plain ZooKeeper broker", subject=name,
                       unblocks="all brokers must run on ZooKeeper, without the migration flag")
        elif answer.value.api_keys.get(FETCH, 0) < FETCH_OF_3_9:
            yield fail("WrongKafkaVersion", f"broker {broker_id} ({name}) is older than Kafka 3.9", subject=name,
                       observed=f"Fetch v{answer.value.api_keys.get(FETCH, 0)}", threshold=f"Fetch v{FETCH_OF_3_9}",
                       unblocks="upgrade every broker to 3.9, the last release with ZooKeeper")
        settings = picture.facts.broker_settings.get(broker_id, Unknown(f"broker {broker_id} was not asked"))
        if not isinstance(settings, Known):
            yield unknown("SettingsUnknown", settings.why, subject=name)
        else:
            protocols[broker_id] = settings.value.get(PROTOCOL, "")
    yield from _protocol_trouble(protocols)


def _protocol_trouble(protocols: Mapping[int, str]) -> Iterator[Verdict]:
    releases = {broker_id: version.split("-")[0] for broker_id, version in protocols.items()}
    different = sorted(set(releases.values()))
    if len(different) > 1:
        odd = min(releases, key=lambda broker_id: sum(version == releases[broker_id] for version in releases.values()))
        yield fail("ProtocolVersionsDiffer", "the brokers do not have the same inter.broker.protocol.version",
                   subject=f"broker {odd}", observed=", ".join(f"{k}: {v}" for k, v in sorted(releases.items())),
                   threshold="one version", unblocks="set the same inter.broker.protocol.version on every broker")
    if too_old := [version for version in different if version not in modes.METADATA_LEVELS]:
        yield fail("ProtocolVersionUnsupported", "a migration needs inter.broker.protocol.version 3.6 or newer",
                   subject=PROTOCOL, observed=too_old[0], threshold=", ".join(sorted(modes.METADATA_LEVELS)),
                   unblocks="raise it to 3.9 on every broker")


def find_generated_ids(picture: Picture) -> Iterator[Verdict]:
    for found in configured(picture):
        generates = found.keys.get("broker.id.generation.enable", "").strip() == "true"
        if generates and "broker.id" not in {*found.keys, *found.overridden}:
            yield fail("GeneratedBrokerId", f"{found.source} lets Kafka generate broker ids, which a migration refuses",
                       subject=found.source, unblocks="give each broker its id explicitly")


def find_drift(picture: Picture) -> Iterator[Verdict]:
    """The file's protocol version is the one the brokers run with: mode B must register with exactly that one."""
    for found in configured(picture):
        filed = found.keys.get(PROTOCOL, "").split("-")[0].strip()
        if not picture.facts.broker_settings:
            raise Unseen(unknown("SettingsUnknown", "no broker was asked for its settings"))
        for broker_id, settings in sorted(picture.facts.broker_settings.items()):
            if not isinstance(settings, Known):
                yield unknown("SettingsUnknown", settings.why, subject=f"broker {broker_id}")
                continue
            live = settings.value.get(PROTOCOL, "").split("-")[0]
            if filed and live != filed:
                yield fail("FileIsNotLive", f"broker {broker_id} does not run with what {found.source} says",
                           subject=PROTOCOL, observed=live, threshold=filed,
                           unblocks="restart the brokers with this file, or correct it")


CHECKS = (
    check("Versions", find_wrong_versions, "all brokers speak one protocol version that can be migrated"),
    check("BrokerIds", find_generated_ids, "every broker has an id of its own"),
    check("ConfigurationIsLive", find_drift, "the brokers run with what the files say"),
)
