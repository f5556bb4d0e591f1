"""Places in a pod template: where the templates of a workload's modes differ, and whether one of them is there.

A place is a path through objects by key, and through lists that are merged (strategic_merge.MERGE_KEYS) by what tells their
items apart, so that it stays the same when others insert an item. Nothing but places is compared and written: whatever else
somebody changes in the template stays theirs.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from switchover.kubernetes.strategic_merge import MERGE_KEYS

OPEN: Final = (("metadata", "annotations"), ("metadata", "labels"), ("spec", "nodeSelector"))
"""Objects whose keys people choose, so that others may add theirs."""


@dataclass(frozen=True, slots=True)
class Item:
    """The item of a list whose `key` has this value."""

    key: str
    value: str | int


Place = tuple[str | Item, ...]


class Absent:
    """Nothing is there, which is not the same as a null."""


ABSENT: Final = Absent()


def as_text(place: Place) -> str:
    """spec.volumes[config].configMap.name"""
    text = ""
    for step in place:
        text += f"[{step.value}]" if isinstance(step, Item) else f".{step}" if text else step
    return text


def found(value: Any, place: Place) -> Any:
    """What is at a place, or ABSENT."""
    for step in place:
        if isinstance(step, Item):
            items = value if isinstance(value, list) else ()
            value = next((item for item in items if isinstance(item, dict) and item.get(step.key) == step.value), ABSENT)
        else:
            value = value.get(step, ABSENT) if isinstance(value, Mapping) else ABSENT
    return value


def leaves(value: Any, place: Place) -> Iterator[tuple[Place, str]]:
    """Every plain value at a place or below it, and every list that is not merged, as texts. The place has an item's key."""
    own = place[-1].key if isinstance(place[-1], Item) else ""
    key = MERGE_KEYS.get(place[-1]) if isinstance(place[-1], str) else None
    if isinstance(value, Mapping) and value:
        for name in [name for name in value if name != own] or value:
            yield from leaves(value[name], (*place, name))
    elif isinstance(value, list) and key is not None and all(isinstance(item, dict) and key in item for item in value):
        for item in value:
            yield from leaves(item, (*place, Item(key, item[key])))
    elif value is not ABSENT:
        yield place, value if isinstance(value, str) else json.dumps(value)


def differences(before: Any, after: Any, at: Place = ()) -> Iterator[Place]:
    """The smallest places where the two are not the same."""
    if before == after:
        return
    if at in OPEN:
        before, after = ({} if side is ABSENT else side for side in (before, after))
    key = MERGE_KEYS.get(at[-1]) if at and isinstance(at[-1], str) else None
    if key is not None and (both := _by_key(before, after, key)) is not None:
        for value in {**both[0], **both[1]}:
            yield from differences(both[0].get(value, ABSENT), both[1].get(value, ABSENT), (*at, Item(key, value)))
    elif isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in {**before, **after}:
            yield from differences(before.get(name, ABSENT), after.get(name, ABSENT), (*at, name))
    else:
        yield at


def _by_key(before: Any, after: Any, key: str) -> tuple[Mapping[Any, Any], Mapping[Any, Any]] | None:
    """The items of both lists by key; None for what are no such lists, or where one has an item twice: a port of TCP and
    of UDP."""
    lists = [[] if side is ABSENT else side for side in (before, after)]
    if not all(isinstance(each, list) and all(isinstance(item, dict) and key in item for item in each) for each in lists):
        return None
    maps = tuple({item[key]: item for item in each} for each in lists)
    return (maps[0], maps[1]) if [*map(len, maps)] == [*map(len, lists)] else None


def outermost(places: Sequence[Place]) -> tuple[Place, ...]:
    """Those that lie in no other one."""
    wanted = dict.fromkeys(places)
    return tuple(place for place in wanted if not any(place[:length] in wanted for length in range(len(place))))


