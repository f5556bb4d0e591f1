"""The log directories of the brokers: every one is online, and several are known to KRaft."""

from collections.abc import Iterator

from switchover.answers.observed import Known
from switchover.cluster import modes
from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.cluster.reading import examined
from switchover.engine.gate import Verdict, check, fail, several
from switchover.kafka.releases import JBOD_FROM
from switchover.reasons.preflight import JBOD_NEEDS_NEWER_PROTOCOL, LOG_DIR_OFFLINE


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
            yield fail(JBOD_NEEDS_NEWER_PROTOCOL, f"broker {broker_id} has several log directories, which KRaft knows from"
                       f" inter.broker.protocol.version {JBOD_FROM} on", subject=f"broker {broker_id}", observed=release,
                       threshold=JBOD_FROM, unblocks="raise inter.broker.protocol.version to 3.9 on every broker")


CHECKS = (
    check("Disks", find_bad_disks, "every log directory is online", needs=(Need.EXAMINATION, Need.BROKER_SETTINGS)),
)
