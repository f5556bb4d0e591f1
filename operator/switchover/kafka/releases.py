"""Kafka's minor releases by the levels of `metadata.version` that they brought (MetadataVersion).

The releases that a migration can start from are `cluster.modes.METADATA_LEVELS`.
"""

from collections.abc import Mapping
from itertools import pairwise

FIRST_LEVELS: Mapping[str, int] = {
    "3.6": 12, "3.7": 15, "3.8": 20, "3.9": 21, "4.0": 22, "4.1": 26, "4.2": 28, "4.3": 30, "4.4": 31,
}
"""The first level of each release, IV0; those after it are IV1 and so on, up to the next release's
(docs/facts/groups.md#releases)."""
FINAL_LEVELS: Mapping[str, int] = {
    release: after - 1 for (release, _), (_, after) in pairwise(FIRST_LEVELS.items())}
"""The last level of each release that is complete."""
NEWEST_FETCH: Mapping[int, str] = {12: "2.7 to 3.0", 13: "3.1 to 3.4", 15: "3.5 or 3.6", 16: "3.7 or 3.8"}
"""Releases by the newest version of Fetch that they speak (KIP-595, 516, 903, 951): on ZooKeeper they show no level."""
JBOD_FROM = "3.7"
"""The protocol version from which KRaft knows several log directories of a broker."""


def final_protocol(release: str) -> str:
    """What `inter.broker.protocol.version` stands for where it is a release, such as 3.6-IV2 of 3.6."""
    return f"{release}-IV{FINAL_LEVELS[release] - FIRST_LEVELS[release]}"


def release_at(level: int) -> tuple[int, int]:
    """Major and minor release of software whose highest level this is; (0, 0) for a level of an older release."""
    newest = max((release for release, first in FIRST_LEVELS.items() if first <= level), key=FIRST_LEVELS.__getitem__,
                 default="0.0")
    major, minor = newest.split(".")
    return int(major), int(minor)