def is_there(live: Any, wanted: Any, modes: Sequence[Any], at: str | Item = "") -> bool:
    """Whether what is wanted is there, as the API server keeps it.

    It fills in fields that nobody named: what is there besides is its own, unless one of the modes has that field. `modes`
    are the values of all of them at the same place, whose last step is `at`.
    """
    if isinstance(live, Mapping) and isinstance(wanted, Mapping):
        named = [mode for mode in modes if isinstance(mode, Mapping)]
        return all(
            is_there(live.get(key, ABSENT), wanted[key], [mode.get(key, ABSENT) for mode in named], key) if key in wanted
            else not any(key in mode for mode in named) for key in {**live, **wanted})
    if isinstance(live, list) and isinstance(wanted, list):
        return len(live) == len(wanted) and all(
            is_there(live[index], wanted[index], [_counterpart(mode, index, wanted[index], at) for mode in modes])
            for index in range(len(wanted)))
    return bool(live == wanted)


def _counterpart(items: Any, index: int, item: Any, at: str | Item) -> Any:
    """The item of another mode's list that an item is to be compared with."""
    if not isinstance(items, list):
        return ABSENT
    if isinstance(at, str) and (key := MERGE_KEYS.get(at)) is not None and isinstance(item, dict):
        return found(items, (Item(key, item.get(key, "")),))
    return items[index] if index < len(items) else ABSENT


# --- writing ------------------------------------------------------------------------------------------------------------


def operations(live: Any, wanted: Any, place: Place, root: str) -> Iterator[Mapping[str, Any]]:
    """The operations of a JSON patch that make a place of `live`, which is changed along, what it is in `wanted`.

    An item that is new comes after the one that it follows in `wanted`; with the last one goes a list that is not there.
    """
    while len(place) > 1 and found(wanted, place[:-1]) is ABSENT and _holds_one(found(live, place[:-1])):
        place = place[:-1]
    value, path = found(wanted, place), root
    for depth, step in enumerate(place):
        last = depth == len(place) - 1
        if isinstance(step, Item):
            index = next((at for at, item in enumerate(live) if item.get(step.key) == step.value), None)
            if last or index is None:                                # somebody may have taken away what the place lies in
                whole, position = found(wanted, place[:depth + 1]), _position(live, found(wanted, place[:depth]), step)
                yield from _item(live, index, whole, position, path)
                return
            live, path = live[index], f"{path}/{index}"
            continue
        path = f"{path}/{step.replace('~', '~0').replace('/', '~1')}"
        if last:
            if value is not ABSENT:
                live[step] = value
                yield {"op": "add", "path": path, "value": value}
            elif step in live:
                del live[step]
                yield {"op": "remove", "path": path}
            return
        if step not in live:
            if value is ABSENT:
                return
            live[step] = [] if isinstance(place[depth + 1], Item) else {}
            yield {"op": "add", "path": path, "value": [] if isinstance(place[depth + 1], Item) else {}}
        live = live[step]


def _holds_one(value: Any) -> bool:
    return isinstance(value, Mapping | list) and len(value) == 1


def _item(live: list[Any], index: int | None, value: Any, position: int, path: str) -> Iterator[Mapping[str, Any]]:
    if index is not None and value is not ABSENT:
        live[index] = value
        yield {"op": "replace", "path": f"{path}/{index}", "value": value}
    elif index is not None:
        del live[index]
        yield {"op": "remove", "path": f"{path}/{index}"}
    elif value is not ABSENT:
        live.insert(position, value)
        yield {"op": "add", "path": f"{path}/{position}", "value": value}


def _position(live: Sequence[Any], wanted: Any, item: Item) -> int:
    """After the last of those there that are before it in the wanted list."""
    before: set[Any] = set()
    for each in wanted if isinstance(wanted, list) else ():
        if each.get(item.key) == item.value:
            break
        before.add(each.get(item.key))
    return max((index + 1 for index, each in enumerate(live) if each.get(item.key) in before), default=0)
