"""The facts of a pass over a ConsumerGroupMigration that its story tells, in a few words each."""

from collections import Counter
from collections.abc import Iterator, Mapping

from switchover.answers.observed import NOT_ASKED, Known
from switchover.groups import slots
from switchover.groups.picture import Picture
from switchover.kafka.group import NO_EPOCH, Group


def digest(picture: Picture) -> Mapping[str, str]:
    """Words by their subject. Modes, states and counts alone: a group may have a thousand members."""
    return dict(_words(picture))


def _words(picture: Picture) -> Iterator[tuple[str, str]]:
    facts = picture.facts
    if picture.position.nodes:
        sights = (slots.sight(picture, slot) for slot in picture.position.nodes)
        modes = Counter(found.value.mode if isinstance(found, Known) else "" for found in sights)
        yield "slots", "are " + ", ".join(f"{modes[mode]} {mode or 'in no mode'}" for mode in sorted(modes))
    if isinstance(facts.group, Known):
        yield "the group", _group(facts.group.value)
        yield "its coordinator", f"is broker {facts.group.value.coordinator}"
    elif facts.group is not NOT_ASKED:
        yield "the group", "cannot be seen"
    if isinstance(facts.lag, Known):
        yield "its lag", f"is judged {facts.lag.value.gate.effect.name}"
    if isinstance(facts.zookeeper, Known):
        world = facts.zookeeper.value
        yield "the mode in ZooKeeper", f"is {world.mode or 'none'}"
        yield "members in ZooKeeper", f"are {len(world.acknowledgements)}, and {len(world.old)} of the old consumer"


def _group(group: Group) -> str:
    epoch = f", epoch {group.epoch}" if group.epoch != NO_EPOCH else ""
    return f"is {group.type} and {group.state} with {len(group.members)} members{epoch}"
