"""`make demo-zkcc`: a group of old consumers moved to Kafka's coordination and back, and the oracle's word on it."""

import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from demo import migration
from demo.cluster import Cluster
from demo.run import BUILD, run
from demo_groups import histories, world
from demo_groups.follow import follow
from demo_zkcc.stories import GROUP, IMAGES, MANIFESTS, STORIES
from demo_zkcc.summary import OLD_CONSUMER, Judged, Summary

OUTPUT = BUILD / "demo-zkcc"
CALM_SECONDS = 20.0
"""After a restart: the group settles, and what it does so late still belongs to the restart."""


def main() -> int:
    """0 only when both stories came to their ends, without a loss and without an overlap or a rewind that we caused."""
    summary = Summary()
    return run("make demo-zkcc", OUTPUT,
               lambda cluster, screen: tell(cluster, summary, screen.say, OUTPUT / "histories"),
               list(IMAGES.values()), summary.ends)


def tell(cluster: Cluster, summary: Summary, say: Callable[[str], None], directory: Path) -> Summary:
    """A world of old consumers, their plain restart, and there and back. `summary` has what is known when it breaks off.

    Raises CommandFailed and StoryFailed, and ValueError where the histories cannot be judged.
    """
    begin(cluster, say)
    summary.baseline = restart(cluster)
    say(f"a plain rolling restart of the old consumers took {summary.baseline[1] - summary.baseline[0]:.0f} s,"
        f" {CALM_SECONDS:.0f} s of them to see the group settle")
    return there_and_back(cluster, summary, say, directory, 24)


def begin(cluster: Cluster, say: Callable[[str], None], manifests: Path = MANIFESTS) -> None:
    """A fresh world. Raises CommandFailed."""
    world.remove(cluster)
    world.deploy(cluster, say, manifests)


def there_and_back(cluster: Cluster, summary: Summary, say: Callable[[str], None], directory: Path, partitions: int,
                   each: Callable[[Mapping[str, Any]], None] = lambda _: None) -> Summary:
    """Both migrations, and the oracle on all that happened in this world. `each` gets every migration at every change.

    Raises CommandFailed and StoryFailed, and ValueError where the histories cannot be judged.
    """
    shutil.rmtree(directory, ignore_errors=True)
    migration.install_operator(cluster)
    say("operator is ready")
    for story in STORIES:
        summary.told[story.name] = follow(cluster, story, say, each)
    say("stopping the producer, then members; collecting their histories")
    world.stop_traffic(cluster)
    histories.collect(cluster, directory)
    summary.judged = judge(directory, summary, partitions)
    for line in summary.judged.report.lines():
        say(f"oracle: {line}")
    return summary


def restart(cluster: Cluster) -> tuple[float, float]:
    """What anybody does, judged by Ready alone; its window, from a settled group to a settled one. Raises CommandFailed."""
    time.sleep(CALM_SECONDS)
    start = time.time()
    cluster.kubectl("rollout", "restart", f"deployment/{GROUP}")
    cluster.kubectl("rollout", "status", f"deployment/{GROUP}", timeout=300)
    time.sleep(CALM_SECONDS)
    return start, time.time()


def judge(directory: Path, summary: Summary, partitions: int) -> Judged:
    """Raises ValueError where nothing can be judged."""
    return Judged(
        histories.judge(directory, GROUP, partitions),
        {name: histories.between(directory, GROUP, *window) for name, window in summary.windows.items()},
        {by for by, words in histories.started(directory, GROUP).items() if OLD_CONSUMER in words})


if __name__ == "__main__":
    sys.exit(main())
