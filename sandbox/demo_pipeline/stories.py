"""The migrations of groups in the pipeline's demo, each audited in the end."""

from pathlib import Path
from typing import Any

import yaml

from demo.world import images as images_of
from demo_groups.stories import Story, workload
from demo_pipeline.jobs import CLAIM, IMAGE
from demo_zkcc.stories import FORWARD

NINE = Path(__file__).parents[1] / "manifests-pipeline"
"""Kafka 3.9 on ZooKeeper."""
FOUR = NINE.with_name("manifests-pipeline-4")
"""Kafka 4.4."""


def images() -> list[str]:
    """Full names of the images of both worlds."""
    return sorted({*images_of(NINE).values(), *images_of(FOUR).values()})


def coordination() -> Story:
    """Old consumers in Java to KafkaConsumers in Python."""
    return _audited(FORWARD, NINE)


def protocol(baseline: str) -> Story:
    """The classic to the consumer protocol, its lag judged by the baseline in a ConfigMap."""
    upgrade = Story(
        "protocolUpgrade", "from the classic to the consumer protocol, by a baseline", "orders",
        {"protocol": {"to": "Consumer"}, "workloads": [workload("orders", {"GROUP_PROTOCOL": "consumer"})],
         "gates": {"lagPassSeconds": 5, "maxStallSeconds": 20, "baselineRef": {"name": baseline}}},
        end="Succeeded")
    return _audited(upgrade, FOUR)


def _audited(story: Story, manifests: Path) -> Story:
    cluster = yaml.safe_load((manifests / "pipeline.yaml").read_text())["cluster"]
    spec: dict[str, Any] = {**story.spec, "audit": {
        "enabled": True, "image": IMAGE, "claim": CLAIM, "cluster": cluster, "cpu": "100m", "waitSeconds": 300}}
    return Story(story.name, f"{story.words}; audited", story.group, spec, story.end)
