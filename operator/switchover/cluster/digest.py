"""The facts of a pass over a KafkaMigration that its story tells, in a few words each."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from switchover.answers.observed import NOT_ASKED, Known, Observed
from switchover.cluster.picture import Picture
from switchover.metadata.image import MigrationState
from switchover.zookeeper.nodes import ControllerNode

T = TypeVar("T")


def digest(picture: Picture) -> Mapping[str, str]:
    """Words by their subject. Names, modes and numbers of nodes alone."""
    return dict(_words(picture))


def _words(picture: Picture) -> Iterator[tuple[str, str]]:
    facts = picture.facts
    for name, record in picture.position.nodes.items():
        mode = picture.mode(record.node_id)
        yield name, f"in {mode.value}" if isinstance(mode, Known) and mode.value else "silent"
    if facts.zookeeper is not NOT_ASKED:
        yield "ZooKeeper's controller", _of(facts.zookeeper, lambda state: _controller(state.controller))
    if facts.quorum is not NOT_ASKED:
        yield "the quorum's leader", _of(facts.quorum, lambda quorum: str(quorum.leader_id))
    if facts.log is not NOT_ASKED:
        yield "the metadata log's state", _of(facts.log, lambda log: _state(log.migration_state))
    if views := picture.whole_views:
        yield "replicas", "are not all in sync" if any(view.lagging for view in views.values()) else "are all in sync"


def _of(fact: Observed[T], words: Callable[[T], str]) -> str:
    return f"is {words(fact.value)}" if isinstance(fact, Known) else "cannot be seen"


def _controller(found: ControllerNode | None) -> str:
    if found is None:
        return "nobody"
    return f"broker {found.node_id}" if found.ephemeral else f"KRaft's {found.node_id}"


def _state(found: MigrationState | None) -> str:
    return "none" if found is None else found.name
