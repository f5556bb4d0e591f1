"""Which groups are migrated together: those that share topics, packed into waves under caps."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from switchover.pipeline.inventory.group import Group
from switchover.shared.grouped import grouped

TRIED = 20
"""Topics of the largest component whose removal is tried, most shared first."""


@dataclass(frozen=True, slots=True)
class Wave:
    """`groups` are in the order in which they are migrated. `over` says which cap connected groups have burst."""

    number: int
    groups: tuple[str, ...]
    partitions: int
    over: str = ""


@dataclass(frozen=True, slots=True)
class Glue:
    """The topic that holds the largest component of `size` groups together: without it the largest part has `without`."""

    topic: str
    size: int
    without: int


def components(topics: Mapping[str, Iterable[str]], cut: Set[str] = frozenset()) -> list[tuple[str, ...]]:
    """Groups that are connected by shared topics: each sorted, all sorted by their first. `topics` are those of a group."""
    parent = {group: group for group in topics}

    def root(group: str) -> str:
        while parent[group] != group:
            parent[group] = parent[parent[group]]
            group = parent[group]
        return group

    first: dict[str, str] = {}
    for group in sorted(topics):
        for topic in topics[group]:
            if topic not in cut:
                parent[root(group)] = root(first.setdefault(topic, group))
    return sorted(tuple(each) for each in grouped((root(group), group) for group in sorted(topics)).values())


def glue(topics: Mapping[str, Iterable[str]], cut: Set[str] = frozenset()) -> Glue | None:
    """What holds the largest component together; None where nothing does, or no single topic."""
    largest = max(components(topics, cut), key=len, default=())
    within = {group: frozenset(topics[group]) - cut for group in largest}
    shared = Counter(topic for each in within.values() for topic in each)
    best: Glue | None = None
    for topic, count in sorted(shared.items(), key=lambda item: (-item[1], item[0]))[:TRIED]:
        if count > 1:
            without = max(map(len, components(within, cut | {topic})))
            if without < len(largest) and (best is None or without < best.without):
                best = Glue(topic, len(largest), without)
    return best


def pack(groups: Sequence[Group], scores: Mapping[str, int], max_groups: int, max_partitions: int,
         cut: Set[str] = frozenset()) -> tuple[Wave, ...]:
    """Components in ascending risk (the lowest score of their groups counts), each whole, into waves under the caps.

    The order of `groups` does not matter. A component above a cap is a wave of its own and says so.
    """
    by_name = {group.name: group for group in groups}
    connected = components({group.name: group.topics for group in groups}, cut)
    size = {each: sum(by_name[name].partitions for name in each) for each in connected}
    ordered = sorted(connected, key=lambda each: (-min(scores[name] for name in each), size[each], each))
    waves: list[list[tuple[str, ...]]] = []
    for each in ordered:
        now = waves[-1] if waves else None
        if now is not None and sum(map(len, [*now, each])) <= max_groups and sum(
                size[one] for one in [*now, each]) <= max_partitions:
            now.append(each)
        else:
            waves.append([each])
    return tuple(_wave(number, wave, size, max_groups, max_partitions) for number, wave in enumerate(waves, 1))


def _wave(number: int, wave: Sequence[tuple[str, ...]], size: Mapping[tuple[str, ...], int], max_groups: int,
          max_partitions: int) -> Wave:
    names, partitions = tuple(name for each in wave for name in each), sum(size[each] for each in wave)
    over = [f"{len(names)} groups, where {max_groups} are wanted"] * (len(names) > max_groups)
    over += [f"{partitions} partitions, where {max_partitions} are wanted"] * (partitions > max_partitions)
    return Wave(number, names, partitions, "; ".join(over) + (": they share topics" if over else ""))
