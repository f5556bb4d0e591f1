"""What the brokers run with: their release, mode, protocol version and ids."""

from collections.abc import Collection, Iterator, Mapping

from switchover.answers.observed import Known, Unknown
from switchover.api.kafka_migration import NodeMode
from switchover.cluster import modes
from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture, is_older
from switchover.cluster.reading import brokers_by_pod, examined, image_of, workloads, zookeeper_of
from switchover.engine.gate import Verdict, check, fail, info, several, unknown, warn
from switchover.engine.policy import repository
from switchover.kafka.releases import JBOD_FROM, NEWEST_FETCH, final_protocol
from switchover.reasons.cluster import EDITS_CANNOT_BE_WRITTEN, SETTINGS_UNKNOWN
from switchover.reasons.notes import BROKER_IS_UPGRADED, IDS_WERE_GENERATED, PROTOCOL_VERSION_IS_RAISED
from switchover.reasons.preflight import (
    GENERATED_BROKER_ID,
    JBOD_NEEDS_NEWER_PROTOCOL,
    LOG_DIR_OFFLINE,
    NOT_IN_ZOOKEEPER_MODE,
    PROTOCOL_VERSION_UNSUPPORTED,
    PROTOCOL_VERSIONS_DIFFER,
    UPGRADE_CHANGES_NOTHING,
    WRONG_KAFKA_VERSION,
)
from switchover.reasons.walk import BROKER_SILENT
from switchover.text.command import kubectl


def find_wrong_versions(picture: Picture) -> Iterator[Verdict]:
    protocols: dict[int, str] = {}
    for name, broker_id in sorted(brokers_by_pod(picture).items()):
        answer = picture.facts.answers.get(broker_id, Unknown(f"broker {broker_id} was not asked"))
        if not isinstance(answer, Known):
            yield unknown(BROKER_SILENT, answer.why, subject=name)
            continue
        if picture.mode(broker_id) != Known(NodeMode.ZOOKEEPER, answer.at):
            yield fail(NOT_IN_ZOOKEEPER_MODE, f"broker {broker_id} ({name}) is not in plain ZooKeeper mode", subject=name,
                       unblocks=f"run it on ZooKeeper, without {modes.MIGRATION_FLAG}")
        elif is_older(answer.value):
            yield from _old_release(picture, name, broker_id, answer.value.api_keys)
        settings = picture.facts.broker_settings.get(broker_id, Unknown(f"broker {broker_id} was not asked"))
        if not isinstance(settings, Known):
            yield unknown(SETTINGS_UNKNOWN, settings.why, subject=name)
        else:
            protocols[broker_id] = settings.value.get(modes.PROTOCOL_VERSION, "")
    yield from _protocol_trouble(picture, protocols)


def _old_release(picture: Picture, name: str, broker_id: int, keys: Mapping[int, int]) -> Iterator[Verdict]:
    """A release that UpgradeBrokers brings to 3.9, where the spec says so."""
    fetch = keys.get(modes.FETCH, 0)
    release = f"Fetch v{fetch}, Kafka {NEWEST_FETCH.get(fetch, 'before 2.7')}"
    if not picture.new_image:
        yield fail(WRONG_KAFKA_VERSION, f"broker {broker_id} ({name}) is older than Kafka 3.9, the last release with"
                   " ZooKeeper", subject=name, observed=release, threshold=f"Fetch v{modes.FETCH_OF_3_9}, Kafka 3.9",
                   unblocks="set spec.upgrade.image to an image of Kafka 3.9 with the same layout, and Switchover upgrades"
                   f" first; or do it yourself: {_upgrade(picture, name, broker_id)}")
    elif keys.get(modes.LEADER_AND_ISR, 0) < modes.LEADER_AND_ISR_OF_3_4:
        yield fail(WRONG_KAFKA_VERSION, f"broker {broker_id} ({name}) is older than Kafka 3.4, the oldest that spec.upgrade"
                   " brings to 3.9", subject=name, observed=release, threshold="Kafka 3.4",
                   unblocks=_upgrade(picture, name, broker_id))
    else:
        yield from _upgraded(picture, name, release)


