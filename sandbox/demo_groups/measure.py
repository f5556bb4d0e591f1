"""12 members on 60 partitions change their protocol by a plain rolling update, and by Switchover in batches of two and of
four, from members that hand over partitions one by one, and rolled back with six of them moved: all in one run, or those
named.

python -m demo_groups.measure two four cooperative back (what it printed is in docs/measurements.md). Needs what
`make images-groups` builds.
"""

import json
import re
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from demo import migration
from demo.cluster import Cluster
from demo.sandbox import bring_up
from demo.screen import Screen
from demo_groups import histories, stories, world
from demo_groups.follow import follow

DIRECTORY = Path(__file__).parents[2] / "build" / "measure-groups"
GROUP, PARTITIONS = "orders", 60
CALM_SECONDS = 30.0
"""After each roll: the group converges, and what it does so late still belongs to the roll."""
REBALANCED = re.compile(rf"Stabilized group {GROUP} generation \d+|\[GroupId {GROUP}\] Bumped group epoch to \d+")
"""What GroupMetadataManager logs for each new generation or epoch (docs/facts/groups.md#refusals)."""


@dataclass(frozen=True, slots=True)
class Roll:
    """One change of the protocol of all members, between two wall-clock times."""

    name: str
    start: float
    end: float
    rebalances: int


def main(wanted: Sequence[str]) -> int:
    """0 when the oracle finds no fault in all of it. Interrupted, it judges the rolls that have ended."""
    if unknown := {*wanted} - {"two", "four", "cooperative", "back"}:
        print(f"measure: no such roll: {', '.join(unknown)}", file=sys.stderr)
        return 2
    screen = Screen(Console())
    cluster = bring_up(images=world.images())
    world.remove(cluster)
    world.deploy(cluster, screen.say, world.LARGE)
    migration.install_operator(cluster)
    time.sleep(CALM_SECONDS)

    def told(story: stories.Story, *each: Callable[[Mapping[str, Any]], None]) -> None:
        follow(cluster, story, screen.say, *each)

    by_file = _upgrade("rolledback", 4)
    back = replace(by_file, end="RolledBack", spec={**by_file.spec, "workloads": [stories.BY_FILE]})
    moves: Mapping[str, tuple[str, str, Callable[[], None]]] = {
        "two": ("Switchover, batches of 2", "", lambda: told(stories.PROTOCOL_UPGRADE)),
        "four": ("Switchover, batches of 4", "", lambda: told(_upgrade("byfours", 4))),
        "cooperative": ("Switchover, batches of 4, from cooperative-sticky", "cooperative-sticky",
                        lambda: told(_upgrade("fromcooperative", 4))),
        "back": ("Switchover, by a file, rolled back with 6 moved", "", lambda: told(back, _turn(cluster, 6))),
    }
    rolls = list[Roll]()
    try:
        rolls.append(_measured(cluster, "plain, to consumer", lambda: _plain(cluster, "consumer")))
        for name, assignor, move in (moves[each] for each in wanted or moves):
            rolls.append(_measured(cluster, f"plain, to classic {assignor}".rstrip(), partial(
                _plain, cluster, "classic", assignor)))
            rolls.append(_measured(cluster, name, move))
    except KeyboardInterrupt:
        screen.say("interrupted: the rolls that have ended are judged")
    world.stop_traffic(cluster)
    histories.collect(cluster, DIRECTORY)
    report = histories.judge(DIRECTORY, GROUP, PARTITIONS)
    table = Table(title="12 members, 60 partitions", title_justify="left")
    for column in ("roll", "seconds", "longest gap of a partition", "median of the partitions", "partition-seconds", "pods",
                   "rebalances", "claims", "duplicates"):
        table.add_column(column)
    for roll in rolls:
        span = histories.between(DIRECTORY, GROUP, roll.start, roll.end)
        table.add_row(roll.name, f"{roll.end - roll.start - CALM_SECONDS:.0f}", f"{span.longest_gap:.2f} s",
                      f"{statistics.median(span.gaps.values()):.2f} s", f"{span.stood:.0f}", str(span.pods),
                      str(roll.rebalances), str(span.claims), str(span.duplicates))
    Console(width=170).print(table)
    for line in report.lines():
        screen.say(line)
    return 1 if report.faults else 0


def _upgrade(name: str, pods: int) -> stories.Story:
    """The demo's, in batches of so many after its canary of two."""
    rollout = {"steps": [{"pods": 2, "bakeSeconds": 10}, {"pods": pods, "bakeSeconds": 5}]}
    change = stories.workload(GROUP, {"GROUP_PROTOCOL": "consumer", "ASSIGNOR": ""})
    upgrade = stories.PROTOCOL_UPGRADE
    return replace(upgrade, name=name, spec={**upgrade.spec, "rollout": rollout, "workloads": [change]})


def _turn(cluster: Cluster, moved: int) -> Callable[[Mapping[str, Any]], None]:
    """Asks for the rollback as soon as so many pods have moved and their batch is done."""
    def each(resource: Mapping[str, Any]) -> None:
        slots = resource.get("status", {}).get("slots", [])
        done = sum(slot.get("assigned") == "Target" and slot.get("settled", True) for slot in slots)
        if done >= moved and resource["spec"].get("desiredState") != "RolledBack":
            cluster.kubectl("patch", "cgmig", resource["metadata"]["name"], "--type", "merge",
                            "--patch", json.dumps({"spec": {"desiredState": "RolledBack"}}))

    return each


def _measured(cluster: Cluster, name: str, roll: Callable[[], object]) -> Roll:
    start = time.time()
    roll()
    time.sleep(CALM_SECONDS)
    logged = (cluster.kubectl("logs", pod, f"--since={time.time() - start:.0f}s") for pod in world.NODES)
    return Roll(name, start, time.time(), sum(len(REBALANCED.findall(log)) for log in logged))


def _plain(cluster: Cluster, protocol: str, assignor: str = "") -> None:
    """What anybody would do without us: a quarter more pods and a quarter fewer, judged by Ready alone."""
    cluster.kubectl("set", "env", f"deployment/{GROUP}", f"GROUP_PROTOCOL={protocol}", f"ASSIGNOR={assignor}")
    cluster.kubectl("rollout", "status", f"deployment/{GROUP}", timeout=300)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
