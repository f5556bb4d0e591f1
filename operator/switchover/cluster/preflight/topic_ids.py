"""The topics' ids: ZooKeeper's tree has those that brokers serve, and brokers' logs have them, too.

KRaft knows topics by their ids, and a broker does not serve a log that has another id (docs/facts/kraft.md#topic-ids).
"""

from collections.abc import Iterator, Mapping
from itertools import islice

from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.cluster.reading import brokers_by_pod, configured, examined, of_each_broker, topics_of
from switchover.engine.gate import Verdict, check, fail, several, unknown, wait
from switchover.kafka.node import TopicIds
from switchover.reasons.preflight import TOPIC_ID_DIFFERS, TOPIC_WITHOUT_ID
from switchover.reasons.walk import NOT_OBSERVED
from switchover.text.command import Command, command, kubectl
from switchover.zookeeper.nodes import ZooKeeperTopic

TOLD = 20
"""How many topics are named, each with its command."""


def find_id_trouble(picture: Picture) -> Iterator[Verdict]:
    told = dict(of_each_broker(picture, picture.facts.examination.topic_ids))
    yield from islice(_troubles(picture, told), TOLD)
    for broker_id, ids in told.items():
        if silent := sorted(ids.silent - ids.others.keys()):
            yield unknown(NOT_OBSERVED, f"broker {broker_id} does not report whether its logs of {several(silent)} have the"
                          " topics' ids", subject=several(silent))


def _troubles(picture: Picture, told: Mapping[int, TopicIds]) -> Iterator[Verdict]:
    found, never = topics_of(picture), []
    for name, topic in sorted(found.topics.items()):
        if name in found.pending_deletes:
            continue
        served = sorted({ids.served[name] for ids in told.values() if name in ids.served})
        others = [broker_id for broker_id, ids in told.items() if name in ids.others]
        if others:
            on_disk = _on_disk(picture, f"{name}-{told[others[0]].others[name]}", others[0])
            yield fail(TOPIC_ID_DIFFERS, f"topic {name} has another topic_id on the disks of broker {several(others)} than"
                       " the brokers serve: a broker that restarts no longer serves its partitions", subject=name,
                       observed=several(served), threshold="the id on the disks",
                       unblocks="restart no broker; write the disks' id into ZooKeeper, and have the controller read it: "
                       + _put(picture, topic, name, on_disk, elect=True))
        elif len(served) > 1:
            yield wait(TOPIC_ID_DIFFERS, f"brokers serve topic {name} by several ids", subject=name,
                       observed=several(served), threshold="one id",
                       unblocks="wait until every broker has its id from the controller")
        elif not served:
            never += [name] if topic.topic_id is None else []
        elif topic.topic_id is None:
            yield fail(TOPIC_WITHOUT_ID, f"topic {name} has lost its topic_id in ZooKeeper: the next controller would give"
                       " it an id that its logs do not have", subject=name, observed="none", threshold=served[0],
                       unblocks=f"restart no broker; write its id back: {_put(picture, topic, name, served[0])}")
        elif topic.topic_id != served[0]:
            yield wait(TOPIC_ID_DIFFERS, f"topic {name} has another topic_id in ZooKeeper than the brokers serve it"
                       " by", subject=name, observed=topic.topic_id, threshold=served[0],
                       unblocks="brokers hear of a new topic within seconds; if this lasts for five minutes, restart no"
                       f" broker, and write its id back: {_put(picture, topic, name, served[0])}")
    if never:
        yield fail(TOPIC_WITHOUT_ID, f"{len(never)} topics have no topic_id, and no broker serves them by one: the"
                   " migration would stall", subject=several(never), observed="none",
                   unblocks="raise inter.broker.protocol.version to 3.9 on every broker, one by one: the ZooKeeper"
                   " controller writes ids then")


def _put(picture: Picture, topic: ZooKeeperTopic, name: str, topic_id: str, *, elect: bool = False) -> str:
    """The command that writes a topic's id into its node and leaves all else there as it is.

    It writes nothing where the node is not what it takes it for, or was written meanwhile. `elect`: then the brokers choose
    a controller, which reads it.
    """
    edit = command(r"""'/"topic_id"/!s/^\({{.*\)}}$/\1,"topic_id":"'$i'"}}/p'""" if topic.topic_id is None
                   else r"""'/^{{/s/"topic_id": *"[^"]*"/"topic_id":"'$i'"/p'""")
    return command(
        """(z() {{ zookeeper-shell.sh {} "$@"; }}; p={}; i={}; [[ $i =~ ^[A-Za-z0-9_-]{{22}}$ ]] && n=$(z get -s "$p")"""
        """ && d=$(sed -n {} <<<"$n") && [ "$d" ]"""
        """ && z set -v "$(sed -n 's/^dataVersion = //p' <<<"$n")" "$p" "$d\""""
        + (" && {{ z delete /controller || echo the id is written, and no controller has read it; }}" if elect else "")
        + " || echo nothing was written)",
        picture.spec.zookeeper.connect, f"/brokers/topics/{name}", topic_id, edit)


def _on_disk(picture: Picture, partition: str, broker_id: int) -> Command:
    """What reads the id of a partition's topic where a broker has it."""
    container = next(each.container["name"] for each in configured(picture) if each.broker_id == broker_id)
    pod = next(pod for pod, known in brokers_by_pod(picture).items() if known == broker_id)
    files = [f"{directory.path.rstrip('/')}/{partition}/partition.metadata"
             for directory in dict(examined(picture))[broker_id].log_directories if not directory.offline]
    read = kubectl(picture.namespace, "exec {} --container {} -- cat {}", pod, container, files)
    return command("$({} | sed -n 's/^topic_id: //p')", read)


CHECKS = (
    check("TopicIds", find_id_trouble, "every topic's id is the same in ZooKeeper, as it is served, and on the disks",
          needs=(Need.EXAMINATION, Need.TOPICS_IN_ZOOKEEPER)),
)