def _upgraded(picture: Picture, name: str, release: str) -> Iterator[Verdict]:
    if _image(picture, name.rpartition("-")[0]) == picture.new_image:
        yield fail(UPGRADE_CHANGES_NOTHING, f"spec.upgrade.image is the image that {name} runs, and that is older than Kafka"
                   " 3.9", subject="spec.upgrade.image", observed=release, threshold="Kafka 3.9",
                   unblocks="name an image of Kafka 3.9")
        return
    yield warn(BROKER_IS_UPGRADED, f"{name} restarts once more, to run {picture.new_image}; its {modes.PROTOCOL_VERSION}"
               " stays, and a rollback restores its own image", subject=name, observed=release, threshold="Kafka 3.9",
               cure="check that the image has the same layout as the one that runs; nothing else to do")


def _image(picture: Picture, workload: str) -> str:
    return next(image_of(brokers, found) for each, brokers, found in workloads(picture) if each == workload)


def _upgrade(picture: Picture, pod: str, broker_id: int) -> str:
    """A rolling upgrade in commands; the protocol version stays, so that it can be undone."""
    workload = pod.rpartition("-")[0]
    settings = picture.facts.broker_settings.get(broker_id)
    live = settings.value.get(modes.PROTOCOL_VERSION, "") if isinstance(settings, Known) else ""
    brokers = picture.brokers_of(workload)
    container = brokers.value.container if isinstance(brokers, Known) else picture.broker_sets[workload].container
    newer = f"{repository(_image(picture, workload)) or 'REGISTRY/kafka'}:3.9.2"
    image = kubectl(picture.namespace, "set image statefulset {} {}", workload, f"{container or 'CONTAINER'}={newer}")
    return (f"set {modes.PROTOCOL_VERSION}={modes.release_of(live) or 'RELEASE'} on every broker that lacks it;"
            f" then, with the tag of your registry, {image}; then"
            f" {kubectl(picture.namespace, 'rollout status statefulset {}', workload)}")


def _protocol_trouble(picture: Picture, protocols: Mapping[int, str]) -> Iterator[Verdict]:
    releases = {broker_id: modes.release_of(version) for broker_id, version in protocols.items()}
    different = sorted(set(releases.values()))
    if len(different) > 1:
        odd = min(releases, key=lambda broker_id: sum(version == releases[broker_id] for version in releases.values()))
        yield fail(PROTOCOL_VERSIONS_DIFFER, f"broker {odd} has another {modes.PROTOCOL_VERSION} than the other brokers:"
                   f" {releases[odd] or 'none that it reports'}", subject=f"broker {odd}",
                   observed=", ".join(f"{k}: {v}" for k, v in sorted(releases.items())),
                   threshold="one version", unblocks=f"set the same {modes.PROTOCOL_VERSION} on every broker")
    if too_old := [version for version in different if version not in modes.METADATA_LEVELS]:
        yield _too_old(picture, too_old[0])
        return
    for version in sorted({version for version in protocols.values() if "-" in version}):
        final = final_protocol(version.split("-")[0])       # the controllers are formatted with it
        if version != final:
            yield fail(PROTOCOL_VERSION_UNSUPPORTED, f"inter.broker.protocol.version {version} is not the last one of its"
                       " release: the controllers would refuse such a broker", subject=modes.PROTOCOL_VERSION,
                       observed=version, threshold=final, unblocks=f"set it to {version.split('-')[0]} on every broker")


def _too_old(picture: Picture, version: str) -> Verdict:
    """A version that RaiseProtocolVersion raises, or one that it cannot."""
    if version in modes.RAISABLE:
        return warn(PROTOCOL_VERSION_IS_RAISED, f"every broker restarts once more, to raise {modes.PROTOCOL_VERSION} to"
                    f" {modes.RAISED}; a rollback lowers it again", subject=modes.PROTOCOL_VERSION, observed=version,
                    threshold=", ".join(sorted(modes.METADATA_LEVELS)),
                    cure="nothing to do, or raise it yourself before the migration begins")
    return fail(PROTOCOL_VERSION_UNSUPPORTED, f"{modes.PROTOCOL_VERSION} is {version or 'not known'}: Switchover migrates"
                f" from 3.6 on, and raises it by itself from {modes.RAISABLE[0]} on", subject=modes.PROTOCOL_VERSION,
                observed=version, threshold=", ".join(sorted(modes.METADATA_LEVELS)),
                unblocks=f"raise it to {modes.RAISED} on every broker")


