"""What runs in a replica's pod, next to its processes: it conducts the rehearsal, and leaves the report."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from switchover.answers.errors import Refused, Unreachable
from switchover.api.job_message import LARGEST, NONCE
from switchover.cluster.rehearsal import report as reports
from switchover.cluster.rehearsal.conductor import NoReplica, Parts, Rehearsal
from switchover.cluster.rehearsal.pack import unpacked
from switchover.cluster.rehearsal.processes import SharedDirectory
from switchover.cluster.rehearsal.report import TREE_DIGEST, Report
from switchover.cluster.rehearsal.settings import Place
from switchover.kafka.client.nodes import KafkaWire, register
from switchover.network.credentials import Access
from switchover.text.visible import printable
from switchover.zookeeper.client.copying import KazooTree
from switchover.zookeeper.tree import Tree

MESSAGE = Path("/dev/termination-log")
ANSWER_SECONDS = 30.0
"""A replica has what the nodes have to spare."""


def conduct(parts: Path, place: Place, release: str, message: Path, given: Mapping[str, str], say: Callable[[str], None],
            classes: Mapping[str, str] | None = None) -> bool:
    """Rehearse the tree whose parts are files, at a place that the processes' containers share. `given` are the variables by
    which the Job says of which tree it is, and what its report repeats.

    The report goes to `say`, on one line, and to the termination message, or in its place why there is none. False then.
    """
    logging.getLogger("kazoo").setLevel(logging.ERROR)
    processes = SharedDirectory(Path(place.directory))
    try:
        tree = tree_of([part.read_text() for part in sorted(parts.iterdir()) if part.is_file()], given)
        found = asyncio.run(rehearsed(tree, place, processes, release, say, classes))
    except (NoReplica, Refused, Unreachable, ValueError, OSError) as error:
        message.write_text(str(error)[:LARGEST])
        say(f"it did not come to its end: {error}")
        return False
    finally:
        processes.end()
    message.write_text(reports.as_message(replace(found, nonce=given.get(NONCE, ""))))
    for line in (*reports.lines(found), reports.as_json(found)):
        say(line)
    return True


def tree_of(parts: Sequence[str], given: Mapping[str, str]) -> Tree:
    """The tree that the Job is made for. Raises ValueError where its ConfigMaps hold another one."""
    tree = unpacked(parts)
    if tree.digest != given.get(TREE_DIGEST):
        raise ValueError("its ConfigMaps hold another tree than this Job was made for: something else has made one of them")
    return tree


async def rehearsed(tree: Tree, place: Place, processes: SharedDirectory, release: str, say: Callable[[str], None],
                    classes: Mapping[str, str] | None = None) -> Report:
    """A whole rehearsal. Raises what `Rehearsal.run` raises."""
    zookeeper = KazooTree(Access(f"{place.host}:{place.zookeeper}"), seconds=ANSWER_SECONDS)
    try:
        return await Rehearsal(tree, release, classes or {}, Parts(
            place, processes, zookeeper, lambda: KafkaWire({}, seconds=ANSWER_SECONDS), register), say).run()
    finally:
        await zookeeper.close()


def main() -> int:
    """Arguments: the directory with the tree's parts, the one that is shared, the release, and the brokers' own classes as
    KEY=CLASS. 0 where there is a report."""
    tree, replica, release, *own = sys.argv[1:]
    classes = {key: value for key, _, value in (each.partition("=") for each in own)}
    done = conduct(Path(tree), Place(replica), release, MESSAGE, os.environ,
                   lambda line: print(printable(line), flush=True), classes)
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
