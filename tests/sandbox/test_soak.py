"""A whole migration of each kind in real pods under traffic, in a chaos that a seed makes: `make soak SEED=7`.

The oracles judge. Each run leaves a line in build/soak.jsonl, which `make proof` publishes.
"""

import datetime
import json
import os
import shutil
import time
from dataclasses import replace
from typing import Any

import pytest

import demo_groups.world
import ledger
from demo import metadata, migration, traffic, world
from demo.cluster import Cluster
from demo_groups import histories, stories
from demo_groups.follow import follow
from invariants.jury import judged
from invariants.memory import Limits
from patience import stretched
from sandbox import history
from sandbox.chaos import OF_A_GROUP, Chaos, Wish
from sandbox.conftest import BUILD, STATE
from sandbox.quick import PATIENT, QUICK
from sandbox.test_troubles import Scene
from switchover.cli.display import condition

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

SEED = int(os.environ.get("SOAK", "1"))
IMAGES = sorted(image for image in {*world.images(world.LIGHT).values(), *demo_groups.world.images()} if "java" not in image)
STALL = 120
"""Seconds for which a partition may stand still while brokers die."""


def report(kind: str, chaos: Chaos, seconds: float, **found: Any) -> None:
    line = {"kind": kind, "seed": SEED, "troubles": len(chaos.done), "seconds": round(seconds), **found,
            "commit": ledger.tree(BUILD.parent), "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")}
    with (BUILD / "soak.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(*chaos.done, sep="\n")
    assert len(chaos.done) > 5, "nothing happened: nothing is proved"


def test_a_cluster_comes_to_kraft_and_nothing_is_lost(cluster: Cluster) -> None:
    """The metadata is what it was, and the jury finds nothing in the audit log."""
    world.deploy(cluster, print, world.LIGHT)
    metadata.prepare(cluster)
    migration.install_operator(cluster)
    scene, begun, starts = Scene(cluster, metadata.tell(cluster)), time.time(), set[float]()
    wish, spec = Wish(scene.want, SEED), QUICK | {"gates": PATIENT, "zookeeperRetentionSeconds": 0}
    with Chaos(cluster, SEED, print) as chaos:
        if wish.at is not None:
            starts |= scene.follow(scene.manifest(**spec), wish, ended=migration.rolled_back).starts
        run = scene.follow(scene.manifest(**spec))
    world.await_in_sync(cluster)
    found, equal, modes = traffic.verify(cluster), metadata.tell(cluster) == scene.before, world.modes(cluster)
    account = f"system:serviceaccount:{cluster.namespace}:switchover"
    told = list(history.events(STATE / "audit.log", account, cluster.namespace, "kafka", starts | run.starts))
    faults = judged(told, Limits(silence=stretched(300), heartbeat=stretched(60)))
    faults += [] if equal else ["metadata differs"]
    report("KafkaMigration", chaos, time.time() - begun, back=wish.at and wish.at[0], restarts=run.restarts,
           records=found.acknowledged, lost=found.lost, faults=faults)
    assert (found.lost, faults, condition(run.resource, "Succeeded")) == (0, [], "True")
    assert found.acknowledged > 5_000, "the load did not run: nothing is proved"
    assert set(modes.values()) == {"KRaft"}


def test_a_group_is_upgraded_and_goes_back_and_no_partition_has_two_owners(cluster: Cluster) -> None:
    world.remove(cluster)
    demo_groups.world.deploy(cluster, print, demo_groups.world.TROUBLES)
    migration.install_operator(cluster)
    directory, begun, gates = BUILD / "soak-histories", time.time(), {"lagPassSeconds": 5, "maxStallSeconds": STALL}
    shutil.rmtree(directory, ignore_errors=True)
    with Chaos(cluster, SEED, print, OF_A_GROUP) as chaos:
        for story in (stories.PROTOCOL_UPGRADE, stories.DOWNGRADE):
            follow(cluster, replace(story, spec={**story.spec, "gates": gates}), print)
    demo_groups.world.stop_traffic(cluster)
    histories.collect(cluster, directory)
    found = histories.judge(directory, "orders")
    faults = [*map(str, found.faults), *(f"{each} has never had an owner" for each in found.never_owned)]
    report("ConsumerGroupMigration", chaos, time.time() - begun, back="", restarts=0, records=found.deliveries,
           lost=found.lost, faults=faults)
    assert faults == []
    assert found.deliveries > 5_000, "the load did not run: nothing is proved"
