"""The objects of one collection, by name and by what their labels say: to find a few takes no look at the others.

They are kept packed, since most of a namespace's pods may be those of others.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from switchover.packed import Packed

Object = dict[str, Any]


class Labelled:
    """The objects by their names; `put` and `drop` keep the index."""

    def __init__(self, objects: Iterable[Object] = ()) -> None:
        self._named: dict[str, tuple[Mapping[str, str], Packed]] = {}
        self._marked: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        for each in objects:
            self.put(each)

    def get(self, name: str) -> Object | None:
        """The one of that name."""
        return None if (found := self._named.get(name)) is None else self._unpacked(found)

    def carrying(self, labels: Mapping[str, str]) -> list[Object]:
        """Those that carry all the labels."""
        if not labels:
            return [self._unpacked(each) for each in self._named.values()]
        fewest = min((self._marked.get(pair, {}) for pair in labels.items()), key=len)
        found = (self._named[name] for name in fewest)
        return [self._unpacked(each) for each in found if labels.items() <= each[0].items()]

    @staticmethod
    def _unpacked(found: tuple[Mapping[str, str], Packed]) -> Object:
        value: Object = found[1].value()
        return value

    def put(self, found: Object) -> None:
        """It is there, as it is now."""
        name, labels = found["metadata"]["name"], found["metadata"].get("labels") or {}
        self.drop(name)
        self._named[name] = labels, Packed(found)
        for pair in labels.items():
            self._marked[pair][name] = None

    def drop(self, name: str) -> None:
        """It is gone."""
        if (before := self._named.pop(name, None)) is None:
            return
        for pair in before[0].items():
            marked = self._marked[pair]
            del marked[name]
            if not marked:
                del self._marked[pair]