def find_generated_ids(picture: Picture) -> Iterator[Verdict]:
    """A broker that was given no id shows -1 as its static broker.id, or none: the default."""
    generated = {broker_id for broker_id, told in examined(picture)
                 if all(told.static_settings.get(key, "-1") == "-1" for key in ("broker.id", "node.id"))}
    if named := {pod: broker_id for pod, broker_id in sorted(brokers_by_pod(picture).items()) if broker_id in generated}:
        each = several((f"broker.id={broker_id} on {pod}" for pod, broker_id in named.items()), 10)
        yield fail(GENERATED_BROKER_ID, f"{several(f'{pod} ({broker_id})' for pod, broker_id in named.items())}:"
                   " Kafka generated the broker id, and a migration needs one in the configuration",
                   subject=several(named), observed="broker.id is not set", threshold="an id in each broker's configuration",
                   unblocks="write each broker's present id into its configuration, and restart one after the other with"
                   f" broker.id.generation.enable=false and {each}")
    elif zookeeper_of(picture).generated_ids:
        yield info(IDS_WERE_GENERATED, "Kafka generated broker ids once; every broker has an explicit one now",
                   subject="/brokers/seqid")


def find_unwritable(picture: Picture, among: Collection[str] | None = None) -> Iterator[Verdict]:
    """Values that would be more than one word of a directive, of these StatefulSets or of all."""
    for name in picture.broker_sets if among is None else among:
        found = picture.brokers_of(name)
        if isinstance(found, Unknown):
            yield fail(EDITS_CANNOT_BE_WRITTEN, found.why, subject=f"StatefulSet {name}",
                       unblocks="correct that setting of the brokers") if found.malformed else \
                unknown(SETTINGS_UNKNOWN, found.why, subject=f"StatefulSet {name}")


# --- disks ----------------------------------------------------------------------------------------------------------------
# The log directories of the brokers: every one is online, and several are known to KRaft.

def find_bad_disks(picture: Picture) -> Iterator[Verdict]:
    """In migration mode a broker stops when one of its log directories fails (KAFKA-16431)."""
    several_dirs = []
    for broker_id, told in examined(picture):
        if offline := [directory.path for directory in told.log_directories if directory.offline]:
            yield fail(LOG_DIR_OFFLINE, f"log directory {several(offline)} of broker {broker_id} is offline",
                       subject=f"broker {broker_id}", observed=several(offline), threshold="none offline",
                       unblocks="repair or replace the disk and restart the broker, or take the directory out of log.dirs")
        if len(told.log_directories) > 1:
            several_dirs.append(broker_id)
    for broker_id in several_dirs:
        settings = picture.facts.broker_settings.get(broker_id)
        release = settings.value.get(modes.PROTOCOL_VERSION, "").split("-")[0] if isinstance(settings, Known) else ""
        if release in modes.METADATA_LEVELS and release < JBOD_FROM:
            yield fail(JBOD_NEEDS_NEWER_PROTOCOL, f"broker {broker_id} has several log directories, which KRaft supports"
                       f" from {modes.PROTOCOL_VERSION} {JBOD_FROM} on", subject=f"broker {broker_id}", observed=release,
                       threshold=JBOD_FROM, unblocks=f"raise {modes.PROTOCOL_VERSION} to 3.9 on every broker")


CHECKS = (
    check("EditsCanBeWritten", find_unwritable, "the nodes' edits can be made from the brokers' settings",
          needs=(Need.BROKER_SETTINGS,)),
    check("Versions", find_wrong_versions, "all brokers speak one protocol version that can be migrated",
          needs=(Need.BROKER_SETTINGS,)),
    check("BrokerIds", find_generated_ids, "every broker was given its id", needs=(Need.EXAMINATION,)),
    check("Disks", find_bad_disks, "every log directory is online", needs=(Need.EXAMINATION, Need.BROKER_SETTINGS)),
)
