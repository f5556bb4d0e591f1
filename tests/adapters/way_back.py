"""The end of a claim by hand, in the order of docs/facts/kraft.md#rollback: as the operator does it."""

from switchover.zookeeper.client.zookeeper import KazooZooKeeper


async def end_claim(tree: KazooZooKeeper) -> None:
    """Behind stopped controllers: the epoch above every partition's, then `/migration`, then `/controller`."""
    left = await tree.state()
    assert left.migration is not None
    assert left.controller is not None
    largest = await tree.partition_epoch()
    assert largest <= max(left.controller_epoch, left.controller.kraft_epoch), "dual write wrote another than its claim's"
    epoch = max(left.controller_epoch, largest + 1)
    await tree.raise_epoch(epoch, left.controller_epoch)
    await tree.delete("/migration", left.migration.version, epoch)
    await tree.delete("/controller", left.controller.version, epoch)
