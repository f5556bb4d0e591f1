"""`make demo`: a ZooKeeper Kafka under load becomes a KRaft Kafka by one `kubectl apply`, and the figures of it.

`make demo-rollback`: the same into the middle of MoveBrokers, all the way back to plain ZooKeeper, and again to the end.
"""

import argparse
import json
import re
import sys
import time

from demo import migration, proofs, rollback, traffic, world
from demo.cluster import Cluster, CommandFailed
from demo.kill import MOMENTS, Killer
from demo.picture import picture
from demo.planted import Planted
from demo.run import BUILD, run
from demo.screen import Screen
from demo.summary import Summary
from switchover.cli.objects import Resource

OUTPUT, ROLLBACK_OUTPUT = BUILD / "demo", BUILD / "demo-rollback"
PLAIN_RESTARTS = 2
METRICS_PORT = 9090


def main() -> int:
    """The whole story. 0 only when it came to its good end and no acknowledged record is lost."""
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--rollback", action="store_true", help="half-way, back, and again to the end")
    parser.add_argument(
        "--kill", type=int, default=0, choices=range(len(MOMENTS) + 1), help="SIGKILL the operator so many times"
    )
    given = parser.parse_args()
    if given.rollback:
        return run("make demo-rollback", ROLLBACK_OUTPUT, rollback.tell)
    return run("make demo", OUTPUT, lambda cluster, screen: tell(cluster, Killer(MOMENTS[: given.kill]), screen))


def tell(cluster: Cluster, killer: Killer, screen: Screen) -> Summary:
    """World, plain restarts, migration, figures. Raises CommandFailed or MigrationFailed."""
    say = screen.say
    world.remove(cluster)
    world.deploy(cluster, say)

    windows = []
    for number in range(1, PLAIN_RESTARTS + 1):
        windows.append(world.rolling_restart(cluster))
        say(f"plain rolling restart {number} of {PLAIN_RESTARTS} took {windows[-1][1] - windows[-1][0]:.0f} s")
    plain = [traffic.gaps(cluster, *window) for window in windows]

    planted = Planted(cluster)
    say(planted.plant())
    migration.install_operator(cluster)
    say("operator is ready; kubectl apply --filename sandbox/demo/migration.yaml")
    run = migration.Run()
    try:
        migration.follow(cluster, run, migration.manifest(), screen.show, say, [planted, killer, portrait])
    finally:
        screen.close()
        (OUTPUT / "migration.json").write_text(json.dumps(run.resource, indent=2) + "\n")
    if not planted.said:
        raise migration.MigrationFailed("the rehearsal did not name the node that was planted")
    if killer.missed:
        raise migration.MigrationFailed(f"the operator was not killed at: {', '.join(m.words for m in killer.missed)}")
    world.await_in_sync(cluster)
    end = time.time()
    moved = traffic.gaps(cluster, run.start, end)
    if moved.produce > (end - run.start) / 2:
        raise migration.MigrationFailed(
            f"the load stood still for {moved.produce} s of {end - run.start:.0f}: nothing is proved; see the pods' logs")
    say("reading every record again")
    return Summary(
        result="Succeeded",
        seconds=run.end - run.start,
        steps=run.steps(),
        pods_replaced=run.replaced,
        traffic=traffic.verify(cluster),
        migration=moved,
        step_gaps={name: traffic.gaps(cluster, *window) for name, window in run.windows().items()},
        plain=plain,
        plain_seconds=[stop - start for start, stop in windows],
        modes=world.modes(cluster),
        zookeeper_connections=run.connections,
        kills=[moment.words for moment in killer.killed],
        operator_restarts=run.restarts,
        operator_peak_memory=run.peak_memory,
        decision_latency=_decision_latency(cluster),
    )


def portrait(resource: Resource, _: str) -> None:
    """Keep a picture of the tree as it stands at the hold before Finalize."""
    if resource.get("status", {}).get("phase") == "AwaitingApproval":
        (OUTPUT / "tree.svg").write_text(picture(resource, time.time()))


def _decision_latency(cluster: Cluster) -> dict[str, float]:
    """Mean and count of the operator's own measure since its last start: from noticing a change to its record."""
    pod = cluster.items("pods", "--selector", migration.OPERATOR)[0]["metadata"]["name"]
    text = proofs.metrics(cluster, pod, METRICS_PORT)
    found = dict(re.findall(r"^switchover_decision_seconds_(sum|count) (\S+)$", text, re.MULTILINE))
    if not {"sum", "count"} <= found.keys() or not float(found["count"]):
        raise CommandFailed("the operator's metrics do not tell switchover_decision_seconds")
    return {"mean": round(float(found["sum"]) / float(found["count"]), 3), "decisions": float(found["count"])}


if __name__ == "__main__":
    sys.exit(main())
