"""What is seen of a rehearsal in Kubernetes: its Job, and the tree of ZooKeeper that it is of."""

import asyncio
from collections.abc import Set

from switchover.answers.ask import READ_SECONDS, Background, known
from switchover.answers.clock import Clock
from switchover.answers.observed import NOT_ASKED, Observed
from switchover.cluster.facts import Export, Need
from switchover.cluster.picture import Picture
from switchover.cluster.rehearsal.pack import packed
from switchover.cluster.rehearsal.replica_job import job_name
from switchover.cluster.rehearsal.settings import masked
from switchover.kubernetes.ports import Workloads
from switchover.kubernetes.workloads import JobRun
from switchover.zookeeper.ports import ZooKeeperTree
from switchover.zookeeper.tree import Tree

TREE_SECONDS = 20.0
"""How old the reading of the tree may be before the next one begins."""


class Rehearsals:
    """Reads the tree in the background, while a rehearsal is wanted."""

    def __init__(self, workloads: Workloads, clock: Clock) -> None:
        self._workloads = workloads
        self._clock = clock
        self._tree: Background[Export] = Background("ZooKeeper's metadata is", TREE_SECONDS, clock)

    def forget(self) -> None:
        """End what is under way: nobody asks any more, or it is read through a client that is closed soon."""
        self._tree.forget()

    async def seen(self, named: Set[str], picture: Picture, zookeeper: ZooKeeperTree
                   ) -> tuple[Observed[JobRun | None], Observed[Export]]:
        """The Job and the tree."""
        if Need.REHEARSAL not in named or not picture.spec.rehearsal.enabled:
            self.forget()
            return NOT_ASKED, NOT_ASKED
        name = job_name(picture)
        return await asyncio.gather(
            known(self._workloads.job(name, picture.made.get(f"Job {name}", "")), READ_SECONDS, self._clock),
            self._tree.newest(lambda: _export(zookeeper)))


async def _export(zookeeper: ZooKeeperTree) -> Export:
    """The digest is that of the masked tree, as the replica reports it: what is masked does not change it."""
    tree = await zookeeper.export()
    return await asyncio.to_thread(handed_in, tree)


def handed_in(tree: Tree) -> Export:
    """The tree as a replica is given it: without credentials, in parts."""
    shown = Tree(masked(tree.nodes), tree.denied, tree.gone)
    return Export(shown.digest, packed(shown))
