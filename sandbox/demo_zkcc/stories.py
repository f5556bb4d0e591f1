"""There and back: a group of old consumers moves to Kafka's coordination, and all the way back to Java."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from demo.world import images
from demo_groups.stories import Story, workload

MANIFESTS = Path(__file__).parents[1] / "manifests-zkcc"
SMALL = MANIFESTS.with_name("manifests-zkcc-small")
"""The same with three members on 8 partitions."""
GROUP = "orders"
IMAGES = images(MANIFESTS)
OLD, CLIENT = IMAGES["java-old-member"], IMAGES["client"]
ENABLED, KAFKA_CONSUMER = {"MEMBER": "zkmember"}, {"MEMBER": "member", "GROUP_PROTOCOL": "classic", "ASSIGNOR": "range"}
"""What the client's image runs: the migration-enabled consumer, or a plain KafkaConsumer."""

TOGGLE = "Toggle"
"""The step in which the mode is written, and followed by every member."""


def _spec(to: str, image: str, template: Mapping[str, str]) -> dict[str, Any]:
    """Times of a demo: members commit every second, and an old one that is restarted is back within ten."""
    return {
        "coordination": {"to": to}, "zookeeper": {"connect": "zookeeper:2181"},
        "rollout": {"steps": [{"pods": 1, "bakeSeconds": 10}, {"pods": 2, "bakeSeconds": 5}]},
        "gates": {"lagPassSeconds": 5, "maxStallSeconds": 30, "quietSeconds": 15},
        "workloads": [workload(GROUP, template, ENABLED, images={"template": image, "bridge": CLIENT})],
    }


FORWARD = Story(
    "forward", "old consumers in Java give way to migration-enabled ones, the mode is toggled, KafkaConsumers follow", GROUP,
    _spec("Kafka", CLIENT, KAFKA_CONSUMER), end="Succeeded")
BACK = Story(
    "back", "and all the way back to the old consumers", GROUP, _spec("ZooKeeper", OLD, {}), end="Succeeded")
STORIES = (FORWARD, BACK)
