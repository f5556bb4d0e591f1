"""What runbooks have a person do in ZooKeeper about a group that it coordinates, with an old consumer in Java."""

from pathlib import Path

import pytest

from adapters.clusters import KafkaCluster
from adapters.pasting import Tools
from adapters.trial import trial
from patience import until


@pytest.mark.long
@pytest.mark.case("MalformedRegistration")
def test_old_consumers_go_on_once_a_registration_that_they_cannot_read_is_deleted(
        zookeeper_cluster: KafkaCluster, tmp_path: Path) -> None:
    with trial(zookeeper_cluster, tmp_path) as here:
        old = here.old("old")
        here.settles({"old": 6})
        group, evil = here.members.name, f"{here.members.name}_evil"
        here.zookeeper.create(f"/consumers/{group}/ids/{evil}", b"{")
        until(lambda: here.owned() == {}, "it owns nothing")
        assert here.world().malformed.keys() == {evil}
        looked, _ = Tools(tmp_path).paste_page(
            "MalformedRegistration", like="MEMBER",
            ZOOKEEPER=zookeeper_cluster.zookeeper_connect, GROUP=group, MEMBER=evil)
        assert "ephemeralOwner = 0x0\n" in looked
        here.settles({"old": 6})
        here.ends(old)
        here.judged()
